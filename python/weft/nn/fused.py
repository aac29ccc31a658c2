# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions as one kernel on devices whose kernels are built from the operation table."""

from __future__ import annotations

import functools

from .. import _core

_PLAIN = (int, float, str, bool, type(None))


def fused(arrays=1):
    """Decorates a function of this many arrays that is composed of table operations.

    On a device with a grid it becomes one kernel, and each of its gradients one more; 16-bit floats are computed in
    float32 and rounded once. Elsewhere, for other types and for traced values the function runs as it is written.
    """

    def decorate(function):
        known = {}

        @functools.wraps(function)
        def call(*args, **options):
            given = args[:arrays]
            dtype = _core._fused_type(*given)
            if dtype is None or len(given) < arrays:
                return function(*args, **options)
            rest = args[arrays:]
            if not all(isinstance(v, _PLAIN) for v in (*rest, *options.values())):
                return function(*args, **options)
            key = (dtype, rest, tuple(options.items()))
            kernel = known.get(key)
            if kernel is None:
                kernel = known[key] = made(function, dtype, arrays, rest, options)
            return kernel(*given)

        return call

    return decorate


def made(function, dtype, arrays, rest, options, total=False):
    """The kernel of a function of so many arrays, then numbers; `total`: of the sum of its values."""
    from .._compile import Traced

    inputs = [Traced(_core._lazy_input(k, dtype, ())) for k in range(arrays)]
    value = function(*inputs, *rest, **options)
    return _core.FusedFunction(function.__name__.strip("_"), value._lazy, arrays, total)
