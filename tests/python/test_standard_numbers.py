# SPDX-License-Identifier: Apache-2.0
"""Statistics, products, factorisations and transforms of the array API standard 2024.12 with drawn types, odd shapes, options and special values,
against NumPy or against what the standard says of the result. What is fixed: test_standard.py."""

import math

import numpy as np
import pytest
import weft
from standard_draws import (
    ALL,
    COMPLEX,
    DEVICES,
    FLOAT,
    INT,
    IN_NUMPY,
    NUMERIC,
    REAL,
    broadcast,
    run,
    same,
    table,
)

CASES, case = table()


# ---- statistics


@case("sum", "prod", "max", "min", "all", "any", "mean", "std", "var")
def _(name, d):
    dtype = d.of(
        {
            "all": ALL,
            "any": ALL,
            "sum": NUMERIC,
            "prod": NUMERIC,
            "max": INT + REAL,
            "min": INT + REAL,
        }.get(name, REAL)
    )
    exact = name in ("max", "min", "all", "any") or dtype in INT
    x = (d.values if exact else d.tame)(
        (d.full if name not in ("sum", "prod", "all", "any") else d.shape)(0, 4), dtype
    )
    axis, keep = d.axes(x.ndim), bool(d.int(0, 1))
    options = {}
    if name in ("std", "var"):
        options = {"correction": d.of([0, 1, 0.5])}
        n = (
            x.size
            if axis is None
            else math.prod(x.shape[a] for a in (axis if isinstance(axis, tuple) else (axis,)))
        )
        if n <= options["correction"]:
            return
    wanted_options = {"ddof": options["correction"]} if options else {}
    if name in ("sum", "prod"):
        options = {
            "dtype": d.of(
                [None, *([dtype] if dtype in INT else REAL + COMPLEX if dtype in REAL else COMPLEX)]
            )
        }
        wide = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
        wanted_options = {"dtype": options["dtype"] or wide}
        options = {k: v for k, v in options.items() if v}
    wanted = getattr(np, name)(x, axis=axis, keepdims=keep, **wanted_options)
    same(
        getattr(weft, name)(d.w(x), axis=axis, keepdims=keep, **options),
        wanted,
        (name, dtype, x.shape, axis, keep, options),
        0.0
        if exact
        else 3e-5
        if "float64" != dtype
        and "complex128" != dtype
        or options.get("dtype") in ("float32", "complex64")
        else 1e-10,
    )


@case("cumulative_sum", "cumulative_prod")
def _(name, d):
    dtype, shape = d.of(NUMERIC), d.full(1)
    x, axis, initial = (
        (d.values if dtype in INT else d.tame)(shape, dtype),
        d.axis(len(shape)),
        bool(d.int(0, 1)),
    )
    wide = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
    wanted = (np.cumsum if name == "cumulative_sum" else np.cumprod)(x, axis, dtype=wide)
    if initial:
        edge = list(shape)
        edge[axis] = 1
        wanted = np.concatenate([np.full(edge, name == "cumulative_prod", wide), wanted], axis)
    same(
        getattr(weft, name)(d.w(x), axis=axis, include_initial=initial),
        wanted,
        (dtype, shape, axis, initial),
        0.0 if dtype in INT else 3e-5 if dtype in ("float32", "complex64") else 1e-10,
    )


@case("diff")
def _(name, d):
    dtype, shape = d.of(NUMERIC), d.full(1)
    x, axis, n = d.tame(shape, dtype), d.axis(len(shape)), d.int(0, 3)
    edge = list(shape)
    edge[axis] = d.int(1, 3)
    more = {k: d.tame(tuple(edge), dtype) for k in ("prepend", "append") if n and d.int(0, 1)}
    same(
        weft.diff(d.w(x), axis=axis, n=n, **{k: d.w(v) for k, v in more.items()}),
        np.diff(x, n, axis, **more),
        (dtype, shape, axis, n),
        0.0 if dtype in INT else 1e-5,
    )


# ---- products


