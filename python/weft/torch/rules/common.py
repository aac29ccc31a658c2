# SPDX-License-Identifier: Apache-2.0
"""Tables of rules, and the small language that rules over Lazy values are written in."""

from __future__ import annotations

import math

import torch

from ... import _core

FUSED, ARRAYS, VIEWS = {}, {}, {}
ALONE = {}  # array functions for arguments that the fused rule of the operator refuses

DTYPES = {
    torch.bool: "bool",
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.complex64: "complex64",
    torch.complex128: "complex128",
}
REAL = {t: name for t, name in DTYPES.items() if not t.is_complex}
COMPLEX = {}  # rules for complex numbers, a step each; None where the rule of reals holds
HALVES = ("float16", "bfloat16")


class Unsupported(Exception):
    """A rule has no form for these arguments; the text is the reason that explain shows."""


def refusal(raised):
    """What explain shows of an exception that came from a rule: a refusal's reason, or a fault of ours by its type."""
    if isinstance(raised, Unsupported):
        return str(raised)
    if isinstance(raised, _core.Error):
        return f"{raised.code}: {raised.message}"
    return f"fault in a rule: {type(raised).__name__}: {raised}"


class Context:
    """What a rule may know about its operator: types and shapes of its results, strides of its inputs, as torch has them."""

    def __init__(self, value, inputs=(), wanted=None):
        self.inputs = inputs  # tensors without data
        self.wanted = wanted  # numbers of the results that are read, None where that is not known
        values = value if isinstance(value, (tuple, list)) else (value,)
        self.values = values
        self.dtypes = [None if v is None else DTYPES[v.dtype] for v in values]
        self.shapes = [None if v is None else tuple(v.shape) for v in values]
        self.dtype, self.shape = self.dtypes[0], self.shapes[0]
        self.kept = None  # what a rule makes in its first call for the later ones
        # Whether any choice that torch leaves open will do (which of equal elements, signs of vectors): on torch's device of
        # weft. Compiled programs make the choices of torch's own kernels.
        self.any_choice = False


def fused(*names, space="aten"):
    def add(rule):
        FUSED.update((f"{space}.{n}", rule) for n in names)
        return rule

    return add


def array(*names, space="aten"):
    def add(rule):
        ARRAYS.update((f"{space}.{n}", rule) for n in names)
        return rule

    return add


def alone(*names):
    def add(rule):
        ALONE.update((f"aten.{n}", rule) for n in names)
        return rule

    return add


def view(*names):
    def add(rule):
        VIEWS.update((f"aten.{n}", rule) for n in names)
        return rule

    return add


def complex_too(*names):
    """Marks array functions and views that hold for complex numbers."""
    COMPLEX.update((f"aten.{n}", None) for n in names)


def of_complex(*names):
    """A rule over arrays for an operator of which some tensor is complex."""

    def add(rule):
        COMPLEX.update((f"aten.{n}", rule) for n in names)
        return rule

    return add


def as_type(x, dtype):
    """An array in a type; itself where it has it."""
    return x if str(x.dtype) == dtype else x.astype(dtype)


def line_index(index, dim):
    """Positions along `dim` as a row, where those of all other axes are the same (an expanded index); else None."""
    others = [a for a in range(index.ndim) if a != dim]
    if not others or any(index.shape[a] > 1 and index.strides[a] for a in others):
        return None
    row = index[tuple(slice(None) if a == dim else 0 for a in range(index.ndim))]
    return as_type(row, "int64")


def is_float(x):
    return "float" in str(x.dtype)


def is_lazy(x):
    return isinstance(x, _core.Lazy)


def cast(x, dtype):
    return x if str(x.dtype) == dtype else _core._lazy_cast(x, dtype)


def row(name, *args):
    """An element-wise operation of weft's table; numbers take the type of the Lazy operand."""
    return _core._lazy_row(name, list(args))


def add(x, y):
    return row("add", x, y)


def sub(x, y):
    return row("subtract", x, y)


def mul(x, y):
    return row("multiply", x, y)


def div(x, y):
    return row("divide", x, y)


def number(value, like):
    """The number as a value of `like`'s type."""
    return cast(_core._lazy_constant(value, like), str(like.dtype))


def where(condition, a, b):
    """Values of one type chosen by a condition; one of them may be a number."""
    like = a if is_lazy(a) else b
    a, b = (v if is_lazy(v) else number(v, like) for v in (a, b))
    return _core._lazy_where(condition, a, b)


def spread(x, shape):
    return x if tuple(x.shape) == tuple(shape) else _core._lazy_spread(x, tuple(shape))


def reshape(x, shape):
    return x if tuple(x.shape) == tuple(shape) else _core._lazy_reshape(x, tuple(shape))


def axes_of(dim, ndim):
    """torch's dim argument as a list of axes: none or empty means all of them."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(ndim))
    dims = dim if isinstance(dim, (tuple, list)) else [dim]
    return [d % ndim for d in dims] if ndim else []


def reduce(name, x, axes, keepdim=False, dtype=None):
    if not tuple(x.shape) and not axes:
        return _core._lazy_reduce(name, x, None, keepdim, dtype)
    return _core._lazy_reduce(name, x, list(axes), keepdim, dtype)


def mean(x, axes, keepdim=False):
    count = math.prod(x.shape[a] for a in axes)
    return mul(reduce("sum", x, axes, keepdim), 1.0 / count if count else math.nan)


def work_type(x):
    """16-bit floats are computed in float32, as torch does."""
    return cast(x, "float32") if str(x.dtype) in HALVES else x


def per_channel(x, ndim):
    """A vector along axis 1 of an array of `ndim` axes."""
    return reshape(x, (1, x.shape[0], *(1,) * (ndim - 2)))


def gradient(c, function, g, x):
    """The gradient that weft derives of a function of one array, for torch's backward operators without a formula here."""
    narrow = str(x.dtype) in HALVES
    x, g = (a.astype("float32") if narrow else as_type(a, str(x.dtype)) for a in (x, g))
    given = _core.Tensor(x, requires_grad=True)
    before = _core.set_grad_enabled(True)
    try:
        (found,) = _core.gradients([function(given) * _core.Tensor(g, requires_grad=False)], [given], False)  # fmt: skip
    finally:
        _core.set_grad_enabled(before)
    return as_type(found.data, c.dtype)


def numbers_too(rule):
    """A function of arrays with axes that takes arrays without axes as rows of one element."""

    def wrapped(c, x, *args, **kwargs):
        if x.ndim:
            return rule(c, x, *args, **kwargs)
        row = lambda a: a.reshape((1,)) if getattr(a, "ndim", None) == 0 else a  # noqa: E731
        found = rule(c, row(x), *map(row, args), **{k: row(a) for k, a in kwargs.items()})
        if isinstance(found, (tuple, list)):
            return [y.reshape(s) for y, s in zip(found, c.shapes)]
        return found.reshape(c.shape)

    return wrapped


def wide(rule):
    """16-bit floats are computed in float32 and rounded once, as torch's kernels do."""

    def widened(c, *args, **kwargs):
        if c.dtype not in HALVES:
            return rule(c, *args, **kwargs)
        widen = lambda v: cast(v, "float32") if str(getattr(v, "dtype", "")) in HALVES else v  # noqa: E731
        return cast(rule(c, *map(widen, args), **kwargs), c.dtype)

    return widened
