# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NoReturn, overload

from ._core import Expr as Expr, TeAxis as TeAxis, TeTensor as TeTensor, _DType, _Value
from .ir import PrimFunc

Tensor = TeTensor

def var(name: str = 'n', dtype: _DType = 'int64') -> Expr:
    """An extent known only at run time."""
def placeholder(shape: Sequence[Any] | int | Expr, dtype: _DType = 'float32', name: str = 'placeholder') -> TeTensor:
    """An input of a shape (ints or variables) and element type."""
@overload
def compute(shape: Sequence[Any] | int | Expr, fcompute: Callable[[TeAxis], _Value] | Callable[[TeAxis, TeAxis], _Value] | Callable[[TeAxis, TeAxis, TeAxis], _Value] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis], _Value] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], _Value] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], _Value] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], _Value] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], _Value], name: str = 'compute', attrs: Mapping[str, Any] | None = None) -> TeTensor:
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...); a tuple of results gives a tuple of tensors."""
@overload
def compute(shape: Sequence[Any] | int | Expr, fcompute: Callable[[TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis, TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], tuple[_Value, ...]] | Callable[[TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis, TeAxis], tuple[_Value, ...]], name: str = 'compute', attrs: Mapping[str, Any] | None = None) -> tuple[TeTensor, ...]:
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...); a tuple of results gives a tuple of tensors."""
def reduce_axis(dom: int | Expr | tuple[Any, Any], name: str = 'k') -> TeAxis:
    """An axis to reduce over: an extent, or (low, high)."""
def sum(expr: _Value, axis: TeAxis | Sequence[TeAxis], where: Expr | None = None) -> Expr:
    """Sum over reduction axes; only as the whole body of a compute."""
def prod(expr: _Value, axis: TeAxis | Sequence[TeAxis], where: Expr | None = None) -> Expr:
    """Product over reduction axes; only as the whole body of a compute."""
def min(expr: _Value, axis: TeAxis | Sequence[TeAxis], where: Expr | None = None) -> Expr:
    """Smallest over reduction axes, as the whole body of a compute; min(a, b) is that of two values."""
def max(expr: _Value, axis: TeAxis | Sequence[TeAxis], where: Expr | None = None) -> Expr:
    """Largest over reduction axes, as the whole body of a compute; max(a, b) is that of two values."""
def argmax(index: _Value, value: _Value, axis: TeAxis | Sequence[TeAxis]) -> tuple[Expr, Expr]:
    """(index, value) of the largest; the smaller index wins ties."""
def argmin(index: _Value, value: _Value, axis: TeAxis | Sequence[TeAxis]) -> tuple[Expr, Expr]:
    """(index, value) of the smallest; the smaller index wins ties."""
def comm_reducer(fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = 'reduce') -> Callable[..., Any]:
    """A reducer of one's own: combine(x, y) over scalars or tuples, and identity(*dtypes)."""
def create_prim_func(args: Sequence[TeTensor | Expr], name: str = 'main') -> PrimFunc:
    """The function that computes the results among `args` from the placeholders among them."""
def if_then_else(condition: _Value, a: _Value, b: _Value) -> Expr:
    """Only the chosen side is evaluated. Python numbers take the other side's type; two of them are float32."""
def Select(condition: _Value, a: _Value, b: _Value) -> Expr:
    """The chosen side; both are evaluated, so neither may fault. Types as in if_then_else."""
def cast(dtype: _DType, value: _Value) -> Expr:
    """The value converted to a type; value.astype(dtype) is the same."""
def reinterpret(dtype: _DType, value: _Value) -> Expr:
    """The same bits as a value of another type of as many bytes. Raises DTypeError te.reinterpret for others."""
def min_value(dtype: _DType) -> Expr:
    """The smallest finite number of a type, as a constant of it."""
def max_value(dtype: _DType) -> Expr:
    """The largest finite number of a type, as a constant of it."""
def infinity(dtype: _DType = 'float32') -> Expr:
    """Positive infinity of a floating-point type. Raises DTypeError for others."""
def floordiv(a: _Value, b: _Value) -> Expr:
    """a / b of whole numbers, rounded down."""
def indexdiv(a: _Value, b: _Value) -> Expr:
    """a / b of whole numbers, rounded down."""
def floormod(a: _Value, b: _Value) -> Expr:
    """a - b * floordiv(a, b)."""
def indexmod(a: _Value, b: _Value) -> Expr:
    """a - b * floordiv(a, b)."""
def truncdiv(a: _Value, b: _Value) -> Expr:
    """a / b of whole numbers, rounded toward zero, as in C."""
def truncmod(a: _Value, b: _Value) -> Expr:
    """a - b * truncdiv(a, b), as in C."""
def all(*conditions: _Value) -> Expr:
    """Whether all conditions hold; what stands right of a false one is not evaluated."""
