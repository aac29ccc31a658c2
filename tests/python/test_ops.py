# SPDX-License-Identifier: Apache-2.0
"""Every row of the operation tables against NumPy: element types, broadcasting, layouts, empty arrays, 0-d, NaN and
infinities; and the structured operations."""

import inspect
import itertools
import math

import numpy as np
import pytest

import weft
from weft import _core

BITS = {
    "bool": 1,
    "int8": 2,
    "int16": 2,
    "int32": 2,
    "int64": 2,
    "uint8": 4,
    "uint16": 4,
    "uint32": 4,
    "uint64": 4,
    "float16": 8,
    "float32": 8,
    "float64": 8,
    "complex64": 16,
    "complex128": 16,
}
# Units in the last place of float32/float64 that mathematical functions may be off (glibc's vector functions
# promise 4), by element type.
RTOL = {"float16": 2e-3, "float32": 2e-6, "float64": 4e-15, "complex64": 2e-5, "complex128": 1e-13}

NUMPY = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "pow": "power",
    "conj": "conjugate",
    "round": "rint",
}
OWN = {
    "relu": lambda x: np.maximum(x, np.zeros((), x.dtype)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "elu": lambda x, y: np.where(x > 0, x, np.expm1(np.where(x > 0, 0, x)) * y).astype(x.dtype),
    "leaky_relu": lambda x, y: np.where(x > 0, x, x * y),
    "gelu": lambda x: np.vectorize(
        lambda v: v * math.erfc(-v / math.sqrt(2)) / 2, otypes=["float64"]
    )(x).astype(x.dtype),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": lambda x: np.vectorize(math.erf, otypes=[float])(x).astype(x.dtype),
    "sign": lambda x: (
        np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))).astype(x.dtype)
        if x.dtype.kind == "c"
        else np.sign(x)
    ),
    "round": lambda x: x if x.dtype.kind in "iu" else np.rint(x),
    "floor": lambda x: x if x.dtype.kind in "iu" else np.floor(x),
    "ceil": lambda x: x if x.dtype.kind in "iu" else np.ceil(x),
    "trunc": lambda x: x if x.dtype.kind in "iu" else np.trunc(x),
    "real": lambda x: np.real(x),
    "imag": lambda x: np.imag(x),
    "negative": lambda x: np.negative(x),
    "expm1": lambda x: np.expm1(x),
    "maximum_number": np.fmax,
    "minimum_number": np.fmin,
    "replace_nan": lambda x, y: np.where(np.isnan(x), y, x),
}


def reference(name):
    return OWN.get(name) or getattr(np, NUMPY.get(name, name))


