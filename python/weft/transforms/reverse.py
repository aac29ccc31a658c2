# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions by walking their graph backwards; forward derivatives as the transpose of that, twice."""

from __future__ import annotations

import contextlib
import functools

from .._core import shown as _shown
from .. import _core, random
from .._autocast import alone
from .._core import NDArray, Tensor, gradients
from .._differentiating import deeper
from .._dispatch import Recorder
from .._errors import error as _error
from . import trees
from .batched import Batched, frames, wrapped


class _Inside:
    """Graphs are made while this is entered, whatever no_grad says outside. `order`: of the derivative."""

    def __init__(self, order=1):
        self.order = order

    def __enter__(self):
        self.before = _core.set_grad_enabled(True)
        deeper(self.order)
        return self

    def __exit__(self, *_):
        deeper(-self.order)
        _core.set_grad_enabled(self.before)


# ---- values of vmap as tensors of all examples


def _levels():
    return [f for f in frames() if not f.looping]


def _whole(x, inside):
    """A value with the examples of all frames along its first axes, outermost first."""
    lead = tuple(f.size for f in inside)
    for k in range(len(inside) - 1, -1, -1):
        frame = inside[k]
        if frame.owns(x):
            x = x.value
        else:  # behind it stand the axes of the frames inside, which were opened already
            x = x.broadcast_to((frame.size, *x.shape))
    assert tuple(x.shape)[: len(lead)] == lead
    return x


def _alias(x):
    """A tensor of the same values whose gradient is asked for: linked to x where x is linked."""
    if isinstance(x, Tensor) and x.requires_grad:
        return _core._function_tensor("alias", x.data, [x], lambda xs, out, g: [g], [], False)
    return Tensor(x.data if isinstance(x, Tensor) else x, requires_grad=True)


def refuse(name):
    """The error for a transform that a trace of weft.compile cannot hold."""
    return _error(
        _core.ArgumentError,
        "transform.compiled",
        f"{name} of a traced value inside weft.compile",
        [
            "legal there: grad, value_and_grad, vjp, jvp, linearize, jacobians, vmap, checkpoint, stop_gradient, "
            "custom_vjp and custom_jvp of arrays and trees of them"
        ],
        help=f"compile the function that {name} is applied to, or call {name} outside",
    )


def is_traced(x):
    """Is it a value of weft.compile's trace, or a batched one of such values?"""
    x = x.base() if isinstance(x, Batched) else x
    return isinstance(x, Recorder)


class _TracedResult(Exception):
    """Of arguments that no trace knows a function made a traced value: it uses one from outside."""


def _captured(leaf):
    """An argument as a value of the trace in progress."""
    from .._traced import Traced, active

    if isinstance(leaf, Batched):
        return Batched(_captured(leaf.value), leaf.frame)
    (array,) = trees.as_arrays([leaf])
    return Traced(active[-1].captured(array))


def linked_by(leaves, name, run):
    """run(linked) with arguments as link gives them; once more with all of them in the trace where it made a traced result."""
    linked = link(leaves, name)
    try:
        return linked, run(linked)
    except _TracedResult:
        linked = link([_captured(x) for x in leaves], name)
        return linked, run(linked)


def link(leaves, name):
    """The leaves of arguments as values that derivatives can be taken with respect to: Linked, or traced ones."""
    for k, leaf in enumerate(leaves):
        _differentiable(leaf, name, k)
    if any(map(is_traced, leaves)):
        from .traced import TracedLinked

        return TracedLinked(leaves, name)
    return Linked(leaves)


