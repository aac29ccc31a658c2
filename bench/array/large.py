# SPDX-License-Identifier: Apache-2.0
"""Large arrays on the host beside NumPy, torch and oneDNN in one run, interleaved; medians (beside.py says how).

PYTHONPATH=python python bench/array/large.py [--threads N] [--only TEXT ...] [--json F]

The ratio is the best rival's time divided by ours: 1.0 or more is what the project asks of everything except products.
"""

import argparse
import ctypes
import json

from beside import Bench  # first: it tells NumPy how many threads to have

import numpy as np

import weft

try:
    import torch
except ImportError:
    torch = None


def onednn():
    """sgemm of oneDNN on two arrays, or None where the library is absent."""
    try:
        library = ctypes.CDLL("libdnnl.so.2")
    except OSError:
        return None
    i64, pointer = ctypes.c_int64, ctypes.c_void_p

    def product(a, b, c):
        (m, k), n = a.shape, b.shape[1]
        status = library.dnnl_sgemm(
            ctypes.c_char(b"N"), ctypes.c_char(b"N"), i64(m), i64(n), i64(k), ctypes.c_float(1), pointer(a.ctypes.data), i64(k),
            pointer(b.ctypes.data), i64(n), ctypes.c_float(0), pointer(c.ctypes.data), i64(n),
        )  # fmt: skip
        assert status == 0

    return product


def elementwise(bench, x, y, w, v, tx, ty):
    t = torch is not None
    bench.case("add", lambda: w + v, numpy=lambda: x + y, torch=t and (lambda: tx + ty))
    bench.case(
        "multiply by a number",
        lambda: w * 2.0,
        numpy=lambda: x * np.float32(2),
        torch=t and (lambda: tx * 2.0),
    )
    bench.case(
        "exp", lambda: weft.exp(w), numpy=lambda: np.exp(x), torch=t and (lambda: torch.exp(tx))
    )
    bench.case(
        "log", lambda: weft.log(w), numpy=lambda: np.log(x), torch=t and (lambda: torch.log(tx))
    )
    bench.case(
        "tanh", lambda: weft.tanh(w), numpy=lambda: np.tanh(x), torch=t and (lambda: torch.tanh(tx))
    )
    bench.case(
        "sigmoid",
        lambda: weft.sigmoid(w),
        numpy=lambda: 1 / (1 + np.exp(-x)),
        torch=t and (lambda: torch.sigmoid(tx)),
    )
    bench.case(
        "sqrt", lambda: weft.sqrt(w), numpy=lambda: np.sqrt(x), torch=t and (lambda: torch.sqrt(tx))
    )
    bench.case(
        "relu",
        lambda: weft.relu(w),
        numpy=lambda: np.maximum(x, 0),
        torch=t and (lambda: torch.relu(tx)),
    )
    bench.case("greater", lambda: w > v, numpy=lambda: x > y, torch=t and (lambda: tx > ty))
    c, k, tc = weft.greater(w, v), x > y, t and tx > ty
    bench.case(
        "where",
        lambda: weft.where(c, w, v),
        numpy=lambda: np.where(k, x, y),
        torch=t and (lambda: torch.where(tc, tx, ty)),
    )
    bench.case(
        "cast to float64",
        lambda: w.astype(weft.float64),
        numpy=lambda: x.astype("float64"),
        torch=t and (lambda: tx.double()),
    )
    bench.case(
        "cast to int32",
        lambda: w.astype(weft.int32),
        numpy=lambda: x.astype("int32"),
        torch=t and (lambda: tx.int()),
    )


