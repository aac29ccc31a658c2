# SPDX-License-Identifier: Apache-2.0
"""weft.compile: what a function does to arrays becomes few kernels.

The function runs once for each combination of types and shapes, on traced values that write operations down.
"""

from __future__ import annotations

from ._boundary import publish as _publish
from ._compiled import Compiled

__all__ = ["Compiled", "compile"]


def compile(
    function,
    *,
    contract=False,
    capture=False,
    donate=(),
    static_argnums=(),
    static_argnames=(),
    donate_argnums=(),
):
    """The function with its element-wise chains and trailing reductions fused into few kernels.

    Works on NDArray and Tensor arguments (nested in lists and tuples too); other arguments are constants of the trace.
    On the host every element is rounded as the eager operations round it, which arithmetic, exp, log, tanh and what is
    made of them then share to the last bit (sums are taken in another order; other functions may differ by an ulp);
    contract=True lets a product and a sum become one rounding. The trace is kept for each combination of types, shapes and devices. Gradients are compiled as well. What kernels cannot
    hold (indexing, sorting, running sums, factorisations) runs as the eager operation between two compiled pieces,
    and once more while the function is traced. Raises an Error with code compile.trace.unsupported where the function needs a number or a truth value while it is traced, or makes arrays
    whose shapes depend on values.

    capture=True records the launches of a call, from the second call on, and replays them by one call of the driver (cuda;
    on opencl a list of launches): weft's own work on the host then costs one call. It is meant for functions of arrays
    alone: random numbers without a key, reads on the host and arguments that require gradients are refused
    (device.record.*, random.capture, capture.gradient). donate: numbers of arguments that the call may write over.
    Each of their arrays becomes the result of the same type and shape that replaces it: the arrays given away hold the new
    values, no copy is made, and the results stay in that memory from call to call (capture.donate.* where nothing replaces them).

    static_argnums, static_argnames and donate_argnums are JAX's: whatever is no array is static here, so the first two
    change nothing; donate_argnums is donate with capture=True and nothing without.
    """
    if donate_argnums != () and capture and not donate:
        donate = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if capture:
        from ._capture import Captured

        inner = getattr(function, "function", function)
        return Captured(inner, donate=donate, compiled=Compiled(inner, contract))
    if isinstance(function, Compiled):
        if function.contract == contract:
            return function
        function = function.function
    return Compiled(function, contract)


_publish(__name__)
