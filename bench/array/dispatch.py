# SPDX-License-Identifier: Apache-2.0
"""Small and large array operations beside NumPy and torch in one run: python bench/array/dispatch.py [--json F]"""

import argparse
import json
import os
import sys
import timeit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))

if "--threads" not in sys.argv:  # one thread for everybody unless asked otherwise
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import weft  # noqa: E402

try:
    import torch
except ImportError:
    torch = None


def best(f, seconds=0.05, repeat=7):
    timer = timeit.Timer(f)
    timer.timeit(10)
    once = timer.timeit(10) / 10
    n = max(1, int(seconds / max(once, 1e-9)))
    return min(timer.repeat(repeat, n)) / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.05, help="for each repeat of a case")
    parser.add_argument("--small", action="store_true", help="stop after the small arrays")
    parser.add_argument("--size", type=int, default=10_000_000)
    options = parser.parse_args()
    weft.set_threads(options.threads)
    if torch:
        torch.set_num_threads(options.threads)
    rows = []

    def case(name, ours, numpy, torch_=None, seconds=None):
        seconds = seconds or options.seconds
        row = {"case": name, "weft": best(ours, seconds), "numpy": best(numpy, seconds)}
        if torch_ and torch:
            row["torch"] = best(torch_, seconds)
        rows.append(row)
        rival = min(v for k, v in row.items() if k in ("numpy", "torch"))
        times = "  ".join(f"{k} {v * 1e6:10.3f} us" for k, v in row.items() if k != "case")
        print(f"{name:24s} {times}   best rival / weft = {rival / row['weft']:.2f}", flush=True)

    n4 = np.ones(4, "float32")
    m4 = np.ones(4, "float32")
    a, b = weft.asarray(n4), weft.asarray(m4)
    ta, tb = (torch.ones(4), torch.ones(4)) if torch else (None, None)
    case("a+b, n=4", lambda: a + b, lambda: n4 + m4, lambda: ta + tb)
    case("a+2.0, n=4", lambda: a + 2.0, lambda: n4 + 2.0, lambda: ta + 2.0)
    case("sum, n=4", lambda: a.sum(), lambda: n4.sum(), lambda: ta.sum())
    case("slice, n=4", lambda: a[1:3], lambda: n4[1:3], lambda: ta[1:3])
    case(
        "reshape, n=4", lambda: a.reshape(2, 2), lambda: n4.reshape(2, 2), lambda: ta.reshape(2, 2)
    )
    p, q = weft.Tensor(n4), weft.Tensor(m4)
    tp, tq = (
        (torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True))
        if torch
        else (None, None)
    )
    case("autograd add, n=4", lambda: p + q, lambda: n4 + m4, lambda: tp + tq)

    case("x[i], n=4", lambda: a[2], lambda: n4[2], lambda: ta[2])
    w44, n44 = weft.ones((4, 4)), np.ones((4, 4), "float32")
    t44 = torch.ones(4, 4) if torch else None
    case("x[i, j], 4x4", lambda: w44[1, 2], lambda: n44[1, 2], lambda: t44[1, 2])
    case("x[:, 1], 4x4", lambda: w44[:, 1], lambda: n44[:, 1], lambda: t44[:, 1])
    case("x @ y, 4x4", lambda: w44 @ w44, lambda: n44 @ n44, lambda: t44 @ t44)
    case("x.T, 4x4", lambda: w44.T, lambda: n44.T, lambda: t44.t())

    def put(x):
        x[1] = 2.0

    case("x[i] = v, n=4", lambda: put(a), lambda: put(n4), lambda: put(ta))
    case("for e in x, n=4", lambda: list(a), lambda: list(n4), lambda: list(ta))
    w0, n0, t0 = a[0], n4[0:1].reshape(()), ta[0] if torch else None
    case("float(x)", lambda: float(w0), lambda: float(n0), lambda: float(t0))
    case("x.item()", lambda: w0.item(), lambda: n0.item(), lambda: t0.item())
    case("bool(x)", lambda: bool(w0), lambda: bool(n0), lambda: bool(t0))
    case("a == b, n=4", lambda: a == b, lambda: n4 == m4, lambda: ta == tb)
    case("-a, n=4", lambda: -a, lambda: -n4, lambda: -ta)
    case("exp, n=4", lambda: weft.exp(a), lambda: np.exp(n4), lambda: torch.exp(ta))
    case("a.max(), n=4", lambda: a.max(), lambda: n4.max(), lambda: ta.max())
    case("a.mean(), n=4", lambda: a.mean(), lambda: n4.mean(), lambda: ta.mean())
    case("weft.sum(a), n=4", lambda: weft.sum(a), lambda: np.sum(n4), lambda: torch.sum(ta))
    case("numpy(), n=4", lambda: a.numpy(), lambda: n4.copy(), lambda: ta.numpy().copy())
    case("shape", lambda: a.shape, lambda: n4.shape, lambda: ta.shape)
    four = [1.0, 2.0, 3.0, 4.0]
    case(
        "asarray(list)",
        lambda: weft.asarray(four),
        lambda: np.asarray(four),
        lambda: torch.tensor(four),
    )
    case("asarray(numpy)", lambda: weft.asarray(n4), lambda: np.array(n4), lambda: torch.tensor(n4))
    case("zeros(4)", lambda: weft.zeros(4), lambda: np.zeros(4, "float32"), lambda: torch.zeros(4))
    case(
        "ones((2, 2))", lambda: weft.ones((2, 2)), lambda: np.ones((2, 2)), lambda: torch.ones(2, 2)
    )
    case("arange(4)", lambda: weft.arange(4), lambda: np.arange(4), lambda: torch.arange(4))
    case("astype, n=4", lambda: a.astype("int32"), lambda: n4.astype("int32"), lambda: ta.int())
    case(
        "concat, n=4",
        lambda: weft.concat([a, b]),
        lambda: np.concatenate([n4, m4]),
        lambda: torch.cat([ta, tb]),
    )
    case(
        "stack, n=4",
        lambda: weft.stack([a, b]),
        lambda: np.stack([n4, m4]),
        lambda: torch.stack([ta, tb]),
    )
    wk, nk, tk = a > 0, n4 > 0, ta > 0 if torch else None
    case(
        "where, n=4",
        lambda: weft.where(wk, a, b),
        lambda: np.where(nk, n4, m4),
        lambda: torch.where(tk, ta, tb),
    )
    case("x[mask], n=4", lambda: a[wk], lambda: n4[nk], lambda: ta[tk])
    if torch:
        layer, other = weft.nn.Linear(16, 16), torch.nn.Linear(16, 16)
        x1, y1 = weft.Tensor(np.ones((1, 16), "float32")), torch.ones(1, 16, requires_grad=True)
        w, v = other.weight.detach().numpy().T.copy(), other.bias.detach().numpy()
        h = np.ones((1, 16), "float32")
        case("nn.Linear, batch 1", lambda: layer(x1), lambda: h @ w + v, lambda: other(y1))
        case(
            "nn.Linear, with backward",
            lambda: weft.sum(layer(x1)).backward(),
            lambda: (h @ w + v).sum() + (h.T @ np.ones((1, 16), "float32")).sum(),
            lambda: other(y1).sum().backward(),
        )
    if options.small:
        return

    size = options.size
    rng = np.random.default_rng(0)
    x, y = rng.random(size, dtype="float32"), rng.random(size, dtype="float32")
    wx, wy = weft.asarray(x), weft.asarray(y)
    tx, ty = (torch.from_numpy(x), torch.from_numpy(y)) if torch else (None, None)
    big = dict(seconds=0.2)
    case("add 1e7", lambda: wx + wy, lambda: x + y, lambda: tx + ty, **big)
    case("mul scalar 1e7", lambda: wx * 2.0, lambda: x * np.float32(2), lambda: tx * 2.0, **big)
    case("exp 1e7", lambda: weft.exp(wx), lambda: np.exp(x), lambda: torch.exp(tx), **big)
    case("tanh 1e7", lambda: weft.tanh(wx), lambda: np.tanh(x), lambda: torch.tanh(tx), **big)
    case("sum 1e7", lambda: wx.sum(), lambda: x.sum(), lambda: tx.sum(), **big)
    rows_ = size // 1000
    x2 = x[: rows_ * 1000].reshape(rows_, 1000)
    w2, t2 = weft.asarray(x2), (torch.from_numpy(x2) if torch else None)
    case("sum axis 0", lambda: w2.sum(axis=0), lambda: x2.sum(0), lambda: t2.sum(0), **big)
    case("sum axis 1", lambda: w2.sum(axis=1), lambda: x2.sum(1), lambda: t2.sum(1), **big)
    case("row broadcast add", lambda: w2 + w2[0], lambda: x2 + x2[0], lambda: t2 + t2[0], **big)
    case(
        "transpose copy",
        lambda: w2.T.copy(),
        lambda: np.ascontiguousarray(x2.T),
        lambda: t2.t().contiguous(),
        **big,
    )

    def np_softmax():
        e = np.exp(x2 - x2.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    case("softmax rows", lambda: weft.softmax(w2), np_softmax, lambda: torch.softmax(t2, 1), **big)
    for n in (8, 64, 128, 512, 1024, 2048):
        m = rng.random((n, n), dtype="float32")
        wm, tm = weft.asarray(m), (torch.from_numpy(m) if torch else None)
        case(
            f"matmul float32 {n}",
            lambda: wm @ wm,
            lambda: m @ m,
            lambda: tm @ tm,
            seconds=0.2 if n > 256 else 0.05,
        )
    m = rng.random((1024, 1024))
    wm, tm = weft.asarray(m), (torch.from_numpy(m) if torch else None)
    case("matmul float64 1024", lambda: wm @ wm, lambda: m @ m, lambda: tm @ tm, **big)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"threads": options.threads, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
