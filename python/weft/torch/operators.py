# SPDX-License-Identifier: Apache-2.0
"""weft's operators inside torch: torch.ops.weft.add, mul, mv and matmul, with meta kernels and gradients."""

from __future__ import annotations

from typing import Protocol as _Protocol

import torch as _torch

import weft

from .._boundary import public as _public
from .._errors import error as _error
from .interop import from_torch, require_tensor, to_torch

__all__ = ["add", "mul", "mv", "matmul"]

_library = _torch.library.Library("weft", "DEF")  # must live as long as the operators
_NAMES = ("add", "mul", "mv", "matmul")


def _refuse(code, text, help):
    raise _error(weft.ShapeError, f"torch.{code}", text, help=help)


def _check(name, a, b):
    if a.device != b.device:
        _refuse(
            f"{name}.device",
            f"{name} of tensors on {a.device} and {b.device}",
            help="move one of them: b.to(a.device)",
        )
    if name == "mv" and (a.dim() != 2 or b.dim() != 1 or a.shape[1] != b.shape[0]):
        _refuse(
            "mv.shape",
            f"mv needs a matrix and a vector of its width, got {tuple(a.shape)} and {tuple(b.shape)}",
            help="give shapes (m, n) and (n,)",
        )
    if name == "matmul" and (
        a.dim() < 1 or b.dim() < 1 or a.shape[-1] != b.shape[-2 if b.dim() > 1 else 0]
    ):
        _refuse(
            "matmul.shape",
            f"matmul needs equal inner extents, got {tuple(a.shape)} and {tuple(b.shape)}",
            help="transpose one of them: b.mT, or give shapes (..., m, n) and (..., n, k)",
        )
    if name in ("mv", "matmul") and a.dtype != b.dtype:
        raise _error(
            weft.DTypeError,
            f"torch.{name}.dtype",
            f"{name} of {a.dtype} and {b.dtype}; torch asks for equal types",
            help="convert one of them: b.to(a.dtype)",
        )


def _shape(name, a, b):
    if name in ("add", "mul"):
        return _torch.broadcast_shapes(a.shape, b.shape)
    if name == "mv":
        return (a.shape[0],)
    batch = _torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (
        *batch,
        *(a.shape[-2:-1] if a.dim() > 1 else ()),
        *(b.shape[-1:] if b.dim() > 1 else ()),
    )


def _compute(name, a, b, device):
    _check(name, a, b)
    dtype = _torch.result_type(a, b)
    if a.dtype == _torch.bool and b.dtype == _torch.bool and name in ("add", "mul"):
        f = weft.logical_or if name == "add" else weft.logical_and
        return to_torch(f(from_torch(a), from_torch(b)), a)
    if name in ("add", "mul"):  # torch's promotion: a 0-d tensor is weak
        a, b = a.to(dtype), b.to(dtype)
    x, y = from_torch(a), from_torch(b)
    target = weft.device(device) if device else None
    if target is not None and target != x.device:
        x, y = x.to(target), y.to(target)
    f = {"add": weft.add, "mul": weft.multiply, "mv": weft.matmul, "matmul": weft.matmul}[name]
    out = f(x, y)
    if target is not None and not out.device.host_accessible:
        out = out.to("cpu")
    return to_torch(out, a)


def _meta(name, a, b, device):
    _check(name, a, b)
    return _torch.empty(_shape(name, a, b), dtype=_torch.result_type(a, b), device=a.device)


def _reduce_to(g, shape):
    """Sums a gradient over what broadcasting repeated."""
    extra = g.dim() - len(shape)
    g = g.sum(dim=tuple(range(extra))) if extra else g
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    return g.sum(dim=axes, keepdim=True) if axes else g


def _make_function(name):
    class Function(_torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, device):
            ctx.save_for_backward(a, b)
            ctx.device = device
            guard = _torch._C._AutoDispatchBelowAutograd()
            try:
                return getattr(_torch.ops.weft, name)(a, b, device)
            finally:
                del guard

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            device = ctx.device
            da = db = None
            if name == "add":
                da, db = g, g
            elif name == "mul":
                da, db = mul(g, b.conj(), device), mul(g, a.conj(), device)
            elif name == "mv":
                da = mul(g.unsqueeze(1), b.conj().unsqueeze(0), device)
                db = mv(a.conj().t(), g, device)
            else:
                am = a.unsqueeze(0) if a.dim() == 1 else a
                bm = b.unsqueeze(1) if b.dim() == 1 else b
                gm = g.unsqueeze(-1) if b.dim() == 1 else g
                gm = gm.unsqueeze(-2) if a.dim() == 1 else gm
                da = _reduce_to(matmul(gm, bm.conj().transpose(-2, -1), device), am.shape).reshape(
                    a.shape
                )
                db = _reduce_to(matmul(am.conj().transpose(-2, -1), gm, device), bm.shape).reshape(
                    b.shape
                )
            if name in ("add", "mul"):
                da, db = _reduce_to(da, a.shape), _reduce_to(db, b.shape)
            da = da.to(a.dtype) if ctx.needs_input_grad[0] else None
            db = db.to(b.dtype) if ctx.needs_input_grad[1] else None
            return da, db, None

    return Function


class _Operator(_Protocol):
    def __call__(
        self, a: _torch.Tensor, b: _torch.Tensor, device: str | weft.Device | None = None
    ) -> _torch.Tensor: ...


def _register(name: str) -> _Operator:
    _library.define(f"{name}(Tensor a, Tensor b, str? device=None) -> Tensor")
    function = _make_function(name)
    _library.impl(name, lambda a, b, device=None: _compute(name, a, b, device), "CPU")
    _library.impl(name, lambda a, b, device=None: _compute(name, a, b, device), "CUDA")
    _library.impl(name, lambda a, b, device=None: _meta(name, a, b, device), "Meta")
    _library.impl(name, lambda a, b, device=None: function.apply(a, b, device), "Autograd")

    def call(a, b, device=None):
        require_tensor(name, a)
        require_tensor(name, b)
        return getattr(_torch.ops.weft, name)(a, b, None if device is None else str(device))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"torch.{name} computed by weft on `device`; differentiable."
    return _public(call)


add, mul, mv, matmul = (_register(name) for name in _NAMES)
