# SPDX-License-Identifier: Apache-2.0
"""How devices, programs, schedules, modules and tensors are copied and pickled."""

from __future__ import annotations

import copyreg

from . import _core, _methods
from ._core import NDArray, Tensor
from .build import Module
from .ir import IRModule, PrimFunc
from .schedule import Schedule


def _device(name):
    return _core.open_device(name)


copyreg.pickle(_core.Device, lambda device: (_device, (device.name,)))


def _func(text):
    return PrimFunc(_core.parse_func(text, "<pickle>", None, 1))


def _module(text):
    return IRModule(_core.parse_module(text, "<pickle>", None, 1))


# Programs never change: a copy is the program itself, a pickle is its text.
for _class, _read in ((PrimFunc, _func), (IRModule, _module)):
    _class.__copy__ = lambda self: self
    _class.__deepcopy__ = lambda self, memo: self
    _class.__reduce__ = lambda self, read=_read: (read, (self.script(),))


def _compiled(data):
    return Module(_core.read_module(data))


# So are compiled modules.
Module.__copy__ = lambda self: self
Module.__deepcopy__ = lambda self, memo: self
Module.__reduce__ = lambda self: (_compiled, (self._core.serialize(),))


def _schedule(program, trace):
    return Schedule.replay(program, trace)


# A schedule is its first program and its steps.
Schedule.__copy__ = lambda self: self.copy()
Schedule.__deepcopy__ = lambda self, memo: self.copy()
Schedule.__reduce__ = lambda self: (_schedule, (IRModule(self._core.start), self.trace.as_json()))


def _tensor(cls, data, requires_grad, attributes):
    out = cls(data, dtype=data.dtype, device=data.device, requires_grad=requires_grad)
    if attributes:
        out.__dict__.update(attributes)
    return out


def _reduce(self):
    attributes = dict(getattr(self, "__dict__", {}))
    return _tensor, (type(self), self.data, self.requires_grad, attributes)


def _deepcopy(self, memo):
    out = _tensor(type(self), self.data.copy(), self.requires_grad, getattr(self, "__dict__", None))
    if self.is_leaf and self.grad is not None:
        out.grad = self.grad.detach()
    return out


# A copied tensor is a leaf: values and requires_grad go along, the graph that made it stays behind.
Tensor.__reduce__ = _reduce
Tensor.__reduce_ex__ = lambda self, protocol: _reduce(self)
Tensor.__deepcopy__ = _deepcopy
Tensor.__copy__ = lambda self: self.detach() if not self.requires_grad else _deepcopy(self, {})
