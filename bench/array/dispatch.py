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
    n, took = timer.autorange()
    n = max(1, int(n * seconds / max(took, 1e-9)))
    return min(timer.repeat(repeat, n)) / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", type=int, default=10_000_000)
    options = parser.parse_args()
    weft.set_threads(options.threads)
    if torch:
        torch.set_num_threads(options.threads)
    rows = []

    def case(name, ours, numpy, torch_=None, seconds=0.05):
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
