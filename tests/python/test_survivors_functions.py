# SPDX-License-Identifier: Apache-2.0
"""Functions and methods of arrays and layers where random one-line faults (tools/mutate) once survived: mixed kinds of arguments,
unbatched inputs, defaults, one element where many are usual."""

import os
import warnings

import numpy as np
import pytest
import weft

nn, F = weft.nn, weft.nn.functional


def drawn(*shape, seed=1, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def tensor(a, **options):
    return weft.Tensor(weft.asarray(a), **{"requires_grad": False, **options})


def close(got, want, tolerance=1e-5):
    got = got.numpy()
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, tolerance, tolerance)


@pytest.mark.parametrize("kinds", range(8))
def test_layer_norm_of_arrays_and_tensors_mixed(kinds):
    given = [drawn(3, 5), drawn(5, seed=2), drawn(5, seed=3)]
    centred = given[0] - given[0].mean(-1, keepdims=True)
    want = centred / np.sqrt(given[0].var(-1, keepdims=True) + 1e-5) * given[1] + given[2]
    args = [tensor(a) if kinds >> k & 1 else weft.asarray(a) for k, a in enumerate(given)]
    got = weft.layer_norm(*args)
    assert isinstance(got, weft.Tensor if kinds else weft.NDArray)
    close(got, want)


def test_rounding_of_python():
    x = np.array([1.26, -2.5, 0.04, 1234.56])
    for digits in (None, 0, 1, 2):
        close(round(weft.asarray(x), digits), np.round(x, digits or 0), 1e-12)
        assert round(weft.asarray(x[0]), digits) == round(1.26, digits)
    close(round(weft.asarray(x)), np.round(x), 1e-12)


@pytest.mark.parametrize(
    ("shape", "sizes"), [((1,), (3,)), ((1,), ((3,),)), ((), (2,)), ((2, 1), (2, 4)), ((2, 1), ((2, 4),)), ((2, 1), (3, -1, 4)), ((2, 1), ([5, 2, 1],))],
)  # fmt: skip
def test_expand(shape, sizes):
    x = drawn(*shape)
    flat = sizes[0] if not isinstance(sizes[0], int) else sizes
    want = [x.shape[i - len(flat)] if n == -1 else n for i, n in enumerate(flat)]
    close(tensor(x).expand(*sizes), np.broadcast_to(x, want))


def test_keys_that_are_split_share_no_words():
    keys = weft.random.key(7).split(40)
    words = [w for k in keys for w in (k.seed & 0xFFFFFFFF, k.seed >> 32)]
    assert len(set(words)) == len(words) == 80
    assert [k.seed for k in keys] == [k.seed for k in weft.random.key(7).split(40)]
    assert {k.seed for k in weft.random.key(8).split(40)}.isdisjoint(k.seed for k in keys)
    assert len({tuple(weft.random.uniform((3,), key=k).numpy().tolist()) for k in keys}) == 40


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", None])
def test_normal_numbers_of_every_type_are_as_fine_as_the_type(dtype):
    weft.random.seed(5)
    x = weft.random.normal((20001,), 1.0, 2.0, dtype=dtype).numpy()
    assert x.dtype == (dtype or "float32")
    assert abs(x.astype(float).mean() - 1) < 0.06 and abs(x.astype(float).std() - 2) < 0.05
    # Numbers of float64 that were drawn as float32 stay float32's.
    assert (dtype == "float64") == bool((x.astype(np.float32).astype(float) != x).any())


