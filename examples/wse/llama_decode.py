# SPDX-License-Identifier: Apache-2.0
"""A Llama block's decode step on the wafer: checked small, then predicted for a whole model.

    .venv/bin/python examples/wse/llama_decode.py            # the small block, and Llama 3.2 1B on a WSE-3

The small block is one tensor program: norms, projections, rotary positions, attention over cached keys and values, the
gated MLP. It runs on 4 x 4 simulated PEs and is compared with NumPy. The prediction simulates pieces of the large
block, with the parts that a PE has in the full mapping but few PEs, and extends them along rows and columns; see
docs/targets/wse.md for what it leaves out."""

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
    vocabulary: int = 0


SMALL = Shape(64, 4, 2, 16, 96, 24)
LLAMA_1B = Shape(2048, 32, 8, 64, 8192, 2048, 16, 128256)  # Llama 3.2 1B


def matvec(W, x, name):
    rows, columns = (int(e) for e in W.shape)
    k = te.reduce_axis(columns, name="k")
    return te.compute((rows,), lambda i: te.sum(W[i, k] * x[k], axis=k), name=name)


def norm(x, gain, name):
    n = int(x.shape[0])
    k = te.reduce_axis(n, name="k")
    squares = te.compute((1,), lambda o: te.sum(x[k + o] * x[k + o], axis=k), name=name + "_squares")
    scale = te.compute((1,), lambda o: te.rsqrt(squares[o] * te.const(1 / n, "float32") + te.const(1e-5, "float32")), name=name + "_scale")  # fmt: skip
    return te.compute((n,), lambda i: x[i] * scale[0] * gain[i], name=name)


def rotated(q, heads, head, cos, sin, name):
    """Rotary positions: [head, half, element] from a flat vector of heads."""
    half = head // 2

    def value(h, c, p):
        first, second = q[h * head + p], q[h * head + half + p]
        return te.if_then_else(c < 1, first * cos[p] - second * sin[p], second * cos[p] + first * sin[p])

    return te.compute((heads, 2, half), value, name=name)


