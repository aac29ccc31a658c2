# SPDX-License-Identifier: Apache-2.0
"""How public functions and methods act on all examples of a vmap at once.

A rule gets the frame and the arguments of the call; values that `frame.owns` hold the examples along axis 0, all
others are the same for every example. A rule that cannot take some arguments raises Unruled.
"""

from __future__ import annotations

import builtins as _py

import weft
from weft import linalg
from weft.nn import functional as F

from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import first_leaf
from .batched import Batched, Unruled, padded, rules

_array_types = (NDArray, Tensor, Batched)


def _rows(frame, x):
    """The examples of an operand, repeated where it is the same for all."""
    if frame.owns(x):
        return x.value
    return x.broadcast_to((frame.size, *x.shape))


def _axis(axis, ndim):
    """An axis of one example as an axis of all examples."""
    if not -ndim <= axis < _py.max(ndim, 1):
        raise Unruled  # the loop gives the function's own error
    return axis % _py.max(ndim, 1) + 1


def _axes(axis, ndim):
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(_axis(a, ndim) for a in axis)
    return _axis(axis, ndim)


def _spelled(kwargs):
    """PyTorch's names of arguments as the standard's."""
    return {{"dim": "axis", "keepdim": "keepdims", "dims": "axis"}.get(k, k): v for k, v in kwargs.items()}  # fmt: skip


def _reduction(f, numbers=False):
    """f(x, axis, keepdims); with `numbers` f takes one axis, and None means all elements in a row."""

    def rule(frame, x, axis=None, keepdims=False, **rest):
        rest = _spelled(rest)
        axis, keepdims = rest.pop("axis", axis), rest.pop("keepdims", keepdims)
        if rest.pop("out", None) is not None or _py.any(isinstance(v, Batched) for v in rest.values()):  # fmt: skip
            raise Unruled
        if x.ndim == 0 or axis == ():
            if axis not in (None, ()):
                raise Unruled
            flat = x.value.reshape((-1, 1))
            return Batched(f(flat, axis=1, keepdims=False, **rest), frame) if axis is None else Batched(f(flat, axis=1, keepdims=False, **rest).reshape(x.value.shape), frame)  # fmt: skip
        if numbers and axis is None:
            out = f(x.value.reshape((x.value.shape[0], -1)), axis=1, keepdims=False, **rest)
            return Batched(out.reshape((-1, *(1,) * x.ndim)) if keepdims else out, frame)
        return Batched(f(x.value, axis=_axes(axis, x.ndim), keepdims=keepdims, **rest), frame)

    return rule


def _along(f, default=-1, flat=False):
    """f(x, axis=...): one axis, the shape is kept."""

    def rule(frame, x, axis=default, **rest):
        rest = _spelled(rest)
        axis = rest.pop("axis", axis)
        if not frame.owns(x) or x.ndim == 0 or _py.any(isinstance(v, Batched) for v in rest.values()):  # fmt: skip
            raise Unruled
        if axis is None:
            if x.ndim != 1:
                raise Unruled
            axis = 0
        return Batched(f(x.value, axis=_axis(axis, x.ndim), **rest), frame)

    return rule


def _leading(f, count=1, inner=2):
    """f works on the last `inner` axes and takes any number in front."""

    def rule(frame, *args, **kwargs):
        arrays, rest = args[:count], args[count:]
        if len(arrays) < count or first_leaf((rest, kwargs), Batched) is not None:
            raise Unruled
        if _py.any(a.ndim < inner for a in arrays):
            raise Unruled
        ndim = _py.max(a.ndim for a in arrays)
        if count > 1 and _py.any(a.ndim != ndim for a in arrays):
            raise Unruled
        out = f(*(_rows(frame, a) for a in arrays), *rest, **kwargs)
        if isinstance(out, tuple):
            parts = [Batched(o, frame) for o in out]
            return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
        return Batched(out, frame)

    return rule


# ---- shapes


def _shape_of(shape):
    return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape


def reshape(frame, x, *shape, copy=None, **kwargs):
    shape = _shape_of(shape) if shape else kwargs.pop("shape")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in shape and x.size == 0 and frame.size:
        raise Unruled
    if -1 in shape:
        known = 1
        for n in shape:
            known *= n if n != -1 else 1
        if shape.count(-1) > 1 or not known or x.size % known:
            raise Unruled
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    count = 1
    for n in shape:
        count *= n
    if count != x.size or _py.any(n < 0 for n in shape):
        raise Unruled  # the loop gives the function's own error
    return Batched(x.value.reshape((x.value.shape[0], *shape)), frame)


