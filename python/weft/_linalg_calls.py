# SPDX-License-Identifier: Apache-2.0
"""Functions of weft.linalg called as NumPy and PyTorch call theirs, where the array standard has names only or no such argument.

weft._manners asks here for calls that failed as the standard has them.
"""

from __future__ import annotations

# Arguments behind the matrix in PyTorch's order (NumPy's where PyTorch has names only).
_ORDER = {
    "vector_norm": ("ord", "axis", "keepdims", "dtype"),
    "matrix_norm": ("ord", "axis", "keepdims", "dtype"),
    "svd": ("full_matrices", "compute_uv", "hermitian"),
    "qr": ("mode",),
    "eigh": ("UPLO",),
    "eigvalsh": ("UPLO",),
    "pinv": ("rcond", "hermitian"),
    "matrix_rank": ("tol", "hermitian"),
    "solve": ("x2", "left"),
}
_OURS = {"dim": "axis", "keepdim": "keepdims", "rcond": "rtol", "A": "x", "B": "x2"}
_IDLE = ("driver", "out", "hermitian", "check_errors")


def understood(name, args, kwargs, as_floats):
    """The result, in a tuple, of a call in their words; None where it has no meaning here. as_floats: of a matrix of whole numbers."""
    if name not in _ORDER or not args and "A" not in kwargs:
        return None
    kwargs = {_OURS.get(k, k): v for k, v in kwargs.items()}
    x = kwargs.pop("x") if "x" in kwargs else args[0]
    rest = args if len(args) and x is not args[0] else args[1:]
    order = _ORDER[name]
    if len(rest) > len(order):
        return None
    for k, v in zip(order, rest):
        k = _OURS.get(k, k)
        if k in kwargs:
            return None
        kwargs[k] = v
    for k in _IDLE:
        if k == "out" and kwargs.get("out") is not None:
            return None
        kwargs.pop(k, None)
    x = as_floats(x)
    own = globals()[f"_{name}"]
    if not set(kwargs) <= set(own.__code__.co_varnames[: own.__code__.co_argcount]):
        return None
    return (own(x, **kwargs),)


def _vector_norm(x, ord=2, axis=None, keepdims=False, dtype=None):
    from . import linalg

    x = x if dtype is None else x.astype(dtype)
    axis = tuple(axis) if isinstance(axis, list) else axis
    return linalg.vector_norm(x, ord=ord, axis=axis, keepdims=keepdims)


def _matrix_norm(x, ord="fro", axis=(-2, -1), keepdims=False, dtype=None):
    import weft

    x = x if dtype is None else x.astype(dtype)
    axis = tuple(axis)
    out = weft.linalg.matrix_norm(weft.moveaxis(x, axis, (-2, -1)), ord=ord, keepdims=True)
    out = weft.moveaxis(out, (-2, -1), axis)
    return out if keepdims else weft.squeeze(out, axis=axis)


def _svd(x, full_matrices=True, compute_uv=True):
    from . import linalg

    return linalg.svd(x, full_matrices=full_matrices) if compute_uv else linalg.svdvals(x)


def _qr(x, mode="reduced"):
    from . import linalg

    return linalg.qr(x, mode=mode)


def _triangle(x, UPLO):
    """A Hermitian matrix that is given by one triangle, as one that is given by the lower."""
    from . import linalg

    return linalg._adjoint(x) if UPLO in ("U", "u") else x


def _eigh(x, UPLO="L"):
    from . import linalg

    return linalg.eigh(_triangle(x, UPLO))


def _eigvalsh(x, UPLO="L"):
    from . import linalg

    return linalg.eigvalsh(_triangle(x, UPLO))


def _relative(x, rtol, atol):
    """The part of the largest singular value that both bounds mean."""
    import weft

    if atol is None:
        return rtol
    s = weft.linalg.svdvals(getattr(x, "data", x))
    largest = weft.max(s, axis=-1)
    part = weft.asarray(atol, dtype=s.dtype) / weft.where(largest > 0, largest, 1.0)
    return part if rtol is None else weft.maximum(part, weft.asarray(rtol, dtype=s.dtype))


def _pinv(x, rtol=None, atol=None):
    from . import linalg

    return linalg.pinv(x, rtol=_relative(x, rtol, atol))


def _matrix_rank(x, tol=None, rtol=None, atol=None):
    from . import linalg

    return linalg.matrix_rank(x, rtol=_relative(x, rtol, tol if atol is None else atol))


def _solve(x, x2, left=True):
    from . import linalg

    return linalg.solve(x, x2) if left else linalg.solve(x.mT, x2.mT).mT
