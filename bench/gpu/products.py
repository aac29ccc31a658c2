# SPDX-License-Identifier: Apache-2.0
"""Products of 16-bit floats on tensor cores (examples/tensorir/tensor_cores.py) beside torch.matmul in the same run.

Each kernel is checked against a float32 product of the same operands. torch writes 16-bit results, ours float32.
"""

import argparse
import json
import time

import ladder
import tensor_cores
import torch
import weft


def candidates(n, dtype):
    for block, columns, stages, together in [
        ((128, 256, 64), 256, 4, 8),
        ((128, 128, 64), 128, 3, 1),
        ((128, 128, 64), 128, 3, 8),
        ((128, 128, 64), 128, 3, 16),
        ((256, 128, 64), 128, 3, 8),
        ((256, 128, 64), 128, 4, 4),
    ]:
        if n % (block[0] * together) or n % block[1]:
            continue
        yield (
            f"wgmma {'x'.join(map(str, block))}, {stages} stages, {together} rows together",
            lambda f, b=block, c=columns, s=stages, t=together: tensor_cores.wgmma(
                f, b, c, s, dtype, t
            ),
        )
    for block, warp, stages in [
        ((128, 128, 32), (64, 64), 4),
        ((128, 128, 64), (64, 64), 2),
    ]:
        yield (
            f"mma {'x'.join(map(str, block))}, warps {warp[0]}x{warp[1]}, {stages} stages",
            lambda f, b=block, w=warp, s=stages: tensor_cores.mma(f, b, w, s, dtype),
        )


def eager(A, B, times):
    """Seconds of one A @ B among `times` back to back."""
    torch.cuda.synchronize()
    weft.device("cuda").synchronize()
    started = time.perf_counter()
    for _ in range(times):
        A @ B
    weft.device("cuda").synchronize()
    return (time.perf_counter() - started) / times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--sizes", default="2048,4096,8192")
    parser.add_argument("--dtypes", default="float16,bfloat16")
    args = parser.parse_args()
    rows = []
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    for dtype in args.dtypes.split(","):
        for n in map(int, args.sizes.split(",")):
            torch.manual_seed(0)
            a, b = (torch.randn(n, n, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
            expected = a.float() @ b.float()
            out = torch.empty_like(a)
            A, B = weft.from_dlpack(a), weft.from_dlpack(b)
            C = weft.zeros((n, n), dtype="float32", device=weft.device("cuda"))
            ours, rival = ladder.interleave(
                lambda k: eager(A, B, k), lambda: torch.matmul(a, b), rounds=5
            )
            error = float((torch.from_dlpack(A @ B).float() - expected).norm() / expected.norm())
            rows.append(
                dict(
                    dtype=dtype,
                    n=n,
                    name="A @ B",
                    us=ours * 1e6,
                    rival_us=rival * 1e6,
                    error=error,
                )
            )
            print(
                f"{dtype} {n} A @ B {ours * 1e6:9.1f} us {2 * n**3 / ours / 1e12:7.1f} TFLOP/s  "
                f"ratio {rival / ours:5.3f}  error {error:.1e}",
                flush=True,
            )
            for name, make in candidates(n, dtype):
                try:
                    f = weft.build(make(tensor_cores.product(n, n, n, dtype)), target="cuda")[
                        "main"
                    ]
                    f(A, B, C)
                    got = torch.from_dlpack(C)
                    error = float((got - expected).norm() / expected.norm())
                    ours, rival = ladder.interleave(
                        lambda k: f.time(A, B, C, number=k, repeat=1).median,
                        lambda: torch.matmul(a, b, out=out),
                        rounds=5,
                    )
                except weft.Error as problem:
                    print(f"{dtype} {n} {name}: {problem}")
                    continue
                rate = 2 * n**3 / ours / 1e12
                rows.append(
                    dict(
                        dtype=dtype,
                        n=n,
                        name=name,
                        us=ours * 1e6,
                        rival_us=rival * 1e6,
                        error=error,
                    )
                )
                print(
                    f"{dtype} {n} {name:<44} {ours * 1e6:9.1f} us {rate:7.1f} TFLOP/s  rival {rival * 1e6:9.1f} us  "
                    f"ratio {rival / ours:5.3f}  error {error:.1e}",
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
