# SPDX-License-Identifier: Apache-2.0
"""Programs of te that nobody named, drawn with a fixed seed: the default schedule beside a short tuning and beside PyTorch, on one thread.

PYTHONPATH=python python bench/cpu/te_programs.py [--seed 7] [--trials 16] [--only WORD] [--count N]     (needs torch)

Convolutions of every form, chains of maps, reductions, products and stencils. Every result is checked against PyTorch's in
float64. A line a program: the times of the default schedule, of the best of the search, and of PyTorch; then the default's
time in units of the best of the three, marked where it is above 1.5.
"""

import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

import numpy as np
import torch
import weft
from torch.nn import functional as F
from weft import te

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record


def _sum(body, axes):
    return te.sum(body, axis=axes)


def _axes(**extents):
    return [te.reduce_axis((0, e), name=n) for n, e in extents.items()]


def _padded(x, shape, before, inside, name="P"):
    """A stage of zeros around x: `before` of each axis, `inside` the extents of x."""

    def value(*i):
        at = [v - b for v, b in zip(i, before)]
        holds = None
        for a, b, e, n in zip(at, before, inside, shape):
            for c in [a >= 0] * (b > 0) + [a < e] * (n > b + e):
                holds = c if holds is None else te.all(holds, c)
        return (
            x[tuple(at)]
            if holds is None
            else te.if_then_else(holds, x[tuple(at)], te.const(0, x.dtype))
        )

    return te.compute(shape, value, name=name)


