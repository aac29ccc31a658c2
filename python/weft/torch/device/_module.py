# SPDX-License-Identifier: Apache-2.0
"""The module torch.weft: what torch and its users ask of a device's module."""

from __future__ import annotations

import types

import torch

from ..._errors import error as _error
from . import _kernels, _memory, _names


def make():
    m = types.ModuleType("torch.weft", "The devices of weft: see weft.torch.device.")
    index = lambda d: (  # noqa: E731
        m.current_device()
        if d is None
        else d
        if isinstance(d, int)
        else m.current_device()
        if torch.device(d).index is None
        else torch.device(d).index
    )

    class device:
        """Makes a device current for a block, or for what torch asks."""

        def __init__(self, which):
            self.index, self.before = index(which), None

        def __enter__(self):
            self.before = _memory.extension.exchange_device(self.index)
            return self

        def __exit__(self, *_):
            _memory.extension.exchange_device(self.before)
            return False

    def manual_seed(seed, which=None):
        _kernels._default_generator(index(which)).manual_seed(seed)

    def manual_seed_all(seed):
        for i in range(_names.count()):
            manual_seed(seed, i)

    def seed_all():
        """Another seed, the same for all devices."""
        manual_seed_all(torch.Generator().seed())

    def set_rng_state_all(states):
        for i, state in enumerate(states):
            m.set_rng_state(state, i)

    def set_device(which):
        at = index(which)
        if not 0 <= at < _names.count():
            raise _error(
                "value",
                "torch.device.index",
                f"there is no device weft:{at}",
                [f"legal: 0 to {_names.count() - 1}"],
                help="weft.torch.device.names() lists the devices by index",
            )
        _memory.extension.exchange_device(at)

    m.device = device
    m.is_available = m.is_initialized = lambda: True
    m.init = m._lazy_init = lambda: None
    m._is_in_bad_fork = lambda: False
    m.device_count = _names.count
    m.current_device = lambda: _memory.extension.current_device()
    m.set_device = set_device
    m._initialized = True  # torch.utils.checkpoint keeps states of generators where it is
    m.synchronize = lambda which=None: _memory.synchronize(index(which))
    m.get_device_name = lambda which=None: _names.names()[index(which)]
    m.manual_seed, m.manual_seed_all, m.seed_all = manual_seed, manual_seed_all, seed_all
    m.initial_seed = lambda which=None: _kernels._default_generator(index(which)).initial_seed()
    m.get_rng_state = lambda which=None: _kernels._default_generator(index(which)).get_state()
    m.set_rng_state = lambda state, which=None: _kernels._default_generator(index(which)).set_state(
        state
    )
    m.get_rng_state_all = lambda: [m.get_rng_state(i) for i in range(_names.count())]
    m.set_rng_state_all = set_rng_state_all
    m.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    m.Stream = lambda which=None: torch.Stream(device=f"weft:{index(which)}")
    m.Event = lambda enable_timing=False: torch.Event(device="weft", enable_timing=enable_timing)
    m.current_stream = lambda which=None: torch.accelerator.current_stream(f"weft:{index(which)}")
    m.default_stream = lambda which=None: torch.Stream(
        stream_id=0, device_type=torch._C._autograd.DeviceType.PrivateUse1.value, device_index=index(which)
    )  # fmt: skip
    m.stream = lambda stream: stream  # a torch.Stream is a context itself
    for name in ("empty_cache", "memory_stats", "memory_allocated", "max_memory_allocated", "memory_reserved",
                 "max_memory_reserved", "reset_peak_memory_stats", "reset_accumulated_memory_stats"):  # fmt: skip
        if hasattr(torch.accelerator, name):
            setattr(m, name, getattr(torch.accelerator, name))
    return m


def load_names():
    """Lets torch.load take a device's name: map_location="weft:qpu"."""

    def place(storage, location):
        if not location.startswith("weft:") or location.removeprefix("weft:").isdigit():
            return None
        return storage.to(device=_names.device(location))

    torch.serialization.register_package(9, lambda storage: None, place)


def print_from_host():
    """Tensors are printed from a copy on the host: choosing a format takes types that not every machine has."""
    from torch import _tensor_str

    original = _tensor_str._tensor_str

    def text(self, indent):
        return original(self.cpu() if self.device.type == "weft" else self, indent)

    _tensor_str._tensor_str = text


def accept_names():
    """Lets Tensor.to, Module.to, Tensor.weft and Module.weft take a device's name: x.to("weft:qpu").

    torch's parser of device strings takes digits alone after the colon.
    """
    for cls in (torch.Tensor, torch.nn.Module):
        cls.to, cls.weft = _named(cls.to), _moved(cls)
    # Parameters without a size yet allow a few functions, by their objects.
    torch.nn.parameter.UninitializedTensorMixin._allowed_methods.append(torch.Tensor.to)


def _shared(module):
    """The places of each parameter that has several: torch makes a new parameter for each place on other kinds of device."""
    places = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), []).append((part, name))
    return [found for found in places.values() if len(found) > 1]


def _unsized(module):
    """The places of parameters and buffers that get a size in the first call, which torch would make ordinary ones of."""
    lazy = torch.nn.parameter.UninitializedTensorMixin
    places = [held for part in module.modules() for held in (part._parameters, part._buffers)]
    return [(held, name, type(t)) for held in places for name, t in held.items() if isinstance(t, lazy)]  # fmt: skip


def _named(original):
    def to(self, *args, **kwargs):
        if args and type(args[0]) is str and args[0].startswith("weft:"):
            args = (_names.device(args[0]), *args[1:])
        elif type(kwargs.get("device")) is str and kwargs["device"].startswith("weft:"):
            kwargs["device"] = _names.device(kwargs["device"])
        if not isinstance(self, torch.nn.Module):
            return original(self, *args, **kwargs)
        shared, unsized = _shared(self), _unsized(self)
        out = original(self, *args, **kwargs)
        for held, name, kind in unsized:
            if not isinstance(held[name], kind):
                held[name] = kind(device=held[name].device, dtype=held[name].dtype)
        for first, *others in shared:
            for module, name in others:
                module._parameters[name] = first[0]._parameters[first[1]]
        return out

    to.__doc__, to.__name__, to.__qualname__ = original.__doc__, "to", original.__qualname__
    return to


def _moved(cls):
    def weft(self, which=None):
        return self.to(
            _names.device(_memory.extension.current_device() if which is None else which)
        )

    weft.__doc__ = "Moves to a device of weft: an index or a name, the current one without."
    return weft
