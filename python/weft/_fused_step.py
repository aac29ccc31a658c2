# SPDX-License-Identifier: Apache-2.0
"""Formulas whose results take the place of the arrays that they read, such as steps of optimizers: one pass over memory."""

from __future__ import annotations

from . import _core
from ._autocast import alone
from ._core import NDArray
from ._held_state import captured


_SMALL = 1 << 18  # elements of arrays for which a launch of their own costs time


class FusedStep:
    """A formula of arrays of one shape, then numbers, composed of table operations; its results replace the first arrays.

    None stands for what is absent, among the results too; an array of no axes for a number that the device computes. Where
    the arrays' device has a grid the formula is one kernel: in float64 where an array is float64, else in float32, rounded
    once. Elsewhere, and for traced values, it runs as it is written. Inside a captured function results are written over
    the arrays, unless `in_place` is False; with "always" every kernel's are, and results that are the arrays themselves
    say so.
    """

    def __init__(self, formula, in_place=True):
        self._formula = formula
        self._in_place = in_place
        self._known = {}

    @staticmethod
    def joins(x):
        """Are calls for arrays like this one few launches together?"""
        return _core.FusedMap.has_step(x) and x.size <= _SMALL

    @alone
    def __call__(self, *arguments):
        found = self._kernel(arguments)
        if found is None:
            return self._formula(*arguments)
        kernel, places, arrays, numbers = found
        in_place = self._writes_over()
        return _placed(kernel.step(arrays, numbers, in_place), places, arrays, in_place)

    @alone
    def together(self, calls):
        """The results of several calls, each a tuple of arguments."""
        out, groups = [None] * len(calls), {}
        for k, arguments in enumerate(calls):
            found = self._kernel(arguments)
            if found is None:
                out[k] = self._formula(*arguments)
                continue
            kernel, places, arrays, numbers = found
            kinds = tuple((a.dtype.name, a.ndim == 0) for a in arrays)
            group = id(kernel), str(arrays[0].device), tuple(numbers), kinds
            groups.setdefault(group, (kernel, numbers, []))[2].append((k, places, arrays))
        in_place = self._writes_over()
        for kernel, numbers, members in groups.values():
            results = kernel.steps([arrays for _, _, arrays in members], numbers, in_place)
            for (k, places, arrays), found in zip(members, results):
                out[k] = _placed(found, places, arrays, in_place)
        return out

    def _writes_over(self):
        return bool(self._in_place) and (self._in_place == "always" or captured())

    def _kernel(self, arguments):
        """(the kernel, which results there are, arrays, numbers); None where the formula itself runs."""
        if not _core.FusedMap.has_step(arguments[0]):
            return None
        arrays = [a for a in arguments if isinstance(a, NDArray)]
        dtype = _core.FusedMap.step_type(arrays)
        key = (dtype, *map(type, arguments))
        if key not in self._known:
            plain = all(a is None or isinstance(a, (NDArray, int, float)) for a in arguments)
            self._known[key] = self._made(dtype, arguments) if dtype and plain else None
        if (made := self._known[key]) is None:
            return None
        numbers = [float(a) for a in arguments if a is not None and not isinstance(a, NDArray)]
        return *made, arrays, numbers

    def _made(self, dtype, arguments):
        """The kernel, and which results there are."""
        from ._traced import Traced

        arrays = [k for k, a in enumerate(arguments) if isinstance(a, NDArray)]
        numbers = [
            k for k, a in enumerate(arguments) if a is not None and not isinstance(a, NDArray)
        ]
        values = [None] * len(arguments)
        for index, k in enumerate(arrays + numbers):
            values[k] = Traced(_core._lazy_input(index, dtype, ()))
        results = self._formula(*values)
        outputs = [r._lazy for r in results if r is not None]
        kernel = _core.FusedMap(outputs, len(arrays) + len(numbers), len(numbers))
        return kernel, [r is not None for r in results]


def _placed(results, places, arrays, in_place):
    """None for results that there are not; written over arrays they are these."""
    found = iter(arrays if in_place else results)
    return [next(found) if there else None for there in places]
