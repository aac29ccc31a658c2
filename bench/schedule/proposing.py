# SPDX-License-Identifier: Apache-2.0
"""How long the tuner takes to propose and check one candidate: drawn decisions, steps taken, each proved legal.

PYTHONPATH=python python bench/schedule/proposing.py [--count N] [--only WORD] [--children] [--traces FILE]

Processor time of one thread for each program and target; no device is needed. Candidates are drawn afresh; with
`--children` as in a search that goes on: most change one or two answers of earlier ones. `--traces` writes a digest of
the candidates of every seed, so that two versions can be compared: what is proposed must not depend on how fast.
"""

import argparse
import hashlib
import json
import pathlib
import random
import statistics
import time

import weft
from weft import te
from weft.tuning import search
from weft.tuning.sketches import sketches_for

TARGETS = ("cuda:arch=sm_90a", "cpu")


def axis(extent):
    return te.reduce_axis((0, extent), name="r")


def dense(x, w, name):
    """x of (rows, k), w of (k, columns)."""
    r = axis(w.shape[0])
    return te.compute(
        (x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name=name
    )


def row_sum(x, name, join=te.sum):
    r = axis(x.shape[1])
    return te.compute((x.shape[0],), lambda i: join(x[i, r], axis=r), name=name)


def product(n=1024):
    a, b = (te.placeholder((n, n), name=x) for x in "AB")
    return [a, b, dense(a, b, "C")]


def convolved(x, w, name, pad=1):
    """A window over images with a border of zeros, which is a statement of its own."""
    n, c, h, _ = x.shape
    inner = te.compute(
        (n, c, h + 2 * pad, h + 2 * pad),
        lambda b, f, i, j: te.if_then_else(
            te.all(i >= pad, i < h + pad, j >= pad, j < h + pad), x[b, f, i - pad, j - pad], 0.0
        ),
        name=name + "_pad",
    )
    rc, ry, rx = axis(c), axis(w.shape[2]), axis(w.shape[3])
    return te.compute(
        (n, w.shape[0], h, h),
        lambda b, f, i, j: te.sum(
            inner[b, rc, i + ry, j + rx] * w[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name=name,
    )


def convolution(n=8, c=64, h=56):
    x, w = te.placeholder((n, c, h + 2, h + 2), name="X"), te.placeholder((c, c, 3, 3), name="W")
    rc, ry, rx = axis(c), axis(3), axis(3)
    y = te.compute(
        (n, c, h, h),
        lambda b, f, i, j: te.sum(x[b, rc, i + ry, j + rx] * w[f, rc, ry, rx], axis=[rc, ry, rx]),
        name="Y",
    )
    return [x, w, y]


def convolutions(n=4, c=32, h=28):
    """Two convolutions with batch norm and relu, the image added: nine statements."""
    x = te.placeholder((n, c, h, h), name="X")
    w, v = (te.placeholder((c, c, 3, 3), name=s) for s in "WV")
    parameters = [te.placeholder((c,), name=f"p{k}") for k in range(4)]
    out = x
    for name, weights, (scale, shift) in (("A", w, parameters[:2]), ("B", v, parameters[2:])):
        y = convolved(out, weights, name)
        z = te.compute(
            (n, c, h, h),
            lambda b, f, i, j, y=y, s=scale, t=shift: y[b, f, i, j] * s[f] + t[f],
            name=name + "_norm",
        )
        if name == "B":
            z = te.compute(
                (n, c, h, h),
                lambda b, f, i, j, z=z: z[b, f, i, j] + x[b, f, i, j],
                name="residual",
            )
        out = te.compute(
            (n, c, h, h), lambda b, f, i, j, z=z: te.max(z[b, f, i, j], 0.0), name=name + "_relu"
        )
    return [x, w, v, *parameters, out]


def winograd(n=1, c=64, h=28):
    """F(2 x 2, 3 x 3): tiles, their transform, products by place, the transform back."""
    tiles = h // 2
    x, w = te.placeholder((n, c, h + 2, h + 2), name="X"), te.placeholder((c, c, 3, 3), name="W")
    a, b, g = (
        te.placeholder(s, name=t) for s, t in (((4, 2), "At"), ((4, 4), "Bt"), ((4, 3), "Gt"))
    )
    u1, u2, v1, v2, o1, o2 = axis(3), axis(3), axis(4), axis(4), axis(4), axis(4)
    count = n * tiles * tiles
    u = te.compute(
        (4, 4, c, c),
        lambda e, f, o, i: te.sum(w[o, i, u1, u2] * g[e, u1] * g[f, u2], axis=[u1, u2]),
        name="U",
    )
    d = te.compute(
        (c, count, 4, 4),
        lambda i, p, e, f: x[
            p // (tiles * tiles), i, p // tiles % tiles * 2 + e, p % tiles * 2 + f
        ],
        name="D",
    )
    v = te.compute(
        (4, 4, c, count),
        lambda e, f, i, p: te.sum(d[i, p, v1, v2] * b[v1, e] * b[v2, f], axis=[v1, v2]),
        name="V",
    )
    r = axis(c)
    m = te.compute(
        (4, 4, c, count),
        lambda e, f, o, p: te.sum(u[e, f, o, r] * v[e, f, r, p], axis=r),
        name="M",
    )
    y = te.compute(
        (c, count, 2, 2),
        lambda o, p, e, f: te.sum(m[o1, o2, o, p] * a[o1, e] * a[o2, f], axis=[o1, o2]),
        name="Y",
    )
    out = te.compute(
        (n, c, h, h),
        lambda q, o, i, j: y[o, q * tiles * tiles + i // 2 * tiles + j // 2, i % 2, j % 2],
        name="O",
    )
    return [x, w, a, b, g, out]


def softmaxed(x, name):
    n, m = x.shape
    t = row_sum(x, name + "_max", te.max)
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - t[i]), name=name + "_exp")
    s = row_sum(e, name + "_sum")
    return te.compute((n, m), lambda i, j: e[i, j] / s[i], name=name)


def softmax(n=8192, m=1000):
    x = te.placeholder((n, m), name="X")
    return [x, softmaxed(x, "P")]


def cross_entropy(n=512, m=1000):
    """The loss of labels given as rows, and its gradient: two results."""
    x, y = (te.placeholder((n, m), name=s) for s in "XY")
    p = softmaxed(x, "P")
    score = te.compute((n, m), lambda i, j: te.log(p[i, j] + 1e-9) * y[i, j], name="score")
    rows = row_sum(score, "rows")
    r = axis(n)
    total = te.compute((1,), lambda i: te.sum(rows[r], axis=r), name="total")
    loss = te.compute((1,), lambda i: total[i] * (-1.0 / n), name="loss")
    gradient = te.compute((n, m), lambda i, j: (p[i, j] - y[i, j]) * (1.0 / n), name="gradient")
    return [x, y, loss, gradient]


def attended(q, k, v, name):
    h, n, d = q.shape
    r, r1, r2, r3 = axis(d), axis(n), axis(n), axis(n)
    s = te.compute(
        (h, n, n), lambda b, i, j: te.sum(q[b, i, r] * k[b, j, r], axis=r), name=name + "_s"
    )
    t = te.compute((h, n), lambda b, i: te.max(s[b, i, r1], axis=r1), name=name + "_max")
    e = te.compute((h, n, n), lambda b, i, j: te.exp(s[b, i, j] - t[b, i]), name=name + "_exp")
    z = te.compute((h, n), lambda b, i: te.sum(e[b, i, r2], axis=r2), name=name + "_sum")
    p = te.compute((h, n, n), lambda b, i, j: e[b, i, j] / z[b, i], name=name + "_p")
    return te.compute(
        (h, n, d), lambda b, i, j: te.sum(p[b, i, r3] * v[b, r3, j], axis=r3), name=name
    )


def attention(h=16, n=1024, d=64):
    q, k, v = (te.placeholder((h, n, d), name=x) for x in "QKV")
    return [q, k, v, attended(q, k, v, "O")]


def normed(x, name):
    n, m = x.shape
    mean = row_sum(x, name + "_mean")
    square = te.compute((n, m), lambda i, j: x[i, j] * x[i, j], name=name + "_square")
    squares = row_sum(square, name + "_squares")
    return te.compute(
        (n, m),
        lambda i, j: (
            (x[i, j] - mean[i] / m) / te.sqrt(squares[i] / m - mean[i] * mean[i] / (m * m) + 1e-5)
        ),
        name=name,
    )


def feed_forward(n=256, m=256):
    """Layer norm, two products with gelu between them, the row added."""
    x = te.placeholder((n, m), name="X")
    w, v = te.placeholder((m, 4 * m), name="W"), te.placeholder((4 * m, m), name="V")
    up = dense(normed(x, "N"), w, "up")
    act = te.compute(
        (n, 4 * m), lambda i, j: up[i, j] / (1.0 + te.exp(-1.702 * up[i, j])), name="act"
    )
    down = dense(act, v, "down")
    return [x, w, v, te.compute((n, m), lambda i, j: down[i, j] + x[i, j], name="out")]


def transformer_block(n=128, m=128, heads=4):
    """Layer norm, attention and what joins its heads: fifteen statements."""
    d = m // heads
    x = te.placeholder((n, m), name="X")
    weights = [te.placeholder((m, m), name=f"W{k}") for k in range(4)]
    y = normed(x, "N")
    parts = []
    for name, w in zip("qkv", weights):
        r = axis(m)
        parts.append(
            te.compute(
                (heads, n, d),
                lambda h, i, j, w=w, r=r: te.sum(y[i, r] * w[r, h * d + j], axis=r),
                name=name,
            )
        )
    o = attended(*parts, "A")
    r = axis(m)
    out = te.compute(
        (n, m), lambda i, j: te.sum(o[r // d, i, r % d] * weights[3][r, j], axis=r), name="joined"
    )
    return [x, *weights, te.compute((n, m), lambda i, j: out[i, j] + x[i, j], name="out")]


def lstm_cell(n=64, m=256):
    """Four gates of two products each, the next state and the next output."""
    x, h, c = (te.placeholder((n, m), name=s) for s in "XHC")
    weights = [te.placeholder((m, m), name=f"W{k}") for k in range(8)]
    gates = []
    for k, name in enumerate(("input", "forget", "output", "cell")):
        a, b = dense(x, weights[2 * k], name + "_x"), dense(h, weights[2 * k + 1], name + "_h")

        def value(i, j, a=a, b=b, name=name):
            s = a[i, j] + b[i, j]
            return te.tanh(s) if name == "cell" else 1.0 / (1.0 + te.exp(-s))

        gates.append(te.compute((n, m), value, name=name))
    i_, f_, o_, g_ = gates
    state = te.compute((n, m), lambda i, j: f_[i, j] * c[i, j] + i_[i, j] * g_[i, j], name="state")
    out = te.compute((n, m), lambda i, j: o_[i, j] * te.tanh(state[i, j]), name="out")
    return [x, h, c, *weights, state, out]


def maps(n=4096, count=12):
    x = te.placeholder((n, n), name="X")
    y = x
    for k in range(count):
        y = te.compute((n, n), lambda i, j, y=y, k=k: te.tanh(y[i, j]) + 1.0 * k, name=f"M{k}")
    return [x, y]


PROGRAMS = {
    "product": product,
    "convolution": convolution,
    "softmax": softmax,
    "attention": attention,
    "cross entropy with gradient": cross_entropy,
    "convolutions with batch norm": convolutions,
    "Winograd convolution": winograd,
    "layer norm, two products": feed_forward,
    "transformer block": transformer_block,
    "LSTM cell": lstm_cell,
    "twelve maps": maps,
}


def candidate(seed, start, sketches, trials=()):
    """Seconds, and what was proposed: decisions and trace, or a refusal's code."""
    begin = time.process_time()
    try:
        decisions, schedule = search._propose(random.Random(seed), start, sketches, trials)
    except weft.Error as refused:
        return time.process_time() - begin, (refused.code, "")
    seconds = time.process_time() - begin
    return seconds, (json.dumps(decisions, sort_keys=True), str(schedule.trace.as_json()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--count", type=int, default=60, help="candidates of each program and target"
    )
    parser.add_argument("--only", default="", help="programs with this in their name")
    parser.add_argument("--children", action="store_true", help="of earlier candidates")
    parser.add_argument("--traces", help="a file for the digests")
    args = parser.parse_args()
    digests = {}
    for name, make in PROGRAMS.items():
        if args.only not in name:
            continue
        start = weft.Schedule(te.create_prim_func(make()))
        for target in TARGETS:
            sketches, times, kept, legal = sketches_for(target), [], [], 0
            trials = []
            for seed in range(-3, args.count):
                seconds, found = candidate(seed, start, sketches, trials)
                if args.children and found[1]:
                    # Any time will do: which parents are taken does not matter here.
                    taken = random.Random(found[0]).random()
                    trials.append(search.Trial(json.loads(found[0]), seconds=taken))
                if seed >= 0:
                    times.append(seconds)
                    kept.append(hashlib.sha256("\n".join(found).encode()).hexdigest()[:16])
                    legal += bool(found[1])
            label = f"{name}, {target.partition(':')[0]}"
            parts = (statistics.median(times), statistics.mean(times), max(times))
            median, mean, most = (f"{seconds * 1e3:6.2f}" for seconds in parts)
            print(
                f"{label:36s} median {median} ms, mean {mean}, most {most}, {legal} of {args.count} legal",
                flush=True,
            )
            digests[label] = kept
    if args.traces:
        pathlib.Path(args.traces).write_text(json.dumps(digests, indent=1))


if __name__ == "__main__":
    main()
