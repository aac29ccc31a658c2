# SPDX-License-Identifier: Apache-2.0
"""Products of every layout and type on a device with blocks and threads, beside NumPy in float64."""

import os

import numpy as np
import pytest
from cover import cover
from present import present

import weft
from weft import _core

TOLERANCE = {"float32": 3e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1e-2}


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


@pytest.fixture
def rng():
    seed = int(os.environ.get("WEFT_SEED", "20261122"))
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def numbers(rng, shape, dtype):
    if dtype in ("int32", "int64", "uint8"):
        return rng.integers(0, 7, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return values if dtype == "float64" else rounded(values.astype("float32"), dtype)


def rounded(values, dtype):
    """float32 numbers that the type can hold."""
    return weft.asarray(values).astype(dtype).astype("float32").numpy()


def on(device, values, dtype):
    return weft.asarray(np.ascontiguousarray(values), device=device).astype(dtype)


def check(out, a, b, what):
    dtype = str(out.dtype).replace("weft.", "")
    got = (out.astype("float32") if dtype == "bfloat16" else out).numpy().astype("float64")
    want = a.astype("float64") @ b.astype("float64")
    assert got.shape == want.shape, what
    if dtype in TOLERANCE:
        scale = np.abs(a.astype("float64")) @ np.abs(b.astype("float64"))
        assert np.all(np.abs(got - want) <= TOLERANCE[dtype] * (scale + 1e-3)), what
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def pairs(rng, batch, m, n, k, dtype, device):
    """Operands of all layouts, with their NumPy values."""
    a, b = numbers(rng, (*batch, m, k), dtype), numbers(rng, (*batch, k, n), dtype)
    A, B = on(device, a, dtype), on(device, b, dtype)
    T = lambda x: on(device, np.swapaxes(x, -1, -2), dtype).mT  # noqa: E731
    yield "NN", a, b, A, B
    yield "TN", a, b, T(a), B
    yield "NT", a, b, A, T(b)
    yield "TT", a, b, T(a), T(b)
    wide = numbers(rng, (*batch, 2 * m, k + 5), dtype)
    view = on(device, wide, dtype)[..., ::2, 3 : k + 3]
    yield "rows with gaps", wide[..., ::2, 3 : k + 3], b, view, B
    yield "columns from the last", a[..., ::-1], b, A[..., ::-1], B


SIZES = [(37, 53), (1, 1), (65, 1), (128, 64), (38, 9002)]
VECTORS = [
    ("float32", 3),
    ("bfloat16", 8),
    ("float32", 1),
    ("float32", 16),
    ("bfloat16", 1),
    ("bfloat16", 4),
    ("float16", 2),
    ("float64", 1),
    ("int32", 5),
]


@cover("dtype, columns", VECTORS, "size", SIZES, times=3)
def test_few_vectors_of_every_layout(rng, device, dtype, columns, size):
    rows, k = size
    for m, n in {(rows, columns), (columns, rows)}:
        for layout, a, b, A, B in pairs(rng, (), m, n, k, dtype, device):
            check(A @ B, a, b, f"{m} x {n} x {k} {layout} {dtype}")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_batches_of_few_vectors(rng, device, dtype):
    for m, n, k in [(1, 66, 130), (4, 33, 128), (1, 1, 77)]:
        for layout, a, b, A, B in pairs(rng, (3, 2), m, n, k, dtype, device):
            check(A @ B, a, b, f"batches {m} x {n} x {k} {layout} {dtype}")
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (5, k, n), dtype)
        check(on(device, a, dtype) @ on(device, b, dtype), a, b, "one for all")
        b = numbers(rng, (k, 5, n), dtype)
        between = weft.permute_dims(on(device, b, dtype), (1, 0, 2))
        check(on(device, a, dtype) @ between, a, b.transpose(1, 0, 2), "batch between")


@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_products_of_short_floats_are_rounded_once(rng, device, dtype):
    for m, n, k in [(17, 19, 23), (64, 64, 64), (33, 40, 3000)]:
        for layout, a, b, A, B in pairs(rng, (), m, n, k, dtype, device):
            out = A @ B
            assert str(out.dtype) == dtype
            check(out, a, b, f"{m} x {n} x {k} {layout} {dtype}")
        for layout, a, b, A, B in pairs(rng, (7,), m, n, min(k, 99), dtype, device):
            check(A @ B, a, b, f"7 x {m} x {n} x {k} {layout} {dtype}")


def test_operands_of_two_types(rng, device):
    for m, n in [(40, 3), (3, 40), (40, 50)]:
        for one, other in [("float32", "bfloat16"), ("float16", "float32"), ("int32", "float32")]:
            a, b = numbers(rng, (m, 65), one), numbers(rng, (65, n), other)
            check(on(device, a, one) @ on(device, b, other), a, b, f"{one} {other}")


def test_infinities_and_nan_pass_through(device):
    a = np.zeros((5, 9), "float32")
    a[1, 2], a[3, 8] = np.inf, np.nan
    x = np.ones((9, 2), "float32")
    got = (weft.asarray(a, device=device) @ weft.asarray(x, device=device)).numpy()
    np.testing.assert_array_equal(got, a @ x)
    # What lies beside a view is not read into its sums.
    wide = np.full((6, 16), np.nan, "float32")
    wide[:, :11] = 1
    part = weft.asarray(wide, device=device)[:, :11]
    np.testing.assert_array_equal((part @ weft.ones((11, 3), device=device)).numpy(), 11)


def test_no_element_and_no_summand(device):
    zeros = lambda *shape: weft.zeros(shape, dtype="float32", device=device)  # noqa: E731
    assert (zeros(0, 5) @ zeros(5, 3)).shape == (0, 3)
    np.testing.assert_array_equal((zeros(4, 0) @ zeros(0, 1)).numpy(), np.zeros((4, 1)))


@pytest.mark.parametrize(
    "dtype, tile, reads, options",
    [
        ("float32", 0, ("summed", "wide"), {"wide_store": True}),
        ("float32", 1, ("rows", "summed"), {"rank": 3}),
        ("float32", 2, ("summed", "rows"), {"rank": 3, "wide_store": True}),
        ("float64", 0, ("terms", "wide"), {"instruction": True, "wide_store": True}),
    ],
)
def test_cubins_of_tiles(dtype, tile, reads, options):
    """Programs of a queue that opencl has not: they pass the checks of every program."""
    reason = weft.device("cuda").reason
    if "NVRTC" in reason:
        pytest.skip(f"no NVRTC: {reason}")
    text = _core._contraction_program(dtype, tile, *reads, **options)
    source = weft.build(_core.parse_func(text), target="cuda:arch=sm_90").source()
    loop = source[source.index("cp.async.wait_group 1;") :]
    # The places of several summed axes are tabulated ahead, behind the barrier of the wait.
    assert loop.count("__syncthreads();") == 1
    assert "cp.async.wait_group 0;" in loop
    assert ("__launch_bounds__(256, 2)" in source) == (tile == 0 and dtype == "float32")


@pytest.mark.parametrize("m, n, k", [(33, 20, 20), (200, 128, 100), (64, 64, 33)])
def test_whole_vectors_of_results(rng, device, m, n, k):
    """Rows of whole vectors, by tiles whose threads have two columns or more."""
    a, b = numbers(rng, (2, k, m), "float32"), numbers(rng, (2, k, n), "float32")
    got = (on(device, a, "float32").mT @ on(device, b, "float32")).to("cpu").numpy()
    want = a.astype("float64").swapaxes(1, 2) @ b
    assert np.abs(got - want).max() <= TOLERANCE["float32"] * np.abs(want).max()