@case("matmul", "tensordot", "vecdot", "outer")
def _(name, d):
    dtype = d.of(NUMERIC)
    n, k, m = (d.of((1, 2, 3, 5, 17)) for _ in range(3))
    left, right = broadcast(d)
    if math.prod(np.broadcast_shapes(left, right)) > 200:
        left, right = (3,), (1,)
    loose = 0.0 if dtype in INT else 3e-5 if dtype in ("float32", "complex64") else 1e-10
    if name == "matmul":
        a, b = d.of(
            [
                ((*left, n, k), (*right, k, m)),
                ((k,), (*right, k, m)),
                ((*left, n, k), (k,)),
                ((k,), (k,)),
            ]
        )
        a, b = d.tame(a, dtype), d.tame(b, dtype)
        same(weft.matmul(*d.w(a, b)), np.matmul(a, b), (dtype, a.shape, b.shape), loose)
    elif name == "tensordot":
        a, b = d.tame((n, k, m), dtype), d.tame((m, k, 2), dtype)
        axes = d.of([0, ((1,), (1,)), ((1, 2), (1, 0)), ((-1,), (0,)), ((), ())])
        same(weft.tensordot(*d.w(a, b), axes=axes), np.tensordot(a, b, axes), (dtype, axes), loose)
    elif name == "vecdot":
        axis = d.of([-1, -2])
        a, b = d.tame((n, k, m), dtype), d.tame((1, k, m), dtype)
        same(
            weft.vecdot(*d.w(a, b), axis=axis),
            np.sum(np.conj(a) * b, axis=axis, dtype=dtype),
            (dtype, axis),
            loose,
        )
    else:
        a, b = d.tame((n,), dtype), d.tame((m,), dtype)
        same(weft.linalg.outer(*d.w(a, b)), np.outer(a, b), (dtype, n, m), loose)


# ---- factors and transforms

STACKS = [(), (), (2,), (3, 1), (0,)]


def drawn_matrix(d, square=True):
    """Numbers of one type, well away from singular."""
    dtype, stack, n = d.of(FLOAT), d.of(STACKS), d.of((1, 2, 3, 5, 8))
    m = n if square else d.of((1, 2, 3, 5, 8))
    x = d.tame((*stack, n, m), dtype)
    return (
        (x + np.asarray(6 * np.eye(n, m), dtype) if square else x),
        dtype,
        3e-4 if dtype in ("float32", "complex64") else 1e-9,
    )


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@case(
    "linalg.det",
    "linalg.inv",
    "linalg.slogdet",
    "linalg.trace",
    "linalg.diagonal",
    "linalg.matrix_power",
    "linalg.pinv",
    "linalg.matrix_rank",
)
def _(name, d):
    square = name not in ("linalg.pinv", "linalg.matrix_rank", "linalg.trace", "linalg.diagonal")
    x, dtype, loose = drawn_matrix(d, square)
    f, given, what = getattr(weft.linalg, name[7:]), d.w(x), (name, dtype, x.shape)
    if name == "linalg.slogdet":
        for found, wanted in zip(f(given), np.linalg.slogdet(x), strict=True):
            same(found, wanted, what, loose)
    elif name in ("linalg.trace", "linalg.diagonal"):
        k = d.int(-4, 4)
        same(f(given, offset=k), getattr(np, name[7:])(x, k, -2, -1), (*what, k), loose)
    elif name == "linalg.matrix_power":
        n = d.int(-2, 4)
        same(f(given, n), np.linalg.matrix_power(x, n), (*what, n), loose)
    elif name == "linalg.matrix_rank":
        same(f(given), np.asarray(np.linalg.matrix_rank(x)).astype("int64"), what)
    else:
        same(f(given), getattr(np.linalg, name[7:])(x).astype(dtype), what, loose * 30)


