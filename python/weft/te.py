# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: what to compute, point by point, without loops.

>>> A = te.placeholder((1024,), "float32", name="A")
>>> C = te.compute((1024,), lambda i: A[i] + 1.0, name="C")
>>> f = te.create_prim_func([A, C])
"""

import inspect as _inspect
import operator as _operator

from . import _core
from ._boundary import publish as _publish
from ._errors import error as _error
from .ir import PrimFunc

Tensor = _core.TeTensor

_OPERATORS = {
    "add": _operator.add,
    "subtract": _operator.sub,
    "multiply": _operator.mul,
    "divide": _operator.truediv,
    "true_divide": _operator.truediv,
    "floor_divide": _operator.floordiv,
    "remainder": _operator.mod,
    "power": _operator.pow,
    "negative": _operator.neg,
    "absolute": _operator.abs,
    "less": _operator.lt,
    "less_equal": _operator.le,
    "greater": _operator.gt,
    "greater_equal": _operator.ge,
    "equal": _operator.eq,
    "not_equal": _operator.ne,
    "bitwise_and": _operator.and_,
    "bitwise_or": _operator.or_,
}
_RENAMED = {"maximum": "max", "minimum": "min", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}  # fmt: skip


def _ufunc(self, ufunc, method, *inputs, **kwargs):
    """NumPy's functions of an expression: those of te by the same name."""
    name = ufunc.__name__
    function = _OPERATORS.get(name) or globals().get(_RENAMED.get(name, name))
    if method != "__call__" or kwargs or function is None:
        raise _error(
            _core.DTypeError,
            "te.ufunc",
            f"numpy.{name} of an expression of a program",
            help="the functions of te stand in reference/script.md: te.exp(x), te.max(a, b), te.Select(c, a, b)",
        )
    return function(*inputs)


_core.Expr.__array_ufunc__ = _ufunc


def var(name="n", dtype="int64"):
    """An extent known only at run time."""
    return _core.te_var(name, dtype)


def placeholder(shape, dtype="float32", name="placeholder"):
    """An input of a shape (ints or variables) and element type."""
    return _core.te_placeholder(shape, _type_name(dtype), name)


def compute(shape, fcompute, name="compute", attrs=None):
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...); a tuple of results gives a tuple of tensors.

    Raises ShapeError when fcompute takes another number of indices than there are dimensions, weft.Error for a
    reduction inside a larger expression, or a body that is no expression.
    """
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    axes, required, variadic = [], 0, False
    for parameter in _inspect.signature(fcompute).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            axes, variadic = [], True
            break
        axes.append(parameter.name)
        required += parameter.default is parameter.empty
    if len(shape) < required or not variadic and len(shape) > len(axes):
        raise _error(
            _core.ShapeError,
            "te.compute.indices",
            f'"{name}" has {len(shape)} dimensions, its function takes {required} indices',
            help="one parameter for each dimension, or *indices",
        )
    return _core.te_compute(shape, fcompute, name, axes, attrs or {})


def reduce_axis(dom, name="k"):
    """An axis to reduce over: an extent, or (low, high)."""
    if isinstance(dom, (tuple, list)):
        low, high = dom
        return _core.te_reduce_axis(low, high - low, name)
    return _core.te_reduce_axis(0, dom, name)


def _is_axes(value):
    one = value[0] if isinstance(value, (tuple, list)) and value else value
    return isinstance(one, _core.TeAxis)


def sum(expr, axis, where=None):
    """Sum over reduction axes; only as the whole body of a compute."""
    return _core.te_sum(expr, axis, where)


def prod(expr, axis, where=None):
    """Product over reduction axes; only as the whole body of a compute."""
    return _core.te_prod(expr, axis, where)


def min(expr, axis, where=None):
    """Smallest over reduction axes, as the whole body of a compute; min(a, b) is that of two values."""
    if not _is_axes(axis):
        return _core.expr_minmax(False, expr, axis)
    return _core.te_min(expr, axis, where)


def max(expr, axis, where=None):
    """Largest over reduction axes, as the whole body of a compute; max(a, b) is that of two values."""
    if not _is_axes(axis):
        return _core.expr_minmax(True, expr, axis)
    return _core.te_max(expr, axis, where)


def argmax(index, value, axis):
    """(index, value) of the largest; the smaller index wins ties."""
    return _core.te_arg(True, index, value, axis)


def argmin(index, value, axis):
    """(index, value) of the smallest; the smaller index wins ties."""
    return _core.te_arg(False, index, value, axis)


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reducer of one's own: combine(x, y) over scalars or tuples, and identity(*dtypes)."""
    return lambda expr, axis: _core.te_comm_reduce(fcombine, fidentity, name, expr, axis)


