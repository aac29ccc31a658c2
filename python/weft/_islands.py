# SPDX-License-Identifier: Apache-2.0
"""What weft.compile cannot put into kernels: functions that run as they are, between two compiled pieces.

While a function is traced, the public functions that get traced values are tried on them; where one has no traced form,
the values it needs are computed, it runs on arrays, and its results are inputs of the next piece.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import types

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error

# Their results' shapes or types depend on values: a trace, which has fixed ones, cannot hold them.
REFUSED = frozenset(
    "nonzero argwhere unique unique_all unique_counts unique_inverse unique_values masked_select item tolist numpy "
    "repeat bincount".split()
)
_MODULES = ("weft", "weft.linalg", "weft.fft", "weft.nn.functional")
_lock = threading.RLock()
_depth = 0
_saved = []


def leaves_of(tree, kind):
    """Values of a class in nested lists, tuples, slices and mappings."""
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for t in tree:
            yield from leaves_of(t, kind)
    elif isinstance(tree, dict):
        yield from leaves_of(list(tree.values()), kind)
    elif isinstance(tree, slice):
        yield from leaves_of([tree.start, tree.stop, tree.step], kind)


def mapped(tree, kind, change):
    """The same tree with other values in place of those of a class."""
    if isinstance(tree, kind):
        return change(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(t, kind, change) for t in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(t, kind, change) for t in tree)
    if isinstance(tree, dict):
        return {k: mapped(t, kind, change) for k, t in tree.items()}
    if isinstance(tree, slice):
        return slice(*(mapped(t, kind, change) for t in (tree.start, tree.stop, tree.step)))
    return tree


class Island:
    """A call that runs on arrays: the piece that computes its operands, the function, what it gave while tracing."""

    def __init__(self, name, piece, function, args, kwargs, result):
        self.name, self.piece, self.function = name, piece, function
        self.args, self.kwargs = (
            args,
            kwargs,
        )  # operands stand in them as traced values, in the piece's order
        self.result = result
        self.specs = [(a.dtype, tuple(a.shape)) for a in leaves_of(result, (NDArray, Tensor))]

    def run(self, operands, traced):
        """The arrays of the result, in order."""
        rest = iter(operands)
        args, kwargs = mapped((self.args, self.kwargs), traced, lambda _: next(rest))
        found = list(leaves_of(self.function(*args, **kwargs), (NDArray, Tensor)))
        specs = [(a.dtype, tuple(a.shape)) for a in found]
        if specs != self.specs:
            raise _error(
                "value",
                "compile.trace.unsupported",
                f"{self.name} inside a compiled function gave {specs}, and {self.specs} while it was traced",
                help="leave what decides shapes outside the compiled function",
            )
        return found


def _wrapper(name, function, traced, active):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if not active or next(leaves_of((args, kwargs), traced), None) is None:
            return function(*args, **kwargs)
        trace = active[-1]
        mark = trace.mark()
        try:
            return function(*args, **kwargs)
        except (TypeError, AttributeError, _core.Error) as error:
            code = getattr(error, "code", None)
            if isinstance(error, _core.Error) and code != "compile.trace.unsupported":
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

    return call


@contextlib.contextmanager
def public_functions_try_first(traced, active):
    """While this is entered, public functions that have no traced form become islands of the trace at hand."""
    global _depth
    import importlib

    with _lock:
        _depth += 1
        if _depth == 1:
            for module in map(importlib.import_module, _MODULES):
                for name in getattr(module, "__all__", None) or dir(module):
                    function = vars(module).get(name)
                    plain = isinstance(function, (types.FunctionType, types.BuiltinFunctionType))
                    nano = type(function).__name__ == "nb_func"
                    if name.startswith("_") or name == "compile" or not (plain or nano):
                        continue
                    _saved.append((module, name, function))
                    setattr(module, name, _wrapper(name, function, traced, active))
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                while _saved:
                    setattr(*_saved.pop())
