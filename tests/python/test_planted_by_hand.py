# SPDX-License-Identifier: Apache-2.0
"""What faults planted by hand changed and no other test saw: rules of histograms, parts of data sets, statistics, signs of zero."""

import numpy as np
import pytest
import weft
from weft import te

DEVICES = [d for d in ("cpu", "opencl:0") if weft.device(d).available]


@pytest.mark.parametrize("rule", ["auto", "sqrt", "sturges", "rice", "scott", "fd"])
def test_edges_by_rules(rule, rng):
    x = np.concatenate([rng.normal(0, 1, 700), [4.0, -4.0]])
    for limits in (None, (-2.0, 4.0), (-4.0, 1.5)):
        wanted = np.histogram_bin_edges(x, rule, limits)
        found = weft.histogram_bin_edges(weft.asarray(x), rule, limits)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
    # An element at the end of the range counts: without it one bin fewer.
    for n in range(2, 40):
        x = np.arange(n + 1) / n
        wanted = np.histogram_bin_edges(x, rule, (0.0, 1.0))
        assert weft.histogram_bin_edges(weft.asarray(x), rule, (0.0, 1.0)).shape == wanted.shape, n


def test_fractions_of_a_data_set():
    for n in (1, 7, 10, 11, 13):
        data = weft.data.ArrayDataset(weft.arange(n))
        parts = weft.data.random_split(data, [0.5, 0.25, 0.25])
        least = [int(n * f) for f in (0.5, 0.25, 0.25)]
        lengths = [m + (i < n - sum(least)) for i, m in enumerate(least)]
        assert [len(p) for p in parts] == lengths
        seen = sorted(int(p[k][0]) for p in parts for k in range(len(p)))
        assert seen == list(range(n))


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (3, 3, 2, 2)])
@pytest.mark.parametrize("momentum", [0.1, 0.5, None])
def test_running_variances_are_of_the_population(shape, momentum, rng):
    layer = {2: weft.nn.BatchNorm1d, 3: weft.nn.BatchNorm1d, 4: weft.nn.BatchNorm2d}[len(shape)](3, momentum=momentum)  # fmt: skip
    mean, var, axes = np.zeros(3), np.ones(3), (0, *range(2, len(shape)))
    for k in range(3):
        x = rng.normal(2, 3, shape).astype("float32")
        layer(weft.Tensor(weft.asarray(x)))
        share = momentum or 1 / (k + 1)
        mean = (1 - share) * mean + share * x.mean(axes)
        var = (1 - share) * var + share * x.astype("float64").var(axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_the_nearest_of_two_neighbours(device):
    x = weft.asarray([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], device=device, dtype="float16")
    for q in np.arange(0, 101, 5):
        wanted = np.percentile(x.numpy().astype("float64"), q, method="nearest")
        for given in (x, x.astype("float32")):
            assert float(weft.percentile(given, float(q), method="nearest")) == wanted, q


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["abs", "relu", "sqrt", "positive", "negative", "sign"])
def test_zeros_with_a_sign_in_compiled_functions(name, dtype):
    """A block of nothing but zeros and larger numbers is not one of positive numbers."""
    f = getattr(weft, name, None) or getattr(weft.nn.functional, name)
    for first in (-0.0, 0.0):
        x = weft.asarray(np.where(np.arange(5000) % 7 == 3, first, 2.0), dtype=dtype)
        found = weft.compile(lambda v: f(f(v) * 1.0))(x)
        wanted = f(f(x) * 1.0)
        np.testing.assert_array_equal(np.signbit(found.numpy()), np.signbit(wanted.numpy()))