def test_initialisers_want_no_gradient_unless_asked():
    for name in ("zeros", "ones", "constant", "rand", "randn"):
        make = getattr(weft.init, name)
        assert not make(2, 3).requires_grad, name
        assert make(2, 3, requires_grad=True).requires_grad, name


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rest", [(), (4,), (2, 3)])
def test_soft_labels_with_weights(rest, reduction, smoothing):
    logits, weight = drawn(2, 3, *rest), np.array([0.5, 2.0, 1.0], np.float32)
    target = np.exp(drawn(2, 3, *rest, seed=4))
    target /= target.sum(1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    smoothed = target * (1 - smoothing) + smoothing / 3
    each = -(smoothed * log_p * weight.reshape(1, 3, *(1,) * len(rest))).sum(1)
    want = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    got = F.cross_entropy(tensor(logits), tensor(target), weight=weft.asarray(weight), reduction=reduction, label_smoothing=smoothing)  # fmt: skip
    close(got, want)


def windows(x, size, step, axis):
    count = (x.shape[axis] - size) // step + 1
    return np.stack(
        [np.take(x, range(k * step, k * step + size), axis) for k in range(count)], axis
    )


@pytest.mark.parametrize("batched", [True, False])
def test_pools_of_inputs_with_and_without_a_batch(batched):
    x = drawn(2, 3, 8, 6) if batched else drawn(3, 8, 6)
    a = x.ndim - 2
    want = windows(windows(x, 2, 2, a + 1), 2, 2, a).max((a + 1, a + 3))
    for module in (nn.MaxPool2d(2), lambda v: F.max_pool2d(v, 2)):
        close(module(tensor(x)), want)
    close(
        nn.AvgPool2d(2)(tensor(x)), windows(windows(x, 2, 2, a + 1), 2, 2, a).mean((a + 1, a + 3))
    )
    line = x[..., 0]
    close(nn.MaxPool1d(3, 2)(tensor(line)), windows(line, 3, 2, a).max(a + 1))
    close(nn.AvgPool1d(3, 2)(tensor(line)), windows(line, 3, 2, a).mean(a + 1))
    powers = np.abs(line) + 0.1
    close(
        nn.LPPool1d(3, 2)(tensor(powers)),
        (windows(powers, 2, 2, a) ** 3).sum(a + 1) ** (1 / 3),
        1e-4,
    )
    powers = np.abs(x) + 0.1
    want = (windows(windows(powers, 2, 2, a + 1), 2, 2, a) ** 3).sum((a + 1, a + 3)) ** (1 / 3)
    close(nn.LPPool2d(3, 2)(tensor(powers)), want, 1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "relu6",
        "silu",
        "gelu",
        "softplus",
        "mish",
        "hardswish",
        "elu",
        "selu",
        "hardtanh",
        "softsign",
    ],
)
def test_activations_of_integers_are_refused_or_right(name):
    """Only real floats are evaluated by chunks."""
    f = getattr(F, name)
    x = np.array([-3, 0, 1, 7], np.int32)
    try:
        got = f(weft.asarray(x)).numpy()
    except weft.Error:
        return
    want = f(weft.asarray(x.astype(np.float64))).numpy()
    np.testing.assert_allclose(got, want.astype(got.dtype), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("rows", "columns"), [((200, 1), (1, 300)), ((1, 1), (1, 1)), ((200, 1), (1, 1)), ((2, 2), (2, 3)), ((200, 2), (2, 300))],
)  # fmt: skip
def test_scales_of_rows_of_blocks_and_of_all(rows, columns):
    a, b = drawn(200, 256).clip(-3, 3), drawn(256, 300, seed=2).clip(-3, 3)
    a8, b8 = (weft.asarray(v).astype("float8_e4m3fn") for v in (a, b))
    sa, sb = (np.abs(drawn(*s, seed=3)) + 0.5 for s in (rows, columns))

    def wide(scale, shape):
        for axis, extent in enumerate(shape):
            if scale.shape[axis] not in (1, extent):
                scale = np.repeat(scale, 128, axis).take(range(extent), axis)
        return np.broadcast_to(scale, shape)

    want = (a8.astype("float32").numpy() * wide(sa, a.shape)) @ (b8.astype("float32").numpy() * wide(sb, b.shape))  # fmt: skip
    got = F.scaled_mm(a8, b8, weft.asarray(sa), weft.asarray(sb), dtype="float32")
    close(got, want, 2e-3)


