# SPDX-License-Identifier: Apache-2.0
"""Products with weights of 8 or 4 bits and a scale for each group of inputs, and with one weight for each group of rows.

A weight is (inputs, outputs), as in weft.nn.Linear. Its inputs are cut into groups of `group_size`; each group has one
scale for each output. 8 bits: int8. 4 bits: uint8 (inputs / 2, outputs); in the bytes of a group the low halves are
its first half, the high halves its second, each 0 to 15 for -8 to 7.
"""

from __future__ import annotations

import functools

import weft

from .._core import shown as _shown
from .. import te
from . import _quantized_card
from .. import _core
from .._core import NDArray, Tensor
from .._errors import error as _error

__all__ = [
    "dequantize_weight",
    "grouped_linear",
    "quantize_weight",
    "quantized_linear",
    "scaled_mm",
]

_FEW_ROWS = 8  # from here on the weight is made float once and used for all rows
_LANES, _TILE, _STEPS = 16, 8192, 4


def _plain(x):
    return x.data if isinstance(x, Tensor) else weft.asarray(x)


def _float32(x):
    """astype copies an array that has the type already."""
    return x if x.dtype == weft.float32 else x.astype(weft.float32)


def _check_bits(name, bits):
    if bits not in (4, 8) or isinstance(bits, bool):
        raise _error(
            weft.ArgumentError,
            "nn.quantized.bits",
            f"{name} got bits = {_shown(bits)}",
            ["legal: 4 or 8"],
        )


