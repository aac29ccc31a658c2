# SPDX-License-Identifier: Apache-2.0
"""Functions whose gradient is made otherwise: by the user's rule, or by computing them again."""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core, _dispatch, random
from .._autocast import alone, restored
from .._core import NDArray, Tensor, gradients
from .._dispatch import Recorder
from .._errors import error as _error
from . import batched, trees
from .batched import wrapped
from .reverse import (
    _alias,
    _callable,
    _Inside,
    _levels,
    _run,
    _same_shape,
    _whole,
    drawn_from,
    is_traced,
    refuse,
    vjp,
)

if TYPE_CHECKING:
    from collections.abc import Callable
_F = TypeVar("_F")


def _in_trace(f, args):
    from .traced import run_as_step

    return run_as_step(f, args)


def _is_float(x):
    return isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"


class Call:
    """Arguments of one call: their leaves as tensors of all examples of the vmaps around it."""

    def __init__(self, args):
        self.inside = _levels()
        self.converting = restored()  # as weft.autocast says now
        self.args = args
        leaves, self.structure = trees.flatten(list(args))
        self.leaves = leaves
        self.floats = [k for k, x in enumerate(leaves) if _is_float(x)]
        self.tensors = []
        for x in trees.as_arrays([leaves[k] for k in self.floats]):
            x = _whole(x, self.inside)
            if not isinstance(x, (Tensor, NDArray)):
                raise refuse("a function with a rule of its own")
            self.tensors.append(x if isinstance(x, Tensor) else Tensor(x, requires_grad=False))

    def arguments(self, tensors):
        """The arguments with other tensors at their floats, and the modules that are lent parameters."""
        leaves = list(self.leaves)
        for k, t in zip(self.floats, tensors):
            leaves[k] = wrapped(t, self.inside)
        own, lent = trees.unflatten(self.structure, leaves), []
        for i, child in enumerate(self.structure.children):
            if child.module is not None:
                lent.append((self.args[i], own[i]))
                own[i] = self.args[i]
        return own, lent

    def whole(self, x):
        if not isinstance(x, trees.ARRAYS):
            x = _core._asarray(x, None, None, None)
        x = _whole(x, self.inside)
        return x if isinstance(x, Tensor) else Tensor(x, requires_grad=False)


def _link(name, call, out, more, rule):
    """A tree of results linked to the call's tensors and `more`: rule(inputs, cotangents) gives their gradients.

    Float results of one type are one node, so that the rule runs once for all of them; cotangents are whole tensors.
    """
    import weft

    leaves, structure = trees.flatten(out)
    floats = [k for k, x in enumerate(leaves) if _is_float(x)]
    whole = {k: call.whole(leaves[k]) for k in floats}
    inputs = [*call.tensors, *more]
    for dtype in {whole[k].dtype for k in floats}:
        places = [k for k in floats if whole[k].dtype == dtype]
        sizes = [whole[k].size for k in places]
        flat = [whole[k].data.reshape(-1) for k in places]

        def pull(xs, result, g, places=places, sizes=sizes):
            cotangents, at = {}, 0
            for k, n in zip(places, sizes):
                cotangents[k] = g[at : at + n].reshape(whole_shapes[k])
                at += n
            given = [
                cotangents.get(k, Tensor(weft.zeros(whole_shapes[k], dtype=whole_types[k], device=g.device), requires_grad=False))
                for k in floats
            ]  # fmt: skip
            with batched.entered(call.inside):
                return rule(xs, given, structure, floats)

        joined = flat[0] if len(flat) == 1 else weft.concat(flat)
        node = _core._function_tensor(name, joined, inputs, pull, list(range(len(inputs))), False)
        at = 0
        for k, n in zip(places, sizes):
            part = node[at : at + n] if len(places) > 1 else node
            leaves[k] = wrapped(part.reshape(whole[k].shape), call.inside)
            at += n
    whole_shapes = {k: tuple(whole[k].shape) for k in floats}
    whole_types = {k: whole[k].dtype for k in floats}
    del whole
    return trees.unflatten(structure, leaves)


def _cotangents(given, leaves_count, structure, floats, inside):
    """Cotangents as a tree like the result; None where the result is no float."""
    leaves = [None] * leaves_count
    for k, g in zip(floats, given):
        leaves[k] = wrapped(g, inside)
    return trees.unflatten(structure, leaves)