def test_files_are_written_where_the_host_has_no_files_without_names(tmp_path, monkeypatch):
    x = weft.asarray(drawn(3, 4))
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    weft.save(tmp_path / "x.npy", x)
    close(weft.load_arrays(tmp_path / "x.npy"), x.numpy())
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("make", [weft.asarray, lambda a: tensor(a, requires_grad=True)])
def test_reductions_over_axes_without_elements(make, keepdims, name):
    for shape in ((0,), (3, 0, 2), (0, 2), (2, 0, 0), (2, 3)):
        x = np.ones(shape, np.float32)
        for axis in [None, *range(len(shape)), *([(0, 1), (-1, -2)] if len(shape) > 1 else [])]:
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
            except ValueError:  # there is nothing where NumPy refuses and no result is asked for
                gone = range(len(shape)) if axis is None else np.atleast_1d(axis) % len(shape)
                if 0 in np.delete(shape, list(gone)):
                    assert (
                        getattr(weft, name)(make(x), axis=axis, keepdims=keepdims).numpy().size == 0
                    )
                    continue
                with pytest.raises(weft.Error, match=f"array.{name}.empty"):
                    getattr(weft, name)(make(x), axis=axis, keepdims=keepdims)
                continue
            got = getattr(weft, name)(make(x), axis=axis, keepdims=keepdims).numpy()
            assert got.shape == want.shape, (shape, axis)
            np.testing.assert_array_equal(got, want)


def test_gradients_are_forgotten_or_become_zeros():
    given = [tensor(drawn(3), requires_grad=True) for _ in range(2)]
    opt = weft.optim.SGD(given, lr=0.1)
    for options, want in (({"set_to_none": False}, 0.0), ({}, None), ({"set_to_none": True}, None)):
        for p in given:
            p.grad = None
        (given[0] * 3.0).sum().backward()
        assert given[1].grad is None
        opt.zero_grad(**options)
        assert given[1].grad is None
        if want is None:
            assert given[0].grad is None
        else:
            assert given[0].grad.numpy().tolist() == [0.0] * 3


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_plateau_begins_at_the_first_step(mode):
    opt = weft.optim.SGD([tensor(drawn(2), requires_grad=True)], lr=1.0)
    plan = weft.optim.lr_scheduler.ReduceLROnPlateau(opt, mode, factor=0.5, patience=1, cooldown=1)
    assert plan.state_dict() == {
        "best": float("inf") if mode == "min" else -float("inf"),
        "bad": 0,
        "cooling": 0,
    }
    rates = []
    for metric in (float("nan"), float("nan"), float("nan"), float("nan"), float("nan")):
        plan.step(metric)
        rates += plan.get_last_lr()
    # Two bad steps halve the rate, the step after that is not counted.
    assert rates == [1.0, 0.5, 0.5, 0.5, 0.25]


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (4, 1), (2, 3, 2), (1, 1)])
def test_norms_of_matrices(shape, order):
    x = drawn(*shape, dtype="float64")
    for keepdims in (False, True):
        got = weft.linalg.matrix_norm(weft.asarray(x), ord=order, keepdims=keepdims)
        close(got, np.linalg.norm(x, order, (-2, -1), keepdims), 1e-9)
    close(
        weft.linalg.matrix_norm(weft.asarray(x), ord=order),
        np.linalg.norm(x, order, (-2, -1)),
        1e-9,
    )


@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, np.inf])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_norms_of_empty_matrices(shape, order):
    assert (
        weft.linalg.matrix_norm(weft.zeros(shape), ord=order).numpy().tolist()
        == np.zeros(shape[:-2]).tolist()
    )


ROWS = {
    "softmax": lambda x, axis: (e := np.exp(x - x.max(axis, keepdims=True))) / e.sum(axis, keepdims=True),
    "log_softmax": lambda x, axis: x - x.max(axis, keepdims=True) - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True)),
    "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_compiled_rows_along_every_axis(name, axis):
    x = drawn(2, 3, 5) + np.arange(5, dtype=np.float32)
    got = weft.compile(lambda v: getattr(weft, name)(v, axis=axis) * 2.0)(weft.asarray(x))
    close(got, ROWS[name](x, axis) * 2)
    if name == "logsumexp":
        got = weft.compile(lambda v: weft.logsumexp(v, axis=axis, keepdims=True) * 2.0)(
            weft.asarray(x)
        )
        close(got, 2 * np.log(np.exp(x).sum(axis, keepdims=True)))