def convolution(rng, layout="nchw", kind="plain", dtype="float32", pad=None):
    """One convolution of two axes: `kind` plain, step, dilated, groups, depthwise, one (a window of one)."""
    kh, kw = (1, 1) if kind == "one" else (rng.choice([1, 2, 3, 3, 5]), rng.choice([2, 3, 3, 4, 7]))
    h, w = rng.choice([7, 14, 23, 28, 41, 56]), rng.choice([7, 13, 14, 27, 30, 56, 61])
    n, groups = rng.choice([1, 1, 2, 3]), rng.choice([2, 3, 4]) if kind == "groups" else 1
    ci, co = (rng.choice([3, 16, 21, 32, 48, 64]) * groups for _ in range(2))
    if kind == "groups":
        ci, co = max(groups, ci // 2 // groups * groups), max(groups, co // 2 // groups * groups)
    if kind == "depthwise":
        groups = ci = co = rng.choice([16, 37, 64, 96])
    step = rng.choice([2, 2, 3]) if kind == "step" else 1
    dilation = rng.choice([2, 3]) if kind == "dilated" else 1
    pad = rng.choice([None, "stage", "condition"]) if pad is None else pad
    ph, pw = (
        ((kh - 1) * dilation // 2, (kw - 1) * dilation // 2)
        if pad not in (None, "none")
        else (0, 0)
    )
    ih, iw = (
        (h - 1) * step + (kh - 1) * dilation + 1 - 2 * ph,
        (w - 1) * step + (kw - 1) * dilation + 1 - 2 * pw,
    )
    sums = "int32" if dtype == "int8" else dtype
    cg, og = ci // groups, co // groups
    nchw = layout == "nchw"

    def at(b, c, i, j):
        return (b, c, i, j) if nchw else (b, i, j, c)

    x = te.placeholder(at(n, ci, ih, iw), dtype, name="X")
    wt = te.placeholder((co, cg, kh, kw) if nchw else (kh, kw, cg, co), dtype, name="W")
    c, p, q = _axes(c=cg, p=kh, q=kw)
    image = x
    if pad == "stage" and ph + pw:
        image = _padded(x, at(n, ci, ih + 2 * ph, iw + 2 * pw), at(0, 0, ph, pw), at(n, ci, ih, iw))

    def wide(e):
        return e.astype(sums) if sums != dtype else e

    def value(*index):
        b, o, i, j = index if nchw else (index[0], index[3], index[1], index[2])
        channel = o if kind == "depthwise" else c if groups == 1 else o // og * cg + c
        y, z = i * step + p * dilation, j * step + q * dilation
        weight = (
            wt[(o, 0 if kind == "depthwise" else c, p, q)]
            if nchw
            else wt[(p, q, 0 if kind == "depthwise" else c, o)]
        )
        if pad == "condition" and ph + pw:
            y, z = y - ph, z - pw
            inside = te.all(y >= 0, y < ih, z >= 0, z < iw)
            element = te.if_then_else(inside, image[at(b, channel, y, z)], te.const(0, dtype))
        else:
            element = image[at(b, channel, y, z)]
        return _sum(
            wide(element) * wide(weight),
            [p, q] if kind == "depthwise" else [c, p, q] if nchw else [p, q, c],
        )

    y = te.compute(at(n, co, h, w), value, name="Y")

    def reference(x, w):
        if not nchw:
            x, w = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        out = F.conv2d(x, w, stride=step, padding=(ph, pw), dilation=dilation, groups=groups)
        return out if nchw else out.permute(0, 2, 3, 1)

    name = f"{layout} {kind} {dtype} {n}x{ci}>{co} {h}x{w}, {kh}x{kw} step {step} dilation {dilation} groups {groups} pad {pad}"
    return name, [x, wt, y], reference


def transposed(rng):
    """A transposed convolution: zeros between the elements, then a convolution of the turned window."""
    n, ci, co = 1, rng.choice([16, 24, 33]), rng.choice([8, 17, 32])
    h, w, k, step = (
        rng.choice([9, 14, 20]),
        rng.choice([11, 14, 28]),
        rng.choice([2, 3, 4]),
        rng.choice([2, 3]),
    )
    x, wt = te.placeholder((n, ci, h, w), name="X"), te.placeholder((ci, co, k, k), name="W")
    oh, ow = (h - 1) * step + k, (w - 1) * step + k
    gap = te.compute(
        (n, ci, oh + k - 1, ow + k - 1),
        lambda b, c, i, j: te.if_then_else(
            te.all(i >= k - 1, j >= k - 1, i - (k - 1) < (h - 1) * step + 1, j - (k - 1) < (w - 1) * step + 1, (i - (k - 1)) % step == 0, (j - (k - 1)) % step == 0),
            x[b, c, (i - (k - 1)) // step, (j - (k - 1)) // step],
            te.const(0, "float32"),
        ),
        name="D",
    )  # fmt: skip
    c, p, q = _axes(c=ci, p=k, q=k)
    y = te.compute((n, co, oh, ow), lambda b, o, i, j: _sum(gap[b, c, i + p, j + q] * wt[c, o, k - 1 - p, k - 1 - q], [c, p, q]), name="Y")  # fmt: skip
    return f"transposed {ci}>{co} {h}x{w}, {k}x{k} step {step}", [x, wt, y], lambda x, w: F.conv_transpose2d(x, w, stride=step)  # fmt: skip


def convolution1(rng):
    n, ci, co, length, k = rng.choice([1, 4]), rng.choice([5, 40]), rng.choice([12, 35]), rng.choice([99, 500]), rng.choice([3, 9, 15])  # fmt: skip
    x, wt = te.placeholder((n, ci, length + k - 1), name="X"), te.placeholder((co, ci, k), name="W")
    c, p = _axes(c=ci, p=k)
    y = te.compute(
        (n, co, length), lambda b, o, i: _sum(x[b, c, i + p] * wt[o, c, p], [c, p]), name="Y"
    )
    return f"one axis {n}x{ci}>{co} {length}, {k}", [x, wt, y], F.conv1d


def convolution3(rng):
    ci, co, d, h, w, k = rng.choice([4, 13]), rng.choice([8, 20]), rng.choice([5, 8]), rng.choice([14, 19]), rng.choice([17, 24]), rng.choice([2, 3])  # fmt: skip
    x = te.placeholder((1, ci, d + k - 1, h + k - 1, w + k - 1), name="X")
    wt = te.placeholder((co, ci, k, k, k), name="W")
    c, p, q, r = _axes(c=ci, p=k, q=k, r=k)
    y = te.compute((1, co, d, h, w), lambda b, o, a, i, j: _sum(x[b, c, a + p, i + q, j + r] * wt[o, c, p, q, r], [c, p, q, r]), name="Y")  # fmt: skip
    return f"three axes {ci}>{co} {d}x{h}x{w}, {k}", [x, wt, y], F.conv3d


def chain(rng, form):
    n, m = rng.choice([300, 701, 1024]), rng.choice([333, 1000, 1025])
    x, y = te.placeholder((n, m), name="X"), te.placeholder((n, m), name="Y")
    v = te.placeholder((m,), name="V")
    if form == "tanh":
        a = te.compute((n, m), lambda i, j: x[i, j] * y[i, j] + 1.0, name="A")
        b = te.compute((n, m), lambda i, j: te.tanh(a[i, j]), name="B")
        z = te.compute((n, m), lambda i, j: b[i, j] * b[i, j] + b[i, j] * x[i, j], name="Z")
        return (
            f"chain tanh {n}x{m}",
            [x, y, z],
            lambda x, y: torch.tanh(x * y + 1) ** 2 + torch.tanh(x * y + 1) * x,
        )
    if form == "gelu":
        a = te.compute((n, m), lambda i, j: x[i, j] + v[j], name="A")
        b = te.compute(
            (n, m), lambda i, j: a[i, j] * a[i, j] * a[i, j] * 0.044715 + a[i, j], name="B"
        )
        c = te.compute((n, m), lambda i, j: te.tanh(b[i, j] * 0.7978845608) + 1.0, name="C")
        z = te.compute((n, m), lambda i, j: c[i, j] * a[i, j] * 0.5, name="Z")

        def gelu(x, v):
            a = x + v
            return (torch.tanh((a * a * a * 0.044715 + a) * 0.7978845608) + 1) * a * 0.5

        return f"chain gelu {n}x{m}", [x, v, z], gelu
    if form == "swish":  # an exponential used twice, written in one stage and read in two
        e = te.compute((n, m), lambda i, j: te.exp(-x[i, j]), name="E")
        s = te.compute((n, m), lambda i, j: 1.0 / (1.0 + e[i, j]), name="S")
        t = te.compute((n, m), lambda i, j: s[i, j] * (1.0 - s[i, j]) * e[i, j], name="T")
        z = te.compute((n, m), lambda i, j: t[i, j] * y[i, j] + s[i, j], name="Z")

        def swish(x, y):
            s = torch.sigmoid(x)
            return s * (1 - s) * torch.exp(-x) * y + s

        return f"chain swish {n}x{m}", [x, y, z], swish
    # one expression: nothing is a stage
    z = te.compute((n, m), lambda i, j: te.sqrt(te.exp(x[i, j]) + te.log(te.max(y[i, j], 0.0) + 1.0)) - te.sin(x[i, j]), name="Z")  # fmt: skip
    return f"chain expression {n}x{m}", [x, y, z], lambda x, y: torch.sqrt(torch.exp(x) + torch.log(y.clamp(min=0) + 1)) - torch.sin(x)  # fmt: skip


def reduction(rng, form):
    a, b, c = rng.choice([13, 64]), rng.choice([50, 111]), rng.choice([65, 200])
    x = te.placeholder((a, b, c), name="X")
    r, s = te.reduce_axis((0, a), name="r"), te.reduce_axis((0, b), name="s")
    t = te.reduce_axis((0, c), name="t")
    if form == "first":
        return f"sum of axis 0 {a}x{b}x{c}", [x, te.compute((b, c), lambda i, j: _sum(x[r, i, j], r), name="Z")], lambda x: x.sum(0)  # fmt: skip
    if form == "middle":
        return f"max of axis 1 {a}x{b}x{c}", [x, te.compute((a, c), lambda i, j: te.max(x[i, s, j], axis=s), name="Z")], lambda x: x.amax(1)  # fmt: skip
    if form == "outer":  # axes 0 and 2, asked in the other order
        return f"sum of squares, axes 2 and 0 {a}x{b}x{c}", [x, te.compute((b,), lambda i: _sum(x[r, i, t] * x[r, i, t], [t, r]), name="Z")], lambda x: (x * x).sum((0, 2))  # fmt: skip
    if form == "turned":  # results in the other order than the elements
        return f"sum of axis 1, turned {a}x{b}x{c}", [x, te.compute((c, a), lambda j, i: _sum(x[i, s, j], s), name="Z")], lambda x: x.sum(1).T  # fmt: skip
    if form == "all":
        return f"sum of everything {a}x{b}x{c}", [x, te.compute((1,), lambda _: _sum(x[r, s, t], [r, s, t]), name="Z")], lambda x: x.sum().reshape(1)  # fmt: skip
    mean = te.compute((a, b), lambda i, j: _sum(x[i, j, t], t), name="M")
    t2 = te.reduce_axis((0, c), name="t2")
    var = te.compute((a, b), lambda i, j: _sum((x[i, j, t2] - mean[i, j] / c) * (x[i, j, t2] - mean[i, j] / c), t2), name="S")  # fmt: skip
    z = te.compute(
        (a, b, c),
        lambda i, j, k: (x[i, j, k] - mean[i, j] / c) / te.sqrt(var[i, j] / c + 1e-5),
        name="Z",
    )
    return f"norm {a}x{b}x{c}", [x, z], lambda x: F.layer_norm(x, (c,))


def product(rng, form, dtype="float32"):
    m, n, k = (rng.choice([17, 33, 64, 100, 129, 250]) for _ in range(3))
    b = rng.choice([3, 8])
    r = te.reduce_axis((0, k), name="r")
    name = f"product {form} {dtype} {m}x{n}x{k}"

    def make(left, right, shape, value, reference):
        x, y = te.placeholder(left, dtype, name="A"), te.placeholder(right, dtype, name="B")
        return name, [x, y, te.compute(shape, lambda *i: value(x, y, *i), name="C")], reference

    if form == "batched":
        return make((b, m, k), (b, k, n), (b, m, n), lambda x, y, h, i, j: _sum(x[h, i, r] * y[h, r, j], r), torch.matmul)  # fmt: skip
    if form == "batched, right turned":
        return make((b, m, k), (b, n, k), (b, m, n), lambda x, y, h, i, j: _sum(x[h, i, r] * y[h, j, r], r), lambda x, y: x @ y.mT)  # fmt: skip
    if form == "left turned":
        return make(
            (k, m),
            (k, n),
            (m, n),
            lambda x, y, i, j: _sum(x[r, i] * y[r, j], r),
            lambda x, y: x.T @ y,
        )
    if form == "both turned":
        return make(
            (k, m),
            (n, k),
            (m, n),
            lambda x, y, i, j: _sum(x[r, i] * y[j, r], r),
            lambda x, y: (y @ x).T,
        )
    if form == "result turned":
        return make(
            (m, k),
            (k, n),
            (n, m),
            lambda x, y, j, i: _sum(x[i, r] * y[r, j], r),
            lambda x, y: (x @ y).T,
        )
    if form == "heads":  # einsum bqhd,bkhd->bhqk
        h, d = rng.choice([2, 4]), rng.choice([24, 64])
        t = te.reduce_axis((0, d), name="t")
        return make((b, m, h, d), (b, n, h, d), (b, h, m, n), lambda x, y, i, g, p, q: _sum(x[i, p, g, t] * y[i, q, g, t], t), lambda x, y: torch.einsum("bqhd,bkhd->bhqk", x, y))  # fmt: skip
    if form == "two sums":
        s, t = te.reduce_axis((0, 9), name="s"), te.reduce_axis((0, k), name="t")
        return make((m, 9, k), (9, k, n), (m, n), lambda x, y, i, j: _sum(x[i, s, t] * y[s, t, j], [t, s]), lambda x, y: torch.tensordot(x, y, 2))  # fmt: skip
    if form == "row":
        return make((1, k * 9), (k * 9, n * 3), (1, n * 3), lambda x, y, i, j: _sum(x[i, t9] * y[t9, j], t9), torch.matmul) if (t9 := te.reduce_axis((0, k * 9), name="t")) is not None else None  # fmt: skip
    assert form == "few columns"
    return make(
        (m * 9, k), (k, 5), (m * 9, 5), lambda x, y, i, j: _sum(x[i, r] * y[r, j], r), torch.matmul
    )


def stencil(rng, form):
    n, m = rng.choice([250, 511, 1000]), rng.choice([300, 511, 999])
    if form == "blur":
        x = te.placeholder((n + 2, m + 2), name="X")
        a = te.compute(
            (n + 2, m), lambda i, j: (x[i, j] + x[i, j + 1] * 2.0 + x[i, j + 2]) * 0.25, name="A"
        )
        z = te.compute(
            (n, m), lambda i, j: (a[i, j] + a[i + 1, j] * 2.0 + a[i + 2, j]) * 0.25, name="Z"
        )

        def blur(x):
            a = (x[:, :-2] + x[:, 1:-1] * 2 + x[:, 2:]) * 0.25
            return (a[:-2] + a[1:-1] * 2 + a[2:]) * 0.25

        return f"blur in two stages {n}x{m}", [x, z], blur
    if form == "steps":
        x = te.placeholder((n + 4, m + 4), name="X")

        def star(a):
            return lambda i, j: a[i + 1, j + 1] * 0.5 + (a[i, j + 1] + a[i + 2, j + 1] + a[i + 1, j] + a[i + 1, j + 2]) * 0.125  # fmt: skip

        a = te.compute((n + 2, m + 2), star(x), name="A")
        z = te.compute((n, m), star(a), name="Z")

        def once(a):
            return (
                a[1:-1, 1:-1] * 0.5
                + (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) * 0.125
            )

        return f"two steps of a star {n}x{m}", [x, z], lambda x: once(once(x))
    if form == "sharpen":  # two stages, the first image used in the last
        x = te.placeholder((n + 2, m + 2), name="X")
        p, q = _axes(p=3, q=3)
        a = te.compute((n, m), lambda i, j: _sum(x[i + p, j + q], [p, q]), name="A")
        z = te.compute((n, m), lambda i, j: x[i + 1, j + 1] * 2.0 - a[i, j] * (1 / 9), name="Z")
        return (
            f"sharpened {n}x{m}",
            [x, z],
            lambda x: x[1:-1, 1:-1] * 2 - F.avg_pool2d(x[None, None], 3, 1)[0, 0],
        )
    d = rng.choice([10, 31])
    x = te.placeholder((d + 2, 102, m + 2), name="X")
    z = te.compute((d, 100, m), lambda a, i, j: x[a + 1, i + 1, j + 1] * 0.4 + (x[a, i + 1, j + 1] + x[a + 2, i + 1, j + 1] + x[a + 1, i, j + 1] + x[a + 1, i + 2, j + 1] + x[a + 1, i + 1, j] + x[a + 1, i + 1, j + 2]) * 0.1, name="Z")  # fmt: skip

    def star7(x):
        s = slice(1, -1)
        return x[s, s, s] * 0.4 + (x[:-2, s, s] + x[2:, s, s] + x[s, :-2, s] + x[s, 2:, s] + x[s, s, :-2] + x[s, s, 2:]) * 0.1  # fmt: skip

    return f"star of seven {d}x100x{m}", [x, z], star7


def pooling(rng, form):
    n, c, h, w, k = rng.choice([1, 2]), rng.choice([16, 33]), rng.choice([28, 41]), rng.choice([27, 60]), rng.choice([2, 3])  # fmt: skip
    step = rng.choice([1, 2])
    shape = n, c, (h - 1) * step + k, (w - 1) * step + k
    x = te.placeholder(shape, name="X")
    p, q = _axes(p=k, q=k)
    if form == "max":
        z = te.compute((n, c, h, w), lambda b, o, i, j: te.max(x[b, o, i * step + p, j * step + q], axis=[p, q]), name="Z")  # fmt: skip
        return (
            f"largest of windows {n}x{c} {h}x{w}, {k} step {step}",
            [x, z],
            lambda x: F.max_pool2d(x, k, step),
        )
    z = te.compute((n, c, h, w), lambda b, o, i, j: _sum(x[b, o, i * step + p, j * step + q] * (1 / k / k), [p, q]), name="Z")  # fmt: skip
    return (
        f"mean of windows {n}x{c} {h}x{w}, {k} step {step}",
        [x, z],
        lambda x: F.avg_pool2d(x, k, step),
    )


def layers(rng):
    """A convolution with a bias and an activation, and another one behind it."""
    c, d, e, h, w = rng.choice([3, 20]), rng.choice([24, 32]), rng.choice([16, 33]), rng.choice([14, 30]), rng.choice([14, 29])  # fmt: skip
    x, b = te.placeholder((1, c, h + 2, w + 2), name="X"), te.placeholder((d,), name="B")
    w1, w2 = te.placeholder((d, c, 3, 3), name="U"), te.placeholder((e, d, 1, 1), name="V")
    (r, p, q), (s,) = _axes(r=c, p=3, q=3), _axes(s=d)
    y = te.compute(
        (1, d, h, w),
        lambda n, o, i, j: _sum(x[n, r, i + p, j + q] * w1[o, r, p, q], [r, p, q]),
        name="Y",
    )
    a = te.compute((1, d, h, w), lambda n, o, i, j: te.max(y[n, o, i, j] + b[o], 0.0), name="A")
    z = te.compute(
        (1, e, h, w), lambda n, o, i, j: _sum(a[n, s, i, j] * w2[o, s, 0, 0], s), name="Z"
    )
    return f"two layers {c}>{d}>{e} {h}x{w}", [x, b, w1, w2, z], lambda x, b, u, v: F.conv2d(F.conv2d(x, u, b).relu(), v)  # fmt: skip


def drawn(seed):
    """About forty programs, each (name, tensors, reference in PyTorch)."""
    rng = random.Random(seed)
    for kind in ("plain", "plain", "step", "dilated", "groups", "depthwise", "one"):
        for layout in ("nchw", "nhwc"):
            yield convolution(rng, layout, kind, pad="none" if kind == "one" else None)
    for layout, dtype in (
        ("nchw", "float64"),
        ("nhwc", "int32"),
        ("nchw", "int8"),
        ("nhwc", "int8"),
    ):
        yield convolution(rng, layout, "plain", dtype, pad=rng.choice(["none", "stage"]))
    yield convolution(rng, "nchw", "plain", pad="condition")
    yield from (transposed(rng), convolution1(rng), convolution3(rng), layers(rng))
    yield from (chain(rng, form) for form in ("tanh", "gelu", "swish", "expression"))
    yield from (
        reduction(rng, form) for form in ("first", "middle", "outer", "turned", "all", "norm")
    )
    for form in ("batched", "batched, right turned", "left turned", "both turned", "result turned", "heads", "two sums", "row", "few columns"):  # fmt: skip
        yield product(rng, form)
    yield product(rng, "left turned", "float64")
    yield from (stencil(rng, form) for form in ("blur", "steps", "sharpen", "star"))
    yield from (pooling(rng, form) for form in ("max", "mean"))


def inputs(tensors, rng):
    """Random arrays for all but the last tensor."""
    for t in tensors[:-1]:
        shape = tuple(int(n) for n in t.shape)
        yield rng.integers(-8, 8, shape).astype(t.dtype) if "int" in str(t.dtype) else rng.standard_normal(shape).astype(t.dtype)  # fmt: skip


def wanted(arrays, reference):
    return reference(*[torch.from_numpy(a).double() for a in arrays]).numpy()


def difference(got, want):
    """The largest difference in units of the largest result."""
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


def _seconds(calls, budget):
    """The least time of each call, in turns: other programs only add to it."""
    for call in calls:
        call()
    times = [[] for _ in calls]
    begin = time.perf_counter()
    while len(times[0]) < 3 or (time.perf_counter() - begin < budget and len(times[0]) < 100):
        for call, out in zip(calls, times):
            out.append(call())
    return [min(t) for t in times]


def _timed(function):
    def call():
        begin = time.perf_counter()
        function()
        return time.perf_counter() - begin

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--trials", type=int, default=16, help="candidates of a search; 0: none")
    parser.add_argument("--only", default="", help="programs with this in their name")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of a comparison")
    args = parser.parse_args()
    weft.set_threads(1)
    torch.set_num_threads(1)
    record = Record("drawn programs of te, default schedule, one thread", "cpu")
    ratios = []
    for at, (name, tensors, reference) in enumerate(drawn(args.seed)):
        if args.only not in name:
            continue
        arrays = list(inputs(tensors, np.random.default_rng(at)))
        want, program = wanted(arrays, reference), te.create_prim_func(tensors)
        limit = (
            1e-11
            if tensors[-1].dtype == "float64"
            else 0
            if "int" in str(tensors[-1].dtype)
            else 1e-5
        )
        programs = [program]
        if args.trials:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "tune.db"
                programs.append(
                    weft.tune(program, trials=args.trials, database=path, progress=False)
                )
        calls, wrong, notes = [], "", ""
        for each in programs:
            built = weft.build(each, target="cpu", tuned=False)
            notes = notes or " ".join(built.notes)
            mine = [weft.asarray(a) for a in arrays] + [
                weft.zeros(want.shape, dtype=str(tensors[-1].dtype))
            ]
            built["main"](*mine)
            off = difference(mine[-1].numpy(), want)
            wrong += f" WRONG by {off:.1e}" * (not off <= limit)
            calls.append(lambda f=built["main"], mine=mine: f.time(*mine, number=1, repeat=1).min)
        own = [torch.from_numpy(a) for a in arrays]
        if own[0].dtype in (torch.int8, torch.int32):
            own = [a.float() for a in own]
        calls.append(_timed(lambda own=own, reference=reference: reference(*own)))
        times = _seconds(calls, args.budget)
        ratio = times[0] / min(times)
        ratios.append(ratio)
        print(f"{name:88s} default {times[0] * 1e6:9.1f} µs" + f", tuned {times[1] * 1e6:9.1f}" * (len(times) > 2) + f", torch {times[-1] * 1e6:9.1f}: {ratio:6.2f}{' >' * (ratio > 1.5)}{wrong} [{notes.partition('applied (')[2].rstrip(')')[:140]}]", flush=True)  # fmt: skip
        record.row(
            "drawn",
            name,
            times[0],
            {"torch": times[-1], **({"tuned": times[1]} if len(times) > 2 else {})},
        )
    print(f"{len(ratios)} programs, default beside the best: geometric mean {statistics.geometric_mean(ratios):.2f}, most {max(ratios):.2f}, above 1.5: {sum(r > 1.5 for r in ratios)}")  # fmt: skip


if __name__ == "__main__":
    main()