def matrices(bench, x, w, tx, tag):
    t = torch is not None
    bench.case(
        f"sum {tag}",
        lambda: weft.sum(w),
        tol=1e-3,
        numpy=lambda: x.sum(),
        torch=t and (lambda: tx.sum()),
    )
    for axis in (0, 1):
        bench.case(
            f"sum axis {axis} {tag}",
            lambda: weft.sum(w, axis=axis),
            tol=1e-3,
            numpy=lambda: x.sum(axis),
            torch=t and (lambda: tx.sum(axis)),
        )
        bench.case(
            f"max axis {axis} {tag}",
            lambda: weft.max(w, axis=axis),
            numpy=lambda: x.max(axis),
            torch=t and (lambda: tx.amax(axis)),
        )
    bench.case(
        f"row broadcast add {tag}",
        lambda: w + w[0],
        numpy=lambda: x + x[0],
        torch=t and (lambda: tx + tx[0]),
    )
    bench.case(
        f"column broadcast add {tag}",
        lambda: w + w[:, :1],
        numpy=lambda: x + x[:, :1],
        torch=t and (lambda: tx + tx[:, :1]),
    )
    bench.case(
        f"transposed copy {tag}",
        lambda: w.T.copy(),
        numpy=lambda: np.ascontiguousarray(x.T),
        torch=t and (lambda: tx.t().contiguous()),
    )

    def softmax():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def logsumexp():
        m = x.max(1, keepdims=True)
        return np.log(np.exp(x - m).sum(1)) + m[:, 0]

    def norm():
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    n = x.shape[1]
    one, zero = weft.ones((n,)), weft.zeros((n,))
    bench.case(
        f"softmax {tag}",
        lambda: weft.softmax(w),
        numpy=softmax,
        torch=t and (lambda: torch.softmax(tx, 1)),
    )
    bench.case(
        f"logsumexp {tag}",
        lambda: weft.logsumexp(w, axis=1),
        numpy=logsumexp,
        torch=t and (lambda: torch.logsumexp(tx, 1)),
    )
    bench.case(
        f"layer norm {tag}",
        lambda: weft.layer_norm(w, one, zero),
        tol=1e-3,
        numpy=norm,
        torch=t and (lambda: torch.nn.functional.layer_norm(tx, (n,))),
    )


def products(bench, rng):
    dnn = onednn()
    for n in (128, 256, 512, 1000, 1024, 2048):
        a, b = rng.random((n, n), dtype="float32"), rng.random((n, n), dtype="float32")
        c, wa, wb = np.empty_like(a), weft.asarray(a), weft.asarray(b)

        def rival(a=a, b=b, c=c):
            dnn(a, b, c)
            return c

        bench.case(
            f"matmul float32 {n}",
            lambda: wa @ wb,
            tol=1e-2,
            numpy=lambda: a @ b,
            onednn=dnn and rival,
        )
        if n in (128, 512, 1024):
            a, b = a.astype("float64"), b.astype("float64")
            va, vb = weft.asarray(a), weft.asarray(b)
            bench.case(f"matmul float64 {n}", lambda: va @ vb, tol=1e-8, numpy=lambda: a @ b)
    n = 512
    a = rng.random((n, n), dtype="float32")
    wa = weft.asarray(a)
    b = rng.random((n, n), dtype="float32")  # of a @ a.T NumPy computes half
    wb = weft.asarray(b)
    bench.case("matmul float32 512, A B'", lambda: wa @ wb.T, tol=1e-2, numpy=lambda: a @ b.T)
    bench.case("matmul float32 512, A' B", lambda: wa.T @ wb, tol=1e-2, numpy=lambda: a.T @ b)
    for m in (1024, 3162):
        a, x = rng.random((m, m), dtype="float32"), rng.random(m, dtype="float32")
        wa, wx = weft.asarray(a), weft.asarray(x)
        ta, tx = (torch.from_numpy(a), torch.from_numpy(x)) if torch else (None, None)
        for tag, w, v, t in (("A x", wa, a, ta), ("A' x", wa.T, a.T, ta is not None and ta.t())):
            bench.case(
                f"matmul float32 {m}, {tag}",
                lambda: w @ wx,
                tol=1e-2,
                numpy=lambda: v @ x,
                torch=t is not None and (lambda: t @ tx),
            )
    s = rng.random((64, 64, 64), dtype="float32")
    ws, ts = weft.asarray(s), torch.from_numpy(s) if torch else None
    bench.case(
        "64 products of 64",
        lambda: ws @ ws,
        tol=1e-2,
        numpy=lambda: s @ s,
        torch=ts is not None and (lambda: ts @ ts),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each case, about")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    weft.set_threads(options.threads)
    if torch:
        torch.set_num_threads(options.threads)
    bench = Bench(options.only, options.seconds, 0.15 if options.threads > 1 else 0.0)
    rng = np.random.default_rng(0)
    x, y = (rng.random(options.size, dtype="float32") + np.float32(0.1) for _ in range(2))
    w, v = weft.asarray(x), weft.asarray(y)
    tx, ty = (torch.from_numpy(x), torch.from_numpy(y)) if torch else (None, None)
    elementwise(bench, x, y, w, v, tx, ty)
    for columns in (1000, 3152):
        rows = options.size // columns
        m = x[: rows * columns].reshape(rows, columns)
        matrices(
            bench, m, weft.asarray(m), torch.from_numpy(m) if torch else None, f"{rows}x{columns}"
        )
    products(bench, rng)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(threads=options.threads, rows=bench.rows), file, indent=1)


if __name__ == "__main__":
    main()