def _detached(tensors):
    return [t.detach() for t in tensors]


_ruling = threading.local()  # .functions: those whose forward rules are being run


class custom_vjp:
    """A function with a backward pass of its own, in JAX's form.

    >>> @weft.custom_vjp
    ... def f(x): return weft.log(1 + weft.exp(x))
    >>> f.defvjp(lambda x: (f(x), x), lambda x, g: (g * weft.sigmoid(x),))

    forward(*args) returns (result, residuals), backward(residuals, cotangent) the tuple of gradients of the arguments,
    None for those without. The arguments of nondiff_argnums are handed to backward in front. Written with weft's
    functions, the backward pass is differentiated and mapped like any other code.
    """

    def __init__(self, f: Callable[..., Any], nondiff_argnums: int | tuple[int, ...] = ()) -> None:
        _callable(f, "custom_vjp")
        functools.update_wrapper(self, f)
        self.f = f
        self.forward: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.nondiff = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)  # fmt: skip

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Sets both rules."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        if self.forward is None:
            raise _unset("custom_vjp", self, "defvjp(forward, backward)")
        if self in getattr(_ruling, "functions", ()):  # its own forward rule calls it
            return self.f(*args)
        for n in self.nondiff:
            if not 0 <= n < len(args):
                raise _error(
                    _core.ArgumentError,
                    "transform.nondiff",
                    f"nondiff_argnums={self.nondiff} of a call with {len(args)} arguments",
                    help="name positions from 0 to the number of arguments less one",
                )
        if any(map(is_traced, trees.flatten(list(args))[0])):
            return _in_trace(self, args)
        kept = [a for i, a in enumerate(args) if i in self.nondiff]
        free = [i for i in range(len(args)) if i not in self.nondiff]
        call = Call([args[i] for i in free])

        def forward(tensors):
            own, lent = call.arguments(tensors)
            every = list(args)
            for i, a in zip(free, own):
                every[i] = a
            before = getattr(_ruling, "functions", ())
            _ruling.functions = (*before, self)
            try:
                out = _run(self.forward, every, lent, {})
            finally:
                _ruling.functions = before
            if not isinstance(out, tuple) or len(out) != 2:
                raise _error(
                    _core.ArgumentError,
                    "transform.custom.forward",
                    f"the forward rule of {self.__name__} must return (result, residuals), got a {type(out).__name__}",
                    help="end the rule with return result, residuals",
                )
            return out

        before = _core.set_grad_enabled(False)
        try:
            out, residuals = forward(_detached(call.tensors))
        finally:
            _core.set_grad_enabled(before)
        count = trees.flatten(out)[1].leaves

        def rule(xs, given, structure, floats):
            # A gradient of the gradient needs the residuals' own graph.
            if _core.grad_enabled():
                with call.converting():
                    saved = forward(xs)[1]
            else:
                saved = residuals
            cotangent = _cotangents(given, count, structure, floats, call.inside)
            return self._gradients(call, self.backward(*kept, saved, cotangent))

        return _link(self.__name__, call, out, [], rule)

    def _gradients(self, call, found):
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        children = call.structure.children
        if len(found) != len(children):
            raise _error(
                _core.ArgumentError,
                "transform.custom.backward",
                f"the backward rule of {self.__name__} must return {len(children)} gradients, one for each argument, got {len(found)}",
                help="return one gradient, or None, for each argument",
            )
        leaves = []
        for one, child in zip(found, children):
            if one is None:
                leaves += [None] * child.leaves
                continue
            own, its = trees.flatten(one)
            if len(own) != child.leaves:
                raise trees.mismatch(f"the backward rule of {self.__name__}", child, its)
            leaves += own
        out = []
        for k, t in zip(call.floats, call.tensors):
            g = leaves[k]
            if g is not None:
                g = call.whole(g)
                _same_shape(g, t, t, f"the backward rule of {self.__name__}")
            out.append(g)
        return out


