# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions."""

from __future__ import annotations

import contextlib

from .. import _core
from .._autocast import alone as _alone
from .._core import ArgumentError, NDArray, ShapeError, Tensor
from .._dispatch import Recorder
from .._boundary import public as _public
from .._boundary import publish as _publish
from .._boundary import publish_class as _publish_class
from .._errors import error as _error
from .._errors import unwritten as _unwritten
from ..transforms.custom import checkpoint as _checkpoint
from ..transforms.reverse import grad as _grad
from ..transforms.reverse import value_and_grad as _value_and_grad
from ..transforms.batched import loop as _loop

__all__ = [
    "Context",
    "Function",
    "GradcheckError",
    "backward",
    "checkpoint",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "no_grad",
    "value_and_grad",
]


@contextlib.contextmanager
def no_grad():
    """Inside, operations of this thread make no graph: ``with weft.no_grad(): y = model(x)``. Also a decorator."""
    before = _core.set_grad_enabled(False)
    try:
        yield
    finally:
        _core.set_grad_enabled(before)


@contextlib.contextmanager
def enable_grad():
    """Inside, operations make a graph again, within no_grad or a Function's own methods. Also a decorator."""
    before = _core.set_grad_enabled(True)
    try:
        yield
    finally:
        _core.set_grad_enabled(before)


