# SPDX-License-Identifier: Apache-2.0
"""A Llama block's decode step on the wafer: checked small, then predicted for a whole model.

    .venv/bin/python examples/wse/llama_decode.py

The block is one tensor program: norms, projections, rotary positions, attention over cached keys and values, the
gated MLP. It runs on 4 x 4 simulated PEs, then at the size of SmolLM-135M on 64 x 48, and is compared with NumPy. The
tokens a second are those of as many such rectangles as the model has layers: docs/targets/wse.md says what that leaves
out."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

import weft
from weft import te


@dataclasses.dataclass(frozen=True)
class Shape:
    width: int  # of the residual stream
    heads: int
    key_heads: int
    head: int  # elements of a head
    hidden: int  # of the MLP
    context: int  # cached tokens
    layers: int = 1


SMALL = Shape(64, 4, 2, 16, 96, 24)
SMOLLM = Shape(576, 9, 3, 64, 1536, 2048, 30)  # SmolLM-135M, of Llama's architecture


def wide(x):
    return x.astype("float32")


def matvec(W, x, name):
    """16-bit operands, 32-bit sums."""
    rows, columns = (int(e) for e in W.shape)
    k = te.reduce_axis(columns, name="k")
    return te.compute((rows,), lambda i: te.sum(wide(W[i, k]) * wide(x[k]), axis=k), name=name)


def norm(x, gain, name):
    n = int(x.shape[0])
    k = te.reduce_axis(n, name="k")
    squares = te.compute(
        (1,), lambda o: te.sum(x[k + o] * x[k + o], axis=k), name=name + "_squares"
    )
    scale = te.compute((1,), lambda o: te.rsqrt(squares[o] * te.const(1 / n, "float32") + te.const(1e-5, "float32")), name=name + "_scale")  # fmt: skip
    return te.compute((n,), lambda i: (x[i] * scale[0] * gain[i]).astype("float16"), name=name)


def rotated(q, heads, head, cos, sin, name):
    """Rotary positions: [head, half, element] from a flat vector of heads."""
    half = head // 2

    def value(h, c, p):
        first, second = q[h * head + p], q[h * head + half + p]
        return te.if_then_else(
            c < 1, first * cos[p] - second * sin[p], second * cos[p] + first * sin[p]
        )

    return te.compute((heads, 2, half), value, name=name)


def dtype_of(name):
    return "float32" if name in ("x", "norm1", "norm2", "cos", "sin") else "float16"


def block(s: Shape):
    """Placeholders by name, and the results: the stream after the block, and this token's keys and values."""
    group, half = s.heads // s.key_heads, s.head // 2
    shapes = dict(
        x=(s.width,), norm1=(s.width,), norm2=(s.width,), cos=(half,), sin=(half,),
        wq=(s.heads * s.head, s.width), wk=(s.key_heads * s.head, s.width), wv=(s.key_heads * s.head, s.width),
        wo=(s.width, s.key_heads, group, s.head), gate=(s.hidden, s.width), up=(s.hidden, s.width), down=(s.width, s.hidden),
        keys=(s.key_heads, s.context, 2, half), values=(s.key_heads, s.context, s.head),
    )  # fmt: skip
    p = {name: te.placeholder(shape, dtype_of(name), name=name) for name, shape in shapes.items()}
    n1 = norm(p["x"], p["norm1"], "n1")
    q = rotated(matvec(p["wq"], n1, "q"), s.heads, s.head, p["cos"], p["sin"], "qr")
    k = rotated(matvec(p["wk"], n1, "k"), s.key_heads, s.head, p["cos"], p["sin"], "kr")
    v = matvec(p["wv"], n1, "v")
    scale = te.const(s.head**-0.5, "float32")
    c, d, c2, d2 = (
        te.reduce_axis(e, name=n) for e, n in ((2, "c"), (half, "d"), (2, "c2"), (half, "d2"))
    )
    t, t2, t3 = (te.reduce_axis(s.context, name=n) for n in ("t", "t2", "t3"))
    kh, kg = (s.key_heads, group)  # query head = key head * group + member
    # Heads over rows of PEs, tokens over columns: sums over tokens end in chains along the rows.
    score = te.compute((kh, s.context, kg), lambda h, i, g: te.sum(wide(q[h * group + g, c, d]) * wide(p["keys"][h, i, c, d]), axis=[c, d]), name="score")  # fmt: skip
    own = te.compute((kh, kg), lambda h, g: te.sum(wide(q[h * group + g, c2, d2]) * wide(k[h, c2, d2]), axis=[c2, d2]), name="own")  # fmt: skip
    top = te.compute((kh, kg), lambda h, g: te.max(score[h, t, g], axis=t), name="top")
    limit = te.compute((kh, kg), lambda h, g: te.max(top[h, g], own[h, g]), name="limit")
    e = te.compute(
        (kh, s.context, kg),
        lambda h, i, g: te.exp((score[h, i, g] - limit[h, g]) * scale),
        name="e",
    )
    eo = te.compute((kh, kg), lambda h, g: te.exp((own[h, g] - limit[h, g]) * scale), name="eo")
    total = te.compute((kh, kg), lambda h, g: te.sum(wide(e[h, t2, g]), axis=t2), name="total")
    weighted = te.compute((kh, kg, s.head), lambda h, g, j: te.sum(wide(e[h, t3, g]) * wide(p["values"][h, t3, j]), axis=t3), name="weighted")  # fmt: skip
    head = te.compute((kh, kg, s.head), lambda h, g, j: ((weighted[h, g, j] + eo[h, g] * v[h * s.head + j]) / (total[h, g] + eo[h, g])).astype("float16"), name="head")  # fmt: skip
    a, b, j = (te.reduce_axis(n, name=m) for n, m in ((kh, "a"), (kg, "b"), (s.head, "j")))
    attended = te.compute((s.width,), lambda i: te.sum(wide(p["wo"][i, a, b, j]) * wide(head[a, b, j]), axis=[a, b, j]), name="attended")  # fmt: skip
    y = te.compute((s.width,), lambda i: p["x"][i] + attended[i], name="y")
    n2 = norm(y, p["norm2"], "n2")
    g, u = matvec(p["gate"], n2, "g"), matvec(p["up"], n2, "u")
    m = te.compute(
        (s.hidden,), lambda i: (g[i] * te.sigmoid(g[i]) * u[i]).astype("float16"), name="m"
    )
    down = matvec(p["down"], m, "d")
    out = te.compute((s.width,), lambda i: y[i] + down[i], name="out")
    return p, [out, k, v]