@case(
    "linalg.cholesky",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.qr",
    "linalg.svd",
    "linalg.svdvals",
    "linalg.solve",
)
def _(name, d):
    x, dtype, loose = drawn_matrix(d, name not in ("linalg.qr", "linalg.svd", "linalg.svdvals"))
    what, f = (name, dtype, x.shape), getattr(weft.linalg, name[7:])
    if name in ("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"):
        x = (
            x + adjoint(x)
            if name != "linalg.cholesky"
            else x @ adjoint(x) + np.asarray(np.eye(x.shape[-1]), dtype)
        ).astype(dtype)
    given = d.w(x)
    if name == "linalg.cholesky":
        upper = bool(d.int(0, 1))
        wanted = np.linalg.cholesky(x)
        same(f(given, upper=upper), adjoint(wanted) if upper else wanted, (*what, upper), loose)
    elif name == "linalg.eigh":
        values, vectors = (v.numpy() for v in f(given))
        np.testing.assert_allclose(
            (vectors * values[..., None, :]) @ adjoint(vectors),
            x,
            rtol=loose * 10,
            atol=loose * 30,
            err_msg=str(what),
        )
        assert values.dtype == x.real.dtype and (np.diff(values, axis=-1) >= 0).all(), what
    elif name == "linalg.eigvalsh":
        same(f(given), np.linalg.eigvalsh(x), what, loose)
    elif name == "linalg.qr":
        mode = d.of(["reduced", "complete"])
        q, r = (v.numpy() for v in f(given, mode=mode))
        n, m = x.shape[-2:]
        assert (
            q.shape[-2:] == (n, min(n, m) if mode == "reduced" else n)
            and (np.tril(r, -1) == 0).all()
        ), (what, mode)
        np.testing.assert_allclose(q @ r, x, rtol=loose * 10, atol=loose * 10, err_msg=str(what))
        np.testing.assert_allclose(
            adjoint(q) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])),
            atol=loose * 10,
        )
    elif name == "linalg.svd":
        full = bool(d.int(0, 1))
        u, s, v = (v.numpy() for v in f(given, full_matrices=full))
        k = min(x.shape[-2:])
        assert (
            u.shape[-1] == (x.shape[-2] if full else k)
            and v.shape[-2] == (x.shape[-1] if full else k)
            and (np.diff(s, axis=-1) <= 0).all()
        ), (what, full)
        np.testing.assert_allclose(
            (u[..., :k] * s[..., None, :]) @ v[..., :k, :],
            x,
            rtol=loose * 10,
            atol=loose * 30,
            err_msg=str(what),
        )
    elif name == "linalg.svdvals":
        same(f(given), np.linalg.svd(x, compute_uv=False), what, loose)
    else:
        b = (
            d.tame((*x.shape[:-1], d.int(1, 3)), dtype)
            if d.int(0, 1) or x.ndim > 2
            else d.tame((x.shape[-1],), dtype)
        )
        same(f(given, d.w(b)), np.linalg.solve(x, b), (*what, b.shape), loose)


