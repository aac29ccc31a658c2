# SPDX-License-Identifier: Apache-2.0
"""Functions composed of elementwise operations, as one pass over memory.

The composition is traced once for its types and numbers, and the trace is evaluated a chunk at a time (chunked.h): what lies between
two operations stays in the caches, and 16-bit floats are rounded once. Its gradient is the gradient of the trace,
evaluated likewise. Devices with a grid run one kernel, and one for each gradient. Elsewhere (other devices, transforms,
compiled functions, gradients of gradients, integers) the composition itself runs.

`composed` is the same for functions of NumPy's and PyTorch's that are composed of the table's: on the host without a gradient, of any
type but complex numbers, on devices with a grid of one type of real floats. Calls with types and numbers that were seen before do not enter Python (bindings/chunked_calls.cpp).
"""

from __future__ import annotations

import functools
import inspect
import threading

from . import _core
from ._autocast import alone as _alone
from ._boundary import import_later
from ._core import NDArray, Tensor

_ARRAYS = (NDArray, Tensor)
_MOST = 128  # programs of one function
_FLOATS = frozenset(("float32", "float64", "float16", "bfloat16"))


class _Program:
    """The chunked evaluation of a composition for arguments of given types, and of its gradient."""

    def __init__(self, function, args, total):
        Traced = import_later("weft._traced").Traced

        arrays = [a for a in args if isinstance(a, _ARRAYS)]
        self.inputs = [_core._lazy_input(i, a.dtype, (1,)) for i, a in enumerate(arrays)]
        rest = iter(self.inputs)
        result = function(*(Traced(next(rest)) if isinstance(a, _ARRAYS) else a for a in args))
        self.output, self.total = result._lazy, total
        self.forward = _core._chunked_map([self.output], len(self.inputs), total)

    @functools.cached_property
    def gradients(self):
        """The lazy gradients of the inputs that have one, by number; the incoming gradient is the last input."""
        seed = _core._lazy_input(len(self.inputs), self.output.dtype, (1,))
        found = _core._lazy_gradients([self.output], [seed], self.inputs)
        return {i: g for i, g in enumerate(found) if g is not None}

    @functools.cached_property
    def backward(self):
        return _core._chunked_map(list(self.gradients.values()), len(self.inputs) + 1, False)


def _suits(arrays):
    """Real floats on the host, which broadcast to the first one."""
    first = arrays[0].shape
    for a in arrays:
        if not a.device.host_accessible or a.dtype.name not in _FLOATS:
            return False
        if a.shape != first and (
            a.ndim != len(first) or any(n not in (1, m) for n, m in zip(a.shape, first))
        ):
            return False
    return True


def _like(gradient, shape):
    """The gradient of an operand of this shape, summed over what it was repeated along."""
    axes = [i for i, (n, m) in enumerate(zip(gradient.shape, shape)) if n != m]
    if not axes:
        return gradient if gradient.shape == shape else gradient.broadcast_to(shape)
    return gradient.sum(tuple(axes), True)


