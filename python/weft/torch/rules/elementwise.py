# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators: arithmetic, comparisons, logic, rounding, casts."""

from __future__ import annotations

import math

from .common import (
    HALVES,
    Unsupported,
    add,
    cast,
    div,
    fused,
    is_float,
    is_lazy,
    mul,
    number,
    reshape,
    row,
    spread,
    sub,
    where,
    wide,
)

_SAME = "acos acosh asin asinh atan atanh cos cosh erf exp exp2 expm1 log log10 log1p log2 reciprocal rsqrt sigmoid sin sinh sqrt tan tanh"
_KEPT = dict(abs="abs", neg="negative", ceil="ceil", floor="floor", trunc="trunc", round="round",
             bitwise_not="bitwise_invert", square="square", relu="relu")  # fmt: skip


def _unary(weft_name):
    def rule(c, x):
        if str(x.dtype) == "bool" and c.dtype == "bool":
            if weft_name == "bitwise_invert":
                return row("logical_not", x)
            raise Unsupported(f"{weft_name} of booleans")
        return row(weft_name, cast(x, c.dtype))

    return rule


for _name in _SAME.split():
    fused(f"{_name}.default")(_unary(_name))
for _name, _weft in _KEPT.items():
    fused(f"{_name}.default")(_unary(_weft))


@fused("sign.default", "sgn.default")
def _sign(c, x):
    if c.dtype == "bool":
        return x
    y = row("sign", x)
    return where(row("isnan", x), 0.0, y) if is_float(x) else y


for _name in ("isnan", "isinf", "isfinite", "signbit"):

    def _predicate(c, x, name=_name):
        if is_float(x):
            return row(name, x)
        if name == "signbit" and str(x.dtype) != "bool":
            return row("less", x, 0)
        # No integer is infinite or NaN, none is negative among booleans.
        return spread(number(name == "isfinite", cast(x, "bool")), c.shape)

    fused(f"{_name}.default")(_predicate)


@fused("angle.default")
def _angle(c, x):
    x = cast(x, c.dtype)
    found = where(row("less", x, 0.0), math.pi, spread(number(0.0, x), c.shape))
    return where(row("isnan", x), x, found) if is_float(x) else found


@fused("round.decimals")
def _round_decimals(c, x, *, decimals=0):
    if c.dtype in HALVES or "float" not in c.dtype:
        raise Unsupported("decimals of this type")
    if decimals == 0:
        return row("round", x)
    power = 10.0 ** abs(decimals)
    return (
        div(row("round", mul(x, power)), power)
        if decimals > 0
        else mul(row("round", div(x, power)), power)
    )


@fused("logical_not.default")
def _logical_not(c, x):
    return row("logical_not", cast(x, "bool"))


@fused("clone.default", "lift_fresh_copy.default", "_to_copy.default", "copy.default")
def _copy(c, x, source=None, **options):
    y = cast(x if source is None or not is_lazy(source) else source, c.dtype)
    y = spread(y, c.shape)
    if is_lazy(y) and y is x:
        return (
            row("logical_or", y, y)
            if c.dtype == "bool"
            else row("positive", y)
            if c.dtype[0] != "u"
            else mul(y, 1)
        )
    return y


@fused("convert_element_type.default", space="prims")
def _convert(c, x, dtype):
    return _copy(c, x)


@fused("fma.default", space="prims")
def _multiply_add(c, x, y, z):
    """torch's kernel for the host rounds the product, too."""
    return row("add", row("multiply", *_pair(c, x, y)), cast(z, c.dtype))


def _pair(c, x, y, dtype=None):
    """Two operands in the result's type; a number stays a number."""
    dtype = dtype or c.dtype
    return tuple(cast(v, dtype) if is_lazy(v) else v for v in (x, y))


def _scaled(v, alpha):
    if alpha == 1:
        return v
    return mul(v, alpha) if is_lazy(v) else v * alpha


def _sum(weft_name):
    def rule(c, x, y, alpha=1):
        x, y = _pair(c, x, y)
        if c.dtype == "bool":
            if weft_name == "add":
                return row("logical_or", x, y)
            raise Unsupported("differences of booleans")
        return row(weft_name, x, _scaled(y, alpha))

    return rule


