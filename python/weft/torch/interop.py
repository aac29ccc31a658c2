# SPDX-License-Identifier: Apache-2.0
"""Arrays, tensors and the states of modules between PyTorch and weft."""

from __future__ import annotations

import torch as _torch
from typing import Any

import weft

from .._errors import error as _error

__all__ = ["from_torch", "to_torch", "load_state_dict", "state_dict"]


def require_tensor(name: str, value: Any) -> None:
    """Raises DTypeError where an argument of the function `name` is no torch tensor, or one whose elements have no strides."""
    if not isinstance(value, _torch.Tensor):
        raise _error(
            weft.DTypeError,
            "torch.tensor",
            f"{name} of a torch tensor was asked, this is {type(value).__name__}",
            ["legal: a torch.Tensor"],
            help="weft.torch.to_torch(x) makes a tensor of a weft array, torch.as_tensor(x) of anything else",
        )
    if value.layout != _torch.strided:
        raise _error(
            weft.DTypeError,
            "torch.layout",
            f"{name} of a tensor of layout {value.layout} was asked",
            ["legal: torch.strided"],
            help="t.to_dense() makes one",
        )


def from_torch(t: _torch.Tensor) -> weft.NDArray:
    """A weft array over a tensor's memory; a copy where the layout or device forbids sharing."""
    require_tensor("from_torch", t)
    t = t.detach()
    if t.device.type == "weft":
        from .device import _memory

        return _memory.array_of(t)
    if t.is_conj():
        t = t.resolve_conj()
    if t.is_neg():
        t = t.resolve_neg()
    if t.dtype == _torch.bool:  # torch 1.13 exports no bool
        return weft.from_dlpack(t.view(_torch.uint8)).astype("bool")
    return weft.from_dlpack(t)


def to_torch(x: Any, like: _torch.Tensor | None = None) -> _torch.Tensor:
    """A torch tensor over an array's memory."""
    if not isinstance(x, (weft.NDArray, weft.Tensor)):
        raise _error(
            weft.DTypeError,
            "torch.array.type",
            f"to_torch takes a weft array, not a {type(x).__name__}",
            help="weft.asarray(x) makes one",
        )
    if x.dtype == "bool":
        out = _torch.from_dlpack(x.astype("uint8")).to(_torch.bool)
    else:
        out = _torch.from_dlpack(x)
    return out if like is None else out.to(like.device)


def _cell_suffix(module, k):
    """What PyTorch adds to the names of the parameters of a recurrent layer's cell."""
    layer, direction = divmod(k, module.directions)
    return f"_l{layer}" + "_reverse" * direction


def _from_state(state, prefix, module, out):
    """Moves the entries of `state` that belong to `module` into `out`, under our names and in our layout."""
    entry = lambda name: weft.array(from_torch(state.pop(f"{prefix}{name}")))  # noqa: E731
    if isinstance(module, (weft.nn.RNN, weft.nn.RNNCell)):
        cells = (
            {
                f"{prefix}cells.{k}.": (cell, _cell_suffix(module, k))
                for k, cell in enumerate(module.cells)
            }
            if isinstance(module, weft.nn.RNN)
            else {prefix: (module, "")}
        )
        for ours, (cell, suffix) in cells.items():
            for name in cell.named_parameters().keys():
                x = entry(name + suffix)
                out[ours + name] = x.T if name.startswith("weight") else x
        return
    state.pop(f"{prefix}num_batches_tracked", None)
    if isinstance(module, weft.nn.Linear) and f"{prefix}weight" in state:
        out[f"{prefix}weight"] = entry("weight").T
    for name, part in module.named_children().items():
        _from_state(state, f"{prefix}{name}.", part, out)


def load_state_dict(module: weft.nn.Module, state: Any) -> None:
    """Takes the parameters and buffers of a torch module (or of its state_dict) into a weft.nn module.

    Attributes of both must have the same names. Weights of Linear and of recurrent layers, which PyTorch keeps as
    (out, in), are transposed. Raises as weft.nn.Module.load_state_dict; KeyError for a missing recurrent weight.
    """
    state = dict(state if isinstance(state, dict) else state.state_dict())
    out = {}
    _from_state(state, "", module, out)
    module.load_state_dict({**out, **{k: weft.array(from_torch(v)) for k, v in state.items()}})


def state_dict(module: weft.nn.Module) -> dict[str, _torch.Tensor]:
    """Copies of the parameters and buffers of a weft.nn module as torch tensors, under PyTorch's names and in its
    layout: what a torch module of the same structure takes by load_state_dict."""
    arrays, names = module.state_dict(), {}
    for prefix, part in module.named_modules().items():
        dot = f"{prefix}." if prefix else ""
        if isinstance(part, (weft.nn.Linear, weft.nn.RNNCell)):
            for name in part.named_parameters().keys():
                if name.startswith("weight"):
                    arrays[dot + name] = arrays[dot + name].T
        if isinstance(part, weft.nn.RNN):
            for k, cell in enumerate(part.cells):
                suffix = _cell_suffix(part, k)
                names |= {
                    f"{dot}cells.{k}.{n}": f"{dot}{n}{suffix}"
                    for n in cell.named_parameters().keys()
                }
    return {names.get(n, n): to_torch(x.compact().to("cpu")).clone() for n, x in arrays.items()}
