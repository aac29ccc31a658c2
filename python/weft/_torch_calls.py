# SPDX-License-Identifier: Apache-2.0
"""Functions called as PyTorch (or NumPy) calls its own, where the same name here has other arguments.

weft._manners asks here for calls that failed as those have them.
"""

from __future__ import annotations


def understood(name, args, kwargs):
    """The result, in a tuple, of a call in their words; None where it has no meaning here."""
    of = _CALLS.get(name)
    if of is None:
        return None
    try:
        call = of(*args, **kwargs)
    except TypeError:  # not its arguments either
        return None
    return None if call is None else (call(),)


def _indices(name):
    def of(row, col=None, offset=0, *, dtype=None, device=None, layout=None):
        import weft

        column = row if col is None else col
        return lambda: weft.stack(getattr(weft, name)(row, offset, column), axis=0)

    return of


def _scatter(x, dim, index, src=None, *, value=None, reduce=None):
    import weft

    x = weft._functions.common.value(x)
    if reduce is not None:
        return lambda: weft.scatter_reduce(
            x, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce]
        )
    return lambda: x.scatter(dim, index, value if src is None else src)


def _put(x, index, source, accumulate=False):
    import weft

    return (lambda: x.put(index, source, accumulate)) if isinstance(x, weft.Tensor) else None


def _searchsorted(sorted_sequence, values, *, right=False, side=None, sorter=None, out_int32=False):
    import weft

    where = side if side is not None else "right" if right else "left"
    found = lambda: weft.searchsorted(sorted_sequence, values, side=where, sorter=sorter)  # noqa: E731
    return (lambda: found().astype("int32")) if out_int32 else found


def _swapaxes(x, *, axis1, axis2):
    import weft

    return lambda: weft.swapaxes(x, axis1, axis2)


def _gradient(x, *, spacing=None, dim=None, edge_order=1):
    import weft

    given = (
        ()
        if spacing is None
        else (spacing,)
        if not isinstance(spacing, (tuple, list))
        else tuple(spacing)
    )

    def call():
        out = weft.gradient(x, *given, axis=dim, edge_order=edge_order)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    return call


_CALLS = {
    "gradient": _gradient,
    "put": _put,
    "scatter": _scatter,
    "searchsorted": _searchsorted,
    "swapaxes": _swapaxes,
    "tril_indices": _indices("tril_indices"),
    "triu_indices": _indices("triu_indices"),
}