fused("add.Tensor", "add.Scalar")(_sum("add"))
fused("sub.Tensor", "sub.Scalar")(_sum("subtract"))


@fused("rsub.Scalar", "rsub.Tensor")
def _rsub(c, x, y, alpha=1):
    x, y = _pair(c, x, y)
    return sub(y, _scaled(x, alpha))


@fused("mul.Tensor", "mul.Scalar")
def _mul(c, x, y):
    x, y = _pair(c, x, y)
    return row("logical_and", x, y) if c.dtype == "bool" else mul(x, y)


@fused("div.Tensor", "div.Scalar")
def _div(c, x, y):
    x, y = _pair(c, x, y)
    return div(x, y)


@fused("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(c, x, y, rounding_mode=None):
    x, y = _pair(c, x, y)
    if rounding_mode is None:
        return div(x, y)
    if rounding_mode == "floor":
        return _floor_quotient(x, y)
    if is_float(x if is_lazy(x) else y):
        return row("trunc", div(x, y))
    return _truncated(x, y)


def _by_number(y):
    """Refuses integer division where a divisor may be zero, which raises in torch."""
    if is_lazy(y) or y == 0:
        raise Unsupported("integer division by a tensor: zero raises in torch")


def _truncated(x, y):
    """The integer quotient rounded to zero."""
    _by_number(y)
    down = row("floor_divide", x, y)
    if str(x.dtype).startswith("u"):
        return down
    inexact = row("not_equal", row("remainder", x, y), 0)
    negative = row("less", x, 0) if y > 0 else row("greater", x, 0)
    return where(row("logical_and", inexact, negative), add(down, 1), down)


def _floor_quotient(x, y):
    like = x if is_lazy(x) else y
    if not is_float(like):
        _by_number(y)
        return row("floor_divide", x, y)
    x, y = (v if is_lazy(v) else number(v, like) for v in (x, y))
    # Infinities as torch has them: NaN where the dividend is one, -1 for a finite one of the other sign.
    apart = row("less", mul(row("sign", x), row("sign", y)), 0.0)
    found = where(row("logical_and", row("isinf", y), apart), -1.0, row("floor_divide", x, y))
    found = where(row("isinf", x), math.nan, found)
    return where(row("equal", y, 0.0), div(x, y), found)


@fused("floor_divide.default")
def _floor_divide(c, x, y):
    return _floor_quotient(*_pair(c, x, y))


@fused("remainder.Tensor", "remainder.Scalar")
def _remainder(c, x, y):
    x, y = _pair(c, x, y)
    if not is_float(x if is_lazy(x) else y):
        _by_number(y)
    return row("remainder", x, y)


_NUMBERS = dict(maximum="maximum", minimum="minimum", atan2="atan2", hypot="hypot", nextafter="nextafter",
                copysign="copysign", logaddexp="logaddexp", bitwise_and="bitwise_and",
                bitwise_or="bitwise_or", bitwise_xor="bitwise_xor")  # fmt: skip
_BITS = dict(uint8=8, int8=8, int16=16, int32=32, int64=64)
_ON_BOOLEANS = dict(maximum="logical_or", minimum="logical_and", bitwise_and="logical_and",
                    bitwise_or="logical_or", bitwise_xor="logical_xor")  # fmt: skip
for _name, _weft in _NUMBERS.items():

    def _binary(c, x, y, name=_name, weft_name=_weft):
        x, y = _pair(c, x, y)
        if c.dtype == "bool":
            weft_name = _ON_BOOLEANS[name]
        return row(weft_name, x, y)

    fused(f"{_name}.default", f"{_name}.Tensor", f"{_name}.Scalar")(_binary)


for _name, _weft in dict(fmax="maximum", fmin="minimum").items():

    def _number_of_two(c, x, y, weft_name=_weft):
        x, y = _pair(c, x, y)
        if "float" not in c.dtype:
            return row(_ON_BOOLEANS[weft_name] if c.dtype == "bool" else weft_name, x, y)
        both = row(weft_name, x, y)
        return where(row("isnan", x), spread(y, c.shape), where(row("isnan", y), spread(x, c.shape), both))  # fmt: skip

    fused(f"{_name}.default")(_number_of_two)


for _name, _weft in dict(left="bitwise_left_shift", right="bitwise_right_shift").items():

    def _shift(c, x, y, weft_name=_weft):
        if is_lazy(y) or not 0 <= y < _BITS.get(c.dtype, 0):
            raise Unsupported("a shift by a tensor, or by more bits than there are")
        return row(weft_name, cast(x, c.dtype), y)

    fused(f"bitwise_{_name}_shift.Tensor", f"bitwise_{_name}_shift.Tensor_Scalar")(_shift)
    fused(f"__{_name[0]}shift__.Scalar")(_shift)


for _name in ("and", "or", "xor"):

    def _logical(c, x, y, name=_name):
        return row(f"logical_{name}", cast(x, "bool"), cast(y, "bool"))

    fused(f"logical_{_name}.default")(_logical)


def _common(c, x, y):
    """The operands of a comparison in torch's common type."""
    if is_lazy(x) and is_lazy(y):
        return _pair(c, x, y, c.operand_dtype)
    like, value = (x, y) if is_lazy(x) else (y, x)
    dtype = c.operand_dtype
    if isinstance(value, float) and not value.is_integer() and "float" not in dtype:
        raise Unsupported("integers compared with a fraction")
    return _pair(c, x, y, dtype)


for _name, _weft in dict(eq="equal", ne="not_equal", lt="less", le="less_equal", gt="greater", ge="greater_equal").items():  # fmt: skip

    def _compare(c, x, y, weft_name=_weft):
        x, y = _common(c, x, y)
        if str(x.dtype) == "bool":
            x, y = cast(x, "uint8"), cast(y, "uint8") if is_lazy(y) else int(y)
        return row(weft_name, x, y)

    fused(f"{_name}.Tensor", f"{_name}.Scalar")(_compare)


@fused("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(c, x, y):
    x, y = _pair(c, x, y)
    if "float" not in c.dtype and (is_lazy(y) or y < 0 or c.dtype == "bool"):
        raise Unsupported("integers to a power that may be negative")
    if not is_lazy(y) and y == 0:
        return number(1, x) if not tuple(x.shape) else spread(number(1, x), x.shape)
    if not is_lazy(y) and y == 1:
        return row("positive", x)
    # torch's roots, of -0 and -infinity too; in float16 it has powers there.
    if not is_lazy(y) and y in (0.5, -0.5) and c.dtype != "float16":
        return row("sqrt" if y > 0 else "rsqrt", x)
    return row("pow", x, y)


@fused("fmod.Tensor", "fmod.Scalar")
def _fmod(c, x, y):
    x, y = _pair(c, x, y)
    if "float" not in c.dtype:
        return sub(x, mul(_truncated(x, y), y))
    r = row("remainder", x, y)
    opposite = row(
        "logical_and", row("not_equal", r, 0.0), row("less", mul(r, row("sign", x)), 0.0)
    )
    found = where(opposite, sub(r, y), r)
    if is_lazy(y) or math.isinf(y):  # a finite number is its own rest
        like = x if is_lazy(x) else y
        x, y = (v if is_lazy(v) else number(v, like) for v in (x, y))
        found = where(row("logical_and", row("isinf", y), row("isfinite", x)), x, found)
    return found


@fused("where.self")
def _where(c, condition, a, b):
    return where(cast(condition, "bool"), cast(a, c.dtype), cast(b, c.dtype))


@fused("where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where_number(c, condition, a, b):
    if not is_lazy(a) and not is_lazy(b):
        like = cast(condition, c.dtype)
        a = number(a, like)
    return where(cast(condition, "bool"), *_pair(c, a, b))


@fused("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(c, x, mask, value):
    value = cast(value, c.dtype) if is_lazy(value) else number(value, x)
    return spread(where(mask, value, x), c.shape)


@fused(
    "clamp.default",
    "clamp.Tensor",
    "clamp_min.default",
    "clamp_max.default",
    "clamp_min.Tensor",
    "clamp_max.Tensor",
    "hardtanh.default",
)
def _clamp(c, x, low=None, high=None, min=None, max=None):
    low, high = low if min is None else min, high if max is None else max
    x = cast(x, c.dtype)
    return _clamped(c, x, low, high)


def _clamped(c, x, low, high):
    for bound, name in ((low, "maximum"), (high, "minimum")):
        if bound is None:
            continue
        bound = cast(bound, c.dtype) if is_lazy(bound) else number(bound, x)
        x = row(name, x, bound)
    return x


fused("clamp_max.default", "clamp_max.Tensor")(
    lambda c, x, high: _clamped(c, cast(x, c.dtype), None, high)
)
fused("hardtanh.default")(lambda c, x, low=-1.0, high=1.0: _clamped(c, x, low, high))


def _common_float(c, *values):
    """Operands in the result's type; 16-bit floats were widened before."""
    return [
        v if c.dtype in HALVES and str(v.dtype) == "float32" else cast(v, c.dtype) for v in values
    ]


@fused("addcmul.default")
@wide
def _addcmul(c, x, a, b, value=1):
    x, a, b = _common_float(c, x, a, b)
    return add(x, _scaled(mul(a, b), value))


@fused("addcdiv.default")
@wide
def _addcdiv(c, x, a, b, value=1):
    x, a, b = _common_float(c, x, a, b)
    return add(x, _scaled(div(a, b), value))


@fused("lerp.Scalar", "lerp.Tensor")
@wide
def _lerp(c, a, b, weight):
    far = (1 - weight) if not is_lazy(weight) else sub(1.0, weight)
    difference = sub(b, a)
    near = add(a, mul(difference, weight))
    if not is_lazy(weight):
        return near if abs(weight) < 0.5 else sub(b, mul(difference, far))
    small = row("less", row("abs", weight), 0.5)
    return where(small, near, sub(b, mul(difference, far)))


@fused("fill.Scalar")
def _fill(c, x, value):
    return spread(number(value, x), c.shape)


def _filled(value):
    def rule(c, x, given=None, **options):
        v = number(given if value is None else value, cast(x, c.dtype))
        return spread(v, c.shape)

    return rule


fused("zeros_like.default")(_filled(0))
fused("ones_like.default")(_filled(1))
fused("full_like.default")(_filled(None))
# Its elements are never read: what follows asks for the shape, or writes.
fused("empty_like.default")(_filled(0))
fused("new_empty_strided.default")(lambda c, x, *shape, **options: _filled(0)(c, x))


@fused("frac.default")
def _frac(c, x):
    return sub(x, row("trunc", x))


@fused("deg2rad.default")
def _deg2rad(c, x):
    return mul(cast(x, c.dtype), math.pi / 180)


@fused("rad2deg.default")
def _rad2deg(c, x):
    return mul(cast(x, c.dtype), 180 / math.pi)


@fused("native_dropout_backward.default")
def _dropout_backward(c, grad, mask, scale):
    return mul(mul(grad, cast(mask, c.dtype)), scale)


def _quantized(x, scale, zero, low, high):
    """(values that an integer type would keep, which of them are in its range)."""
    place = add(row("round", mul(x, div(1.0, scale) if is_lazy(scale) else 1.0 / scale)), zero)
    inside = row("logical_and", row("greater_equal", place, float(low)), row("less_equal", place, float(high)))  # fmt: skip
    kept = row("minimum", row("maximum", place, float(low)), float(high))
    return mul(sub(kept, zero), scale), inside


@fused("fake_quantize_per_tensor_affine_cachemask.default")
def _fake_quantize(c, x, scale, zero, low, high):
    if is_lazy(scale) or "float" not in c.dtype:
        raise Unsupported("a scale that is a tensor")
    return _quantized(x, scale, float(zero), low, high)


@fused("fake_quantize_per_channel_affine_cachemask.default")
def _fake_quantize_channels(c, x, scale, zero, axis, low, high):
    if c.dtype in HALVES or not is_lazy(scale) or not is_lazy(zero):
        raise Unsupported("channels of this type")
    shape = [1] * len(c.shape)
    shape[axis] = c.shape[axis]
    scale, zero = (spread(reshape(cast(v, c.dtype), shape), c.shape) for v in (scale, zero))
    return _quantized(x, scale, zero, low, high)