def _linked(function, program, args, data):
    """The result as a tensor with the gradient of the trace."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    # The rule holds no tensor itself: the graph has their values.
    kept = [None if isinstance(a, Tensor) else a for a in args if isinstance(a, _ARRAYS)]

    def rule(xs, result, g):
        rest = iter(xs)
        operands = [next(rest) if a is None else Tensor(a, requires_grad=False) for a in kept]
        places = [i for i, a in enumerate(kept) if a is None]
        wanted = program.gradients
        if any(t.requires_grad for t in (g, *xs)):  # the gradient has a gradient itself
            found = _core._lazy_on_tensors(list(wanted.values()), [*operands, g])
        else:
            found = program.backward.run([*(t.data for t in operands), g.data])
            found = [Tensor(a, requires_grad=False) for a in found]
        found = dict(zip(wanted, found))
        return [_like(found[i], operands[i].shape) if i in found else None for i in places]

    read = list(range(len(tensors)))
    return _core._function_tensor(function.__name__.strip("_"), data, tensors, rule, read, False)


def _kernel(function, dtype, arrays, numbers, total):
    """The kernel of a function of so many arrays, then numbers; `total`: of the sum of its values."""
    Traced = import_later("weft._traced").Traced

    inputs = [Traced(_core._lazy_input(k, dtype, ())) for k in range(arrays)]
    value = function(*inputs, *numbers)
    return _core.FusedFunction(function.__name__.strip("_"), value._lazy, arrays, total)


def pointwise(function, total=False):
    """The function of arrays or tensors, which broadcast to the first one, then numbers, without intermediate arrays.

    `total`: the sum of its values.
    """
    programs = {}
    kernels = {}  # of devices with a grid
    signature = inspect.signature(function)
    names = list(signature.parameters)
    seen = _core.ChunkedCalls(names)

    def plain(args):
        out = function(*args)
        return out.sum() if total else out

    def elsewhere(args, arrays, numbers):
        leading = not numbers or all(map(isinstance, args, [_ARRAYS] * len(arrays)))
        dtype = _core._fused_type(*arrays) if leading else None
        if dtype is None:
            return plain(args)
        for k in numbers:
            if k != k:
                return plain(args)
        for a in arrays:
            if not a.size:
                return plain(args)
        key = (dtype, numbers)
        kernel = kernels.get(key)
        if kernel is None:
            if len(kernels) >= _MOST:
                kernels.clear()
            kernel = kernels[key] = _kernel(function, dtype, len(arrays), numbers, total)
        return kernel(*arrays)

    @functools.wraps(function)
    @_alone
    def call(*args, **options):
        given = args
        if options:
            given = _placed(names, args, options)
            args = _arranged(signature, args, options)
        arrays = [a for a in args if isinstance(a, _ARRAYS)]
        numbers = tuple([a for a in args if type(a) in (int, float) or a is None])
        if not arrays or len(args) - len(arrays) != len(numbers):
            return plain(args)
        if not _suits(arrays):
            return elsewhere(args, arrays, numbers)
        linked = _core.grad_enabled() and any(
            isinstance(a, Tensor) and a.requires_grad for a in arrays
        )
        key = tuple(a.dtype.name if isinstance(a, _ARRAYS) else a for a in args)
        program = programs.get(key)
        if program is None:
            if any(k != k for k in key):
                return plain(args)
            if len(programs) >= _MOST:
                programs.clear()
            program = programs[key] = _Program(function, args, total)
        if program.forward is None:
            return plain(args)
        if linked and (not program.gradients or program.backward is None):
            return plain(args)
        if not total and not linked:
            seen.remember([_data(a) for a in given], program.forward)
        (data,) = program.forward.run([_data(a) for a in arrays])
        if linked:
            return _linked(function, program, args, data)
        return (
            Tensor(data, requires_grad=False)
            if any(isinstance(a, Tensor) for a in arrays)
            else data
        )

    call.__weft_direct__ = None if total else seen.call
    return call


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


class _Composed:
    """The programs of a composition, by types of arrays and by numbers."""

    def __init__(self, name, function, names):
        self.name = name.strip("_")
        self.function, self.programs, self.kernels, self.once = function, {}, {}, set()
        self.seen = _core.ChunkedCalls(names)

    def program(self, key, args, changing):
        """The program for such arguments; None where the composition itself runs. `changing`: some are numbers."""
        if key in self.programs:
            return self.programs[key]
        if changing and self.is_new(key):
            return None
        if len(self.programs) >= _MOST:
            self.programs.clear()
            self.seen.clear()
        found = self.programs[key] = self._made(args)
        if found is not None:
            self.seen.remember([a.data if isinstance(a, Tensor) else a for a in args], found)
        return found

    def is_new(self, key):
        """Numbers that differ from call to call are not worth a trace."""
        if key in self.once:
            return False
        if len(self.once) >= _MOST:
            self.once.clear()
        self.once.add(key)
        return True

    def kernel(self, key, args, dtype, changing):
        """The same for a device with a grid, where `dtype` is computed."""
        if key in self.kernels:
            return self.kernels[key]
        if changing and self.is_new(key):
            return None
        if len(self.kernels) >= _MOST:
            self.kernels.clear()
        found = self.kernels[key] = self._made_for_grids(args, dtype)
        return found

    def _made_for_grids(self, args, dtype):
        Traced = import_later("weft._traced").Traced

        form = [isinstance(a, _ARRAYS) for a in args]
        inputs = iter([Traced(_core._lazy_input(i, dtype, ())) for i in range(sum(form))])
        _here.tracing = "grid"
        try:
            out = self.function(*(next(inputs) if array else a for array, a in zip(form, args)))
        except _core.Error:  # the composition raises it in its own words
            return None
        finally:
            _here.tracing = None
        if not isinstance(out, Traced) or out.dtype != dtype:
            return None  # several results, or one of another type
        return _core.FusedFunction(self.name, out._lazy, sum(form), False)

    def _made(self, args):
        Traced = import_later("weft._traced").Traced

        arrays = [a for a in args if isinstance(a, _ARRAYS)]
        inputs = iter([Traced(_core._lazy_input(i, a.dtype, (1,))) for i, a in enumerate(arrays)])
        _here.tracing = "host"
        try:
            out = self.function(*(next(inputs) if isinstance(a, _ARRAYS) else a for a in args))
            out = out if isinstance(out, tuple) else (out,)
            return _core._chunked_map([x._lazy for x in out], len(arrays), False)
        except _core.Error:  # the composition raises it in its own words
            return None
        finally:
            _here.tracing = None


_here = threading.local()


def on_host(x):
    """Does what is composed of x run on the host, x being a value of a composition that is traced, too?"""
    tracing = getattr(_here, "tracing", None)
    return tracing == "host" if tracing else x.device.host_accessible


def composed(function, widens=True):
    """A function of arrays or tensors and numbers that is composed of elementwise operations, as one pass over memory where they are
    arrays of the host without a gradient, as one kernel where they are real floats of one type on a device with a grid; everywhere
    else the composition. It may give a tuple. `widens`: 16-bit floats may be computed as float32 and rounded once there; false where
    the result depends on the type itself, such as its largest number."""
    signature = inspect.signature(function)
    kinds = [p.kind for p in signature.parameters.values()]
    run, names = function, list(signature.parameters)
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        first = kinds.index(inspect.Parameter.KEYWORD_ONLY)

        def run(*args):
            return function(*args[:first], **dict(zip(names[first:], args[first:])))

    own = _Composed(function.__name__, run, names)

    def on_grid(args, arrays, key, changing):
        dtype = _core._fused_type(*arrays) if all(a.size for a in arrays) else None
        if dtype is None or (dtype.name != arrays[0].dtype.name and not widens):
            return run(*args)
        kernel = own.kernel(key, args, dtype, changing)
        return (
            run(*args) if kernel is None else kernel(*(a for a in args if isinstance(a, _ARRAYS)))
        )

    @functools.wraps(function)
    @_alone
    def call(*args, **options):
        given = args
        if options:
            given = _placed(names, args, options)
            args = _arranged(signature, args, options)
        wrapped, linked, arrays, key, changing = False, False, [], [], False
        for a in args:
            kind = type(a)
            if kind is NDArray:
                arrays.append(a)
                key.append(a.dtype.name)
            elif kind is float or kind is int:
                key.append(a.hex() if kind is float else a)
                changing = True
            elif kind is bool or a is None:
                key.append(str(a))
            elif isinstance(a, Tensor):
                wrapped, linked = True, linked or a.requires_grad
                arrays.append(a.data)
                key.append(a.dtype.name)
            else:
                return run(*args)
        # What a composition leaves out of the graph (plain) has a gradient in a trace.
        if not arrays or linked and _core.grad_enabled():
            return run(*args)
        if not all(a.device.host_accessible and a.dtype.kind != "c" for a in arrays):
            return on_grid(args, arrays, tuple(key), changing)
        # 16-bit floats are rounded once, so every call of theirs is one pass.
        narrow = "bfloat16" in key or "float16" in key
        program = own.program(tuple(key), args, changing and not narrow)
        if program is None:
            return run(*args)
        own.seen.remember([_data(a) for a in given], program)
        out = program.run(arrays)
        if wrapped:
            out = [Tensor(x, requires_grad=False) for x in out]
        return out[0] if len(out) == 1 else tuple(out)

    call.__weft_direct__ = own.seen.call
    return call
