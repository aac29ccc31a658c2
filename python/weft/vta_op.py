# SPDX-License-Identifier: Apache-2.0
"""Integer operators as tensor expressions: int8 in, int32 sums, an epilogue, int8 (or int32) out.

Every function returns a PrimFunc named "main" whose last parameter is the result. They are declarations only; nothing
in them names a machine, so the same function builds for "ref", "cpu" or any VTA configuration.
"""

from __future__ import annotations

from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any as _Any

from . import _core, te
from ._boundary import publish as _publish
from .ir import PrimFunc


def maximum(a: _Any, b: _Any) -> _Any:
    """The larger of two expressions."""
    return _core.expr_minmax(True, a, b)


def minimum(a: _Any, b: _Any) -> _Any:
    """The smaller of two expressions."""
    return _core.expr_minmax(False, a, b)


def _epilogue(
    total,
    shape,
    bias,
    bias_index,
    shift,
    relu,
    clip,
    dtype,
    residual=None,
    shifts=None,
    residual_shift=0,
    residual_factor=1,
):
    """>> shift, + bias, + residual, max 0, clip, cast: those that are asked for. With `shifts`, one for each channel:
    + bias, >> shifts, + residual * residual_factor >> residual_shift, rounded, ..."""
    steps = [total]
    if isinstance(total, _Channels) and dtype == "int32" and not (shift or relu):
        if bias is None and residual is None and clip is None:
            return te.compute(shape, lambda *i: total[i], name="result")

    def step(name, f):
        last = steps[-1]
        steps.append(te.compute(shape, lambda *i: f(last[i], i), name=name))

    if shift:
        step("shifted", lambda v, i: v >> shift)
    if bias is not None:
        step("biased", lambda v, i: v + bias[bias_index(i)])
    if shifts is not None:
        step("scaled", lambda v, i: v >> shifts[bias_index(i)])
    if residual is not None and residual_shift:
        half = 1 << (residual_shift - 1)

        def added(v, i):
            r = residual[i].astype("int32") * residual_factor
            return v + ((r + half) >> residual_shift)

        step("added", added)
    elif residual is not None:
        step("added", lambda v, i: v + residual[i].astype("int32"))
    if relu:
        step("relu", lambda v, i: maximum(v, te.const(0, "int32")))
    if clip is not None:
        low, high = clip
        step(
            "clipped",
            lambda v, i: maximum(minimum(v, te.const(high, "int32")), te.const(low, "int32")),
        )
    if dtype != "int32":
        step("result", lambda v, i: v.astype(dtype))
    return steps[-1]


def matmul(
    m: int,
    n: int,
    k: int,
    bias: bool = False,
    shift: int = 0,
    relu: bool = False,
    clip: tuple[int, int] | None = None,
    dtype: str = "int8",
    transposed: bool = False,
    batch: int | None = None,
    shifts: bool = False,
) -> PrimFunc:
    """C[m, n] = epilogue(A[m, k] . B[k, n]); transposed: B[n, k]. bias: int32[n]. batch: a leading extent. shifts:
    int32[n], after the bias, in place of `shift`."""
    lead = () if batch is None else (batch,)
    a = te.placeholder((*lead, m, k), "int8", name="A")
    b = te.placeholder((*lead, n, k) if transposed else (*lead, k, n), "int8", name="B")
    bias = te.placeholder((n,), "int32", name="bias") if bias else None
    r = te.reduce_axis((0, k), name="k")

    def element(*i):
        front, (y, x) = i[:-2], i[-2:]
        w = b[(*front, x, r)] if transposed else b[(*front, r, x)]
        return te.sum(a[(*front, y, r)].astype("int32") * w.astype("int32"), axis=r)

    shape = (*lead, m, n)
    total = te.compute(shape, element, name="total")
    s = te.placeholder((n,), "int32", name="shifts") if shifts else None
    out = _epilogue(total, shape, bias, lambda i: i[-1], shift, relu, clip, dtype, shifts=s)
    return te.create_prim_func([t for t in (a, b, bias, s, out) if t is not None])


def dense(batch: int, inputs: int, outputs: int, **options: _Any) -> PrimFunc:
    """Y[batch, outputs] = epilogue(X[batch, inputs] . W[outputs, inputs])."""
    return matmul(batch, outputs, inputs, transposed=True, **options)


