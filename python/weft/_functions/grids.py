# SPDX-License-Identifier: Apache-2.0
"""NumPy's objects that are indexed or iterated instead of called: mgrid, r_, ndindex; and functions of numbers over arrays."""

from __future__ import annotations

import itertools

import weft

from .._core import shown
from .common import plain, refused, value


def _line(s):
    """The numbers of a slice; a complex step counts them, ends included."""
    start, step = s.start or 0, 1 if s.step is None else s.step
    if isinstance(step, complex):
        return weft.linspace(float(start), float(s.stop), int(abs(step)), dtype="float64")
    return weft.arange(start, s.stop, step)


class _Grid:
    """weft.mgrid[0:3, 0:1:5j]: positions along each axis of every element; weft.ogrid keeps each along its own axis."""

    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, key):
        if isinstance(key, slice):
            return _line(key)
        lines = [_line(s) for s in key]
        if any(x.dtype.kind == "f" for x in lines):
            lines = [x.astype("float64") for x in lines]
        out = weft.meshgrid(*lines, indexing="ij")
        if not self._sparse:
            return weft.stack(out, axis=0)
        n = len(lines)
        return tuple(
            x.reshape(tuple(-1 if i == k else 1 for i in range(n))) for k, x in enumerate(lines)
        )


mgrid, ogrid = _Grid(False), _Grid(True)


class _Joined:
    """weft.r_[1:4, 0, x]: slices, numbers and vectors in a row; weft.c_ as columns."""

    def __init__(self, columns):
        self._columns = columns

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, str) for k in key):
            raise refused(
                "array.r.text",
                f"r_[{shown(key[0])}, ...]",
                "slices, numbers and arrays; concat(..., axis=)",
            )
        parts = [_line(k) if isinstance(k, slice) else weft.atleast_1d(value(k)) for k in key]
        if self._columns:
            parts = [p.reshape((-1, 1)) if p.ndim == 1 else p for p in parts]
        return weft.concat(parts, axis=-1 if self._columns else 0)


r_, c_ = _Joined(False), _Joined(True)


class _Expression:
    """weft.s_[1:3, ::2]: the index as a value."""

    def __init__(self, tuples):
        self._tuples = tuples

    def __getitem__(self, key):
        return (key,) if self._tuples and not isinstance(key, tuple) else key


s_, index_exp = _Expression(False), _Expression(True)


class ndindex:
    """All positions of an array of a shape, the last axis fastest: for i, j in weft.ndindex(2, 3)."""

    def __init__(self, *shape):
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if any(not isinstance(n, int) or n < 0 for n in shape):
            raise refused("array.ndindex.shape", f"ndindex of {shape}", "extents from 0 on")
        self._at = itertools.product(*map(range, shape))

    def __iter__(self):
        return self._at

    def __next__(self):
        return next(self._at)


class ndenumerate:
    """(position, element) of all elements, the last axis fastest; elements are Python's numbers."""

    def __init__(self, x):
        x = plain(x)
        self._pairs = zip(ndindex(*x.shape), x.reshape(-1).tolist())

    def __iter__(self):
        return self._pairs

    def __next__(self):
        return next(self._pairs)


class vectorize:
    """A function of numbers as one of arrays, which broadcast: it is called once for each element, on the host.

    otypes: the element types of its results; told from the first result otherwise (floats are of the default type). excluded: positions and names
    of arguments passed as they are. signature is not offered: weft.vmap does that.
    """

    def __init__(
        self, pyfunc=None, otypes=None, doc=None, excluded=None, cache=False, signature=None
    ):
        if signature is not None:
            raise refused(
                "array.vectorize.signature",
                f"vectorize with signature {shown(signature)}",
                "weft.vmap(f)",
            )
        self.pyfunc, self.otypes, self.excluded = pyfunc, otypes, set(excluded or ())
        self.__doc__ = doc or getattr(pyfunc, "__doc__", None)

    def __call__(self, *args, **kwargs):
        if self.pyfunc is None:  # used as a decorator with options
            return vectorize(*args, otypes=self.otypes, excluded=self.excluded, **kwargs)
        keys = [i for i in range(len(args)) if i not in self.excluded]
        keys += [k for k in kwargs if k not in self.excluded]
        arrays = [plain(args[k] if isinstance(k, int) else kwargs[k]) for k in keys]
        together = weft.broadcast_arrays(*arrays) if arrays else []
        shape = tuple(together[0].shape) if together else ()
        columns = [x.reshape(-1).tolist() for x in together]
        results = []
        for numbers in zip(*columns) if columns else [()]:
            given, named = list(args), dict(kwargs)
            for k, n in zip(keys, numbers):
                if isinstance(k, int):
                    given[k] = n
                else:
                    named[k] = n
            results.append(self.pyfunc(*given, **named))
        return self._gathered(results, shape)

    def _gathered(self, results, shape):
        types = list(self.otypes) if self.otypes is not None else None
        types = [{"d": "float64", "f": "float32", "i": "int32", "l": "int64", "?": "bool"}.get(t, t) for t in types] if types else None  # fmt: skip
        if not results:
            if types is None:
                raise refused(
                    "array.vectorize.empty",
                    "vectorize of no elements",
                    "otypes= says the result's type",
                )
            out = [weft.zeros(shape, dtype=t) for t in types]
            return out[0] if len(out) == 1 else tuple(out)
        several = isinstance(results[0], tuple)
        columns = list(zip(*results)) if several else [results]
        numbers = [[v.item() if hasattr(v, "item") else v for v in c] for c in columns]
        out = [
            weft.asarray(c, dtype=types[k] if types else None).reshape(shape)
            for k, c in enumerate(numbers)
        ]
        return tuple(out) if several else out[0]


def frompyfunc(func, nin, nout, *, identity=None):
    """A function of nin numbers as one of arrays: weft.vectorize. Results are numbers, never objects."""
    return vectorize(func)
