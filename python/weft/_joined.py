# SPDX-License-Identifier: Apache-2.0
"""Functions composed of maps and reductions, such as norms of rows, as few kernels as they need on devices with a grid.

The composition is traced once for its types, shapes and numbers, and its graph becomes the kernels that weft.compile would
make: where rows fit a group of threads, one. The gradient is that of the graph, planned likewise; for a gradient's gradient the
composition itself runs again. Everywhere else (hosts, machines without a grid, transforms, compiled functions, other types
than real floats) the composition itself runs.
"""

from __future__ import annotations

import functools
import inspect

from . import _core
from ._autocast import alone as _alone
from ._core import NDArray, Tensor
from ._pointwise import Kept, traced

_ARRAY = object()  # stands for an array or tensor among arguments


class _Plan:
    """The kernels for arguments of given types and shapes."""

    def __init__(self, function, args, like):
        arrays = [a for a in args if isinstance(a, (NDArray, Tensor))]
        self.inputs = [_core._lazy_input(i, a.dtype, a.shape) for i, a in enumerate(arrays)]
        (self.output,) = traced(function, args, self.inputs, (False, True))
        self.like, self._backward = like, {}
        self.forward = _core.FusedPlan([self.output], False, like)

    @functools.cached_property
    def gradients(self):
        """The lazy gradients of the inputs that have one, by number; the incoming gradient is the last input."""
        seed = _core._lazy_input(len(self.inputs), self.output.dtype, self.output.shape)
        found = _core._lazy_gradients([self.output], [seed], self.inputs)
        return {i: g for i, g in enumerate(found) if g is not None}

    def backward(self, wanted):
        """The kernels of some of the gradients."""
        found = self._backward.get(wanted)
        if found is None:
            wished = [self.gradients[i] for i in wanted]
            found = self._backward[wanted] = _core.FusedPlan(wished, False, self.like)
        return found


def _wanting(x):
    return x if x.requires_grad else Tensor(x.data, requires_grad=True)


def _linked(function, plan, args, data):
    """The result as a tensor with the gradient of the graph."""
    arrays = [a for a in args if isinstance(a, (NDArray, Tensor))]
    name = function.__name__.strip("_")
    tensors = [a for a in arrays if isinstance(a, Tensor)]
    places = [i for i, a in enumerate(arrays) if isinstance(a, Tensor)]
    # The rule holds no tensor itself: the graph has their values.
    kept = [None if isinstance(a, Tensor) else a for a in arrays]
    form = [_ARRAY if isinstance(a, (NDArray, Tensor)) else a for a in args]
    wanted = tuple(i for i in places if arrays[i].requires_grad and i in plan.gradients)

    def rule(xs, result, g):
        rest = iter(xs)
        operands = [next(rest) if a is None else Tensor(a, requires_grad=False) for a in kept]
        if any(t.requires_grad for t in (g, *xs)):  # the gradient has a gradient itself
            leaves = [_wanting(x) if i in wanted else x for i, x in enumerate(operands)]
            rest = iter(leaves)
            again = function(*(next(rest) if a is _ARRAY else a for a in form))
            found = _core.gradients([again], [leaves[i] for i in wanted], True, [g])
        else:
            found = plan.backward(wanted).run([*(t.data for t in operands), g.data])
            found = [Tensor(a, requires_grad=False) for a in found]
        by_place = dict(zip(wanted, found))
        return [by_place.get(i) for i in places]

    return _core._function_tensor(name, data, tensors, rule, list(range(len(tensors))), False)


def joined(function):
    """The function of arrays or tensors of one device, then numbers, tuples and None, in few kernels."""
    plans = Kept(256)
    signature = inspect.signature(function)

    @functools.wraps(function)
    @_alone
    def call(*args, **options):
        if options:
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            args = bound.args
        arrays, key = [], []
        for a in args:
            if type(a) is NDArray or type(a) is Tensor:
                arrays.append(a)
                key += (a.dtype.name, tuple(a.shape))
            else:
                key.append(a)
        if not arrays or not _suits(arrays):
            return function(*args)
        try:
            plan = plans.get(key := tuple(key))
        except TypeError:  # a value of a transform, or a list
            return function(*args)
        if plan is None:
            like = arrays[0].data if type(arrays[0]) is Tensor else arrays[0]
            plan = plans.add(key, _Plan(function, args, like))
        (data,) = plan.forward.run([a.data if type(a) is Tensor else a for a in arrays])
        if all(type(a) is NDArray for a in arrays):
            return data
        if _core.grad_enabled() and any(type(a) is Tensor and a.requires_grad for a in arrays):
            return _linked(function, plan, args, data)
        return Tensor(data, requires_grad=False)

    return call


def _suits(arrays):
    """Real floats with elements on one device with a grid."""
    first = arrays[0].data if type(arrays[0]) is Tensor else arrays[0]
    if not _core._has_grid(first):
        return False
    return all(a.dtype.kind == "f" and a.size and a.device == first.device for a in arrays)
