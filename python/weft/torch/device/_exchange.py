# SPDX-License-Identifier: Apache-2.0
"""Memory that others would read: DLPack capsules, and tensors that other processes shall share."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

import torch

from ..._errors import error as _error
from . import _memory


def export_by_weft():
    """Tensor.__dlpack__ and __dlpack_device__ of the device's tensors are those of weft's arrays over the same memory."""
    theirs, theirs_device = torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__

    def __dlpack__(self, **options):
        if self.device.type != "weft":
            return theirs(self, **options)
        for holds, what in (
            (self.requires_grad, "that requires gradients: x.detach()"),
            (self.is_conj() or self.is_neg(), "that torch conjugates lazily: x.resolve_conj()"),
        ):
            if holds:
                raise BufferError(f"DLPack has no word for a tensor {what}")
        options.pop("read_only", None)
        if options.get("stream") == -1:
            del options["stream"]
        return _memory.array_of(self).__dlpack__(**options)

    def __dlpack_device__(self):
        if self.device.type != "weft":
            return theirs_device(self)
        return _memory.array_of(self).__dlpack_device__()

    for made, original in ((__dlpack__, theirs), (__dlpack_device__, theirs_device)):
        made.__doc__ = original.__doc__
        made.__qualname__ = original.__qualname__
    torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__ = __dlpack__, __dlpack_device__


def _refuse(what, index):
    raise _error(
        "value",
        "torch.device.shared",
        f"{what} on weft:{index} between processes",
        ["rule: memory of a weft device belongs to one process"],
        help="send x.cpu(), whose memory torch shares, and move it there: x.to('weft:0')",
    )


def refuse_sharing():
    """Tensors of the device are refused where torch would share their memory with another process, before anything is sent."""
    for cls in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(cls, _checked(ForkingPickler._extra_reducers[cls]))
    share = torch.UntypedStorage.share_memory_

    def share_memory_(self, *args, **kwargs):
        if self.device.type == "weft":
            _refuse("a storage", self.device.index)
        return share(self, *args, **kwargs)

    share_memory_.__doc__ = share.__doc__
    torch.UntypedStorage.share_memory_ = share_memory_


def _checked(reduce):
    def checked(tensor):
        if tensor.device.type == "weft":
            _refuse(f"a tensor of shape {tuple(tensor.shape)}", tensor.device.index)
        return reduce(tensor)

    return checked
