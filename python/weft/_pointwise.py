# SPDX-License-Identifier: Apache-2.0
"""Functions composed of elementwise operations, as one pass over memory.

The composition is traced once for its types and numbers. On the host the trace is evaluated a chunk at a time (chunked.h): what lies
between two operations stays in the caches, and 16-bit floats are rounded once. On devices with a grid it is one kernel
(fused_function.h). So is its gradient, which is the gradient of the trace. Elsewhere (other devices, transforms, compiled functions,
complex numbers) the composition itself runs. Calls with types and numbers that were seen before do not enter Python
(bindings/chunked_calls.cpp).
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
from collections import OrderedDict

from . import _core
from ._autocast import alone as _alone
from ._boundary import import_later
from ._core import NDArray, Tensor

_ARRAYS = (NDArray, Tensor)
_here = threading.local()


class Kept(OrderedDict):
    """What was made for calls of a function, by types, numbers and shapes; the oldest is forgotten."""

    def __init__(self, most=128):
        self.most = most

    def add(self, key, value):
        self[key] = value
        if len(self) > self.most:
            self.popitem(last=False)
        return value


def traced(function, args, inputs, tracing=None):
    """The results for arguments of which arrays are the lazy inputs, in order; None where one is no value of the trace.
    `tracing`: (does it run on the host, has an argument a graph)."""
    Traced = import_later("weft._traced").Traced

    before, _here.tracing = getattr(_here, "tracing", None), tracing
    rest = iter(inputs)
    try:
        out = function(*(Traced(next(rest)) if isinstance(a, _ARRAYS) else a for a in args))
    finally:
        _here.tracing = before
    out = out if isinstance(out, tuple) else (out,)
    return [x._lazy for x in out] if all(isinstance(x, Traced) for x in out) else None


def held(x):
    """A value of a composition that is traced, which gradients do not pass; anything else as it is."""
    tracing = getattr(_here, "tracing", None)
    return x if tracing is None or not hasattr(x, "held") else x.held()


def on_host(x):
    """Does what is composed of x run on the host, x being a value of a composition that is traced, too?"""
    tracing = getattr(_here, "tracing", None)
    return tracing[0] if tracing else x.device.host_accessible


def has_graph(x):
    """Is x a tensor, or a value of a composition that is traced for tensors with gradients?"""
    tracing = getattr(_here, "tracing", None)
    return tracing[1] if tracing else isinstance(x, Tensor)


_NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def _rounded_once(run, args):
    """A composition of values that weft.compile traces, narrow floats among them: as of arrays, these are float32 until the end."""
    _here.typing = True
    try:
        types = run(*args)  # of which the types alone are used
    finally:
        _here.typing = False
    out = run(*(a.astype("float32") if _is_narrow(a) else a for a in args))
    if not isinstance(out, tuple):
        return out if out.dtype == types.dtype else out.astype(types.dtype)
    return tuple(x if x.dtype == t.dtype else x.astype(t.dtype) for x, t in zip(out, types))


def _is_narrow(a):
    return hasattr(a, "_lazy") and a.dtype.name in _NARROW


def widened(x):
    """Narrow floats as float32, in which sums of many keep their digits and their range; else the value itself."""
    return x.astype("float32") if x.dtype.name in _NARROW else x


class _OnHost:
    """A trace on the host: results, and gradients of each of them."""

    def __init__(self, name, outputs, inputs, total):
        self.name, self.outputs, self.inputs, self.total = name, outputs, inputs, total
        self.map = _core._chunked_map(outputs, len(inputs), total)
        self._gradients = {}

    def gradients(self, k, wanted):
        """(the inputs of `wanted` that have one, their lazy gradients, the pass over both and the incoming gradient) of result k."""
        found = self._gradients.get((k, wanted))
        if found is None:
            output, places, pass_ = self.outputs[k], (), None
            seed = _core._lazy_input(len(self.inputs), output.dtype, (1,))
            every = _core._lazy_gradients([output], [seed], [self.inputs[i] for i in wanted])
            graphs = [g for g in every if g is not None]
            if graphs:
                places = tuple(i for i, g in zip(wanted, every) if g is not None)
                pass_ = _core._chunked_map(graphs, len(self.inputs) + 1, False)
            found = self._gradients[k, wanted] = places, graphs, pass_
        return found

    def differentiable(self, wanted):
        return all(
            not graphs or pass_ is not None
            for _, graphs, pass_ in (self.gradients(k, wanted) for k in range(len(self.outputs)))
        )

    def linked(self, k, data, arrays, wanted):
        """Result k as a tensor with the gradient of the trace."""
        places, graphs, pass_ = self.gradients(k, wanted)
        if not places or data.dtype.kind != "f":
            return Tensor(data, requires_grad=False)
        at = [i for i, a in enumerate(arrays) if isinstance(a, Tensor)]
        # The rule holds no tensor itself: the graph has their values.
        kept = [None if isinstance(a, Tensor) else a for a in arrays]

        def rule(xs, result, g):
            rest = iter(xs)
            operands = [next(rest) if a is None else Tensor(a, requires_grad=False) for a in kept]
            if any(t.requires_grad for t in (g, *xs)):  # the gradient has a gradient itself
                found = _core._lazy_on_tensors(graphs, [*operands, g])
            else:
                found = pass_.run([*(t.data for t in operands), g.data])
                found = [Tensor(a, requires_grad=False) for a in found]
            if self.total:  # the gradient of one element is that of all
                shape = _core._broadcast_shapes([t.shape for t in operands])
                found = [x if x.shape == shape else x.broadcast_to(shape) for x in found]
            found = dict(zip(places, found))
            return [found.get(i) for i in at]

        tensors = [arrays[i] for i in at]
        return _core._function_tensor(self.name, data, tensors, rule, list(range(len(at))), False)

    def __call__(self, arrays, wrapped, wanted):
        out = self.map.run([_data(a) for a in arrays])
        if wanted:
            out = [self.linked(k, x, arrays, wanted) for k, x in enumerate(out)]
        elif wrapped:
            out = [Tensor(x, requires_grad=False) for x in out]
        return out[0] if len(out) == 1 else tuple(out)


class _Composition:
    """The programs of a composition, by types of arrays, numbers and where it runs."""

    def __init__(self, name, function, names, reduction):
        self.name, self.function, self.reduction = name.strip("_"), function, reduction
        self.programs, self.once, self.seen = Kept(), Kept(), _core.ChunkedCalls(names)

    def program(self, key, args, changing):
        """The program for such arguments; None where the composition itself runs. `changing`: numbers that differ from call to
        call are not worth a trace."""
        if key in self.programs:
            return self.programs[key]
        if changing and key not in self.once:
            return self.once.add(key, None)
        return self.programs.add(key, self._made(key[0], key[1], args))

    def _made(self, host, wanted, args):
        arrays = [a for a in args if isinstance(a, _ARRAYS)]
        inputs = [_core._lazy_input(i, a.dtype, (1,) if host else ()) for i, a in enumerate(arrays)]
        try:
            outputs = traced(self.function, args, inputs, (host, bool(wanted)))
            if outputs is None:
                return None
            if not host:
                return _core.FusedFunction.make(self.name, outputs, len(inputs), self.reduction)
            made = _OnHost(self.name, outputs, inputs, self.reduction != "none")
        except _core.Error:  # the composition raises it in its own words
            return None
        return made if made.map is not None and made.differentiable(wanted) else None


def _composition(function, reduction, at_once, long):
    signature = inspect.signature(function)
    kinds = [p.kind for p in signature.parameters.values()]
    run, names = function, list(signature.parameters)
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        first = kinds.index(inspect.Parameter.KEYWORD_ONLY)

        def run(*args):
            return function(*args[:first], **dict(zip(names[first:], args[first:])))

    own = _Composition(function.__name__, run, names, reduction)
    whole = reduction == "none"

    def plain(args):
        apart = getattr(_here, "tracing", None) is None and not getattr(_here, "typing", False)
        if apart and any(map(_is_narrow, args)):
            out = _rounded_once(run, args)
        else:
            out = run(*args)
        return out if whole else getattr(out, reduction)()

    @functools.wraps(function)
    @_alone
    def call(*args, **options):
        given = args
        if options:
            given = _placed(names, args, options)
            args = _arranged(signature, args, options)
        wrapped, arrays, key, wanted, changing = False, [], [], (), False
        for a in args:
            kind = type(a)
            if kind is NDArray:
                arrays.append(a)
                key.append(a.dtype.name)
            elif kind is float or kind is int:
                key.append(a.hex() if kind is float else a)
                changing = not at_once
            elif kind is bool or a is None:
                key.append(str(a))
            elif isinstance(a, Tensor):
                wrapped = True
                if a.requires_grad:
                    if not long and a.device.host_accessible and _core.grad_enabled():
                        return plain(args)
                    wanted += (len(arrays),)
                arrays.append(a)
                key.append(a.dtype.name)
            else:
                return plain(args)
        if not arrays:
            return plain(args)
        if wanted and not _core.grad_enabled():
            wanted = ()
        host = arrays[0].device.host_accessible
        if host:
            if not all(a.device.host_accessible and a.dtype.kind != "c" for a in arrays):
                return plain(args)
            # 16-bit floats are rounded once, so every call of theirs is one pass.
            changing = changing and not ("bfloat16" in key or "float16" in key)
        elif not _core.FusedFunction.suits(*arrays):
            return plain(args)
        program = own.program((host, wanted, *key), args, changing)
        if program is None:
            return plain(args)
        if not host:
            if whole:
                own.seen.remember(list(given), program)
            return program(*arrays)
        if whole and not wanted:
            own.seen.remember([_data(a) for a in given], program.map)
        out = program(arrays, wrapped, wanted)
        if reduction != "mean":
            return out
        return out / float(math.prod(_core._broadcast_shapes([a.shape for a in arrays])))

    call.__weft_direct__ = own.seen.call if whole else None
    return call


def pointwise(function, reduction="none"):
    """The function of arrays or tensors and numbers that is composed of elementwise operations, without intermediate arrays. It may
    give a tuple. `reduction`: the "sum" or the "mean" of its values. Its numbers are few."""
    return _composition(function, reduction, True, True)


def composed(function, long=False):
    """The same of a function whose numbers may be of a schedule: they are traced when they come a second time. On the host gradients
    are those of the composition unless it is `long`: a few operations on few elements take less time than a trace."""
    return _composition(function, "none", False, long)


def _data(a):
    return a.data if isinstance(a, Tensor) else a


def _placed(names, args, options):
    """The arguments of a call by the order of the parameters; None for what is not given."""
    out = [*args, *[None] * (len(names) - len(args))]
    for name, value in options.items():
        out[names.index(name)] = value
    return out


def _arranged(signature, args, options):
    """The arguments of a call by the order of the parameters, with the defaults of what is not given."""
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    return tuple(bound.arguments.values())