class Linked:
    """Leaves of arguments as tensors that a graph begins at."""

    always = False  # are results part of a graph whatever no_grad says?

    def __init__(self, leaves):
        self.inside = _levels()
        self.wanted = [self._begin(_whole(x, self.inside)) for x in trees.as_arrays(leaves)]
        self.values = [wrapped(w, self.inside) for w in self.wanted]
        self._own = {hash(w) for w in self.wanted}

    def _begin(self, leaf):
        if not isinstance(leaf, (Tensor, NDArray)):  # a trace that began inside of this vmap
            raise refuse("a derivative")
        return _alias(leaf)

    def whole(self, x):
        """A result as a tensor of all examples."""
        if is_traced(x):
            raise _TracedResult
        if not isinstance(x, trees.ARRAYS):
            x = _core._asarray(x, None, None, None)
        x = _whole(x, self.inside)
        return x if isinstance(x, Tensor) else Tensor(x, requires_grad=False)

    def foreign(self, tensors):
        """Does anything but these leaves want gradients of the results? Their gradients then have graphs as well."""
        for t in tensors:
            if t.requires_grad and any(
                x.requires_grad and not x.op and hash(x) not in self._own
                for x in _core.topological(t)
            ):
                return True
        return False

    def zeros(self, outputs):
        """Zeros like outputs, with respect to which the backward pass can be derived."""
        return [Tensor(o.data.astype(o.dtype) * 0, requires_grad=True) for o in outputs]

    def asked(self, tensors):
        """Does a tensor that is handed in want gradients?"""
        return any(t.requires_grad for t in tensors)

    @alone
    def derive(self, outputs, seeds, wanted, create):
        """Gradients of the sum of outputs times seeds (ones for None). The seeds are no part of what is differentiated: they may depend on the same leaves."""
        pairs = [(o, s) for o, s in zip(outputs, seeds) if o.requires_grad]
        if not pairs:
            return self.zeros(wanted)
        weights = [
            s if s.dtype == o.dtype else s.astype(o.dtype) for o, s in pairs if s is not None
        ]
        found = gradients([o for o, _ in pairs], wanted, create, weights)
        return found if create else [g.detach() for g in found]

    def mapped_further(self, name):
        """Is there a vmap around now that the graph knows nothing of? Then the graph is made again, for its examples."""
        now = _levels()
        if any(f not in now for f in self.inside):
            raise _error(
                _core.ArgumentError,
                "vmap.escaped",
                f"{name} was made inside a vmap that has ended",
                help="call it inside the same vmap",
            )
        return len(now) > len(self.inside)

    def leave(self, outputs, linked):
        return [wrapped(o if linked else o.detach(), self.inside) for o in outputs]

    def wrapped(self, found):
        """Values of all examples as values of one."""
        return [wrapped(g, self.inside) for g in found]


@contextlib.contextmanager
def drawn_from(position):
    """Inside, random numbers without a key come from a position kept before; afterwards from where they were."""
    later = dict(random._state)
    random._state.update(position)
    try:
        yield
    finally:
        random._state.update(later)


def _differentiable(leaf, name, k):
    dtype = getattr(leaf, "dtype", None)
    kind = getattr(dtype, "kind", None) or ("f" if isinstance(leaf, float) else type(leaf).__name__)
    if kind == "c" or isinstance(leaf, complex):
        raise _error(
            _core.DTypeError,
            "transform.complex",
            f"{name} with respect to argument leaf {k} of type {dtype or 'complex'}: holomorphic derivatives are not offered",
            help="differentiate with respect to the real and the imaginary part",
        )
    if kind != "f":
        raise _error(
            _core.DTypeError,
            "transform.integer",
            f"{name} with respect to argument leaf {k} of type {dtype or type(leaf).__name__}; derivatives are those of real floats",
            help="choose other argnums, or convert: x.astype('float32')",
        )


def _places(argnums, count, name):
    several = not isinstance(argnums, int) or isinstance(argnums, bool)
    try:
        places = tuple(argnums) if several else (argnums,)
    except TypeError:
        places = (argnums,)
    if not places or not all(isinstance(p, int) and -count <= p < count for p in places):
        raise _error(
            _core.ArgumentError,
            "transform.argnums",
            f"{name} with argnums={_shown(argnums)} of a call with {count} positional arguments",
            [f"legal: numbers from {-count} to {count - 1}" if count else "the call has none"],
            help="pass the differentiated arguments by position",
        )
    return several, tuple(p % count for p in places)


def _put(args, places, values):
    """The arguments with others in some places; a module gets its parameters lent for the call."""
    args, lent = list(args), []
    for p, v in zip(places, values):
        if isinstance(v, dict) and not isinstance(args[p], dict):
            lent.append((args[p], v))
        else:
            args[p] = v
    return args, lent