def reference(s: Shape, a):
    """The same in NumPy, in double precision."""
    a = {k: v.astype("f8") for k, v in a.items()}
    half, group = s.head // 2, s.heads // s.key_heads
    normed = lambda x, g: x / np.sqrt((x * x).mean() + 1e-5) * g  # noqa: E731

    def rope(x):
        x = x.reshape(-1, 2, half)
        return np.stack(
            [x[:, 0] * a["cos"] - x[:, 1] * a["sin"], x[:, 1] * a["cos"] + x[:, 0] * a["sin"]], 1
        )

    n1 = normed(a["x"], a["norm1"])
    q, k, v = rope(a["wq"] @ n1), rope(a["wk"] @ n1), a["wv"] @ n1
    heads = []
    for h in range(s.heads):
        keys = np.vstack(
            [a["keys"][h // group].reshape(s.context, -1), k[h // group].reshape(1, -1)]
        )
        values = np.vstack([a["values"][h // group], v.reshape(s.key_heads, 1, -1)[h // group]])
        e = np.exp((keys @ q[h].ravel()) / np.sqrt(s.head))
        heads.append(e / e.sum() @ values)
    y = a["x"] + a["wo"].reshape(s.width, -1) @ np.concatenate(heads)
    n2 = normed(y, a["norm2"])
    g = a["gate"] @ n2
    return y + a["down"] @ (g / (1 + np.exp(-g)) * (a["up"] @ n2)), k, v


def inputs(s: Shape, seed=0):
    rng = np.random.default_rng(seed)
    placeholders, _ = block(s)
    out = {}
    for name, p in placeholders.items():
        shape = tuple(int(e) for e in p.shape)
        scale = np.prod(shape[1:]) ** -0.5 if name[0] in "wgud" else 1.0
        out[name] = (rng.standard_normal(shape) * scale).astype(dtype_of(name))
    angle = 7 * 10000.0 ** (-np.arange(s.head // 2) / (s.head // 2))
    return out | {"cos": np.cos(angle).astype("f4"), "sin": np.sin(angle).astype("f4")}


def run_block(s: Shape, target: str):
    """The largest difference from NumPy, the cycles of the stages, and the program's CSL."""
    placeholders, results = block(s)
    module = weft.build(te.create_prim_func([*placeholders.values(), *results]), target=target)
    device = weft.device(target)
    given = inputs(s)
    held = [weft.asarray(given[name], device=device) for name in placeholders]
    outs = [
        weft.zeros(tuple(int(e) for e in r.shape), dtype="float32", device=device) for r in results
    ]
    module["main"](*held, *outs)
    error = max(float(np.abs(o.numpy() - w).max()) for o, w in zip(outs, reference(s, given)))
    return error, device.stats(), module.source()


def main():
    error, stats, source = run_block(SMALL, "wse:4x4")
    print(f"small block on wse:4x4: {source.count('fn stage')} stages, {stats['cycles.stages']:,} cycles without copies, largest difference {error:.1e}")  # fmt: skip
    s, width, height, clock = SMOLLM, 64, 48, 875e6
    error, stats, _ = run_block(s, f"wse:{width}x{height},arch=wse3")
    cycles = stats["cycles.stages"]
    print(f"block of SmolLM-135M, {s.context} tokens in the cache, {width} x {height} PEs of a WSE-3: {cycles:,} cycles, largest difference {error:.1e}")  # fmt: skip
    stages = {
        k.split(".", 2)[2]: v
        for k, v in stats.items()
        if k.startswith("cycles.stage") and k.count(".") == 2
    }
    slowest = sorted(stages.items(), key=lambda row: -row[1])[:6]
    print("  most of them in " + ", ".join(f"{name} {n:,}" for name, n in slowest))
    token = s.layers * cycles / clock
    print(f"predicted: {s.layers} such rectangles one after the other take {token * 1e3:.2f} ms a token, {1 / token:,.0f} tokens a second for one user")  # fmt: skip
    print("  without the vocabulary's projection, sampling and the way between rectangles")


if __name__ == "__main__":
    main()