def create_prim_func(args, name="main"):
    """The function that computes the results among `args` from the placeholders among them."""
    return PrimFunc(_core.te_create_prim_func(list(args), name))


def if_then_else(condition, a, b):
    """Only the chosen side is evaluated. Python numbers take the other side's type; two of them are float32."""
    return _core.expr_if_then_else(condition, a, b)


def Select(condition, a, b):
    """The chosen side; both are evaluated, so neither may fault. Types as in if_then_else."""
    return _core.expr_select(condition, a, b)


def cast(dtype, value):
    """The value converted to a type; value.astype(dtype) is the same."""
    return value.astype(dtype) if isinstance(value, _core.Expr) else const(value, dtype)


def reinterpret(dtype, value):
    """The same bits as a value of another type of as many bytes. Raises DTypeError te.reinterpret for others."""
    return _core.expr_reinterpret(_type_name(dtype), value)


def min_value(dtype):
    """The smallest finite number of a type, as a constant of it."""
    return _limit(dtype, "min")


def max_value(dtype):
    """The largest finite number of a type, as a constant of it."""
    return _limit(dtype, "max")


def infinity(dtype="float32"):
    """Positive infinity of a floating-point type. Raises DTypeError for others."""
    return const(float("inf"), dtype)


def _type_name(dtype):
    """As text; of what is no type, so much as its refusal quotes."""
    return _core.shown(dtype) if isinstance(dtype, (list, tuple, dict, set)) else str(dtype)


def _limit(dtype, which):
    dtype = _type_name(dtype)
    if dtype == "bool":
        return const(which == "max", dtype)
    import weft

    of = weft.finfo if "float" in dtype else weft.iinfo
    return const(getattr(of(dtype), which), dtype)


def _division(name, meaning):
    def call(a, b):
        return _core.expr_binary(name, a, b)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = meaning
    return call


floordiv = indexdiv = _division("floordiv", "a / b of whole numbers, rounded down.")
floormod = indexmod = _division("floormod", "a - b * floordiv(a, b).")
truncdiv = _division("truncdiv", "a / b of whole numbers, rounded toward zero, as in C.")
truncmod = _division("truncmod", "a - b * truncdiv(a, b), as in C.")


def all(*conditions):
    """Whether all conditions hold; what stands right of a false one is not evaluated."""
    return _joined(True, conditions)


def any(*conditions):
    """Whether some condition holds; what stands right of a true one is not evaluated."""
    return _joined(False, conditions)


def _joined(conjunction, conditions):
    if not conditions:
        return const(conjunction, "bool")
    out = conditions[0]
    for condition in conditions[1:]:
        out = _core.expr_logical(conjunction, out, condition)
    return out


size_var = var


def const(value, dtype="float32"):
    """A constant of a type."""
    return _core.expr_const(value, dtype)


def _intrinsic(name, arity, meaning):
    parameters = [
        _inspect.Parameter(letter, _inspect.Parameter.POSITIONAL_ONLY) for letter in "xyz"[:arity]
    ]

    def call(*args):
        return _core.expr_call(name, *args)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = meaning[0].upper() + meaning[1:] + "."
    call.__signature__ = _inspect.Signature(parameters)
    return call


# The language's own functions, from the table of intrinsics.
for _row in [
    *_core.intrinsic_rows,
    {"name": "fma", "arity": 3, "meaning": "x * y + z with one rounding"},
]:
    globals()[_row["name"]] = _intrinsic(**_row)


def power(x, y):
    """x to the power y; another name of pow."""
    return _core.expr_call("pow", x, y)


def __getattr__(name):
    from ._names import TE, missing

    raise missing("weft.te", name, TE)


_publish(__name__)
