# SPDX-License-Identifier: Apache-2.0
"""Tensors of the device as arrays of weft over the same memory, and back; copies between devices."""

from __future__ import annotations

import torch

import weft

from ... import _core
from ..._errors import error as _error
from ..rules.common import DTYPES
from . import _names

extension = None  # the compiled module, set by load()


def allocate(index, size):
    """A handle of `size` bytes on a device: what torch's allocator keeps."""
    return _core._make((size,), None, _names.device_at(index), None, 0, "uint8").handle


def copy_bytes(destination, source, size):
    """The first `size` bytes of one handle into another of the same device."""
    view = lambda handle: _core._make((size,), None, None, handle, 0, "uint8")  # noqa: E731
    view(destination)[...] = view(source)


def synchronize(index):
    device = _names.device_at(index)
    if hasattr(device, "synchronize"):
        device.synchronize()


def array_of(t):
    """A weft array over the memory of a tensor of the device, with its strides."""
    dtype = DTYPES.get(t.dtype)
    if dtype is None:
        raise _error(
            weft.DTypeError,
            "torch.device.dtype",
            f"a tensor of {t.dtype} on weft:{t.device.index}",
            [f"legal: {', '.join(DTYPES.values())}"],
            help="t.cpu() computes with torch's own kernels",
        )
    handle = extension.handle_of(t)
    if handle is None:
        if t.numel():
            raise _error(
                weft.Error,
                "torch.device.freed",
                f"a tensor of shape {tuple(t.shape)} on weft:{t.device.index} whose storage has no memory",
                ["rule: storage.resize_(0) gives the memory back"],
                help="storage.resize_(n) before the elements are read or written",
            )
        return _core._make(tuple(t.shape), None, _names.device_at(t.device.index), None, 0, dtype)
    return _core._make(tuple(t.shape), tuple(t.stride()), None, handle, t.storage_offset(), dtype)


def tensor_of(x, fake, index):
    """A tensor over an array's memory; `fake` has the strides that torch expects."""
    wanted = tuple(fake.stride())
    if not x.is_contiguous() or any(
        n > 1 and a != b for n, a, b in zip(fake.shape, x.strides, wanted)
    ):
        out = torch.empty_strided(
            tuple(fake.shape), wanted, dtype=fake.dtype, device=f"weft:{index}"
        )
        write(out, x)
        return out
    if not fake.numel():
        return torch.empty_strided(
            tuple(fake.shape), wanted, dtype=fake.dtype, device=f"weft:{index}"
        )
    size = (x.offset + x.size) * fake.element_size()
    return extension.tensor_of(
        x.handle, size, list(fake.shape), list(wanted), x.offset, fake, index
    )


def to_host(t):
    """A tensor of the host with a copy of the elements."""
    if not t.numel():
        return torch.empty(t.shape, dtype=t.dtype)
    found = host_of(array_of(t), t.dtype)
    if t.is_conj():
        found.conj_physical_()
    return found.neg_() if t.is_neg() else found


def write(t, x):
    """An array's elements into a tensor of the device; types are converted, shapes broadcast.

    Copies that the machine has no program for (types it does not compute with, layouts) go through the host's memory.
    """
    if not t.numel():
        return
    mine = array_of(t)
    try:
        mine[...] = x.astype(str(mine.dtype), copy=False)
    except weft.Error:
        bring(t, host_of(x, next(k for k, v in DTYPES.items() if v == str(x.dtype))))


def storage_bytes(t):
    """The whole storage of a tensor as an array of bytes on its device."""
    handle = extension.handle_of(t)
    return _core._make((handle.nbytes,), None, None, handle, 0, "uint8")


def host_of(x, dtype):
    """A tensor of the host with an array's elements; moves the storage as it is where x is a part of it."""
    raw = _core._make((x.handle.nbytes,), None, None, x.handle, 0, "uint8").to("cpu")
    flat = torch.from_dlpack(raw).view(torch.uint8)
    flat = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    return flat.as_strided(tuple(x.shape), tuple(x.strides), x.offset).clone()


def bring(t, source):
    """Elements from the host into a tensor: alone where they are all of its storage, else with what lies around them."""
    if (
        t.is_contiguous()
        and not t.storage_offset()
        and t.numel() * t.element_size() == t.untyped_storage().nbytes()
    ):
        whole = torch.empty(t.shape, dtype=t.dtype).copy_(source).view(-1).view(torch.uint8)
    else:
        whole = torch.from_dlpack(storage_bytes(t).to("cpu")).clone()
        count = whole.numel() // t.element_size() * t.element_size()
        whole[:count].view(t.dtype).as_strided(t.shape, t.stride(), t.storage_offset()).copy_(
            source
        )
    x = _core._from_dlpack(torch._C._to_dlpack(whole), None, None)
    extension.replace_handle(t, x.to(_names.device_at(t.device.index)).handle)


def from_host(t, index):
    """An array on a device with the elements of a tensor of the host."""
    t = t.detach().contiguous()
    return _core._from_dlpack(torch._C._to_dlpack(t), None, None).to(_names.device_at(index))


def _copy_marked(source, target):
    """Copies between tensors of which torch conjugates or negates one lazily: by the host's memory, which has the elements as they are."""
    if source.device.type == "weft":
        source = to_host(source)
    if target.device.type != "weft":
        return target.copy_(source)
    source = source.conj() if target.is_conj() else source
    source = (-source if target.is_neg() else source).broadcast_to(target.shape)
    bring(target, source.resolve_conj().resolve_neg())
    return target


def copy_from(source, target, non_blocking=False):
    """torch's copy_: between devices, types and layouts."""
    if not target.numel():
        return target
    if source.is_complex() and not target.is_complex():
        source = torch.view_as_real(source.resolve_conj())[..., 0]
    if any(t.is_conj() or t.is_neg() for t in (source, target)):
        return _copy_marked(source, target)
    if source.device.type == "weft" and target.device.type == "weft":
        x = array_of(source)
        if source.device != target.device:
            bring(target, to_host(source))
        else:
            write(target, x)
    elif target.device.type == "weft":
        bring(target, source.detach())
    else:
        target.copy_(to_host(source))
    return target