def draw(rng, shape, dtype, domain):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        if domain == "shift":
            return rng.integers(0, 7, shape).astype(dtype)
        low = 1 if domain in ("nonzero", "positive") else (0 if kind == "u" else -9)
        return rng.integers(low, 10, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if domain == "unit":
        x = np.tanh(x) * 0.9
    elif domain == "ge1":
        x = np.abs(x) + 1.01
    elif domain == "positive":
        x = np.abs(x) + 0.1
    elif domain == "nonzero":
        x = np.where(x < 0, x - 0.3, x + 0.3)
    elif domain == "any":
        x = x * 3
    if kind == "c":
        x = x + 1j * rng.standard_normal(shape) * (
            0.1 if domain in ("unit", "positive", "ge1", "small") else 1
        )
    return x.astype(dtype)


def compare(got, want, dtype, floor=None):
    """floor: sizes below it are compared absolutely (results of cancellation)."""
    got = got.numpy()
    assert got.shape == want.shape, (got.shape, want.shape)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    rtol = RTOL[dtype]
    scale = np.where(np.isfinite(want), np.abs(want), 0) if want.size else want
    error = np.abs(
        np.where(np.isfinite(want), got, 0).astype(complex) - np.where(np.isfinite(want), want, 0)
    )
    assert (
        error <= rtol * np.maximum(scale, floor or (1e-3 if dtype == "float16" else 1e-7))
    ).all(), (got, want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


FLOOR = {"logaddexp": 1.0, "gelu": 0.5}


def cases(row):
    return [t for t, bit in BITS.items() if row["types"] & bit]


PAIRS = [(row, t) for row in _core.elementwise_rows for t in cases(row)]


@pytest.mark.parametrize("row,dtype", PAIRS, ids=[f"{r['name']}-{t}" for r, t in PAIRS])
@pytest.mark.filterwarnings("ignore")
def test_every_row_and_type(rng, row, dtype):
    op, ref = _core.operations[row["name"]], reference(row["name"])
    # Sizes around vector widths, the chunk of 1024 and the parallel grain; 0-d and empty.
    shapes = [(), (0,), (1,), (7,), (33,), (3, 5), (1027,)]
    if dtype in ("float32", "int64"):
        shapes.append((70001,))
    if row["arity"] == 1:
        for shape in shapes:
            x = draw(rng, shape, dtype, row["domain"])
            compare(op(weft.asarray(x)), np.asarray(ref(x)), dtype, FLOOR.get(row["name"]))
        x = draw(rng, (6, 8, 4), dtype, row["domain"])
        for view in (lambda a: a[::2], lambda a: a[:, ::-3], lambda a: a[..., 1], lambda a: a[1:1]):
            compare(
                op(view(weft.asarray(x))), np.asarray(ref(view(x))), dtype, FLOOR.get(row["name"])
            )
        compare(
            op(weft.asarray(x).permute((2, 0, 1))),
            np.asarray(ref(x.transpose(2, 0, 1))),
            dtype,
            FLOOR.get(row["name"]),
        )
        return
    for sx, sy in [
        ((), ()),
        ((0,), (1,)),
        ((7,), (7,)),
        ((3, 5), (5,)),
        ((3, 1), (1, 5)),
        ((1027,), ()),
        ((), (40,)),
        ((2, 1, 600), (3, 1)),
        ((4, 0), (1, 1)),
    ]:
        x, y = draw(rng, sx, dtype, row["domain"]), draw(rng, sy, dtype, row["domain"])
        if row["name"] == "pow" and np.dtype(dtype).kind in "iu":
            y = (np.abs(y) % 4).astype(dtype)
        with np.errstate(all="ignore"):
            compare(
                op(weft.asarray(x), weft.asarray(y)),
                np.asarray(ref(x, y)),
                dtype,
                FLOOR.get(row["name"]),
            )
    x, y = draw(rng, (6, 8), dtype, row["domain"]), draw(rng, (8, 6), dtype, row["domain"])
    if row["name"] == "pow" and np.dtype(dtype).kind in "iu":
        y = (np.abs(y) % 4).astype(dtype)
    compare(
        op(weft.asarray(x)[:, ::-1], weft.asarray(y).T),
        np.asarray(ref(x[:, ::-1], y.T)),
        dtype,
        FLOOR.get(row["name"]),
    )


@pytest.mark.parametrize("row", _core.elementwise_rows, ids=lambda r: r["name"])
@pytest.mark.filterwarnings("ignore")
def test_operands_of_every_kind(rng, row):
    """Numbers, lists and arrays of one value give the same, in each place."""
    op, arity = _core.operations[row["name"]], row["arity"]
    for dtype in {"bool", "int64", "float32", "complex64"}.intersection(cases(row)):
        numbers = [draw(rng, (), dtype, row["domain"]).tolist() for _ in range(arity)]
        if row["name"] == "pow":
            numbers[1] = type(numbers[0])(2)
        want = op(*[weft.asarray(x) for x in numbers])
        kinds = [(x, [x], weft.asarray(x), weft.asarray([x])) for x in numbers]
        for given in itertools.product(*kinds):
            got = op(*given)
            assert got.dtype == want.dtype, given
            np.testing.assert_allclose(got.numpy().ravel(), [want.numpy()], 1e-6, err_msg=repr(given))  # fmt: skip
            assert got.ndim == max(weft.asarray(x).ndim for x in given), given


def test_operations_name_their_parameters():
    for row in _core.elementwise_rows:
        op = _core.operations[row["name"]]
        names = ["x"] if row["arity"] == 1 else ["x1", "x2"]
        found = inspect.signature(op).parameters
        assert list(found) == names and op.__name__ == row["name"]
        assert {p.kind for p in found.values()} == {inspect.Parameter.POSITIONAL_ONLY}
        assert op.__doc__.startswith(f"{row['name']}({', '.join(names)}, /)")


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 2.5, -2.5]
)
REAL_ROWS = [
    r
    for r in _core.elementwise_rows
    if r["types"] & 8 and r["name"] not in ("erf", "gelu", "rsqrt", "sigmoid", "sign", "relu")
]


