# SPDX-License-Identifier: Apache-2.0
"""Ranges, counts and positions at the ends of their types: the result is NumPy's, or an error of weft."""

import warnings

import numpy as np
import pytest
import weft

DEVICES = [d for d in ("cpu", "opencl:0") if weft.device(d).available]


def counted(x, edges):
    """By the definition: bins are closed below and open above, the last one is closed."""
    out = [int(((x >= a) & (x < b)).sum()) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    out[-1] += int((x == edges[-1]).sum())
    return out


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("values", "bins", "range"),
    [
        ([0.0, 1e-45, 3e-45, 7e-45], 3, None),  # a proportion that is infinite in float32
        ([0.0, 5e-324, 1.5e-323], 3, None),  # and in float64
        ([0.0, 0.0, 1.0], 5, (0.0, 1e-50)),  # all ends round to one number of float32
        ([np.inf, 1.0, -np.inf, np.nan], 4, (1e300, 1e301)),  # infinite ends in float32
        ([-3e38, 3e38, 0.0, 1.0], 4, None),  # the width overflows float32
        ([-1.7e308, 1.7e308, 0.0, 1e308, -1e300], 7, None),  # and float64
        ([0.0, 0.999999, 0.5, 1.0, 0.25], 9973, None),
        ([1e7, 1e7 + 1, 1e7 + 2, 1e7 + 5], 1000, None),  # more bins than numbers between the ends
    ],
)
def test_histograms_of_ranges_without_a_proportion(values, bins, range, dtype, device):
    with np.errstate(over="ignore"):
        x = np.array(values, dtype)
    if range is None and not np.isfinite([x.min(), x.max()]).all():
        return
    for weights in (None, weft.ones(len(values), device=device)):
        counts, edges = weft.histogram(weft.asarray(x, device=device), bins, range, weights=weights)
        ends = edges.numpy()
        wanted = counted(x, ends)
        if ends[0] < ends[-1] < np.inf:
            assert counts.tolist() == wanted, (values, bins, range)
        if not np.isnan(ends).any():  # as NumPy's of a width that overflows
            assert sum(counts.tolist()) == ((x >= ends[0]) & (x <= ends[-1])).sum()


@pytest.mark.parametrize("weights", [None, [1.0, 2.0]])
def test_bincount_of_the_largest_integer(weights):
    x = weft.asarray([1, 2**63 - 1], dtype="int64")
    with pytest.raises(weft.Error):
        weft.bincount(x, None if weights is None else weft.asarray(weights))


EMPTY = [((0, 2), (1,)), ((2, 0, 3), (0, 2)), ((0,), (0,)), ((3, 2, 0), (0, 1, 2))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "count_nonzero", "mean", "var", "max", "argmin"])  # fmt: skip
def test_reductions_of_empty_arrays_that_run_backwards(name, device):
    for shape, turned in EMPTY:
        x = weft.flip(weft.zeros(shape, device=device), axis=turned)
        for axis in (None, *range(len(shape))):
            reference = np.zeros(shape, "float32")
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of means of nothing
                    wanted = getattr(np, name)(reference, axis=axis)
            except ValueError:  # no largest of nothing
                with pytest.raises(weft.Error):
                    getattr(weft, name)(x, axis=axis)
                continue
            found = getattr(weft, name)(x, axis=axis)
            np.testing.assert_array_equal(found.numpy(), wanted, err_msg=f"{shape} {turned} {axis}")


class Mine(Exception):
    pass


class Raising:
    def __index__(self):
        raise Mine


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda x: x.reshape(2, ()), "array.dims.type", "shape must be an integer or a tuple of them, got ("),
        (lambda x: x.reshape((1, 2), 3), "array.dims.type", "1, 2)"),
        (lambda x: x.reshape(np.array([[1, 2]]), 3), "array.dims.type", "shape must be"),
        (lambda x: x.reshape(2**63, 1), "array.size.overflow", "beyond 64 bits"),
        (lambda x: x.sum(np.ones((2, 2), int)), "array.dims.type", "axis must be"),
        (lambda x: x.sum(axis=10**30), "array.size.overflow", "beyond 64 bits"),
        (lambda x: x.sum(axis=range(10**12)), "array.dims.type", "got range(0, 1000000000000)"),
        (lambda x: weft.ones(range(10**12)), "array.dims.type", "got range(0, 1000000000000)"),
        (lambda x: x["a":], "array.index.slice", "an index has the ends slice('a', None, None)"),
        (lambda x: x[0, 1.5:], "array.index.slice", "legal: integers or None"),
        (lambda x: x[::0], "array.index.step", "an index has the step 0: slice(None, None, 0)"),
    ],
)  # fmt: skip
def test_numbers_of_shapes_axes_and_slices(call, code, words):
    for x in (weft.ones((2, 3)), weft.Tensor(weft.ones((2, 3)), requires_grad=True)):
        with pytest.raises(weft.Error) as caught:
            call(x)
        assert caught.value.code == code and words in str(caught.value), str(caught.value)
        assert "help: " in str(caught.value)


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda x: weft.polynomial.polyvander(x, 2**63), "polynomial.degree", "legal: 0 to 65536"),
        (lambda x: weft.mvlgamma(x, 2**63), "array.mvlgamma.dimension", "mvlgamma of dimension 9223372036854775808"),
        (lambda x: weft.mvlgamma(x, 0), "array.mvlgamma.dimension", "1 to 65536"),
    ],
)  # fmt: skip
def test_counts_without_end(call, code, words):
    with pytest.raises(weft.Error) as caught:
        call(weft.ones((2, 3)))
    assert caught.value.code == code and words in str(caught.value), str(caught.value)