def grad(f=None, argnums=0, has_aux=False, *, outputs=None, inputs=None, grad_outputs=None, create_graph=False, retain_graph=None, only_inputs=True, allow_unused=False):  # fmt: skip
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.

    Raises ArgumentError for inputs that require no gradient, or on which the tensor does not depend unless allow_unused (None then).
    """
    f = outputs if f is None else f
    if isinstance(f, (list, tuple)) and len(f) == 1:
        (f,) = f
    if not isinstance(f, Tensor):
        return _grad(f, argnums, has_aux)
    inputs = argnums if inputs is None else inputs
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for x in wanted:
        if not (isinstance(x, Tensor) and x.requires_grad):
            raise _error(
                _core.ArgumentError,
                "autograd.grad.input",
                "grad of a tensor for an input that requires no gradient",
                help="x.requires_grad_() before the tensor is computed from it",
            )
    if isinstance(grad_outputs, (list, tuple)):
        (grad_outputs,) = grad_outputs
    if grad_outputs is not None and not isinstance(grad_outputs, Tensor):
        grad_outputs = Tensor(grad_outputs, requires_grad=False)
    seeds = [] if grad_outputs is None else [grad_outputs]
    found = tuple(_alone(_core.gradients)([f], wanted, create_graph, seeds, none_unused=True))
    if not allow_unused and any(g is None for g in found):
        raise _error(
            _core.ArgumentError,
            "autograd.grad.unused",
            f"the tensor does not depend on input {[g is None for g in found].index(True)}",
            help="allow_unused=True gives None for it",
        )
    return found


def checkpoint(f, *args):
    """f(*args) by weft.checkpoint(f): nothing inside is kept for the backward pass, which computes it again."""
    return _checkpoint(f)(*args)


class Context:
    """What forward leaves for backward: save_for_backward(*tensors), saved_tensors, and any attribute."""

    saved_tensors = ()
    needs_input_grad = ()

    def __init__(self):
        pass

    def save_for_backward(self, *tensors):
        """Tensors that backward finds in saved_tensors, in this order."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        """Nothing to say: gradients of results that nobody differentiates are zeros."""

    def set_materialize_grads(self, value):
        """Nothing to say: gradients that nothing reaches are zeros."""


class Function:
    """An operation of one's own with its gradient.

    >>> class Cube(weft.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3.0 * x * x
    >>> y = Cube.apply(weft.Tensor([1.0, 2.0]))

    forward gets the arguments of apply and returns a Tensor or NDArray, or a tuple of them of one type; no graph is made
    inside. backward gets the gradient of each result and returns one gradient, or None, for each argument (a tuple when there are several);
    written with operations on tensors, it can be differentiated again.
    """

    def __init__(self):
        pass

    @staticmethod
    def forward(ctx, *args):
        """The operation: arrays or tensors of the arguments of apply. To be written by the subclass."""
        raise _unwritten(Function, "forward")

    @staticmethod
    def backward(ctx, grad):
        """The gradients of the arguments for those of the results. To be written by the subclass."""
        raise _unwritten(Function, "backward")

    @classmethod
    def apply(cls, *args):
        """Runs forward and links the result. Raises ArgumentError for a result that is no array, or for a wrong number
        of gradients; ShapeError for a gradient of another shape than its argument."""
        recorders = [a for a in args if isinstance(a, Recorder)]
        if recorders:
            from .._traced import Traced, refuse

            if any(isinstance(a, Traced) for a in recorders):
                refuse(
                    f"the compiled function calls {cls.__name__}.apply on a traced value",
                    "call it outside the compiled function, and compile what comes before and after",
                )
        batched = [a for a in recorders if hasattr(a, "frame")]
        if batched:  # forward and backward are written for one example
            frame = max((b.frame for b in batched), key=lambda f: f.level)
            return _loop(frame, cls.__name__, cls.apply, args, {})
        ctx = Context()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        with no_grad():
            out = cls.forward(ctx, *args)
        several = out if isinstance(out, (tuple, list)) and len(out) > 1 else None
        if several is not None and all(isinstance(x, (Tensor, NDArray)) for x in several):
            if len({x.dtype for x in several}) == 1:
                several = [x.data if isinstance(x, Tensor) else x for x in several]
                out = _concat([x.reshape(-1) for x in several])
        if not isinstance(out, (Tensor, NDArray)):
            raise _error(
                ArgumentError,
                "array.function.result",
                f"{cls.__name__}.forward must return a Tensor or NDArray, or a tuple of them of one type, got {type(out).__name__}",
                help="convert results of several types to one",
            )
        data = out.data if isinstance(out, Tensor) else out
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        inputs = [args[i] for i in places]
        saved, given = ctx.saved_tensors, len(args)
        ids, made = [id(a) for a in inputs], id(out)
        kept = {id(t) for t in saved}
        read = [i for i, a in enumerate(ids) if a in kept]

        # The rule holds no argument itself: values that are not saved are released with their last handle.
        def rule(xs, result, g):
            # Saved arguments and the saved result are the graph's own, so that gradients of gradients pass.
            own = dict(zip(ids, xs)) | {made: result}
            ctx.saved_tensors = tuple(own.get(id(t), t) for t in saved)
            found = cls.backward(ctx, *(_parts_of(g, several) if several else (g,)))
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(found) != given:
                raise _error(
                    ArgumentError,
                    "array.function.gradients",
                    f"{cls.__name__}.backward must return {given} gradients, one for each argument of apply, "
                    f"got {len(found)}",
                    help="return one gradient, or None, for each argument of apply",
                )
            gs = []
            for i, x in zip(places, xs):
                one = found[i]
                if one is not None and not isinstance(one, Tensor):
                    one = Tensor(one, requires_grad=False)
                if one is not None and one.shape != x.shape:
                    raise _error(
                        ShapeError,
                        "array.function.shape",
                        f"{cls.__name__}.backward gives a gradient of shape {one.shape} for argument {i} of shape {x.shape}",
                        help="return a gradient of the argument's shape; sum over broadcast axes",
                    )
                gs.append(one)
            return gs

        node = _core._function_tensor(cls.__name__, data, inputs, rule, read, made in kept)
        return tuple(_parts_of(node, several)) if several else node


def _concat(rows):
    import weft

    return weft.concat(rows, axis=0)


def _parts_of(row, like):
    """A row of numbers as parts of the shapes of `like`."""
    out, at = [], 0
    for x in like:
        out.append(row[at : at + x.size].reshape(x.shape))
        at += x.size
    return out


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """tensor.backward() of one tensor or several; grad_tensors: a gradient of its shape for each, None for numbers.

    Gradients are added to .grad of the leaves. Raises ArgumentError (autograd.backward.count) for another number of gradients.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    given = [grad_tensors] if grad_tensors is None or isinstance(grad_tensors, (Tensor, NDArray)) else list(grad_tensors)  # fmt: skip
    given = given * len(tensors) if given == [None] else given
    if len(given) != len(tensors):
        raise _error(
            ArgumentError,
            "autograd.backward.count",
            f"backward of {len(tensors)} tensors with {len(given)} gradients",
            ["legal: one for each, None for numbers"],
        )
    for x, g in zip(tensors, given):
        x.backward() if g is None else x.backward(g)


class detect_anomaly(contextlib.ContextDecorator):
    """Taken as PyTorch's word and changes nothing: errors of a gradient name the operation in any case."""

    def __init__(self, check_nan=True):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


_publish(__name__)
from . import functional  # noqa: E402,F401  (it needs what is above)
from .._gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: E402,F401

gradcheck, gradgradcheck = _public(gradcheck), _public(gradgradcheck)
value_and_grad = _public(_value_and_grad)
for _class in (Context, detect_anomaly):
    _publish_class(_class)
Function.__init__ = _public(Function.__init__, "Function")