@case("linalg.vector_norm", "linalg.matrix_norm", "linalg.cross")
def _(name, d):
    dtype, keep = d.of(FLOAT if name != "linalg.cross" else NUMERIC), bool(d.int(0, 1))
    loose = 0.0 if dtype in INT else 3e-5 if dtype in ("float32", "complex64") else 1e-10
    if name == "linalg.cross":
        left, right = broadcast(d)
        a, b = d.tame((*left, 3), dtype), d.tame((*right, 3), dtype)
        same(
            weft.linalg.cross(*d.w(a, b)), np.cross(a, b).astype(dtype), (dtype, left, right), loose
        )
    elif name == "linalg.matrix_norm":
        x, kind = (
            d.tame((*d.full(0, 1), *d.full(2, 2)), dtype),
            d.of(["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf]),
        )
        wanted = np.linalg.norm(x, kind, (-2, -1), keep)
        same(
            weft.linalg.matrix_norm(d.w(x), ord=kind, keepdims=keep),
            wanted,
            (dtype, x.shape, kind, keep),
            loose * 10,
        )
    else:
        x, kind = d.tame(d.full(1), dtype), d.of([0, 1, 2, 3, -1, -2, 0.5, math.inf, -math.inf])
        axis = d.of([None, d.axis(x.ndim)])
        wanted = np.linalg.norm(
            x.reshape(-1) if axis is None else x, kind, 0 if axis is None else axis
        )
        wanted = (
            np.asarray(wanted).reshape(
                [1] * x.ndim if axis is None else np.expand_dims(wanted, axis).shape
            )
            if keep
            else wanted
        )
        same(
            weft.linalg.vector_norm(d.w(x), ord=kind, axis=axis, keepdims=keep),
            np.asarray(wanted).astype(x.real.dtype),
            (dtype, x.shape, kind, axis, keep),
            loose,
        )


@case(
    *(
        f"fft.{n}"
        for n in "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fftshift ifftshift fftfreq rfftfreq".split()
    )
)
def _(name, d):
    f, reference, norm = (
        getattr(weft.fft, name[4:]),
        getattr(np.fft, name[4:]),
        d.of(["backward", "ortho", "forward"]),
    )
    if "freq" in name:
        n, step = d.int(1, 12), d.of([1.0, 0.25, 3.0])
        return same(
            f(n, d=step, device=d.device), reference(n, step).astype("float32"), (n, step), 1e-6
        )
    dtype = d.of(REAL if name in ("fft.rfft", "fft.rfftn", "fft.ihfft") else COMPLEX)
    x = d.tame(d.shape(1, 3, (2, 3, 5, 7, 8, 12, 13)), dtype)
    loose, axis = 3e-5 if dtype in ("float32", "complex64") else 1e-10, d.axis(x.ndim)
    if "shift" in name:
        axes = d.axes(x.ndim)
        return same(f(d.w(x), axes=axes), reference(x, axes), (dtype, x.shape, axes))
    if name.endswith("n"):
        axes = d.of([None, (axis,), tuple(range(x.ndim))])
        sizes = None if axes is None or d.int(0, 1) else tuple(d.int(2, 9) for _ in axes)
        options = {"s": sizes, "axes": axes}
    else:
        options = {"n": d.of([None, d.int(2, 15)]), "axis": axis}
    wanted = reference(x, norm=norm, **options)
    wanted = wanted.astype(
        {
            "float32": {"c": "complex64", "f": "float32"},
            "complex64": {"c": "complex64", "f": "float32"},
        }.get(dtype, {}).get(wanted.dtype.kind, wanted.dtype)
    )
    same(f(d.w(x), norm=norm, **options), wanted, (dtype, x.shape, options, norm), loose)


# ---- complex numbers: the standard's tables are those of C's annex G, which NumPy follows

PARTS = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan]
COMPLEX_FUNCTIONS = (
    "abs acos acosh asin asinh atan atanh cos cosh exp expm1 log sin sinh sqrt tan tanh".split()
)


@pytest.mark.parametrize("device", [d for d, _ in DEVICES])
@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_special_complex_numbers(name, device):
    """Which parts are NaN, infinite or zero; a part whose sign the table leaves open is compared by its size."""
    x = np.array([complex(a, b) for a in PARTS for b in PARTS])
    with np.errstate(all="ignore"):
        wanted = (
            np.exp(x) if name == "expm1" else np.asarray(getattr(np, IN_NUMPY.get(name, name))(x))
        )
        wanted.real -= name == "expm1"  # of which NumPy makes NaN
    found = getattr(weft, name)(weft.asarray(x, device=device)).numpy()
    wrong = []
    for at, got, want in zip(x, found, wanted, strict=True):
        for part in ("real", "imag") if wanted.dtype.kind == "c" else ("real",):
            g, w = float(getattr(got, part)), float(getattr(want, part))
            fits = (
                math.isnan(g)
                if math.isnan(w)
                else math.isclose(abs(g), abs(w), rel_tol=1e-9, abs_tol=1e-12)
            )
            if not fits:
                wrong.append((at, part, g, w))
    assert not wrong, (name, len(wrong), wrong[:12])


@pytest.mark.parametrize("device,draws", DEVICES, ids=[d for d, _ in DEVICES])
@pytest.mark.parametrize("name", sorted(CASES))
def test_drawn(name, device, draws, rng):
    run(CASES[name], name, device, draws, rng)