@pytest.mark.parametrize("target", ["cpu", "c", "ref"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("divisor", [-1, -2, 3])
def test_quotients_by_constants(target, dtype, divisor):
    least = np.iinfo(dtype).min
    x = np.array([least, least + 1, -7, -1, 0, 1, 6, np.iinfo(dtype).max], dtype)
    A = te.placeholder((8,), dtype, name="A")
    B = te.compute((8,), lambda i: te.floordiv(A[i], te.const(divisor, dtype)), name="B")
    C = te.compute((8,), lambda i: te.floormod(A[i], te.const(divisor, dtype)), name="C")
    module = weft.build(te.create_prim_func([A, B, C]), target=target)
    device = weft.device({"c": "c", "ref": "ref"}.get(target, "cpu"))
    a, b, c = (weft.asarray(v, device=device) for v in (x, np.zeros_like(x), np.zeros_like(x)))
    module["main"](a, b, c)
    wanted = [v // divisor for v in x.tolist()]
    wanted = np.array([(w + 2 ** (8 * x.itemsize - 1)) % 2 ** (8 * x.itemsize) - 2 ** (8 * x.itemsize - 1) for w in wanted], dtype)  # fmt: skip
    np.testing.assert_array_equal(b.numpy(), wanted)
    np.testing.assert_array_equal(c.numpy(), np.array([v % divisor for v in x.tolist()], dtype))


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("n", range(2, 9))
def test_windows_that_begin_behind_the_last_element(n, kind):
    """With ceil_mode a window that would begin in the border behind the elements is left out."""
    torch = pytest.importorskip("torch")
    x = np.arange(1, n + 1, dtype=np.float32).reshape(1, 1, n)
    for kernel, stride in ((2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (3, 5), (4, 6)):
        for padding in range(kernel // 2 + 1):
            if n + 2 * padding < kernel:
                continue
            layer = f"{kind.title()}Pool1d"
            found = getattr(weft.nn, layer)(kernel, stride, padding, ceil_mode=True)(
                weft.asarray(x)
            )
            wanted = getattr(torch.nn, layer)(kernel, stride, padding, ceil_mode=True)(
                torch.from_numpy(x)
            )
            np.testing.assert_allclose(
                found.numpy(), wanted.numpy(), rtol=1e-6, err_msg=f"{kernel} {stride} {padding}"
            )


@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_extremes_share_the_gradient(name):
    x = weft.Tensor([[1.0, 1.0, 0.5], [2.0, 2.0, 2.0], [0.0, 1.0, 2.0]], requires_grad=True)
    (getattr(x, name)(axis=1) * weft.asarray([1.0, 6.0, 10.0])).sum().backward()
    wanted = {
        "max": [[0.5, 0.5, 0], [2, 2, 2], [0, 0, 10]],
        "min": [[0, 0, 1], [2, 2, 2], [10, 0, 0]],
    }
    np.testing.assert_array_equal(x.grad.numpy(), np.array(wanted[name], np.float32))


def test_lists_of_integers_beyond_int64():
    for given in ([2**63, 1], [1, 2**64 - 1], [[0], [2**63]]):
        found, wanted = weft.asarray(given), np.array(given, np.uint64)
        assert str(found.dtype) == "uint64"
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert str(weft.asarray([2**63 - 1, 0]).dtype) == "int64"


def test_one_negative_extent_is_refused():
    weft.random.seed(3)
    wanted = weft.random.normal((4,)).numpy()
    weft.random.seed(3)
    for shape in ((-1,), (3, -1), -1):
        for draw in (weft.random.normal, weft.random.uniform):
            with pytest.raises(weft.ArgumentError, match="negative extent -1"):
                draw(shape)
    assert (weft.random.normal((4,)).numpy() == wanted).all()  # nothing was drawn for them


def test_ends_of_bool_in_programs():
    assert str(te.max_value("bool")) == str(te.const(True, "bool"))
    assert str(te.min_value("bool")) == str(te.const(False, "bool"))


def test_arguments_that_have_a_place_only_are_taken_by_name():
    x = weft.asarray([1.0, 2.0, 4.0])
    assert weft.diff(x=x).tolist() == [1, 2]
    assert float(weft.logsumexp(x=x)) == pytest.approx(float(weft.logsumexp(x)))
    with pytest.raises(weft.DTypeError):
        weft.diff(x, x=x)


def test_functions_of_numpy_keep_the_graph_beside_numpys_arrays():
    t = weft.Tensor([2.0, 3.0], requires_grad=True)
    out = np.multiply(t, np.array([4.0, 5.0], np.float32))
    assert isinstance(out, weft.Tensor) and out.requires_grad
    out.sum().backward()
    assert t.grad.tolist() == [4, 5]
    beside = np.add(
        weft.ones(2), np.array([1, 2], object)
    )  # of what weft has no type for, NumPy's own
    assert [float(v) for v in beside] == [2, 3]


def test_parameters_without_a_gradient_do_not_move_by_the_largest_rule():
    x = np.array([1.0, -2.0, 3.0, 0.5], np.float32)
    p = weft.nn.Parameter(weft.asarray(x))
    optimizer = weft.optim.Adamax([p], lr=0.1, betas=(0.9, 0.99), eps=1e-8)
    m, v, want = np.zeros(4), np.zeros(4), x.astype(np.float64)
    for step, g in enumerate(([0, 0.5, -2, 0], [0, 0, 1e-3, 4], [0, -1, 0, 0]), 1):
        p.grad = weft.Tensor(weft.asarray(np.array(g, np.float32)))
        optimizer.step()
        g = np.array(g)
        m, v = 0.9 * m + 0.1 * g, np.maximum(0.99 * v, np.abs(g) + 1e-8)
        want = want - 0.1 / (1 - 0.9**step) * m / v
        np.testing.assert_allclose(p.numpy(), want, rtol=1e-5)
    assert p.numpy()[0] == 1.0


@pytest.mark.parametrize("n, ranks", [(5, 3), (7, 4), (2, 5), (9, 2), (6, 3)])
def test_ranks_begin_again_at_the_first_samples(n, ranks):
    data = weft.data.ArrayDataset(weft.arange(n))
    each = -(-n // ranks)
    order = (list(range(n)) * (each * ranks // n + 1))[: each * ranks]
    for rank in range(ranks):
        sampler = weft.data.DistributedSampler(data, ranks, rank, shuffle=False)
        assert list(sampler) == order[rank::ranks] and len(sampler) == each