@pytest.mark.parametrize("shapes", [((5,), (5,)), ((1, 5), (5,)), ((3, 1), (1, 5))])
def test_compiled_layer_norm_with_other_shapes_of_scale(shapes):
    x, scale, shift = drawn(3, 5), drawn(*shapes[0], seed=2), drawn(*shapes[1], seed=3)
    try:
        got = weft.compile(lambda *a: weft.layer_norm(*a) + 1.0)(
            *map(weft.asarray, (x, scale, shift))
        )
    except weft.Error as error:
        assert shapes[0] != (5,) and error.code
        return
    centred = x - x.mean(-1, keepdims=True)
    close(got, centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift + 1)


def test_a_gradient_of_a_compiled_function_traces_it_once():
    calls = []

    def body(x):
        calls.append(1)
        return (x * x).sum()

    slope = weft.grad(weft.compile(body))
    for k in (1.0, 2.0, 3.0):
        close(slope(tensor(np.full(3, k, np.float32))), np.full(3, 2 * k))
    assert len(calls) == 1


@pytest.mark.parametrize("widths", [1, [(1, 2)], [(0, 3)]])
def test_vmap_of_pad(widths):
    x = drawn(4, 3)
    got = weft.vmap(lambda v: weft.pad(v, widths))(weft.asarray(x))
    close(got, np.stack([np.pad(row, widths) for row in x]))


def test_vmap_of_pad_of_several_axes():
    x = drawn(4, 3, 2)
    for widths in ([(1, 0), (0, 2)], 2):
        got = weft.vmap(lambda v: weft.pad(v, widths))(weft.asarray(x))  # noqa: B023
        close(got, np.stack([np.pad(row, widths) for row in x]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_vmap_of_take_with_indices_of_each_example(axis):
    x, index = drawn(3, 5, 4), np.array([[0, 2], [1, 1], [2, 0], [0, 0]])
    shared, one = weft.asarray(x), weft.asarray(index)
    close(weft.vmap(lambda i: weft.take(shared, i, axis=axis))(one), np.stack([np.take(x, i, axis) for i in index]))  # fmt: skip
    many = np.stack([x + k for k in range(4)])
    want = np.stack([np.take(v, i, axis) for v, i in zip(many, index)])
    close(weft.vmap(lambda v, i: weft.take(v, i, axis=axis))(weft.asarray(many), one), want)


def test_lengths_of_batched_values():
    seen = []

    def body(v):
        seen.append(len(v))
        return weft.stack([row * 2.0 for row in v])

    x = drawn(3, 4, 2)
    close(weft.vmap(body)(weft.asarray(x)), x * 2)
    assert set(seen) == {4}
    with pytest.raises(weft.Error):
        weft.vmap(lambda v: v * float(len(v)))(weft.asarray(drawn(3)))


def test_ends_of_types_as_constants():
    te = weft.te
    assert str(te.max_value("bool")) != str(te.min_value("bool"))
    for dtype in ("int8", "uint8", "int32", "uint32", "int64", "float32", "float64"):
        info = np.finfo(dtype) if "float" in dtype else np.iinfo(dtype)
        for make, value in ((te.max_value, info.max), (te.min_value, info.min)):
            out = weft.zeros((1,), dtype=dtype)
            f = te.create_prim_func([te.compute((1,), lambda i: make(dtype), name="O")])  # noqa: B023
            weft.build(f)(out)
            assert out.numpy()[0] == np.asarray(value, dtype), (dtype, make)


@pytest.mark.parametrize(("form", "head"), [("truncated", 3), ("truncated", 7)])
def test_texts_of_gguf_that_end_early(form, head, tmp_path):
    """The count says more bytes than there are: also where as many lie before it."""
    import struct

    key = b"k" * 40
    text = (
        struct.pack("<Q", 60) + b"x" * head
    )  # 60 bytes are announced; 60 and more lie before them
    data = (
        b"GGUF"
        + struct.pack("<IQQ", 3, 0, 1)
        + struct.pack("<Q", len(key))
        + key
        + struct.pack("<I", 8)
        + text
    )
    (tmp_path / "x.gguf").write_bytes(data)
    with pytest.raises(weft.Error) as caught:
        weft.load_gguf(tmp_path / "x.gguf")
    assert caught.value.code in ("io.gguf.truncated", "io.gguf.limit"), str(caught.value)