def _check_weight(name, weight, scales, zeros, bits):
    """(inputs, outputs, size of a group) of a quantized weight."""
    _check_bits(name, bits)
    want = weft.int8 if bits == 8 else weft.uint8
    if weight.dtype != want or weight.ndim != 2:
        raise _error(
            weft.DTypeError,
            "nn.quantized.weight",
            f"{name} of {bits} bits got a weight {weight.dtype} of shape {weight.shape}",
            [f"legal: {want} with two axes, as quantize_weight makes it"],
        )
    inputs = weight.shape[0] * (8 // bits)
    fits = scales.ndim == 2 and scales.shape[1] == weight.shape[1] and scales.shape[0] > 0
    size = inputs // scales.shape[0] if fits else 0
    if not fits or size == 0 or size * scales.shape[0] != inputs or size * bits % 8:
        raise _error(
            weft.ShapeError,
            "nn.quantized.scales",
            f"{name}: scales of shape {scales.shape} for {inputs} inputs and {weight.shape[1]} outputs",
            ["rule: (groups, outputs), groups of equal whole size; of even size for 4 bits"],
        )
    if zeros is not None and zeros.shape != scales.shape:
        raise _error(
            weft.ShapeError,
            "nn.quantized.zeros",
            f"{name}: zeros of shape {zeros.shape} for scales of shape {scales.shape}",
            ["rule: one zero for each scale"],
        )
    return inputs, weight.shape[1], size


def quantize_weight(weight, bits=8, group_size=32):
    """(packed, scales) of a float weight (inputs, outputs): each group of `group_size` inputs of an output is divided by
    its scale, largest magnitude / 127 (/ 7 for 4 bits), and rounded to the nearest even. A group of zeros has scale 0.

    Raises ArgumentError nn.quantized.bits, ShapeError nn.quantized.group (the size does not divide the inputs, or is
    odd with 4 bits), DTypeError nn.quantized.weight (no float weight of two axes)."""
    _check_bits("quantize_weight", bits)
    weight = _plain(weight)
    if weight.ndim != 2 or weight.dtype not in (
        weft.float16,
        weft.bfloat16,
        weft.float32,
        weft.float64,
    ):
        raise _error(
            weft.DTypeError,
            "nn.quantized.weight",
            f"quantize_weight got a weight {weight.dtype} of shape {weight.shape}",
            ["legal: real floats with two axes (inputs, outputs)"],
        )
    inputs, outputs = weight.shape
    whole = isinstance(group_size, int) and group_size > 0
    if not whole or inputs == 0 or inputs % group_size or group_size * bits % 8:
        raise _error(
            weft.ShapeError,
            "nn.quantized.group",
            f"quantize_weight of {inputs} inputs by groups of {_shown(group_size)}",
            ["rule: a whole number that divides the inputs; even for 4 bits"],
        )
    most = 127.0 if bits == 8 else 7.0
    groups = weight.astype(weft.float32).reshape((inputs // group_size, group_size, outputs))
    scales = weft.max(weft.abs(groups), axis=1) / most
    safe = weft.where(scales == 0.0, 1.0, scales)
    steps = weft.clip(weft.round(groups / safe.reshape((-1, 1, outputs))), -most, most)
    if bits == 8:
        return steps.astype(weft.int8).reshape((inputs, outputs)), scales
    halves = (steps + 8.0).astype(weft.uint8)
    low, high = halves[:, : group_size // 2], halves[:, group_size // 2 :]
    return (low + high * 16).astype(weft.uint8).reshape((inputs // 2, outputs)), scales


def _dequantized(weight, scales, zeros, bits, size):
    outputs = weight.shape[1]
    if bits == 8:
        steps = weight.astype(weft.float32).reshape((-1, size, outputs))
    else:
        pairs = weight.reshape((-1, size // 2, outputs))
        high = pairs // 16
        steps = weft.concat([pairs - high * 16, high], axis=1).astype(weft.float32) - 8.0
    if zeros is not None:
        steps = steps - zeros.reshape((-1, 1, outputs))
    return (steps * scales.reshape((-1, 1, outputs))).reshape((-1, outputs))


def dequantize_weight(weight, scales, zeros=None, bits=8):
    """The float32 weight (inputs, outputs) that a quantized one stands for: (weight - zeros) * scales by groups.

    Raises as quantized_linear does for its weight."""
    weight, scales = _plain(weight), _plain(scales).astype(weft.float32)
    zeros = None if zeros is None else _plain(zeros).astype(weft.float32)
    _, _, size = _check_weight("dequantize_weight", weight, scales, zeros, bits)
    return _constant_weight(weight, scales, zeros, bits, size, weft.float32)


@functools.lru_cache(maxsize=256)
def _kernel(rows, inputs, outputs, size, bits, has_zeros, has_bias, threads):
    """The host's program for few rows: the products of one group in registers and the first cache, the scale once a group."""
    groups, per = inputs // size, 8 // bits
    x = te.placeholder((rows, inputs), "float32", name="x")
    w = te.placeholder((inputs // per, outputs), "int8" if bits == 8 else "uint8", name="w")
    s = te.placeholder((groups, outputs), "float32", name="scales")
    z = te.placeholder((groups, outputs), "float32", name="zeros")
    b = te.placeholder((outputs,), "float32", name="bias")
    r = te.reduce_axis((0, size // per), name="r")

    def value(step, g, j):
        step = te.cast("float32", step) if bits == 8 else te.cast("float32", step) - 8.0
        return step - z[g, j] if has_zeros else step

    def terms(i, g, j):
        if bits == 8:
            return x[i, g * size + r] * value(w[g * size + r, j], g, j)
        byte = te.cast("int32", w[g * (size // 2) + r, j])
        first = x[i, g * size + r] * value(byte % 16, g, j)
        return first + x[i, g * size + size // 2 + r] * value(byte // 16, g, j)

    part = te.compute(
        (rows, groups, outputs), lambda i, g, j: te.sum(terms(i, g, j), axis=r), name="part"
    )
    k = te.reduce_axis((0, groups), name="k")
    y = te.compute((rows, outputs), lambda i, j: te.sum(part[i, k, j] * s[k, j], axis=k), name="y")
    inputs_of = [x, w, s, *([z] if has_zeros else []), *([b] if has_bias else [])]
    if has_bias:
        out = te.compute((rows, outputs), lambda i, j: y[i, j] + b[j], name="out")
        sch = weft.Schedule(te.create_prim_func([*inputs_of, out]))
        sch.fuse_reduction_epilogue(sch.get_block("y"), sch.get_block("out"))
    else:
        sch = weft.Schedule(te.create_prim_func([*inputs_of, y]))
    _schedule(sch, min(_TILE, -(-outputs // (threads * _LANES)) * _LANES))
    return weft.build(sch, target="cpu", tuned=False)


def _schedule(sch, tile):
    whole, part = sch.get_block("y"), sch.get_block("part")
    i, j, k = sch.get_loops(whole)
    across, inside = sch.split(j, [None, tile])
    sch.reorder(across, k, i, inside)
    sch.compute_at(part, i, preserve_unit_loops=True)
    sch.set_scope(part, 0, "local")
    *_, j, r = sch.get_loops(part)
    outer, lanes = sch.split(j, [None, _LANES])
    long, short = sch.split(r, [None, _STEPS])
    sch.reorder(long, outer, short, lanes)
    start = sch.decompose_reduction(part, long)
    begin = sch.decompose_reduction(whole, k)
    sch.vectorize(lanes)
    sch.unroll(short)
    sch.vectorize(sch.get_loops(start)[-1])
    for block in (whole, begin):
        _, last = sch.split(sch.get_loops(block)[-1], [None, _LANES])
        sch.vectorize(last)
    sch.parallel(across)


def _on_host(x, *others):
    return all(str(a.device) == "cpu" for a in (x, *others) if a is not None)


def quantized_linear(x, weight, scales, zeros=None, bias=None, bits=8):
    """x (..., inputs) @ the weight that `weight`, `scales` and `zeros` stand for, + bias: (..., outputs), of x's type.

    weight: int8 (inputs, outputs), or with bits=4 uint8 (inputs / 2, outputs), as quantize_weight makes them; scales
    and zeros: (groups, outputs); products are summed in float32. Gradients reach x, scales, zeros and bias. Fewer than 8
    rows read the packed weight once; otherwise it is made float first: of x's type where that has 16 bits, else float32.

    Raises DTypeError nn.quantized.weight, ArgumentError nn.quantized.bits, ShapeError nn.quantized.scales,
    nn.quantized.zeros, nn.quantized.inputs (x, bias)."""
    known = _known_call(x, weight, scales, zeros, bias, bits)
    if known is not None:
        return known
    tensors = [a for a in (x, scales, zeros, bias) if isinstance(a, Tensor)]
    packed = _plain(weight)
    size_of = lambda a: (
        None if a is None else (a if isinstance(a, (Tensor, NDArray)) else weft.asarray(a))
    )  # noqa: E731
    x, scales, zeros, bias = map(size_of, (x, scales, zeros, bias))
    inputs, outputs, size = _check_weight("quantized_linear", packed, scales, zeros, bits)
    if x.ndim == 0 or x.shape[-1] != inputs or (bias is not None and bias.shape != (outputs,)):
        raise _error(
            weft.ShapeError,
            "nn.quantized.inputs",
            f"quantized_linear: x {x.shape}"
            + ("" if bias is None else f", bias {bias.shape}")
            + f" for {inputs} inputs and {outputs} outputs",
            ["rule: x (..., inputs), bias (outputs,)"],
        )
    rows = 1
    for n in x.shape[:-1]:
        rows *= n
    plain = not any(t.requires_grad for t in tensors)
    if plain and 0 < rows < _FEW_ROWS and outputs > 0:
        arrays = [None if a is None else _plain(a) for a in (x, packed, scales, zeros, bias)]
        if _on_host(*arrays):
            return _few_rows(arrays, rows, inputs, outputs, size, bits, x.shape[:-1], bool(tensors))
        out = _few_rows_of_card(arrays, rows, inputs, outputs, size, bits)
        if out is not None:
            out = out.reshape((*x.shape[:-1], outputs))
            return Tensor(out, requires_grad=False) if tensors else out
    return _composed(x, packed, scales, zeros, bias, bits, size, tensors)


def _compact(a):
    return a if a.is_contiguous() else a.copy()


def _few_rows(arrays, rows, inputs, outputs, size, bits, lead, as_tensor):
    x, packed, scales, zeros, bias = arrays
    call = _kernel(
        rows, inputs, outputs, size, bits, zeros is not None, bias is not None, weft.get_threads()
    )
    floats = [_compact(a.astype(weft.float32)) for a in (scales, zeros, bias) if a is not None]
    out = weft.empty((rows, outputs), dtype=weft.float32)
    x_rows = _compact(x.astype(weft.float32).reshape((rows, inputs)))
    call(x_rows, _compact(packed), *floats, out)
    out = out.reshape((*lead, outputs)).astype(x.dtype)
    return Tensor(out, requires_grad=False) if as_tensor else out


_MOST_KNOWN = 1024
_known = {}  # of cards, whose kernel takes less time than looking at arguments: what was made for such


def _key_of(arrays, bits):
    """Types, places and shapes of arrays; None where some are missing or not compact."""
    key = [bits]
    for a in arrays:
        if not isinstance(a, NDArray) or not a.is_contiguous():
            return None
        key += (a.shape, a.dtype, a.device.name)
    return tuple(key)


def _known_call(x, weight, scales, zeros, bias, bits):
    """The result by the kernel of an equal call before, or None: x and scales compact, no zeros, no bias, no gradients."""
    if not _known or zeros is not None or bias is not None:
        return None
    tensor = isinstance(x, Tensor)
    if tensor:
        if x.requires_grad:
            return None
        x = x.data
    found = _known.get(_key_of((x, weight, scales), bits))
    if found is None:
        return None
    call, shape = found
    out = _by_kernel(call, x, weight, [scales], shape[-1]).reshape(shape)
    return Tensor(out, requires_grad=False) if tensor else out


def _by_kernel(call, x, weight, floats, outputs):
    """(rows, outputs) by a card's kernel: of compact x and weight, float32 scales, zeros and bias."""
    inputs = x.shape[-1]
    rows = x.size // inputs
    out = weft.empty((rows, outputs), dtype=x.dtype, device=x.device)
    words = _core._as_words(weight)
    call(x.reshape((rows, inputs)), words, *floats, out, _quantized_card.EXPONENT)
    return out


def _few_rows_of_card(arrays, rows, inputs, outputs, size, bits):
    """None where arrays lie on several devices, or on one without a grid, or sizes do not fit."""
    x, packed, scales, zeros, bias = arrays
    device = packed.device
    most = device.limits.get("threads_per_block", 0)
    if not most or any(a is not None and a.device != device for a in arrays):
        return None
    names = ("float32", "float16", "bfloat16")
    x = x if str(x.dtype) in names else x.astype(weft.float32)
    call = _quantized_card.kernel(
        str(device),
        most,
        (rows, inputs, outputs, size, bits),
        str(x.dtype),
        zeros is not None,
        bias is not None,
    )
    if call is None:
        return None
    if zeros is None and bias is None and scales.dtype == weft.float32 and x is arrays[0]:
        key = _key_of((x, packed, scales), bits)
        if key is not None:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = call, (*x.shape[:-1], outputs)
    floats = [_compact(_float32(a)) for a in (scales, zeros, bias) if a is not None]
    out = _by_kernel(call, _compact(x), packed, floats, outputs)
    return out if out.dtype == arrays[0].dtype else out.astype(arrays[0].dtype)


def _constant_weight(packed, scales, zeros, bits, size, dtype):
    """The float weight of the given type."""
    device, outputs = packed.device, packed.shape[1]
    if not device.limits.get("threads_per_block", 0):
        return _dequantized(packed, scales, zeros, bits, size).astype(dtype)
    floats = [_compact(a) for a in (scales, zeros) if a is not None]
    inputs = packed.shape[0] * (8 // bits)
    out = weft.empty((inputs, outputs), dtype=dtype, device=device)
    sizes = (inputs, outputs, size, bits)
    call = _quantized_card.dequantizer(str(device), sizes, str(dtype), zeros is not None)
    call(_compact(packed), *floats, out)
    return out


def _composed(x, packed, scales, zeros, bias, bits, size, tensors):
    """16-bit x is multiplied by a weight of its type, others by a float32 one."""
    dtype = x.dtype
    of_product = dtype if dtype in (weft.float16, weft.bfloat16) else weft.float32
    if any(isinstance(a, Tensor) and a.requires_grad for a in (scales, zeros)):
        x, scales, zeros, bias = (
            a if a is None or isinstance(a, Tensor) else Tensor(a, requires_grad=False)
            for a in (x, scales, zeros, bias)
        )
        outputs = packed.shape[1]
        unit = weft.ones((1, 1), dtype=weft.float32, device=packed.device)
        steps = _dequantized(packed, unit.broadcast_to(scales.shape), None, bits, size)
        steps = Tensor(steps.reshape((-1, size, outputs)), requires_grad=False)
        if zeros is not None:
            steps = steps - zeros.astype(weft.float32).reshape((-1, 1, outputs))
        weight = (steps * scales.astype(weft.float32).reshape((-1, 1, outputs))).reshape(
            (-1, outputs)
        )
        weight = weight.astype(of_product)
    else:
        floats = [a if a is None else _float32(_plain(a)) for a in (scales, zeros)]
        weight = _constant_weight(packed, *floats, bits, size, of_product)
        if tensors:
            weight = Tensor(weight, requires_grad=False)
            x = x if isinstance(x, Tensor) else Tensor(x, requires_grad=False)
    y = x.astype(of_product) @ weight
    y = y if bias is None else y.astype(weft.float32) + bias.astype(weft.float32)
    return y.astype(dtype)


def grouped_linear(x, weights, counts, bias=None):
    """Products of groups of rows with weights of their own: the first counts[0] rows of x (rows, inputs) with
    weights[0], the next counts[1] with weights[1], and so on (the experts of a mixture, after sorting by expert).

    weights: (groups, inputs, outputs); counts: whole numbers that add up to the rows, a list or an array; bias:
    (groups, outputs). Returns (rows, outputs). Raises ShapeError nn.grouped_linear.shape, ArgumentError
    nn.grouped_linear.counts."""
    counts = [int(n) for n in (counts.tolist() if hasattr(counts, "tolist") else counts)]
    if x.ndim != 2 or weights.ndim != 3 or x.shape[1] != weights.shape[1]:
        raise _error(
            weft.ShapeError,
            "nn.grouped_linear.shape",
            f"grouped_linear of rows {x.shape} and weights {weights.shape}",
            ["rule: (rows, inputs) and (groups, inputs, outputs)"],
        )
    if bias is not None and bias.shape != (weights.shape[0], weights.shape[2]):
        raise _error(
            weft.ShapeError,
            "nn.grouped_linear.shape",
            f"grouped_linear: bias {bias.shape} for weights {weights.shape}",
            ["rule: (groups, outputs)"],
        )
    if len(counts) != weights.shape[0] or any(n < 0 for n in counts) or sum(counts) != x.shape[0]:
        raise _error(
            weft.ArgumentError,
            "nn.grouped_linear.counts",
            f"grouped_linear: counts {counts} for {weights.shape[0]} groups and {x.shape[0]} rows",
            ["rule: one count of at least 0 for each group; together the rows"],
        )
    parts, at = [], 0
    for group, n in enumerate(counts):
        if n == 0:
            continue
        part = x[at : at + n] @ weights[group]
        parts.append(part if bias is None else part + bias[group])
        at += n
    if not parts:
        return x @ weights[0] if counts else x[:, : weights.shape[2]]
    return weft.concat(parts, axis=0) if len(parts) > 1 else parts[0]


def _blocked(scale, shape, axis):
    """Is the scale one for each block: (rows of blocks, columns of blocks), blocks of 128 along the sum?"""
    return (
        scale is not None
        and scale.ndim == 2
        and scale.size > 1
        and scale.shape[axis] > 1
        and scale.shape[axis] == -(-shape[axis] // 128)
    )


def _expanded(scale, shape):
    """A scale for each element: blocks repeated, the last ones cut."""
    for axis, extent in enumerate(shape):
        each = -(-extent // scale.shape[axis])
        each = 128 if each > 1 and scale.shape[axis] > 1 else each
        scale = weft.repeat(scale, each, axis=axis)
        scale = scale[:extent] if axis == 0 else scale[:, :extent]
    return scale


def scaled_mm(a, b, scale_a=None, scale_b=None, bias=None, dtype="bfloat16"):
    """(a @ b) * scale_a * scale_b + bias of float8 matrices (m, k) and (k, n): sums in float32, rounded once to `dtype`.

    Scales are float32: one number, (m,) or (m, 1) for the rows of a and (n,) or (1, n) for the columns of b. A scale with
    one number for each 128 elements along k belongs to blocks: (m or m / 128, k / 128) for a, (k / 128, n or n / 128) for
    b; such operands are multiplied as float32. bias: (n,), float32.

    On tensor cores with float8 a is read in rows along k and b in columns along k; other orders are copied first. The
    result has no gradient. Raises DTypeError array.scaled_matmul.dtype, ShapeError array.scaled_matmul.shape and
    array.scaled_matmul.scale."""
    a, b = _plain(a), _plain(b)
    wide = [None if x is None else _float32(_plain(x)) for x in (scale_a, scale_b, bias)]
    name = getattr(dtype, "name", dtype)
    scales = wide[:2]
    blocks = a.ndim == 2 and b.ndim == 2
    blocks = [blocks and _blocked(s, x.shape, axis) for s, x, axis in zip(scales, (a, b), (1, 0))]
    if any(blocks):
        values = [x.astype(weft.float32) for x in (a, b)]
        for i, x in enumerate(values):
            if blocks[i]:
                values[i], scales[i] = x * _expanded(scales[i], x.shape), None
        out = values[0] @ values[1]
        for i, s in enumerate(scales):
            if s is not None:
                out = out * (s if s.size == 1 else s.reshape((-1, 1) if i == 0 else (1, -1)))
        return (out if wide[2] is None else out + wide[2]).astype(name)
    return weft._core._scaled_matmul(a, b, *scales, wide[2], name)
