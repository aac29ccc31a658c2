# SPDX-License-Identifier: Apache-2.0
"""What weft.compile cannot put into kernels: functions that run as they are, between two compiled pieces.

While a function is traced, the public functions that get traced values are tried on them; where one has no traced form,
the values it needs are computed, it runs on arrays, and its results are inputs of the next piece.
"""

from __future__ import annotations

from . import _core
from ._autocast import restored
from ._core import NDArray, Tensor
from ._dispatch import leaves_of, mapped
from ._errors import error as _error

# Their results' shapes or types depend on values: a trace, which has fixed ones, cannot hold them.
REFUSED = frozenset(
    "nonzero argwhere unique unique_all unique_counts unique_inverse unique_values masked_select item tolist numpy "
    "repeat bincount".split()
)


class Island:
    """A call that runs on arrays: the piece that computes its operands, the function, what it gave while tracing."""

    def __init__(self, name, piece, function, args, kwargs, result):
        self.name, self.piece, self.function = name, piece, function
        self.args, self.kwargs = (
            args,
            kwargs,
        )  # operands stand in them as traced values, in the piece's order
        self.result = result
        self._converting = (
            restored()
        )  # as weft.autocast says where the function stands in the trace
        self.specs = [(a.dtype, tuple(a.shape)) for a in leaves_of(result, (NDArray, Tensor))]

    def run(self, operands, traced):
        """The arrays of the result, in order."""
        rest = iter(operands)
        args, kwargs = mapped((self.args, self.kwargs), traced, lambda _: next(rest))
        with self._converting():
            result = self.function(*args, **kwargs)
        found = list(leaves_of(result, (NDArray, Tensor)))
        specs = [(a.dtype, tuple(a.shape)) for a in found]
        if specs != self.specs:
            raise _error(
                "value",
                "compile.trace.unsupported",
                f"{self.name} inside a compiled function gave {specs}, and {self.specs} while it was traced",
                help="leave what decides shapes outside the compiled function",
            )
        return found


def assigned(x, key, value):
    """A copy of x with other elements."""
    new = x.clone()
    new[key] = value
    return new


def changed(name):
    """A copy, changed by one of the methods that change an array in place."""
    return lambda x, *args, **kwargs: getattr(x.clone(), name)(*args, **kwargs)


def on_tensors(function):
    """The function with tensors in place of its arrays of floats."""

    def call(*args, **kwargs):
        args, kwargs = mapped(
            (args, kwargs),
            NDArray,
            lambda a: Tensor(a, requires_grad=False) if a.dtype.kind == "f" else a,
        )
        return function(*args, **kwargs)

    return call


def call_or_island(trace, name, function, args, kwargs):
    """The function on traced values; where it has no traced form, it becomes an island of the trace."""
    mark = trace.mark()
    try:
        return function(*args, **kwargs)
    except (TypeError, AttributeError, _core.Error) as error:
        code = getattr(error, "code", None)
        if isinstance(error, _core.Error) and code not in (
            "compile.trace.unsupported",
            "python.arguments",
        ):
            raise
        if name in REFUSED:
            raise _error(
                "value",
                "compile.trace.unsupported",
                f"the compiled function calls {name} on a traced value, whose result depends on values",
                help="call it before or after",
            ) from None
    trace.back_to(mark)
    return trace.island(name, function, args, kwargs)
