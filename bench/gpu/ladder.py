# SPDX-License-Identifier: Apache-2.0
"""The GEMM ladder and the memory-bound kernels on a CUDA card, each beside PyTorch in the same run.

Every kernel is checked against torch. Samples are interleaved with the rival's; figures are medians.
"""

import argparse
import json
import statistics

import numpy as np
import programs
import torch
import weft
from weft import script as T


def rival_seconds(f, number):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(number):
        f()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / number


def interleave(ours, rival, rounds=9, number=20):
    ours(2), rival_seconds(rival, 2)
    a, b = [], []
    for _ in range(rounds):
        a.append(ours(number))
        b.append(rival_seconds(rival, number))
    return statistics.median(a), statistics.median(b)


def elementwise(n):
    @T.prim_func
    def main(
        A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")
    ):
        T.func_attr({"tir.noalias": True})
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi]

    sch = weft.Schedule(main)
    (i,) = sch.get_loops(sch.get_block("C"))
    block, thread, vector = sch.split(i, [None, 256, 4])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(vector)
    return sch


def pipelined(sch, ahead, copies=True):
    """Fetches run `ahead` steps before their use: cp.async copies into ahead + 1 versions of the tiles."""
    loops = sch.get_loops(sch.get_block("C_update"))
    k0 = next(loop for loop in loops if loop.name == "r_0")
    sch.annotate(k0, "software_pipeline_stage", [0, 0, ahead])
    if copies:
        sch.annotate(k0, "software_pipeline_async_stages", [0])
    return sch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    card = torch.cuda.get_device_name(0)
    device = weft.device("cuda:0")
    print(card, device.description if device.available else device.reason)
    rows = []

    def report(name, ours, rival, rate, unit, error):
        rows.append(
            dict(
                name=name,
                seconds=ours,
                rival=rival,
                rate=rate,
                unit=unit,
                ratio=rival / ours,
                error=error,
            )
        )
        print(
            f"{name:<44} {ours * 1e6:10.1f} us  {rate:9.2f} {unit}  rival {rival * 1e6:9.1f} us  ratio {rival / ours:5.3f}  error {error:.1e}",
            flush=True,
        )

    n = 1024
    rng = np.random.default_rng(0)
    x, y = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    a, b = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
    expected = (a.double() @ b.double()).cpu().numpy()
    A, B = weft.asarray(x, device=device), weft.asarray(y, device=device)
    C = weft.zeros((n, n), dtype="float32", device=device)
    out = torch.empty(n, n, device="cuda")
    ladder = [
        ("GEMM-1", lambda: programs.gemm_1(n)),
        ("GEMM-2", lambda: programs.gemm_2(n)),
        ("GEMM-3", lambda: programs.gemm_3(n)),
        ("GEMM-4", lambda: programs.gemm_4(n)),
        ("GEMM-4 decomposed", lambda: programs.gemm_4(n, decompose=True)),
    ]
    for bx, by, tx, ty, tk in [
        (8, 16, 8, 4, 32),
        (16, 8, 4, 8, 32),
        (8, 16, 8, 4, 16),
        (16, 8, 4, 4, 32),
        (16, 16, 4, 4, 32),
        (8, 8, 8, 8, 16),
        (16, 16, 4, 4, 16),
        (16, 8, 4, 4, 64),
    ]:
        for unroll in (False, True):
            ladder.append(
                (
                    f"tiles {bx * tx}x{by * ty}x{tk}, {tx}x{ty} a thread{', unrolled' if unroll else ''}",
                    lambda bx=bx, by=by, tx=tx, ty=ty, tk=tk, unroll=unroll: programs.gemm_4(
                        n, bx, by, tx, ty, tk, decompose=True, unroll=unroll
                    ),
                )
            )
    for bx, by, tx, ty, tk in [
        (8, 16, 8, 4, 32),
        (16, 16, 4, 4, 32),
        (8, 16, 8, 4, 16),
        (16, 16, 4, 4, 16),
    ]:
        for ahead, copies in [(1, False), (1, True), (2, True), (3, True)]:
            ladder.append(
                (
                    f"tiles {bx * tx}x{by * ty}x{tk}, {tx}x{ty} a thread, unrolled, {ahead} ahead"
                    f"{', cp.async' if copies else ''}",
                    lambda bx=bx, by=by, tx=tx, ty=ty, tk=tk, ahead=ahead, copies=copies: pipelined(
                        programs.gemm_4(n, bx, by, tx, ty, tk, decompose=True, unroll=True),
                        ahead,
                        copies,
                    ),
                )
            )
    for name, make in ladder:
        try:
            f = weft.build(make(), target="cuda")["main"]
            f(A, B, C)
            error = float(np.max(np.abs(C.numpy() - expected) / expected))
            number = 2 if name == "GEMM-1" else 20
            ours, rival = interleave(
                lambda k: f.time(A, B, C, number=k, repeat=1).median,
                lambda: torch.matmul(a, b, out=out),
                number=number,
            )
            report(name, ours, rival, 2 * n**3 / ours / 1e12, "TFLOP/s", error)
        except weft.Error as error:
            print(f"{name}: {error}")
    for log in (26, 28):
        m = 1 << log
        u, v = torch.rand(m, device="cuda"), torch.rand(m, device="cuda")
        w = torch.empty(m, device="cuda")
        U, V, W = (weft.zeros((m,), dtype="float32", device=device) for _ in range(3))
        host_u, host_v = u.cpu().numpy(), v.cpu().numpy()
        U = weft.asarray(host_u, device=device)
        V = weft.asarray(host_v, device=device)
        f = weft.build(elementwise(m), target="cuda")["main"]
        f(U, V, W)
        error = float(np.max(np.abs(W.numpy() - (host_u + host_v))))
        ours, rival = interleave(
            lambda k: f.time(U, V, W, number=k, repeat=1).median, lambda: torch.add(u, v, out=w)
        )
        report(f"a + b, 2^{log}", ours, rival, 12 * m / ours / 1e12, "TB/s", error)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(dict(card=card, rows=rows), file, indent=1)


if __name__ == "__main__":
    main()
