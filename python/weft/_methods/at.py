# SPDX-License-Identifier: Apache-2.0
"""x.at[index].set(values): a copy of a value with other elements, by JAX's names."""

from __future__ import annotations

import weft

from .. import _core
from .._errors import error as _error


class _Places:
    """x.at: what is indexed next."""

    def __init__(self, x):
        self._x = x

    def __getitem__(self, key):
        return _Place(self._x, key)


class _Place:
    """x.at[key]. Values broadcast to x[key]; results are new, with gradients in both."""

    def __init__(self, x, key):
        self._x, self._key = x, key

    def _put(self, values, accumulate):
        x = self._x
        row = weft.arange(x.size, device=x.device).reshape(tuple(x.shape))
        at = row[self._key]
        values = values if hasattr(values, "dtype") else weft.asarray(values, device=x.device)
        values = weft.broadcast_to(values, tuple(at.shape)).reshape(-1)
        out = weft.index_put(x.reshape(-1), (at.reshape(-1),), values, accumulate)
        return out.reshape(tuple(x.shape))

    def get(self):
        """x[key]."""
        return self._x[self._key]

    def set(self, values):
        """With `values` there."""
        return self._put(values, False)

    def add(self, values):
        """With `values` added there, once for each time that a position is named."""
        return self._put(values, True)

    def subtract(self, values):
        """With `values` taken away there."""
        return self._put(values * -1, True)

    def multiply(self, values):
        """Times `values` there."""
        return self._once(lambda x: x * values)

    def divide(self, values):
        """Over `values` there."""
        return self._once(lambda x: x / values)

    def power(self, values):
        """To the power `values` there."""
        return self._once(lambda x: x**values)

    def min(self, values):
        """The smaller of both there."""
        return self._once(lambda x: weft.minimum(x, values))

    def max(self, values):
        """The larger of both there."""
        return self._once(lambda x: weft.maximum(x, values))

    def apply(self, f):
        """f of what stands there."""
        return self._once(f)

    def _once(self, f):
        at = weft.arange(self._x.size).reshape(tuple(self._x.shape))[self._key].reshape(-1)
        if weft.unique(at).size != at.size:
            raise _error(
                _core.ArgumentError,
                "array.at.repeated",
                f"an index that names {at.size - weft.unique(at).size} positions again",
                ["legal for repeated positions: set, add, subtract, get"],
                help="multiply.at, maximum.at and minimum.at change an array in place, repeated positions included",
            )
        return self.set(f(self.get()))


class Indexed:
    """JAX's way to write elements."""

    @property
    def at(self):
        """x.at[index].set(values), add, subtract, multiply, divide, power, min, max, apply, get: a copy with other elements, as in JAX."""
        return _Places(self)