def block(s: Shape):
    """Placeholders by name, and the results: the stream after the block, and this token's keys and values."""
    group, half = s.heads // s.key_heads, s.head // 2
    shapes = dict(
        x=(s.width,), norm1=(s.width,), norm2=(s.width,), cos=(half,), sin=(half,),
        wq=(s.heads * s.head, s.width), wk=(s.key_heads * s.head, s.width), wv=(s.key_heads * s.head, s.width),
        wo=(s.width, s.heads * s.head), gate=(s.hidden, s.width), up=(s.hidden, s.width), down=(s.width, s.hidden),
        keys=(s.key_heads, s.context, s.head), values=(s.key_heads, s.context, s.head),
    )  # fmt: skip
    p = {name: te.placeholder(shape, name=name) for name, shape in shapes.items()}
    n1 = norm(p["x"], p["norm1"], "n1")
    q = rotated(matvec(p["wq"], n1, "q"), s.heads, s.head, p["cos"], p["sin"], "qr")
    k = rotated(matvec(p["wk"], n1, "k"), s.key_heads, s.head, p["cos"], p["sin"], "kr")
    v = matvec(p["wv"], n1, "v")
    scale = te.const(s.head**-0.5, "float32")
    c, d, c2, d2 = (te.reduce_axis(e, name=n) for e, n in ((2, "c"), (half, "d"), (2, "c2"), (half, "d2")))
    t, t2, t3 = (te.reduce_axis(s.context, name=n) for n in ("t", "t2", "t3"))
    kh, kg = (s.key_heads, group)  # query head = key head * group + member
    score = te.compute((kh, kg, s.context), lambda h, g, i: te.sum(q[h * group + g, c, d] * p["keys"][h, i, c * half + d], axis=[c, d]), name="score")  # fmt: skip
    own = te.compute((kh, kg), lambda h, g: te.sum(q[h * group + g, c2, d2] * k[h, c2, d2], axis=[c2, d2]), name="own")  # fmt: skip
    top = te.compute((kh, kg), lambda h, g: te.max(score[h, g, t], axis=t), name="top")
    limit = te.compute((kh, kg), lambda h, g: te.max(top[h, g], own[h, g]), name="limit")
    e = te.compute((kh, kg, s.context), lambda h, g, i: te.exp((score[h, g, i] - limit[h, g]) * scale), name="e")
    eo = te.compute((kh, kg), lambda h, g: te.exp((own[h, g] - limit[h, g]) * scale), name="eo")
    total = te.compute((kh, kg), lambda h, g: te.sum(e[h, g, t2], axis=t2), name="total")
    weighted = te.compute((kh, kg, s.head), lambda h, g, j: te.sum(e[h, g, t3] * p["values"][h, t3, j], axis=t3), name="weighted")  # fmt: skip
    head = te.compute((kh, kg, s.head), lambda h, g, j: (weighted[h, g, j] + eo[h, g] * v[h * s.head + j]) / (total[h, g] + eo[h, g]), name="head")  # fmt: skip
    a, b, j = (te.reduce_axis(n, name=m) for n, m in ((kh, "a"), (kg, "b"), (s.head, "j")))
    attended = te.compute((s.width,), lambda i: te.sum(p["wo"][i, (a * group + b) * s.head + j] * head[a, b, j], axis=[a, b, j]), name="attended")  # fmt: skip
    y = te.compute((s.width,), lambda i: p["x"][i] + attended[i], name="y")
    n2 = norm(y, p["norm2"], "n2")
    g, u = matvec(p["gate"], n2, "g"), matvec(p["up"], n2, "u")
    m = te.compute((s.hidden,), lambda i: g[i] * te.sigmoid(g[i]) * u[i], name="m")
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
        return np.stack([x[:, 0] * a["cos"] - x[:, 1] * a["sin"], x[:, 1] * a["cos"] + x[:, 0] * a["sin"]], 1)

    n1 = normed(a["x"], a["norm1"])
    q, k, v = rope(a["wq"] @ n1), rope(a["wk"] @ n1), a["wv"] @ n1
    heads = []
    for h in range(s.heads):
        keys = np.vstack([a["keys"][h // group], k[h // group].reshape(1, -1)])
        values = np.vstack([a["values"][h // group], v.reshape(s.key_heads, 1, -1)[h // group]])
        e = np.exp((keys @ q[h].ravel()) / np.sqrt(s.head))
        heads.append(e / e.sum() @ values)
    y = a["x"] + a["wo"] @ np.concatenate(heads)
    n2 = normed(y, a["norm2"])
    g = a["gate"] @ n2
    return y + a["down"] @ (g / (1 + np.exp(-g)) * (a["up"] @ n2)), k, v


def inputs(s: Shape, seed=0):
    rng = np.random.default_rng(seed)
    placeholders, _ = block(s)
    out = {}
    for name, p in placeholders.items():
        shape = tuple(int(e) for e in p.shape)
        scale = shape[-1] ** -0.5 if len(shape) == 2 else 1.0
        out[name] = (rng.standard_normal(shape) * scale).astype("float32")
    angle = 7 * 10000.0 ** (-np.arange(s.head // 2) / (s.head // 2))
    return out | {"cos": np.cos(angle).astype("f4"), "sin": np.sin(angle).astype("f4")}


def run_block(s: Shape, target: str):
    """The largest difference from NumPy, the cycles of the stages, and the program's CSL."""
    placeholders, results = block(s)
    module = weft.build(te.create_prim_func([*placeholders.values(), *results]), target=target)
    device = weft.device(target)
    given = inputs(s)
    held = [weft.asarray(given[name], device=device) for name in placeholders]
    outs = [weft.zeros(tuple(int(e) for e in r.shape), dtype="float32", device=device) for r in results]
    module["main"](*held, *outs)
    error = max(float(np.abs(o.numpy() - w).max()) for o, w in zip(outs, reference(s, given)))
    return error, device.stats(), module.source()


# ---- the prediction


def cycles_of(results, target, arrays):
    """Simulated cycles of the stages, without copies; the second call, so that weights are there."""
    module = weft.build(te.create_prim_func(results), target=target)
    device = weft.device(target)
    held = [weft.asarray(a, device=device) for a in arrays]
    for tensor in results[len(arrays) :]:
        shape = tuple(int(e) for e in tensor.shape)
        held.append(weft.zeros(shape, dtype=str(tensor.dtype), device=device))
    module["main"](*held)
    return device.stats()["cycles.stages"]


def random_of(tensors):
    rng = np.random.default_rng(1)
    return [(rng.standard_normal([int(e) for e in t.shape]) * 0.1).astype(str(t.dtype)) for t in tensors]


def projection(rows, columns, width, height):
    """A vector times a matrix of 16-bit weights, with `rows` x `columns` of it on each PE, summed in 32 bits."""
    W = te.placeholder((rows * height, columns * width), "float16", name="W")
    x = te.placeholder((columns * width,), "float16", name="x")
    k = te.reduce_axis(columns * width, name="k")
    y = te.compute((rows * height,), lambda i: te.sum(W[i, k].astype("float32") * x[k].astype("float32"), axis=k), name="y")  # fmt: skip
    return [W, x], [y]


def handed_on(rows, columns, width, height):
    """The same, then its result as the vector of a second one with one row a PE: what the vector's way costs."""
    (W, x), (y,) = projection(rows, columns, width, height)
    V = te.placeholder((height, rows * height), "float16", name="V")
    half = te.compute((rows * height,), lambda i: y[i].astype("float16"), name="half")
    k = te.reduce_axis(rows * height, name="k2")
    z = te.compute((height,), lambda i: te.sum(V[i, k].astype("float32") * half[k].astype("float32"), axis=k), name="z")  # fmt: skip
    return [W, x, V], [z]


def normed(rows, _, width, height):
    x, g = te.placeholder((rows * height,), name="x"), te.placeholder((rows * height,), name="g")
    return [x, g], [norm(x, g, "n")]


def gated(rows, _, width, height):
    g, u = (te.placeholder((rows * height,), name=n) for n in "gu")
    return [g, u], [te.compute((rows * height,), lambda i: g[i] * te.sigmoid(g[i]) * u[i], name="m")]


def attention(group, context, head):
    """One key head's query heads on a row of PEs: keys divided by token, values by element."""
    q = te.placeholder((group, head), name="q")
    K, V = te.placeholder((context, head), name="K"), te.placeholder((context, head), name="V")
    d, t, t2, t3 = (te.reduce_axis(e, name=n) for n, e in (("d", head), ("t", context), ("t2", context), ("t3", context)))  # fmt: skip
    score = te.compute((group, context), lambda g, i: te.sum(K[i, d] * q[g, d], axis=d), name="score")
    top = te.compute((group,), lambda g: te.max(score[g, t], axis=t), name="top")
    e = te.compute((group, context), lambda g, i: te.exp(score[g, i] - top[g]), name="e")
    total = te.compute((group,), lambda g: te.sum(e[g, t2], axis=t2), name="total")
    o = te.compute((group, head), lambda g, j: te.sum(e[g, t3] * V[t3, j], axis=t3), name="o")
    out = te.compute((group, head), lambda g, j: o[g, j] / total[g], name="out")
    return [q, K, V], [out]


def extended(piece, rows, columns, width, height, arch):
    """Cycles on width x height PEs from three small rectangles whose PEs have the same parts: linear in both."""

    def at(w, h):
        given, results = piece(rows, columns, w, h)
        return cycles_of([*given, *results], f"wse:{w}x{h},arch={arch}", random_of(given))

    corner, wide, high = at(2, 2), at(6, 2), at(2, 6)
    return corner + (wide - corner) / 4 * (width - 2) + (high - corner) / 4 * (height - 2)


def predict(s: Shape, width: int, height: int, arch="wse3", clock=875e6):
    """Rows (piece, how often in a layer, cycles), and tokens a second of one stream of tokens."""
    up = lambda n, parts: -(-n // parts)  # noqa: E731
    tile = lambda rows, columns: (up(rows, height), up(columns, width))  # noqa: E731
    count = {
        "query and output projections": ((s.width, s.width), 2),
        "key and value projections": ((s.key_heads * s.head, s.width), 2),
        "gate and up projections": ((s.hidden, s.width), 2),
        "down projection": ((s.width, s.hidden), 1),
    }
    rows = [(n, k, extended(projection, *tile(*shape), width, height, arch)) for n, (shape, k) in count.items()]
    part = up(s.width, height)

    def way(n):
        """The vector's way: what a second product adds beyond itself."""
        both = extended(handed_on, up(n, height), 1, width, height, arch)
        alone = extended(projection, up(n, height), 1, width, height, arch)
        second = extended(projection, 1, up(n, width), width, height, arch)
        return max(both - alone - second, 0)

    rows.append(("a vector of the stream to all PEs", 3, way(s.width)))
    rows.append(("the hidden vector to all PEs", 1, way(s.hidden)))
    rows.append(("norms", 2, extended(normed, part, 1, width, height, arch)))
    rows.append(("gated activation", 1, extended(gated, up(s.hidden, height), 1, width, height, arch)))
    given, results = attention(s.heads // s.key_heads, s.context, s.head)
    rows.append((f"attention over {s.context} tokens", 1, cycles_of([*given, *results], f"wse:{width}x1,arch={arch}", random_of(given))))  # fmt: skip
    layer = sum(k * c for _, k, c in rows)
    head = extended(projection, up(s.vocabulary, height * s.layers), up(s.width, width), width, height * s.layers, arch)
    rows.append(("vocabulary projection (once a token)", 0, head))
    return rows, clock / (s.layers * layer + head)


def main():
    error, stats, source = run_block(SMALL, "wse:4x4")
    print(f"small block on wse:4x4: {source.count('fn stage')} stages, {stats['cycles.stages']:,} cycles without copies, largest difference {error:.1e}")  # fmt: skip
    width, height = (int(v) for v in sys.argv[1].split("x")) if len(sys.argv) > 1 else (64, 128)
    s = LLAMA_1B
    rows, rate = predict(s, width, height)
    print(f"Llama 3.2 1B, 16-bit weights, {width} x {height} PEs a layer, {s.layers} layers one behind the other:")
    for name, k, cycles in rows:
        print(f"  {k or '':>2} {name:42} {cycles:10,.0f} cycles each")
    print(f"predicted: {rate:,.0f} tokens a second for one user")


if __name__ == "__main__":
    main()