def any(*conditions: _Value) -> Expr:
    """Whether some condition holds; what stands right of a true one is not evaluated."""
def size_var(name: str = 'n', dtype: _DType = 'int64') -> Expr:
    """An extent known only at run time."""
def const(value: _Value, dtype: _DType = 'float32') -> Expr:
    """A constant of a type."""
def exp(x: _Value, /) -> Expr:
    """E to the power x."""
def exp2(x: _Value, /) -> Expr:
    """2 to the power x."""
def exp2_flush(x: _Value, /) -> Expr:
    """2 to the power x, to a few units in the last place; values below the least normal number may be 0."""
def expm1(x: _Value, /) -> Expr:
    """Exp(x) - 1, accurate near 0."""
def log(x: _Value, /) -> Expr:
    """Natural logarithm."""
def log2(x: _Value, /) -> Expr:
    """Logarithm to base 2."""
def log10(x: _Value, /) -> Expr:
    """Logarithm to base 10."""
def log1p(x: _Value, /) -> Expr:
    """Log(1 + x), accurate near 0."""
def sqrt(x: _Value, /) -> Expr:
    """Square root, correctly rounded."""
def rsqrt(x: _Value, /) -> Expr:
    """1 / sqrt(x)."""
def sin(x: _Value, /) -> Expr:
    """Sine, radians."""
def cos(x: _Value, /) -> Expr:
    """Cosine, radians."""
def tan(x: _Value, /) -> Expr:
    """Tangent, radians."""
def asin(x: _Value, /) -> Expr:
    """Inverse sine."""
def acos(x: _Value, /) -> Expr:
    """Inverse cosine."""
def atan(x: _Value, /) -> Expr:
    """Inverse tangent."""
def sinh(x: _Value, /) -> Expr:
    """Hyperbolic sine."""
def cosh(x: _Value, /) -> Expr:
    """Hyperbolic cosine."""
def tanh(x: _Value, /) -> Expr:
    """Hyperbolic tangent."""
def asinh(x: _Value, /) -> Expr:
    """Inverse hyperbolic sine."""
def acosh(x: _Value, /) -> Expr:
    """Inverse hyperbolic cosine."""
def atanh(x: _Value, /) -> Expr:
    """Inverse hyperbolic tangent."""
def erf(x: _Value, /) -> Expr:
    """Error function."""
def floor(x: _Value, /) -> Expr:
    """Largest integer not above x."""
def ceil(x: _Value, /) -> Expr:
    """Smallest integer not below x."""
def trunc(x: _Value, /) -> Expr:
    """X rounded toward zero."""
def round(x: _Value, /) -> Expr:
    """X rounded to the nearest integer, ties to even."""
def sigmoid(x: _Value, /) -> Expr:
    """1 / (1 + exp(-x))."""
def abs(x: _Value, /) -> Expr:
    """Absolute value."""
def pow(x: _Value, y: _Value, /) -> Expr:
    """X to the power y."""
def atan2(x: _Value, y: _Value, /) -> Expr:
    """Angle of the point (y, x)."""
def fmod(x: _Value, y: _Value, /) -> Expr:
    """C remainder of floats."""
def hypot(x: _Value, y: _Value, /) -> Expr:
    """Sqrt(x*x + y*y) without overflow."""
def copysign(x: _Value, y: _Value, /) -> Expr:
    """Magnitude of x with the sign of y."""
def nextafter(x: _Value, y: _Value, /) -> Expr:
    """The float next to x toward y."""
def isnan(x: _Value, /) -> Expr:
    """X is not a number."""
def isinf(x: _Value, /) -> Expr:
    """X is infinite."""
def isfinite(x: _Value, /) -> Expr:
    """X is neither infinite nor NaN."""
def signbit(x: _Value, /) -> Expr:
    """The sign bit of x is set."""
def shift_left(x: _Value, y: _Value, /) -> Expr:
    """X << y; 0 when y >= bits."""
def shift_right(x: _Value, y: _Value, /) -> Expr:
    """X >> y, arithmetic for signed; 0 or -1 when y >= bits."""
def bitwise_and(x: _Value, y: _Value, /) -> Expr:
    """X & y."""
def bitwise_or(x: _Value, y: _Value, /) -> Expr:
    """X | y."""
def bitwise_xor(x: _Value, y: _Value, /) -> Expr:
    """X ^ y."""
def bitwise_not(x: _Value, /) -> Expr:
    """~x."""
def popcount(x: _Value, /) -> Expr:
    """Number of set bits."""
def clz(x: _Value, /) -> Expr:
    """Number of leading zero bits."""
def mulhi(x: _Value, y: _Value, /) -> Expr:
    """Upper half of the product."""
def fma(x: _Value, y: _Value, z: _Value, /) -> Expr:
    """X * y + z with one rounding."""
def power(x: _Value, y: _Value) -> Expr:
    """x to the power y; another name of pow."""