def _run(f, args, lent, kwargs):
    from .modules import lending

    with lending(lent):
        return f(*args, **kwargs)


def _split_aux(out, has_aux, name):
    if not has_aux:
        return out, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise _error(
            _core.ArgumentError,
            "transform.aux",
            f"{name} with has_aux=True needs a function that returns (result, aux), got a {type(out).__name__}",
            help="end the function with return result, aux",
        )
    return out


def _callable(f, name):
    if not callable(f):
        raise _error(
            "dtype",
            "array.grad.function",
            f"{name} takes a function, got a {type(f).__name__}",
            help="gradients of a tensor: loss.backward(), then x.grad",
        )


def _plain_aux(aux, linked):
    return (
        aux
        if linked
        else trees.tree_map(lambda x: x.detach() if isinstance(x, (Tensor, Batched)) else x, aux)
    )


def value_and_grad(f, argnums=0, has_aux=False):
    """A function that gives f's value, one number, and its gradient with respect to some positional arguments.

    Arguments may be trees (tuples, lists, dicts) of arrays and modules; the gradient has the same tree, that of a
    module is a dict by the names of its parameters. argnums: a number, or several, which give a tuple of gradients.
    With has_aux f returns (value, aux) and the result is ((value, aux), gradient). Raises ArgumentError
    (array.grad.scalar, transform.argnums, transform.aux), DTypeError (transform.integer, transform.complex).
    """
    _callable(f, "value_and_grad")

    @functools.wraps(f)
    def wrapped_function(*args, **kwargs):
        several, places = _places(argnums, len(args), "grad")
        outside = _core.grad_enabled()
        leaves, structure = trees.flatten([args[p] for p in places])
        with _Inside():

            def run(linked):
                own, lent = _put(args, places, trees.unflatten(structure, linked.values))
                out, aux = _split_aux(_run(f, own, lent, kwargs), has_aux, "grad")
                shape = getattr(out, "shape", None)
                if not isinstance(out, trees.ARRAYS) or out.size != 1:
                    raise _error(
                        _core.ArgumentError,
                        "array.grad.scalar",
                        f"grad needs a function with one number as result, got shape {shape}",
                        help="end with a sum or a mean, or use weft.vjp with a gradient of the result",
                    )
                if out.dtype.kind != "f":
                    _differentiable(out, "grad of a result", 0)
                return linked.whole(out), aux

            linked, (whole, aux) = linked_by(leaves, "grad", run)
            create = linked.always or outside and linked.foreign([whole])
            found = linked.wrapped(linked.derive([whole], [None], linked.wanted, create))
        tree = trees.unflatten(structure, found)
        (value,) = linked.leave([whole], create)
        result = tuple(tree) if several else tree[0]
        return ((value, _plain_aux(aux, create)) if has_aux else value), result

    return wrapped_function


def grad(f, argnums=0, has_aux=False):
    """The gradient function of f; grad(grad(f)) is its second derivative. Arguments and errors: value_and_grad.

    With has_aux it gives (gradient, aux). Raises DTypeError for what is no function.
    """
    _callable(f, "grad")
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def wrapped_function(*args, **kwargs):
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapped_function


def vjp(f, *primals, has_aux=False):
    """(f(*primals), pull): pull(cotangent) gives the tuple of gradients of the primals for a gradient of the result.

    The result and the cotangent are trees of the same structure; pull may be called many times. With has_aux f returns
    (result, aux) and aux comes third. Raises DTypeError and ArgumentError as value_and_grad does, ShapeError
    (transform.shape) for a cotangent of another shape.
    """
    _callable(f, "vjp")
    outside, position = _core.grad_enabled(), dict(random._state)
    leaves, structure = trees.flatten(list(primals))
    with _Inside():

        def run(linked):
            values = trees.unflatten(structure, linked.values)
            own, lent = _put(primals, range(len(primals)), values)
            out, aux = _split_aux(_run(f, own, lent, {}), has_aux, "vjp")
            results, result_structure = trees.flatten(out)
            return results, result_structure, [linked.whole(r) for r in results], aux

        linked, (results, result_structure, whole, aux) = linked_by(leaves, "vjp", run)
        foreign = linked.always or outside and linked.foreign(whole)

    def pull(cotangent):
        given, its = trees.flatten(cotangent)
        if its != result_structure:
            raise trees.mismatch("the pull of vjp", result_structure, its)
        if linked.mapped_further("the pull of vjp"):
            with drawn_from(position):
                return vjp(f, *primals, has_aux=has_aux)[1](cotangent)
        with _Inside():
            seeds = [linked.whole(c) for c in given]
            for s, o, r in zip(seeds, whole, results):
                _same_shape(s, o, r, "the pull of vjp")
            found = linked.derive(whole, seeds, linked.wanted, foreign or linked.asked(seeds))
        return tuple(trees.unflatten(structure, linked.wrapped(found)))

    value = trees.unflatten(result_structure, linked.leave(whole, foreign))
    return (value, pull, _plain_aux(aux, foreign)) if has_aux else (value, pull)


