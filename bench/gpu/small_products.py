# SPDX-License-Identifier: Apache-2.0
"""`A @ B` of types and sizes that threads multiply: time on the card beside torch.matmul (TF32 off), calls queued ahead, samples in turns.
Every product is checked against float64.

    small_products.py [--count 40] [--seed 7] [--dtypes float32,float64,int32]

Extents are random, from 5 up, with fewer than 2^27 multiply-adds of float32 (more go to tensor cores); layouts are NN, NT, TN, TT and NN
with elements between rows; every fourth case is a batch.
"""

import argparse
import random
import statistics
from concurrent.futures import ThreadPoolExecutor

import halves
import torch
import weft

LAYOUTS = [("NN", 0), ("NT", 0), ("TN", 0), ("TT", 0), ("NN", 24)]


def cases(count, seed):
    rng = random.Random(seed)
    for i in range(count):
        while True:
            m, n, k = (int(5 * (8192 / 5) ** rng.random()) for _ in range(3))
            if rng.random() < 0.6:
                m, n, k = (max(8, x // 8 * 8) for x in (m, n, k))
            if 2**16 <= m * n * k < 2**27:
                break
        batch = (rng.choice([3, 8, 24]),) if i % 4 == 3 else ()
        yield batch, m, n, k, *rng.choice(LAYOUTS)


def operand(batch, rows, columns, turned, pad, dtype):
    if turned:
        rows, columns = columns, rows
    shape = (*batch, rows, columns + pad)
    if dtype.is_floating_point or dtype.is_complex:
        x = torch.randn(shape, device="cuda", dtype=dtype)[..., :columns]
    else:
        x = torch.randint(-9, 9, shape, device="cuda", dtype=dtype)[..., :columns]
    y = weft.from_dlpack(x)
    return (x.mT, weft.matrix_transpose(y)) if turned else (x, y)


def medians(calls, number):
    """Seconds of one call of each, samples in turns."""
    samples = [[] for _ in calls]
    for call in calls:
        halves.device_seconds(call, 3)
    for _ in range(5):
        for call, into in zip(calls, samples):
            into.append(halves.device_seconds(call, number))
    return [statistics.median(s) for s in samples]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--dtypes", default="float32,float64,int32")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    for name in args.dtypes.split(","):
        dtype = getattr(torch, name)
        wide = torch.complex128 if dtype.is_complex else torch.float64
        bound = {4: 1e-5, 8: 1e-13 if dtype == torch.float64 else 1e-5}.get(dtype.itemsize, 1e-12)
        ratios = []
        all_cases = [
            (*case, *operand(case[0], *case[1:4:2], case[4][0] == "T", case[5], dtype),
             *operand(case[0], *case[3:1:-1], case[4][1] == "T", case[5], dtype))
            for case in cases(args.count, args.seed)
        ]  # fmt: skip
        with ThreadPoolExecutor(12) as pool:  # kernels are compiled side by side
            list(pool.map(lambda case: case[7] @ case[9], all_cases))
        for batch, m, n, k, layout, pad, a, A, b, B in all_cases:
            want = a.to(wide) @ b.to(wide)
            error = float((torch.from_dlpack(A @ B).to(wide) - want).norm() / want.norm())
            calls = [lambda: A @ B]
            if dtype.is_floating_point or dtype.is_complex:
                calls.append(lambda: a @ b)
            work = 2.0 * m * n * k * (batch[0] if batch else 1)
            times = medians(calls, max(5, min(60, int(2e-3 / (work / 2e13)))))
            line = f"{name} {'x'.join(map(str, batch))} {m}x{n}x{k} {layout} +{pad}: {times[0] * 1e6:.2f} us"
            if len(times) > 1:
                ratios.append(times[-1] / times[0])
                line += f" torch {times[-1] * 1e6:.2f} ratio {ratios[-1]:.3f}"
            print(line + f" error {error:.1e}" + ("" if error <= bound else " WRONG"), flush=True)
        if ratios:
            print(
                f"{name} beside torch: geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}, "
                f"below 0.8: {sum(r < 0.8 for r in ratios)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
