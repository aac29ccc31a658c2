# SPDX-License-Identifier: Apache-2.0
"""`A @ B` beside torch.matmul (TF32 off) over a list of shapes: time on the card, calls queued ahead, samples of both in
turns. Every product is checked against one of wider operands.

    gemm_shapes.py [--random COUNT --seed SEED] [--odd] [--least 256] [--dtype bfloat16] [--shapes FILE]

--odd: random extents that are no multiples of 8; --least: the smallest one; below 8 extents are any integers.
FILE: lines "m n k layout pad", such as "4096 4096 4096 NT 0".
"""

import argparse
import pathlib
import random
import statistics
import sys

import halves
import torch
import weft

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record

# batch, m, n, k, layout, elements between rows
CASES = [
    ((), 512, 512, 512, "NN", 0),
    ((), 1000, 1000, 1000, "NN", 0),
    ((), 1024, 1024, 1024, "NN", 0),
    ((), 2048, 2048, 2048, "NN", 0),
    ((), 4096, 4096, 4096, "NN", 0),
    ((), 4096, 4096, 4096, "NN", 8),
    ((), 4096, 4096, 4096, "NN", 16),
    ((), 4096, 4096, 4096, "NN", 32),
    ((), 4096, 4096, 4096, "NN", 64),
    ((), 4000, 4056, 4072, "NN", 0),
    ((), 8192, 96, 4096, "NN", 0),
    ((), 8192, 160, 4096, "NN", 0),
    ((), 8192, 8192, 64, "NN", 0),
    ((), 8192, 8192, 128, "NN", 0),
    ((), 256, 1024, 784, "NN", 0),
    ((), 256, 784, 1024, "NN", 0),
    ((), 64, 64, 65536, "NN", 0),
    ((), 64, 8192, 8192, "NN", 0),
    ((), 304, 4096, 2048, "NT", 0),
    ((), 3000, 5000, 7000, "NN", 0),
    ((), 1280, 1280, 5120, "NN", 0),
    ((), 7168, 2048, 320, "NN", 0),
    ((), 8192, 1024, 1024, "NT", 0),
    ((64,), 256, 256, 256, "NN", 0),
    ((192,), 512, 512, 64, "NT", 0),
    ((), 8192, 8192, 8192, "NN", 0),
    ((), 1001, 1001, 1001, "NN", 0),
    ((), 1000, 1001, 999, "NN", 0),
    ((), 4001, 4003, 4005, "NN", 0),
    ((), 2049, 2049, 2049, "NT", 0),
]


def random_cases(count, seed, odd, least):
    rng = random.Random(seed)

    def extent():
        n = int(least * (8192 / least) ** rng.random())
        return n | 1 if odd else n // 8 * 8 if least >= 8 else n

    layouts = [("NN", 0), ("NT", 0), ("TN", 0), ("TT", 0), ("NN", 24)]
    return [((), extent(), extent(), extent(), *rng.choice(layouts)) for _ in range(count)]


def operand(batch, rows, columns, turned, pad, dtype):
    if turned:
        rows, columns = columns, rows
    x = torch.randn(*batch, rows, columns + pad, device="cuda").to(dtype)[..., :columns]
    y = weft.from_dlpack(x)
    return (x.mT, weft.matrix_transpose(y)) if turned else (x, y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--least", type=int, default=256)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--shapes")
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    wide = torch.float32 if dtype.itemsize == 2 else torch.float64
    rate = {2: 5e14, 4: 4e13, 8: 3e13}[dtype.itemsize]
    torch.backends.cuda.matmul.allow_tf32 = False
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    least = 0.85 if dtype.itemsize == 2 and args.least >= 256 else 0.8
    record = Record(f"products, {args.dtype}", "cuda", {"": {"mean": 1.0, "least": least}})
    ratios = []
    cases = random_cases(args.random, args.seed, args.odd, args.least) if args.random else CASES
    if args.shapes:
        rows = [line.split() for line in open(args.shapes)]
        cases = [((), *map(int, r[:3]), r[3], int(r[4])) for r in rows]
    for batch, m, n, k, layout, pad in cases:
        a, A = operand(batch, m, k, layout[0] == "T", pad, dtype)
        b, B = operand(batch, k, n, layout[1] == "T", pad, dtype)
        want = a.to(wide) @ b.to(wide)
        got = torch.from_dlpack(A @ B).to(wide)
        error = float((got - want).norm() / want.norm())
        work = 2.0 * m * n * k * (batch[0] if batch else 1)
        number = max(3, min(60, int(2e-3 / (work / rate))))
        ours, rival = halves.beside(lambda: A @ B, lambda: a @ b, number, 5)
        ratios.append(rival / ours)
        name = f"{''.join(f'{b} of ' for b in batch)}{m} x {n} x {k} {layout}{f' padded by {pad}' if pad else ''}"
        record.row(args.dtype, name, ours, {"cuBLAS": rival})
        print(
            f"{args.dtype} {'x'.join(map(str, batch))} {m}x{n}x{k} {layout} +{pad}: {ours * 1e6:.2f} us "
            f"{work / ours / 1e12:.0f} TFLOP/s torch {rival * 1e6:.2f} ratio {rival / ours:.3f} error {error:.1e}"
            + ("" if error < {2: 5e-3, 4: 1e-5, 8: 1e-13}[dtype.itemsize] else " WRONG"),
            flush=True,
        )
    print(
        f"{len(ratios)} shapes: geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}, "
        f"below 0.8: {sum(r < 0.8 for r in ratios)}, below 0.85: {sum(r < 0.85 for r in ratios)}"
    )


if __name__ == "__main__":
    main()