def _same_shape(given, wanted, shown, name):
    if tuple(given.shape) != tuple(wanted.shape):
        raise _error(
            _core.ShapeError,
            "transform.shape",
            f"{name} got a value of shape {tuple(given.shape)} for one of shape {tuple(wanted.shape)}",
            help="cotangents have the shapes of results, tangents those of arguments",
        )


def linearize(f, *primals):
    """(f(*primals), push): push(*tangents) gives the derivative of f along the tangents, as often as wanted.

    It is the transpose of the backward pass, so every gradient rule serves forward derivatives as well.
    """
    value, push, _ = _linearized(f, primals, "linearize", False)
    return value, push


def _linearized(f, primals, name, has_aux):
    _callable(f, name)
    outside, position = _core.grad_enabled(), dict(random._state)
    leaves, structure = trees.flatten(list(primals))
    with _Inside(2):
        linked = link(leaves, name)
        own, lent = _put(primals, range(len(primals)), trees.unflatten(structure, linked.values))
        out, aux = _split_aux(_run(f, own, lent, {}), has_aux, name)
        results, result_structure = trees.flatten(out)
        whole = [linked.whole(r) for r in results]
        foreign = linked.always or outside and linked.foreign(whole)
        # The backward pass is linear in its seeds: their gradient is the forward derivative.
        seeds = linked.zeros(whole)
        back = linked.derive(whole, seeds, linked.wanted, True)

    def push(*tangents):
        given, its = trees.flatten(list(tangents))
        if its != structure:
            raise trees.mismatch(f"the tangents of {name}", structure, its)
        if linked.mapped_further(f"the push of {name}"):
            with drawn_from(position):
                return _linearized(f, primals, name, has_aux)[1](*tangents)
        with _Inside():
            vs = [linked.whole(t) for t in given]
            for v, w, x in zip(vs, linked.wanted, leaves):
                _same_shape(v, w, x, name)
            found = linked.derive(back, vs, seeds, foreign or linked.asked(vs))
        return trees.unflatten(result_structure, linked.wrapped(found))

    value = trees.unflatten(result_structure, linked.leave(whole, foreign))
    return value, push, _plain_aux(aux, foreign)


def jvp(f, primals, tangents, has_aux=False):
    """(f(*primals), derivative of f along the tangents). With has_aux f returns (result, aux) and aux comes third.

    Raises ArgumentError (transform.tree.structure) and ShapeError (transform.shape) where tangents do not fit.
    """
    for given, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(given, (tuple, list)):
            raise _error(
                _core.ArgumentError,
                "transform.jvp.tuple",
                f"jvp takes {what} as a tuple, one for each argument; got a {type(given).__name__}",
                help="jvp(f, (x,), (v,))",
            )
    value, push, aux = _linearized(f, tuple(primals), "jvp", has_aux)
    out = push(*tangents)
    return (value, out, aux) if has_aux else (value, out)


def stop_gradient(x):
    """The values of a tree of arrays as constants: no derivative passes."""
    return trees.tree_map(lambda v: v.detach() if isinstance(v, (Tensor, Recorder)) else v, x)


__all__ = ["grad", "jvp", "linearize", "stop_gradient", "value_and_grad", "vjp", "NDArray"]