def conv2d(
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: int | tuple[int, int],
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    dilation: int = 1,
    bias: bool = False,
    residual: bool = False,
    shift: int = 0,
    relu: bool = False,
    clip: tuple[int, int] | None = None,
    dtype: str = "int8",
    layout: str = "NCHW",
    block: int = 16,
    shifts: bool = False,
    residual_shift: int = 0,
    residual_factor: int = 1,
) -> PrimFunc:
    """Y = epilogue(conv2d(X[n, ci, h, w], W[co, ci / groups, kernel, kernel])); layout "NHWC": X[n, h, w, ci] and
    W[kernel, kernel, ci / groups, co]. bias: int32[co]; residual: int8 of the result's shape. shifts: int32[co], after
    the bias, in place of `shift`; the residual is then multiplied by residual_factor and shifted by residual_shift, rounded.

    Depthwise (groups == ci == co): `block` channels (env.BLOCK_IN, where they divide ci) are multiplied at a time by
    a diagonal matrix, which the host makes of the weights; 1: channel by channel."""
    kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    oh = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    ow = (w + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    nchw = layout == "NCHW"
    x = te.placeholder((n, ci, h, w) if nchw else (n, h, w, ci), "int8", name="X")
    weights = te.placeholder(
        (co, ci // groups, kh, kw) if nchw else (kh, kw, ci // groups, co), "int8", name="W"
    )
    source = x

    def finish(total):
        b = te.placeholder((co,), "int32", name="bias") if bias else None
        s = te.placeholder((co,), "int32", name="shifts") if shifts else None
        r = te.placeholder(shape, "int8", name="residual") if residual else None
        channel = (lambda i: i[1]) if nchw else (lambda i: i[3])
        out = _epilogue(
            total,
            shape,
            b,
            channel,
            shift,
            relu,
            clip,
            dtype,
            r,
            s,
            residual_shift,
            residual_factor,
        )
        return te.create_prim_func([t for t in (x, weights, b, s, r, out) if t is not None])

    if pad:
        zero = te.const(0, "int8")

        def padded(*i):
            y, z = (i[2], i[3]) if nchw else (i[1], i[2])
            inside = (y >= pad) & (y < h + pad) & (z >= pad) & (z < w + pad)
            at = (i[0], i[1], y - pad, z - pad) if nchw else (i[0], y - pad, z - pad, i[3])
            return te.if_then_else(inside, x[at], zero)

        big = (h + 2 * pad, w + 2 * pad)
        source = te.compute((n, ci, *big) if nchw else (n, *big, ci), padded, name="padded")
    c, p, q = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((ci // groups, "c"), (kh, "p"), (kw, "q"))
    )
    shape = (n, co, oh, ow) if nchw else (n, oh, ow, co)
    if groups == ci == co and block > 1 and ci % block == 0:
        total = _depthwise(source, weights, shape, (kh, kw), stride, dilation, nchw, block)
        return finish(total)

    def element(*i):
        b, o, y, z = i if nchw else (i[0], i[3], i[1], i[2])
        channel = c if groups == 1 else (o // (co // groups)) * (ci // groups) + c
        at = (y * stride + p * dilation, z * stride + q * dilation)
        value = source[(b, channel, *at) if nchw else (b, *at, channel)]
        weight = weights[(o, c, p, q) if nchw else (p, q, c, o)]
        return te.sum(value.astype("int32") * weight.astype("int32"), axis=[c, p, q])

    return finish(te.compute(shape, element, name="conv"))


class _Channels:
    """A sum over [.., channels / block, block, ..] read as [.., channels, ..]."""

    def __init__(self, total, axis, block):
        self._total, self._axis, self._block = total, axis, block

    def __getitem__(self, i):
        c = i[self._axis]
        at = (c // self._block, c % self._block)
        return self._total[(*i[: self._axis], *at, *i[self._axis + 1 :])]


def _depthwise(source, weights, shape, kernel, stride, dilation, nchw, block):
    axis = 1 if nchw else 3
    zero = te.const(0, "int8")

    def diagonal(g, o, i, p, q):
        c = g * block + o
        return te.if_then_else(o == i, weights[(c, 0, p, q) if nchw else (p, q, 0, c)], zero)

    wide = te.compute((shape[axis] // block, block, block, *kernel), diagonal, name="diagonal")
    k, p, q = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((block, "c"), (kernel[0], "p"), (kernel[1], "q"))
    )

    def element(*i):
        b, g, o, y, z = i if nchw else (i[0], i[3], i[4], i[1], i[2])
        at = (y * stride + p * dilation, z * stride + q * dilation)
        c = g * block + k
        value = source[(b, c, *at) if nchw else (b, *at, c)]
        return te.sum(value.astype("int32") * wide[g, o, k, p, q].astype("int32"), axis=[k, p, q])

    split = (*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :])
    return _Channels(te.compute(split, element, name="conv"), axis, block)


def conv2d_transpose(
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: int | tuple[int, int],
    stride: int = 1,
    pad: int = 0,
    shift: int = 0,
    relu: bool = False,
    clip: tuple[int, int] | None = None,
    dtype: str = "int8",
) -> PrimFunc:
    """Y[n, co, (h - 1) stride - 2 pad + kernel, ...]: the gradient of conv2d with W[ci, co, kernel, kernel]."""
    x = te.placeholder((n, ci, h, w), "int8", name="X")
    weights = te.placeholder((ci, co, kernel, kernel), "int8", name="W")
    oh, ow = ((e - 1) * stride - 2 * pad + kernel for e in (h, w))
    edge = kernel - 1 - pad
    zero = te.const(0, "int8")
    big = ((h - 1) * stride + 1, (w - 1) * stride + 1)
    spread = x
    if stride > 1:
        spread = te.compute(
            (n, ci, *big),
            lambda b, c, y, z: te.if_then_else(
                (y % stride == 0) & (z % stride == 0), x[b, c, y // stride, z // stride], zero
            ),
            name="spread",
        )
    framed = spread
    if edge:
        framed = te.compute(
            (n, ci, big[0] + 2 * edge, big[1] + 2 * edge),
            lambda b, c, y, z: te.if_then_else(
                (y >= edge) & (y < big[0] + edge) & (z >= edge) & (z < big[1] + edge),
                spread[b, c, y - edge, z - edge],
                zero,
            ),
            name="framed",
        )
    c, p, q = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((ci, "c"), (kernel, "p"), (kernel, "q"))
    )
    shape = (n, co, oh, ow)
    total = te.compute(
        shape,
        lambda b, o, y, z: te.sum(
            framed[b, c, y + p, z + q].astype("int32")
            * weights[c, o, kernel - 1 - p, kernel - 1 - q].astype("int32"),
            axis=[c, p, q],
        ),
        name="conv",
    )
    out = _epilogue(total, shape, None, None, shift, relu, clip, dtype)
    return te.create_prim_func([x, weights, out])


def conv2d_packed(
    env: _Any,
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: int | tuple[int, int],
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    bias: bool = False,
    residual: bool = False,
    shift: int = 0,
    relu: bool = False,
    clip: tuple[int, int] | None = None,
    dtype: str = "int8",
) -> PrimFunc:
    """conv2d over the machine's own layouts: X[n / B, ci / bi, h, w, B, bi], W[co / bo, ci / groups / bi, k, k, bo, bi],
    bias int32[co / bo, B, bo], residual and result [n / B, co / bo, oh, ow, B, bo]. Channels of a group are whole
    blocks."""
    B, bi, bo = env.BATCH, env.BLOCK_IN, env.BLOCK_OUT
    nb, cb, ob = -(-n // B), ci // bi, co // bo
    gi, go = cb // groups, ob // groups
    if cb * bi != ci or ob * bo != co or gi * groups != cb or go * groups != ob:
        raise ValueError(
            f"{ci} and {co} channels in {groups} groups are no whole blocks of {bi} and {bo}"
        )
    oh, ow = ((e + 2 * pad - kernel) // stride + 1 for e in (h, w))
    x = te.placeholder((nb, cb, h, w, B, bi), env.inp_dtype, name="X")
    weights = te.placeholder((ob, gi, kernel, kernel, bo, bi), env.wgt_dtype, name="W")
    source = x
    if pad:
        source = te.compute(
            (nb, cb, h + 2 * pad, w + 2 * pad, B, bi),
            lambda b, c, y, z, l, k: te.if_then_else(
                (y >= pad) & (y < h + pad) & (z >= pad) & (z < w + pad),
                x[b, c, y - pad, z - pad, l, k],
                te.const(0, env.inp_dtype),
            ),
            name="padded",
        )
    c, p, q, k = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((gi, "c"), (kernel, "p"), (kernel, "q"), (bi, "k"))
    )
    shape = (nb, ob, oh, ow, B, bo)

    def element(b, o, y, z, l, m):
        channel = c if groups == 1 else (o // go) * gi + c
        value = source[b, channel, y * stride + p, z * stride + q, l, k]
        return te.sum(
            value.astype(env.acc_dtype) * weights[o, c, p, q, m, k].astype(env.acc_dtype),
            axis=[c, p, q, k],
        )

    total = te.compute(shape, element, name="conv")
    b = te.placeholder((ob, B, bo), "int32", name="bias") if bias else None
    r = te.placeholder(shape, "int8", name="residual") if residual else None
    out = _epilogue(total, shape, b, lambda i: (i[1], i[4], i[5]), shift, relu, clip, dtype, r)
    return te.create_prim_func([t for t in (x, weights, b, r, out) if t is not None])


def framed(x: _Any, pad: int, value: int) -> _Any:
    """The images x[n, c, h, w], int8, with `pad` rows and columns of a value on each side; x for none."""
    if not pad:
        return x
    n, c, h, w = x.shape
    return te.compute(
        (n, c, h + 2 * pad, w + 2 * pad),
        lambda b, o, y, z: te.if_then_else(
            (y >= pad) & (y < h + pad) & (z >= pad) & (z < w + pad),
            x[b, o, y - pad, z - pad],
            te.const(value, "int8"),
        ),
        name="padded",
    )


def concatenated(
    shapes: _Sequence[tuple[int, ...]], f: _Callable[..., _Any], dtype: str = "int8"
) -> PrimFunc:
    """Y = images X0, X1, ... of the shapes (n, c, h, w), int8, channels side by side. `f` gets the images' elements as int32
    expressions; all but one of them are 0, since the channel belongs to one image."""
    xs = [te.placeholder(s, "int8", name=f"X{k}") for k, s in enumerate(shapes)]
    n, _, h, w = shapes[0]
    ends = [sum(s[1] for s in shapes[: k + 1]) for k in range(len(shapes))]

    wide = (n, ends[-1], h, w)

    def part(x, first, end):
        """The image among zeros: a copy of the host."""

        def element(b, o, y, z):
            inside = [o >= first] * (first > 0) + [o < end] * (end < ends[-1])
            return te.if_then_else(te.all(*inside), x[b, o - first, y, z], te.const(0, "int8"))

        return te.compute(wide, element, name=f"part_{x.name}")

    parts = [part(*p) for p in zip(xs, [0, *ends], ends)] if len(xs) > 1 else xs
    out = te.compute(
        wide, lambda *i: f([p[i].astype("int32") for p in parts]).astype(dtype), name="joined"
    )
    return te.create_prim_func([*xs, out])


def max_pool2d(
    n: int, c: int, h: int, w: int, kernel: int | tuple[int, int], stride: int, pad: int = 0
) -> PrimFunc:
    """Y = largest of each window of X[n, c, h, w], int8; outside the image counts as -128."""
    x = te.placeholder((n, c, h, w), "int8", name="X")
    oh, ow = ((e + 2 * pad - kernel) // stride + 1 for e in (h, w))
    source = framed(x, pad, -128)
    p, q = (te.reduce_axis((0, kernel), name=name) for name in "pq")
    out = te.compute(
        (n, c, oh, ow),
        lambda b, o, y, z: te.max(source[b, o, y * stride + p, z * stride + q], axis=[p, q]),
        name="pooled",
    )
    return te.create_prim_func([x, out])


def global_sum_pool(
    n: int, c: int, h: int, w: int, shift: int, factor: int = 1, dtype: str = "int8"
) -> PrimFunc:
    """Y[n, c] = (sum of X[n, c, h, w] over the image) * factor >> shift."""
    x = te.placeholder((n, c, h, w), "int8", name="X")
    p, q = te.reduce_axis((0, h), name="p"), te.reduce_axis((0, w), name="q")
    total = te.compute(
        (n, c), lambda b, o: te.sum(x[b, o, p, q].astype("int32"), axis=[p, q]), name="total"
    )
    if factor != 1:
        sums = total
        total = te.compute((n, c), lambda b, o: sums[b, o] * factor, name="scaled")
    out = _epilogue(total, (n, c), None, None, shift, False, None, dtype)
    return te.create_prim_func([x, out])


def elementwise(
    shape: _Sequence[int],
    f: _Callable[..., _Any],
    inputs: _Sequence[str] = ("int32",),
    dtype: str = "int8",
    name: str = "result",
) -> PrimFunc:
    """Y = f(X0, X1, ...) point by point; `f` gets int32 expressions."""
    xs = [te.placeholder(shape, t, name=f"X{i}") for i, t in enumerate(inputs)]

    def element(*i):
        value = f(*(x[i] if x.dtype == "int32" else x[i].astype("int32") for x in xs))
        return value.astype(dtype) if dtype != "int32" else value

    return te.create_prim_func([*xs, te.compute(shape, element, name=name)])


_publish(__name__)
