# SPDX-License-Identifier: Apache-2.0
"""weft: one tensor program, woven onto every accelerator.

The array functions of this namespace follow the Python array API standard 2024.12.
"""

try:
    from ._core import Error
except ImportError as _raised:
    from ._unloadable import refusal as _refusal

    raise _refusal(_raised) from None

from ._core import (
    ArgumentError,
    Device,
    DeviceError,
    DTypeError,
    Error,
    Fault,
    IndexError,
    IOError,
    NDArray,
    OutOfMemoryError,
    ParseError,
    ScheduleError,
    ShapeError,
    Tensor,
    dtype,
    get_threads,
    set_threads,
)
from ._core import (
    bfloat16,
    bool,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._devices import device, devices, is_deterministic, use, use_deterministic
from ._fallback import fallbacks
from .build import Function, Module, TimeResult, accepts, build, load, target_limits
from .ir import IRModule, PrimFunc
from .profiler import profile
from .schedule import BlockRef, LoopRef, Schedule
from ._namespace import *  # noqa: F401,F403
from ._namespace import __all__ as _namespace_all
from . import _methods  # first: values of vmap and of traces are made of its classes
from ._capture import Captured, capture
from ._compile import Compiled, compile
from . import _methods, _namespace, fft, linalg, random
from ._torch_functions import *  # noqa: F401,F403
from ._torch_functions import __all__ as _torch_all
from . import _functions
from ._functions.later import starred as _starred
from ._autocast import autocast, get_autocast_dtype, is_autocast_available, is_autocast_enabled
from .autograd import enable_grad, no_grad
from .transforms import *  # noqa: F401,F403
from .transforms import __all__ as _transforms_all
from .gguf import load_gguf
from .io import load_arrays, load_safetensors, save, save_safetensors, savez
from ._boundary import import_later as _import_later
from ._boundary import look_again_by as _look_again_by
from ._boundary import publish_class as _publish_class
from ._dispatch import dispatched_late as _dispatched_late


def _look_again(function, raised, args, kwargs):
    """A call by a name from before a transform; or in NumPy's manner, which is loaded by the first call that Python refuses."""
    meant = _dispatched_late(function, args, kwargs)
    if meant is not None:
        return meant
    try:
        from ._manners import retried
    except (OSError, MemoryError):  # a host at its limits: what was raised says so
        return None
    try:
        return retried(function, raised, args, kwargs)
    except RecursionError:  # lists without end, which mean nothing in any manner
        return None


_look_again_by(_look_again)
globals().update(_functions.functions)
for _class in (
    NDArray,
    Tensor,
    Compiled,
    TimeResult,
    Module,
    Function,
    IRModule,
    PrimFunc,
    Schedule,
):
    for _base in _class.__mro__[:-1]:
        _publish_class(_base)

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

_dtypes = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
__all__ = [
    *_namespace_all,
    *_torch_all,
    *_functions.functions,
    *_starred("weft"),
    *_dtypes,
    "NDArray",
    "Tensor",
    *_transforms_all,
    "no_grad",
    "enable_grad",
    "autocast",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
    "capture",
    "compile",
    "Compiled",
    "Device",
    "dtype",
    "device",
    "devices",
    "is_deterministic",
    "fallbacks",
    "use",
    "use_deterministic",
    "set_threads",
    "get_threads",
    "linalg",
    "fft",
    "random",
    "save",
    "savez",
    "load_arrays",
    "save_safetensors",
    "load_safetensors",
    "load_gguf",
    "Schedule",
    "BlockRef",
    "LoopRef",
    "PrimFunc",
    "IRModule",
    "accepts",
    "build",
    "load",
    "target_limits",
    "tune",
    "profile",
    "Module",
    "Function",
    "TimeResult",
    "Error",
    "ArgumentError",
    "ShapeError",
    "DTypeError",
    "IndexError",
    "OutOfMemoryError",
    "ScheduleError",
    "DeviceError",
    "Fault",
    "ParseError",
    "IOError",
]


# Loaded on first use: importing weft stays quick.
_LATER = (
    "nn",
    "amp",
    "cuda",
    "func",
    "polynomial",
    "optim",
    "init",
    "lr_scheduler",
    "data",
    "distributed",
    "distributions",
    "torch",
    "onnx",
    "rpc",
    "te",
    "script",
    "wse",
    "vta",
    "qpu",
    "special",
)


def __dir__():
    return sorted({*globals(), *_LATER, *_functions.later.names("weft")})


def __getattr__(name):
    if name == "tune":
        globals()["tune"] = found = _import_later("weft.tuning").tune
        return found
    if name in _LATER:
        try:
            return _import_later(f"weft.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"weft.{name}":
                raise
    from ._functions.later import found
    from ._names import elsewhere

    if name[:1] != "_" and (value := found("weft", name)) is not None:
        return value
    raise AttributeError(f"module 'weft' has no attribute {name!r}{elsewhere(name)}")