def permute(frame, x, *axes):
    axes = _shape_of(axes) if axes else ()
    return Batched(x.value.permute((0, *(_axis(a, x.ndim) for a in axes))), frame)


def transpose(frame, x, a=-2, b=-1):
    if not isinstance(a, int) or not isinstance(b, int):
        raise Unruled
    order = list(range(x.ndim + 1))
    a, b = _axis(a, x.ndim), _axis(b, x.ndim)
    order[a], order[b] = order[b], order[a]
    return Batched(x.value.permute(tuple(order)), frame)


def _array_transpose(frame, x, *axes):
    return permute(frame, x, *(_shape_of(axes) or reversed(range(x.ndim))))


def _method_transpose(frame, x, *axes, **kwargs):
    if isinstance(x.base(), NDArray):
        return _array_transpose(frame, x, *axes)
    return transpose(frame, x, *axes, **kwargs)


def broadcast_to(frame, x, shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(shape) < x.ndim:
        raise Unruled
    return Batched(padded(x, len(shape)).broadcast_to((frame.size, *shape)), frame)


def expand_dims(frame, x, axis=0, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    n = x.ndim + len(axes)
    if _py.any(not -n <= a < n for a in axes):
        raise Unruled
    shape, at = list(x.shape), sorted(a % n for a in axes)
    for a in at:
        shape.insert(a, 1)
    return reshape(frame, x, tuple(shape))


def squeeze(frame, x, axis=None, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if axis is None:
        axes = [i for i, n in enumerate(x.shape) if n == 1]
    else:
        axes = [_axis(a, x.ndim) - 1 for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]  # fmt: skip
    if _py.any(x.shape[a] != 1 for a in axes):
        raise Unruled
    return reshape(frame, x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


def flip(frame, x, *axis, **kwargs):
    axis = _spelled(kwargs).get("axis", _shape_of(axis) if axis else None)
    return Batched(weft.flip(x.value, axis=_axes(axis, x.ndim)), frame)


def roll(frame, x, shift, axis=None, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if axis is None:
        flat = weft.roll(x.value.reshape((frame.size, -1)), shift, axis=1)
        return Batched(flat.reshape(x.value.shape), frame)
    return Batched(weft.roll(x.value, shift, axis=_axes(axis, x.ndim)), frame)


def moveaxis(frame, x, source, destination):
    return Batched(weft.moveaxis(x.value, _axes(source, x.ndim), _axes(destination, x.ndim)), frame)


def _flatten(frame, x, start_dim=0, end_dim=-1):
    if x.ndim == 0:
        return reshape(frame, x, (1,))
    first, last = _axis(start_dim, x.ndim) - 1, _axis(end_dim, x.ndim) - 1
    return reshape(frame, x, (*x.shape[:first], -1, *x.shape[last + 1 :]))


def concat(frame, arrays, axis=0, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    arrays = list(arrays)
    if axis is None:
        arrays = [weft.reshape(a, (-1,)) for a in arrays]
        axis = 0
    if _py.any(not isinstance(a, _array_types) for a in arrays):
        raise Unruled
    axis = _axis(axis, arrays[0].ndim)
    return Batched(weft.concat([_rows(frame, a) for a in arrays], axis=axis), frame)


def stack(frame, arrays, axis=0, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    arrays = list(arrays)
    if len({tuple(a.shape) for a in arrays}) > 1:
        raise Unruled
    axis = _axis(axis, arrays[0].ndim + 1)
    return Batched(weft.stack([_rows(frame, a) for a in arrays], axis=axis), frame)


def unstack(frame, x, axis=0, **kwargs):
    axis = _axis(_spelled(kwargs).get("axis", axis), x.ndim)
    return tuple(Batched(p, frame) for p in weft.unstack(x.value, axis=axis))


def tile(frame, x, repetitions):
    repetitions = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    n = _py.max(x.ndim, len(repetitions))
    repetitions = (1,) * (n - len(repetitions)) + repetitions
    return Batched(weft.tile(padded(x, n), (1, *repetitions)), frame)


def pad(frame, x, widths, *rest, **kwargs):
    if isinstance(widths, int):
        widths = [(widths, widths)] * x.ndim
    if len(widths) != x.ndim or _py.any(isinstance(w, int) for w in widths):
        raise Unruled
    return Batched(weft.pad(x.value, [(0, 0), *widths], *rest, **kwargs), frame)


def repeat(frame, x, repeats, axis=None, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if not isinstance(repeats, int) or not frame.owns(x):
        raise Unruled
    if axis is None:
        x, axis = reshape(frame, x, (-1,)), 0
    return Batched(weft.repeat(x.value, repeats, axis=_axis(axis, x.ndim)), frame)


# ---- elements


def where(frame, condition, a, b):
    n = _py.max(getattr(x, "ndim", 0) for x in (condition, a, b))
    return Batched(
        weft.where(*(padded(x, n) if frame.owns(x) else x for x in (condition, a, b))), frame
    )


def astype(frame, x, dtype, **kwargs):
    return Batched(x.value.astype(dtype), frame)


def asarray(frame, x, dtype=None, device=None, copy=None):
    if not frame.owns(x):
        raise Unruled
    value = x.value if dtype is None else x.value.astype(dtype)
    return Batched(value if device is None else value.to(device), frame)


def _move(frame, x, device=None, dtype=None):
    if isinstance(device, (_core.dtype, str)) and not _is_device(device):
        device, dtype = None, device
    return asarray(frame, x, dtype, device)


def _is_device(name):
    if not isinstance(name, str):
        return False
    try:
        _core.dtype(name)
    except _core.Error:
        return True
    return False


def _like(f):
    def rule(frame, x, *args, **kwargs):
        if first_leaf((args, kwargs), Batched) is not None:
            raise Unruled
        return Batched(f(x.value.data if not isinstance(x.value, NDArray) else x.value, *args, **kwargs), frame)  # fmt: skip

    return rule


# ---- products


def matmul(frame, a, b):
    na, nb = a.ndim, b.ndim
    if na == 0 or nb == 0:
        raise Unruled
    if frame.owns(a) and not frame.owns(b) and nb <= 2:
        return Batched(weft.matmul(a.value, b), frame)
    n = _py.max(na, nb, 2)

    def operand(x, vector_axis):
        value = x.value if frame.owns(x) else x
        shape = tuple(x.shape)
        if x.ndim == 1:
            shape = (1, *shape) if vector_axis == 0 else (*shape, 1)
        if not frame.owns(x):
            return value.reshape(shape)
        return value.reshape((value.shape[0], *(1,) * (n - len(shape)), *shape))

    out = weft.matmul(operand(a, 0), operand(b, 1))
    shape = tuple(out.shape)
    if nb == 1:
        shape = shape[:-1]
    if na == 1:
        shape = (*shape[:-2], shape[-1]) if nb > 1 else shape[:-1]
    return Batched(out.reshape(shape), frame)


def einsum(frame, spec, *operands):
    spec = spec.replace(" ", "")
    left, arrow, right = spec.partition("->")
    terms = left.split(",")
    letter = next((c for c in "zyxwvutsrqponmZYXWVUTSR" if c not in spec), None)
    if letter is None or len(terms) != len(operands):
        raise Unruled
    if not arrow:
        once = [c for c in left if c.isalpha() and left.count(c) == 1]
        right = ("..." if "..." in left else "") + "".join(sorted(once))
    terms = [letter + t if frame.owns(x) else t for t, x in zip(terms, operands)]
    values = [x.value if frame.owns(x) else x for x in operands]
    return Batched(weft.einsum(f"{','.join(terms)}->{letter}{right}", *values), frame)


def outer(frame, a, b):
    return weft.reshape(a, (-1, 1)) * weft.reshape(b, (1, -1))


def vecdot(frame, a, b, axis=-1, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if axis >= 0 or a.dtype.kind == "c":
        raise Unruled
    n = _py.max(a.ndim, b.ndim)
    a, b = (padded(x, n) if frame.owns(x) else x for x in (a, b))
    return Batched(weft.vecdot(a, b, axis=axis), frame)


def layer_norm(frame, x, scale, shift, eps=1e-5):
    centred = x - weft.mean(x, axis=-1, keepdims=True)
    variance = weft.mean(centred * centred, axis=-1, keepdims=True)
    out = centred * weft.rsqrt(variance + eps)
    out = out if scale is None else out * scale
    return out if shift is None else out + shift


def nn_layer_norm(frame, x, normalized_shape, weight=None, bias=None, eps=1e-5):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(x.shape[x.ndim - len(shape) :]) != shape:
        raise Unruled
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    centred = x - weft.mean(x, axis=axes, keepdims=True)
    out = centred * weft.rsqrt(weft.mean(centred * centred, axis=axes, keepdims=True) + eps)
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def _convolution(f):
    def rule(frame, x, weight, bias=None, *args, **kwargs):
        if x.ndim != 4 or weight.ndim != 4 or args:
            raise Unruled
        if not frame.owns(weight):  # more images
            rows = x.value
            out = f(rows.reshape((-1, *rows.shape[2:])), weight, **kwargs)
            out = Batched(out.reshape((*rows.shape[:2], *out.shape[1:])), frame)
        else:  # more groups
            groups = kwargs.pop("groups", 1)
            size, rows, w = frame.size, _rows(frame, x), weight.value
            n, c = x.shape[:2]
            images = rows.permute((1, 0, 2, 3, 4)).reshape((n, size * c, *x.shape[2:]))
            kernels = w.reshape((-1, *w.shape[2:]))
            out = f(images, kernels, groups=groups * size, **kwargs)
            out = out.reshape((n, size, -1, *out.shape[2:]))
            out = Batched(out.permute((1, 0, 2, 3, 4)), frame)
        return out if bias is None else out + bias.reshape((-1, 1, 1))

    return rule


def embedding(frame, weight, index, padding_idx=None):
    if padding_idx is not None or frame.owns(weight) or weft.isdtype(weight.dtype, "integral"):
        raise Unruled
    return Batched(weft.take(weight, _plain(index.value), axis=0), frame)


# ---- positions


def _plain(x):
    """Of an index: without history."""
    return x if isinstance(x, (NDArray, Batched)) else x.data


def take(frame, x, indices, axis=None, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if axis is None:
        if x.ndim != 1:
            raise Unruled
        axis = 0
    if not frame.owns(indices):
        return Batched(weft.take(x.value, indices, axis=_axis(axis, x.ndim)), frame)
    index = _plain(indices.value)
    if not frame.owns(x):
        at = _axis(axis, x.ndim) - 1
        out = weft.take(x, index, axis=at)  # the examples stand where the axis was
        order = [at, *range(at), *range(at + 1, out.ndim)]
        return Batched(weft.permute_dims(out, tuple(order)), frame)
    return _take_each(frame, x, index, _axis(axis, x.ndim))


def _take_each(frame, x, index, axis):
    """Positions that differ from example to example, in values that do."""
    n = x.shape[axis - 1]
    inside = weft.all(weft.logical_and(index >= -n, index < n))
    if isinstance(inside, Batched) or not bool(inside):
        raise Unruled  # the loop gives the function's own error
    index = weft.where(index < 0, index + n, index).astype("int64")
    lead = (frame.size, *(1,) * (index.ndim - 1))
    index = index + weft.arange(frame.size, device=index.device).reshape(lead) * n
    order = [0, axis, *(i for i in range(1, x.ndim + 1) if i != axis)]
    rows = x.value.permute(tuple(order))
    rows = rows.reshape((frame.size * n, *rows.shape[2:]))
    out = weft.take(rows, index, axis=0)  # (examples, *index, *rest)
    m = index.ndim
    before = axis - 1
    back = [0, *range(m, m + before), *range(1, m), *range(m + before, out.ndim)]
    return Batched(weft.permute_dims(out, tuple(back)), frame)


def take_along_axis(frame, x, indices, axis=-1, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if x.ndim != indices.ndim:
        raise Unruled
    index = _plain(_rows(frame, indices))
    return Batched(weft.take_along_axis(_rows(frame, x), index, axis=_axis(axis, x.ndim)), frame)


def _gather(frame, x, axis, index):
    return take_along_axis(frame, x, index, axis)


def topk(frame, x, k, axis=-1, largest=True, **kwargs):
    axis = _spelled(kwargs).get("axis", axis)
    if x.ndim == 0 or not 0 <= k <= x.shape[_axis(axis, x.ndim) - 1]:
        raise Unruled
    found = weft.topk(x.value, k, axis=_axis(axis, x.ndim), largest=largest)
    return type(found)(*(Batched(f, frame) for f in found))


def getitem(frame, x, key):
    keys = key if isinstance(key, tuple) else (key,)
    if first_leaf(keys, Batched) is not None:
        index, *rest = keys
        plain = _py.all(isinstance(r, slice) and r == slice(None) for r in rest)
        if not isinstance(index, Batched) or not plain or index.dtype == "bool":
            raise Unruled
        return take(frame, x, index, 0)
    advanced = [
        i for i, k in enumerate(keys) if isinstance(k, (NDArray, Tensor, list)) or hasattr(k, "__array__")
    ]  # fmt: skip
    if advanced:
        block = [i for i, k in enumerate(keys) if i in advanced or isinstance(k, int)]
        if block != list(range(block[0], block[0] + len(block))) or Ellipsis in [
            k for i, k in enumerate(keys) if i not in advanced
        ]:
            raise Unruled
    return Batched(x.value[(slice(None), *keys)], frame)


def _sort_pair(frame, x, dim=-1, descending=False):
    at = weft.argsort(x, axis=dim, descending=descending)
    return take_along_axis(frame, x, at, dim), at


def _own_sort(frame, x, *args, **kwargs):
    if isinstance(x.base(), NDArray):
        raise Unruled
    return _sort_pair(frame, x, *args, **kwargs)


def _late(module, name):
    """A public function by its name: at the time of a call it leaves values of outer vmaps to their rules."""
    return lambda *args, **kwargs: getattr(module, name)(*args, **kwargs)


def _public(module, name):
    function = getattr(module, name)
    return getattr(function, "__weft_public__", function)


def _pooled(f):
    """f of images (n, c, h, w), or (c, h, w) where it takes that: more images."""

    def rule(frame, x, *args, **kwargs):
        if x.ndim != 4 or not frame.owns(x):
            raise Unruled
        rows = x.value
        out = f(rows.reshape((-1, *rows.shape[2:])), *args, **kwargs)
        if not isinstance(out, _array_types):
            raise Unruled
        return Batched(out.reshape((*rows.shape[:2], *out.shape[1:])), frame)

    return rule


def _tables():
    functions = {}

    def add(module, names, rule, *options):
        for name in names.split():
            functions[_public(module, name)] = rule(_late(module, name), *options)

    add(weft, "sum prod max min all any mean var std logsumexp count_nonzero", _reduction)
    add(weft, "argmax argmin", _reduction, True)
    add(weft, "softmax log_softmax sort argsort diff", _along)
    add(weft, "cumulative_sum cumulative_prod", _along, None)
    add(weft, "tril triu", _leading)
    add(weft, "zeros_like ones_like full_like empty_like", _like)
    add(
        linalg,
        "inv det slogdet cholesky eigh eigvalsh qr svd svdvals pinv matrix_rank matrix_power",
        _leading,
    )
    add(linalg, "diagonal trace", _leading)
    add(linalg, "solve", _leading, 2)
    add(F, "conv2d conv_transpose2d", _convolution)
    add(F, "max_pool2d avg_pool2d adaptive_avg_pool2d", _pooled)
    own = dict(
        reshape=reshape, permute_dims=permute, broadcast_to=broadcast_to, expand_dims=expand_dims,
        squeeze=squeeze, flip=flip, roll=roll, moveaxis=moveaxis, concat=concat, stack=stack, unstack=unstack,
        tile=tile, pad=pad, repeat=repeat, where=where, astype=astype, asarray=asarray, matmul=matmul,
        einsum=einsum, vecdot=vecdot, layer_norm=layer_norm, take=take, take_along_axis=take_along_axis,
        topk=topk, matrix_transpose=transpose,
    )  # fmt: skip
    functions |= {_public(weft, name): rule for name, rule in own.items()}
    for name, rule in dict(
        outer=outer, matmul=matmul, vecdot=vecdot, matrix_transpose=transpose
    ).items():
        functions[_public(linalg, name)] = rule
    functions[_public(F, "layer_norm")] = nn_layer_norm
    functions[_public(F, "embedding")] = embedding
    methods = dict(
        reshape=reshape, view=reshape, permute=permute, transpose=_method_transpose, broadcast_to=broadcast_to,
        squeeze=squeeze, unsqueeze=expand_dims, flip=flip, roll=roll, moveaxis=moveaxis, flatten=_flatten,
        concat=lambda frame, x, arrays, axis=0: concat(frame, arrays, axis), astype=astype, to=_move,
        where=lambda frame, x, condition, other: where(frame, condition, x, other), matmul=matmul, mm=matmul,
        bmm=matmul, take_along_axis=take_along_axis, gather=_gather, topk=topk, sort=_own_sort, layer_norm=layer_norm,
        pad=pad, matrix_transpose=transpose, contiguous=lambda frame, x: x, copy=lambda frame, x: x,
        clone=lambda frame, x: x,
    )  # fmt: skip
    for name in "sum prod max min all any mean logsumexp softmax log_softmax argmax argmin".split():
        methods[name] = functions[_public(weft, name)]
    return functions, methods


rules.functions, rules.methods = _tables()
rules.getitem, rules.matmul, rules.transpose = getitem, matmul, transpose
