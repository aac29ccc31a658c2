# SPDX-License-Identifier: Apache-2.0
"""Formulas whose results take the place of the arrays that they read, such as steps of optimizers: one pass over memory."""

from __future__ import annotations

from . import _core
from ._autocast import alone
from ._core import NDArray
from ._held_state import captured


class FusedStep:
    """A formula of arrays of one shape, then numbers, composed of table operations; its results replace the first arrays.

    None stands for what is absent, among the results too; an array of no axes for a number that the device computes. Where
    the arrays' device has a grid the formula is one kernel: in float64 where an array is float64, else in float32, rounded
    once. Elsewhere, and for traced values, it runs as it is written. Inside a captured function results are written over
    the arrays, unless `in_place` is False.
    """

    def __init__(self, formula, in_place=True):
        self._formula = formula
        self._in_place = in_place
        self._known = {}

    @alone
    def __call__(self, *arguments):
        if not _core.FusedMap.has_step(arguments[0]):
            return self._formula(*arguments)
        arrays = [a for a in arguments if isinstance(a, NDArray)]
        dtype = _core.FusedMap.step_type(arrays)
        key = (dtype, *map(type, arguments))
        if key not in self._known:
            plain = all(a is None or isinstance(a, (NDArray, int, float)) for a in arguments)
            self._known[key] = self._made(dtype, arguments) if dtype and plain else None
        if (made := self._known[key]) is None:
            return self._formula(*arguments)
        kernel, places = made
        numbers = [float(a) for a in arguments if a is not None and not isinstance(a, NDArray)]
        results = iter(kernel.step(arrays, numbers, self._in_place and captured()))
        return [next(results) if there else None for there in places]

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