class custom_jvp:
    """A function with a forward derivative of its own, in JAX's form; backward passes transpose it.

    >>> @weft.custom_jvp
    ... def f(x): return weft.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents): return f(*primals), weft.cos(primals[0]) * tangents[0]

    The rule gets tuples of arguments and of tangents and returns (result, tangent), linear in the tangents.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        _callable(f, "custom_jvp")
        functools.update_wrapper(self, f)
        self.f = f
        self.rule: Callable[..., Any] | None = None

    def defjvp(self, rule: _F) -> _F:
        """Sets the rule; a decorator."""
        self.rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        if self.rule is None:
            raise _unset("custom_jvp", self, "defjvp(rule)")
        if any(map(is_traced, trees.flatten(list(args))[0])):
            return _in_trace(self, args)
        call = Call(args)
        before = _core.set_grad_enabled(False)
        try:
            own, lent = call.arguments(_detached(call.tensors))
            out = _run(self.f, own, lent, {})
        finally:
            _core.set_grad_enabled(before)
        count = trees.flatten(out)[1].leaves

        def rule(xs, given, structure, floats):
            own, _ = call.arguments(xs)
            zeros = [wrapped(Tensor(t.data * 0, requires_grad=False), call.inside) for t in xs[: len(call.floats)]]  # fmt: skip

            def along(*tangents):
                leaves = [x.data * 0 if hasattr(x, "data") else 0 for x in call.leaves] if len(call.floats) < len(call.leaves) else [None] * len(call.leaves)  # fmt: skip
                for k, t in zip(call.floats, tangents):
                    leaves[k] = t
                found = self.rule(tuple(own), tuple(trees.unflatten(call.structure, leaves)))
                if not isinstance(found, tuple) or len(found) != 2:
                    raise _error(
                        _core.ArgumentError,
                        "transform.custom.jvp",
                        f"the rule of {self.__name__} must return (result, tangent), got a {type(found).__name__}",
                        help="end the rule with return result, tangent",
                    )
                return found[1]

            _, pull = vjp(along, *zeros)
            cotangent = _cotangents(given, count, structure, floats, call.inside)
            return [call.whole(g) for g in pull(cotangent)]

        return _link(self.__name__, call, out, [], rule)


def _unset(kind, f, repair):
    return _error(
        _core.ArgumentError,
        "transform.custom.unset",
        f"{f.__name__} is a {kind} without a rule",
        help=f"{f.__name__}.{repair} before the first call",
    )


def _captured(outputs, own):
    """Tensors that a graph begins at besides `own`: leaves that want gradients, and arguments of derivatives."""
    seen, found, stack = set(), [], list(outputs)
    while stack:
        t = stack.pop()
        if hash(t) in seen or not t.requires_grad:
            continue
        seen.add(hash(t))
        if hash(t) in own:
            continue
        if not t.op or t.op == "alias":
            found.append(t)
        else:
            stack += t.inputs
    return found


def checkpoint(f):
    """f, keeping none of what it computes inside for the backward pass, which computes it again.

    Parameters that f uses without being handed them get their gradients as usual; random numbers are drawn again from
    the same position. Gradients of gradients and vmap pass through it.
    """
    _callable(f, "checkpoint")

    @functools.wraps(f)
    def wrapped_function(*args, **kwargs):
        if any(map(is_traced, trees.flatten([*args, kwargs])[0])):
            return f(*args, **kwargs)  # in a compiled function the compiler decides what is kept
        call = Call(args)
        position = dict(random._state)
        with _Inside():
            aliases = [_alias(t.detach()) for t in call.tensors]
            own, lent = call.arguments(aliases)
            out = _run(f, own, lent, kwargs)
            whole = [call.whole(x) for x in trees.flatten(out)[0] if _is_float(x)]
        captured = _captured(whole, {hash(a) for a in aliases})
        del aliases, own, lent, whole

        def rule(xs, given, structure, floats):
            higher = _core.grad_enabled()
            with drawn_from(position), _Inside(), call.converting():
                again = [_alias(x) for x in xs[: len(call.tensors)]]
                own, lent = call.arguments(again)
                results = trees.flatten(_run(f, own, lent, kwargs))[0]
                results = [call.whole(results[k]) for k in floats]
                terms = [o * g for o, g in zip(results, given) if o.requires_grad]
                wanted = [*again, *captured]
                if not terms:
                    return [None] * len(wanted)
                return alone(gradients)(terms, wanted, higher)

        detached = trees.tree_map(
            lambda x: x.detach() if isinstance(x, (Tensor, batched.Batched)) else x, out
        )
        return _link("checkpoint", call, detached, captured, rule)

    return wrapped_function