@pytest.mark.parametrize("row", REAL_ROWS, ids=lambda r: r["name"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore")
def test_nan_infinities_and_signed_zeros(row, dtype):
    op, ref = _core.operations[row["name"]], reference(row["name"])
    x = SPECIAL.astype(dtype)
    if row["arity"] == 1:
        got, want = op(weft.asarray(x)).numpy(), ref(x)
    else:
        if row["name"] in ("floor_divide", "remainder"):
            pytest.skip(
                "the standard asks for other results than NumPy here; array-api-tests has the cases"
            )
        a, b = (v.ravel() for v in np.meshgrid(x, x))
        got, want = op(weft.asarray(a), weft.asarray(b)).numpy(), ref(a, b)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    if want.dtype.kind == "f":
        ok = np.isfinite(want)
        # Huge arguments of periodic functions keep no digits in float32's vector functions.
        loose = row["name"] in ("sin", "cos", "tan")
        np.testing.assert_allclose(
            got[ok],
            want[ok],
            rtol=1e-5 if dtype == "float32" else 1e-13,
            atol=1e-3 if loose else 1e-37,
        )
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt", "erf"])
def test_a_result_does_not_depend_on_place_or_layout(rng, name):
    x = np.abs(rng.standard_normal(3000)).astype("float32")
    op = _core.operations[name]
    whole = op(weft.asarray(x)).numpy()
    for start, stop, step in [
        (0, 1, 1),
        (5, 6, 1),
        (1, 18, 1),
        (7, 2900, 1),
        (3, 2999, 7),
        (0, 70, 3),
    ]:
        part = op(weft.asarray(x)[start:stop:step]).numpy()
        np.testing.assert_array_equal(part, whole[start:stop:step])
    for threads in (1, 2):
        weft.set_threads(threads)
        np.testing.assert_array_equal(op(weft.asarray(np.tile(x, 40))).numpy(), np.tile(whole, 40))


REDUCE = [
    (row, t)
    for row in _core.reduce_rows
    for t in BITS
    if row["types"] & BITS[t] or row["rule"] == "boolean"
]


@pytest.mark.parametrize("row,dtype", REDUCE, ids=[f"{r['name']}-{t}" for r, t in REDUCE])
@pytest.mark.filterwarnings("ignore")
def test_reductions(rng, row, dtype):
    op, ref = getattr(weft, row["name"]), getattr(np, row["name"])
    scale = 0.3 if row["name"] == "prod" else 1
    for shape in [
        (),
        (1,),
        (5,),
        (67,),
        (4096,),
        (9001,),
        (3, 5),
        (70, 33),
        (4, 5, 6),
        (2, 3000),
        (3000, 2),
    ]:
        x = draw(rng, shape, dtype, "any")
        if np.dtype(dtype).kind in "fc" and row["name"] == "prod":  # keeps long products in range
            x = (
                x
                / np.maximum(np.abs(x), 1e-3)
                * np.maximum(np.abs(x), 1e-3) ** (scale / max(x.size, 1))
            ).astype(dtype)
        for axis in [
            None,
            *range(-len(shape), len(shape)),
            (0, -1) if len(shape) > 1 else None,
            (),
        ]:
            for keepdims in (False, True):
                a, b = op(weft.asarray(x), axis=axis, keepdims=keepdims), None
                wide = x.astype(
                    {"float16": "float64", "float32": "float64", "complex64": "complex128"}.get(
                        dtype, dtype
                    )
                )
                b = np.asarray(ref(wide, axis=axis, keepdims=keepdims))
                assert a.shape == b.shape
                if b.dtype.kind in "biu":
                    np.testing.assert_array_equal(a.numpy(), b)
                    if np.dtype(dtype).kind in "iu" and row["name"] in ("sum", "prod"):
                        assert a.dtype.name == (
                            "int64" if np.dtype(dtype).kind == "i" else "uint64"
                        )
                else:
                    # Pairwise sums: the error grows with the logarithm of the length, not with the length.
                    # Products multiply their errors: half a unit for each factor.
                    slack = 1 + (x.size / 20 if row["name"] == "prod" else 0)
                    bound = (
                        slack
                        * {
                            "float16": 2e-3,
                            "float32": 5e-6,
                            "float64": 1e-13,
                            "complex64": 3e-5,
                            "complex128": 1e-12,
                        }[dtype]
                    )
                    size = (
                        np.asarray(np.abs(wide).sum(axis=axis, keepdims=keepdims))
                        if row["name"] == "sum"
                        else np.abs(b)
                    )
                    assert (np.abs(a.numpy() - b) <= bound * np.maximum(size, 1e-3)).all(), (
                        shape,
                        axis,
                    )
    for shape, axis in [((0,), None), ((0, 3), 0), ((3, 0), 1)]:
        x = np.zeros(shape, dtype)
        if row["has_identity"]:
            np.testing.assert_array_equal(op(weft.asarray(x), axis=axis).numpy(), ref(x, axis=axis))
        else:
            with pytest.raises(weft.ArgumentError) as info:
                op(weft.asarray(x), axis=axis)
            assert info.value.code == f"array.{row['name']}.empty"


def test_nan_wins_in_max_and_min(rng):
    x = rng.standard_normal((50, 70)).astype("float32")
    x[3, 60] = x[40, 0] = np.nan
    for axis in (None, 0, 1):
        for name in ("max", "min", "argmax", "argmin"):
            np.testing.assert_array_equal(
                getattr(weft, name)(weft.asarray(x), axis=axis).numpy(),
                getattr(np, name)(x, axis=axis),
            )


def test_long_sums_are_accurate_and_deterministic(rng):
    x = rng.random(3_000_001).astype("float32")
    want = x.astype("float64").sum()
    results = []
    for threads in (1, 2):
        weft.set_threads(threads)
        results.append(float(weft.sum(weft.asarray(x))))
    assert results[0] == results[1] and abs(results[0] - want) / want < 1e-6
    y = x[:3_000_000].reshape(3000, 1000)
    np.testing.assert_allclose(
        weft.sum(weft.asarray(y), axis=0).numpy(), y.astype("float64").sum(0), rtol=1e-5
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "float16", "bool"])
def test_matmul(rng, dtype):
    for sa, sb in [
        ((1, 1), (1, 1)),
        ((3, 4), (4, 5)),
        ((7,), (7,)),
        ((7,), (7, 3)),
        ((2, 7), (7,)),
        ((65, 130), (130, 67)),
        ((0, 3), (3, 2)),
        ((3, 0), (0, 2)),
        ((2, 1, 5, 6), (3, 6, 4)),
        ((40, 9, 9), (9, 9)),
        ((129, 800), (800, 45)),
    ]:
        a, b = draw(rng, sa, dtype, "any"), draw(rng, sb, dtype, "any")
        wide = (
            "complex128"
            if dtype == "complex64"
            else "float64"
            if np.dtype(dtype).kind == "f"
            else dtype
        )
        want = a.astype(wide) @ b.astype(wide)
        for x, y in [
            (weft.asarray(a), weft.asarray(b)),
            (weft.asarray(np.asfortranarray(a)), weft.asarray(np.asfortranarray(b))),
        ]:
            got = (x @ y).numpy()
            assert got.dtype == dtype and got.shape == want.shape
            bound = {"float16": 5e-2, "float32": 1e-4, "float64": 1e-11, "complex64": 1e-3}.get(
                dtype, 0
            )
            np.testing.assert_allclose(got, want, rtol=bound, atol=bound * max(1, sa[-1] ** 0.5))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float16", "bool"])
def test_sort_search_and_sets(rng, dtype):
    x = draw(rng, (5, 40), dtype, "any")
    if dtype == "float32":
        x[1, 3] = np.nan
    w = weft.asarray(x)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(weft.sort(w, axis=axis).numpy(), np.sort(x, axis=axis))
        np.testing.assert_array_equal(
            weft.argsort(w, axis=axis).numpy(), np.argsort(x, axis=axis, kind="stable")
        )
    if dtype != "float32":
        down = weft.sort(w, descending=True).numpy()
        np.testing.assert_array_equal(down, np.sort(x)[:, ::-1])
        v, i, inv, c = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        u = weft.unique_all(w)
        np.testing.assert_array_equal(u.values.numpy(), v)
        np.testing.assert_array_equal(u.indices.numpy(), i)
        np.testing.assert_array_equal(u.inverse_indices.numpy().ravel(), inv.ravel())
        np.testing.assert_array_equal(u.counts.numpy(), c)
    if dtype != "bool":
        s = np.sort(draw(rng, (30,), dtype, "any"))
        q = draw(rng, (9,), dtype, "any")
        for side in ("left", "right"):
            np.testing.assert_array_equal(
                weft.searchsorted(weft.asarray(s), weft.asarray(q), side=side).numpy(),
                np.searchsorted(s, q, side),
            )


@pytest.mark.parametrize(
    "spec,shapes",
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("ij->ji", [(3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij,kj,lj->ikl", [(2, 3), (4, 3), (5, 3)]),
        ("ijk->j", [(2, 3, 4)]),
        ("ij,ij->", [(3, 4), (3, 4)]),
        ("a,ab,b->", [(3,), (3, 4), (4,)]),
        ("ij,ij->ji", [(1, 4), (3, 4)]),
        ("i,i->i", [(1,), (5,)]),
        ("...i,...i->...", [(2, 3, 4), (3, 4)]),
        ("ii,jj->", [(3, 3), (4, 4)]),
        ("ij,jk->", [(0, 3), (3, 2)]),
        ("ij,jk->ik", [(2, 0), (0, 2)]),
        ("ij,jk,kl,lm,mn->in", [(3, 40), (40, 5), (5, 60), (60, 7), (7, 2)]),
        ("i,j,k,l,m,ijklm->", [(7,)] * 5 + [(7,) * 5]),
    ],
)
def test_einsum(rng, spec, shapes):
    xs = [rng.standard_normal(s) for s in shapes]
    np.testing.assert_allclose(
        weft.einsum(spec, *[weft.asarray(x) for x in xs]).numpy(),
        np.einsum(spec, *xs),
        rtol=1e-12,
        atol=1e-12,
    )


def test_einsum_refuses():
    for spec, shapes, code in [
        ("ij,jk->ik", [(2, 3), (4, 5)], "extent"),
        ("ij->k", [(2, 3)], "output"),
        ("ijk->i", [(2, 3)], "rank"),
        ("i,j->i", [(2,)], "operands"),
        ("ij->ii", [(2, 2)], "output"),
    ]:
        with pytest.raises(weft.ShapeError, match=f"array.einsum.{code}"):
            weft.einsum(spec, *[weft.ones(s) for s in shapes])


def _multiplications(path, terms, right, size):
    """Sum of the loops' volumes along a path."""
    left, total = [set(t) for t in terms], 0
    for step in path:
        taken = [left.pop(i) for i in sorted(step, reverse=True)]
        both = set().union(*taken)
        total += np.prod([size[c] for c in both], dtype=float)
        left.append(both & set(right).union(*left))
    return total


@pytest.mark.parametrize("seed", range(12))
def test_einsum_orders_long_products_as_cheaply_as_numpy(seed):
    from weft._einsum import contraction_path

    rng = np.random.default_rng(seed)
    letters = "abcdefghijkl"
    terms = ["".join(rng.choice(list(letters), rng.integers(1, 4), False)) for _ in range(9)]
    used = sorted(set("".join(terms)))
    size = {c: int(rng.integers(2, 6)) for c in used}
    right = "".join(rng.choice(used, 2, False))
    spec = ",".join(terms) + "->" + right
    xs = [rng.standard_normal([size[c] for c in t]) for t in terms]
    path = contraction_path(tuple(terms), right, tuple(sorted(size.items())))
    theirs = np.einsum_path(spec, *xs, optimize="greedy")[0][1:]
    ours = _multiplications(path, terms, right, size)
    assert ours <= 2 * _multiplications(theirs, terms, right, size)
    np.testing.assert_allclose(
        np.asarray(weft.einsum(spec, *map(weft.asarray, xs))),
        np.einsum(spec, *xs, optimize=True),
        rtol=1e-9,
        atol=1e-9,
    )


def test_fft_and_linalg_against_numpy(rng):
    for n in (1, 2, 3, 8, 12, 17, 60, 97, 128, 997, 1024, 2310):
        x = rng.standard_normal((2, n)) + 1j * rng.standard_normal((2, n))
        np.testing.assert_allclose(
            weft.fft.fft(weft.asarray(x)).numpy(), np.fft.fft(x), rtol=1e-12, atol=1e-12 * n
        )
        np.testing.assert_allclose(
            weft.fft.ifft(weft.asarray(x), norm="ortho").numpy(),
            np.fft.ifft(x, norm="ortho"),
            rtol=1e-12,
            atol=1e-12,
        )
        r = x.real.copy()
        np.testing.assert_allclose(
            weft.fft.rfft(weft.asarray(r)).numpy(), np.fft.rfft(r), rtol=1e-12, atol=1e-12 * n
        )
        np.testing.assert_allclose(
            weft.fft.irfft(weft.fft.rfft(weft.asarray(r)), n=n).numpy(), r, atol=1e-12
        )
    a = rng.standard_normal((3, 5, 5))
    w = weft.asarray(a)
    np.testing.assert_allclose(weft.linalg.inv(w).numpy(), np.linalg.inv(a), rtol=1e-9)
    np.testing.assert_allclose(weft.linalg.det(w).numpy(), np.linalg.det(a), rtol=1e-10)
    u, s, vh = weft.linalg.svd(w)
    np.testing.assert_allclose(((u * s[:, None, :]) @ vh).numpy(), a, atol=1e-12)
    q, r = weft.linalg.qr(w)
    np.testing.assert_allclose((q @ r).numpy(), a, atol=1e-12)
    with pytest.raises(weft.ArgumentError) as info:
        weft.linalg.inv(weft.zeros((3, 3)))
    assert info.value.code == "array.inv.singular" and "matrix 0" in str(info.value)
    with pytest.raises(weft.ArgumentError) as info:
        weft.linalg.solve(weft.zeros((3, 3)), weft.ones(3))
    assert info.value.code == "array.solve.singular" and "matrix 0" in str(info.value)
    with pytest.raises(weft.ShapeError, match="inv needs square matrices") as info:
        weft.linalg.inv(weft.zeros((2, 3)))
    assert info.value.code == "array.inv.shape"
    with pytest.raises(weft.ArgumentError, match="indefinite"):
        weft.linalg.cholesky(-weft.eye(3))
    with pytest.raises(weft.ShapeError, match="square"):
        weft.linalg.det(weft.ones((2, 3)))


def test_philox_is_the_published_function_and_streams_are_stable():
    # Known answers of the Random123 distribution: zero and all-ones counter and key.
    assert weft._core._random_bits(0, 0, 4, None).tolist() == [
        0x6627E8D5,
        0xE169C58D,
        0xBC57AC4C,
        0x9B00DBD8,
    ]
    k = weft.random.key(7)
    a = weft.random.normal((1000,), key=k)
    assert (a == weft.random.normal((1000,), key=k)).all() and (
        a[:10] == weft.random.normal((10,), key=k)
    ).all()
    one, two = k.split()
    assert not (weft.random.uniform((100,), key=one) == weft.random.uniform((100,), key=two)).any()
    weft.random.seed(3)
    first = weft.random.uniform((50,))
    assert not (first == weft.random.uniform((50,))).any()
    weft.random.seed(3)
    assert (first == weft.random.uniform((50,))).all()
    x = weft.random.normal((200_000,), key=k).numpy()
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01 and x.dtype == "float32"
    u = weft.random.uniform((200_000,), key=k, dtype="float64").numpy()
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.005
    i = weft.random.integers(-3, 4, (10_000,), key=k).numpy()
    assert set(i.tolist()) == set(range(-3, 4))
    assert sorted(weft.random.permutation(100, key=k).tolist()) == list(range(100))


def test_files_round_trip_and_damage_is_refused(rng, tmp_path):
    arrays = {t: weft.asarray(draw(rng, (3, 4), t, "any")) for t in BITS}
    for t, x in arrays.items():
        path = tmp_path / f"{t}.npy"
        weft.save(path, x)
        np.testing.assert_array_equal(np.load(path), x.numpy())
        np.testing.assert_array_equal(weft.load_arrays(path).numpy(), x.numpy())
    np.save(tmp_path / "f.npy", np.asfortranarray(arrays["float32"].numpy()))
    np.testing.assert_array_equal(
        weft.load_arrays(tmp_path / "f.npy").numpy(), arrays["float32"].numpy()
    )
    weft.savez(tmp_path / "all.npz", **arrays)
    with np.load(tmp_path / "all.npz") as z:
        assert set(z) == set(arrays)
    for name, x in weft.load_arrays(tmp_path / "all.npz").items():
        np.testing.assert_array_equal(x.numpy(), arrays[name].numpy())
    st = {k: v for k, v in arrays.items() if k != "complex128"}
    st["bf"] = arrays["float32"].astype("bfloat16")
    weft.save_safetensors(tmp_path / "a.safetensors", st, {"format": "pt"})
    back = weft.load_safetensors(tmp_path / "a.safetensors")
    assert set(back) == set(st) and back["bf"].dtype == "bfloat16"
    for name in st:
        np.testing.assert_array_equal(back[name].numpy(), st[name].numpy())
    # Every prefix and many single damaged bytes: an error of ours or the right shape, never a crash.
    for name in ("float32.npy", "all.npz", "a.safetensors"):
        raw = (tmp_path / name).read_bytes()
        damaged = tmp_path / "damaged"
        for cut in list(range(0, min(len(raw), 200), 3)) + [len(raw) - 1]:
            damaged.write_bytes(raw[:cut])
            with pytest.raises(weft.IOError):
                weft.load_arrays(damaged)
        for _ in range(60):
            at = int(rng.integers(0, min(len(raw), 400)))
            damaged.write_bytes(raw[:at] + bytes([int(rng.integers(0, 256))]) + raw[at + 1 :])
            try:
                weft.load_arrays(damaged)
            except weft.IOError:
                pass
    big = b"\xff" * 7 + b"\x7f" + raw[8:]
    (tmp_path / "big").write_bytes(big)
    with pytest.raises(weft.IOError, match="announces a header"):
        weft.load_safetensors(tmp_path / "big")


@pytest.mark.parametrize("types", [("float32",) * 2, ("float32", "float64"), ("float16",) * 2, ("int32",) * 2, ("bool",) * 2, ("complex64", "float32")])  # fmt: skip
@pytest.mark.parametrize("tensor", [False, True])
def test_einsum_of_many_short_sums(types, tensor, rng):
    """Sums that are products of elements where arrays of one type are added up that way."""
    for spec, shapes in (("bi,bi->b", ((5, 3), (5, 3))), ("abi,abi->ab", ((2, 3, 4), (2, 3, 4))), ("ib,ib->b", ((6, 5), (6, 5))), ("bij,bij->b", ((4, 2, 3), (4, 2, 3))), ("bi,bi->b", ((3, 70), (3, 70)))):  # fmt: skip
        xs = [rng.integers(-3, 4, s).astype(t) for s, t in zip(shapes, types)]
        given = [weft.asarray(x) for x in xs]
        if tensor and np.dtype(types[0]).kind in "fc":
            given = [weft.Tensor(x, requires_grad=False) for x in given]
        want = np.einsum(spec, *xs)
        found = weft.einsum(spec, *given)
        np.testing.assert_array_equal(found.numpy(), want, err_msg=spec)
