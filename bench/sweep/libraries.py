# SPDX-License-Identifier: Apache-2.0
"""The libraries that are compared, each with one way to take an operand, hand a result back and wait."""

import numpy as np

import weft

try:
    import torch
except ImportError:
    torch = None


def _each(value, convert):
    """One array of a result that may be a tuple: all parts, flattened and joined."""
    if isinstance(value, (tuple, list)):
        return np.concatenate([np.asarray(convert(v)).ravel() for v in value]) if value else value
    return convert(value)


class Weft:
    name, module = "weft", weft

    def __init__(self, device):
        self.device = weft.device(device)

    def take(self, array, dtype):
        out = weft.asarray(array)
        if dtype == "bfloat16" and array.dtype == np.float32:
            out = out.astype(weft.bfloat16)
        return out.to(self.device)

    def host(self, value):
        def convert(v):
            if isinstance(v, weft.Tensor):
                v = v.detach()
            if not hasattr(v, "numpy"):
                return v
            if v.dtype in (weft.bfloat16, weft.float16):
                v = v.astype(weft.float32)
            return v.numpy()

        return _each(value, convert)

    def synchronize(self):
        self.device.synchronize()


class Numpy:
    name, module = "numpy", np

    def take(self, array, dtype):
        return array

    def host(self, value):
        return _each(value, np.asarray)

    def synchronize(self):
        pass


class Torch:
    name, module = "torch", torch

    def __init__(self, device, threads):
        self.device = device
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def take(self, array, dtype):
        out = torch.from_numpy(np.ascontiguousarray(array))
        if dtype == "bfloat16" and array.dtype == np.float32:
            out = out.to(torch.bfloat16)
        return out.to(self.device)

    def host(self, value):
        def convert(v):
            if not isinstance(v, torch.Tensor):
                return v
            v = v.detach()
            if v.dtype in (torch.bfloat16, torch.float16):
                v = v.float()
            return v.resolve_conj().cpu().numpy()

        return _each(value, convert)

    def synchronize(self):
        if self.device != "cpu":
            torch.cuda.synchronize()


def libraries_for(device, threads):
    weft.set_threads(threads)
    rivals = []
    if device == "cpu":
        rivals.append(Numpy())
    if torch is not None:
        rivals.append(Torch("cpu" if device in ("cpu", "opencl") else "cuda", threads))
    return Weft("cuda:0" if device == "cuda" else device), rivals