@pytest.mark.parametrize("call", [lambda x: x.reshape(Raising(), 3), lambda x: x.sum(Raising()), lambda x: x[Raising() :]])  # fmt: skip
def test_what_an_object_of_the_caller_raises_stays(call):
    with pytest.raises(Mine):
        call(weft.ones((2, 3)))


def test_arrays_of_one_number_are_numbers_of_shapes():
    for two in (np.array(2), np.int8(2), weft.asarray(2)):
        assert weft.ones(two).shape == (2,) and weft.ones((3, 2)).sum(axis=two - 1).shape == (3,)
        assert weft.ones((3, 2)).reshape(two, 3).shape == (2, 3)


def deep(levels):
    x = 1.0
    for _ in range(levels):
        x = [x]
    return x


@pytest.mark.parametrize("name", ["hann_window", "block_diag", "conj_physical", "matvec", "linspace", "asarray", "median"])  # fmt: skip
def test_sequences_without_end(name):
    endless = []
    endless.append(endless)
    for given in (endless, {"a": endless}, deep(5000), (1, slice(endless, None))):
        for arguments in ((given,), (given, given)):
            with pytest.raises(weft.Error):
                getattr(weft, name)(*arguments)


def test_memory_of_python_s_objects():
    for call in (weft.asarray, lambda x: weft.nn.Embedding(4, 3)(x)):
        with pytest.raises(weft.DTypeError, match="array of memoryview") as caught:
            call(np.zeros(3, object).data)
        assert caught.value.code == "array.asarray.type"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", ["array", "tensor", "compiled"])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("mean", lambda x: weft.mean(x)),
        ("mean of columns", lambda x: weft.mean(x, axis=0)),
        ("mean of marked", lambda x: weft.mean(x, where=x > 1)),
        ("vector norm", lambda x: weft.linalg.vector_norm(x, axis=0)),
        ("3-norm", lambda x: weft.linalg.vector_norm(x, ord=3)),
        ("matrix norm", lambda x: weft.linalg.matrix_norm(x)),
        ("norm of a method", lambda x: x.norm()),
        ("mse_loss", lambda x: weft.nn.functional.mse_loss(x, x * 0)),
        ("l1_loss", lambda x: weft.nn.functional.l1_loss(x, x * 0)),
        ("pooled", lambda x: weft.nn.functional.adaptive_avg_pool1d(x.T[None], 1)),
        ("cosine", lambda x: weft.nn.functional.cosine_similarity(x, x, 0)),
        ("normalize", lambda x: weft.nn.functional.normalize(x, axis=0)),
        ("distance", lambda x: weft.nn.functional.pairwise_distance(x.T, -x.T)),
    ],
)
def test_narrow_floats_whose_sum_is_beyond_the_type(name, call, form, dtype):
    """The mean is in the range where the sum is not: float16 ends at 65504, and bfloat16 counts in steps there."""
    rng = np.random.default_rng(5)
    values = weft.asarray((rng.random((40_003, 3)) + 1.5).astype("float32")).astype(dtype)
    want = call(values.astype("float32")).numpy()
    run = weft.compile(call) if form == "compiled" else call
    got = run(weft.Tensor(values) if form == "tensor" else values)
    assert got.dtype == dtype
    got = (got.detach() if form == "tensor" else got).astype("float32").numpy()
    np.testing.assert_allclose(got, want, rtol=2e-3 if dtype == "float16" else 1.6e-2)


def test_the_gradient_of_a_narrow_mean():
    x = weft.Tensor(weft.full((70_000,), 2.0, dtype="float16"), requires_grad=True)
    (x.mean() * 1024).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full(70_000, 1024 / 70_000), rtol=1e-3)
