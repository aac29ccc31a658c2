# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of integers that has to look at the values first: a fused kernel cannot raise, or choose by a sign.

torch.device("weft") runs these where the fused rule refuses its arguments.
"""

from __future__ import annotations

import torch

import weft

from .common import Unsupported, alone, as_type


def _operands(c, x, y):
    """Both as arrays of the result's type, which are integers."""
    if "int" not in c.dtype:
        raise Unsupported("no integers")
    like = x if hasattr(x, "dtype") else y
    whole = lambda v: (
        v if hasattr(v, "dtype") else weft.full((), v, dtype=c.dtype, device=like.device)
    )  # noqa: E731, E501
    return (as_type(whole(v), c.dtype) for v in (x, y))


def _divisor(y):
    if bool(weft.any(y == 0)):
        raise RuntimeError("ZeroDivisionError")  # torch's own
    return y


def _truncated(x, y):
    down = weft.floor_divide(x, y)
    upwards = (down < 0) & (down * y != x)
    return weft.where(upwards, down + 1, down)


def _quotient(c, x, y, rounding_mode=None):
    x, y = _operands(c, x, y)
    if rounding_mode is None:
        raise Unsupported("a quotient that is no integer")
    divide = weft.floor_divide if rounding_mode == "floor" else _truncated
    return divide(x, _divisor(y)).broadcast_to(c.shape)


@alone("div.Tensor_mode", "div.Scalar_mode")
def _div(c, x, y, *, rounding_mode):
    return _quotient(c, x, y, rounding_mode)


@alone("floor_divide.default")
def _floor_divide(c, x, y):
    return _quotient(c, x, y, "floor")


@alone("remainder.Tensor", "remainder.Scalar_Tensor")
def _remainder(c, x, y):
    x, y = _operands(c, x, y)
    return (x - weft.floor_divide(x, _divisor(y)) * y).broadcast_to(c.shape)


@alone("fmod.Tensor")
def _fmod(c, x, y):
    x, y = _operands(c, x, y)
    return (x - _truncated(x, _divisor(y)) * y).broadcast_to(c.shape)


@alone("pow.Tensor_Tensor", "pow.Scalar", "pow.Tensor_Scalar")
def _pow(c, x, y):
    """Of negative powers only those of 1 and -1 are integers other than 0."""
    x, y = _operands(c, x, y)
    powers = weft.pow(x, weft.where(y < 0, -y % 2, y))
    return weft.where((y < 0) & (x != 1) & (x != -1), 0, powers).broadcast_to(c.shape)


def _shifted(shift):
    def rule(c, x, y):
        x, y = _operands(c, x, y)
        bits = torch.iinfo(getattr(torch, c.dtype)).bits
        inside = (y >= 0) & (y < bits)
        return shift(x, y, inside, bits).broadcast_to(c.shape)

    return rule


alone("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar", "__lshift__.Tensor")(
    _shifted(lambda x, y, inside, bits: weft.where(inside, weft.bitwise_left_shift(x, weft.where(inside, y, 0)), 0))
)  # fmt: skip
# What is shifted out of sight leaves the sign.
alone("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar", "__rshift__.Tensor")(
    _shifted(lambda x, y, inside, bits: weft.bitwise_right_shift(x, weft.where(inside, y, bits - 1)))
)  # fmt: skip
