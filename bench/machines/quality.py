# SPDX-License-Identifier: Apache-2.0
"""Tensor programs under the default schedule beside the best hand-written program, in simulated cycles: exact, the same
in every run. Results are checked.

ninja -C build machines_hand; PYTHONPATH=python python bench/machines/quality.py [qpu|vta|wse]... [--random N [--seed S]]

Ratio: hand-written cycles / ours, above 1 where the tensor program is faster. QPU: the kernel library
(src/weft/targets/qpu/kernels). VTA: the recorded schedules (src/weft/targets/vta/schedules.cpp), cycle model. Wafer:
the CSL programs of this repository (bench/wse/tensor_programs.py), launches only."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
from random import Random

import numpy as np

import weft
from weft import te
from weft.vta import op

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record

ROOT = pathlib.Path(__file__).resolve().parents[2]
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype("f4")


def qpu(tensors, arrays, want):
    target = "qpu:engine=translated"
    module = weft.build(te.create_prim_func(tensors), target=target, tuned=False)
    device = weft.device(target)
    out = weft.zeros(want.shape, dtype="float32", device=device)
    held = [weft.asarray(a, device=device) for a in arrays]
    cycles = module.time_evaluator("main", number=1)(*held, out).cycles
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-3, atol=1e-2)
    return int(cycles)


def gemv(rows, columns):
    A, x = te.placeholder((rows, columns), name="A"), te.placeholder((columns,), name="x")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    a, v = normal(rows, columns), normal(columns)
    return qpu([A, x, y], [a, v], a.astype("f8") @ v)


def gemm(m, n, depth):
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis(depth, name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    a, b = normal(m, depth), normal(depth, n)
    return qpu([A, B, C], [a, b], a.astype("f8") @ b)


def conv(height, width):
    """3 x 3 with ReLU."""
    X, W = te.placeholder((height, width), name="X"), te.placeholder((3, 3), name="W")
    p, q = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q")
    shape = (height - 2, width - 2)
    S = te.compute(shape, lambda y, x: te.sum(X[y + p, x + q] * W[p, q], axis=[p, q]), name="S")
    R = te.compute(shape, lambda y, x: te.max(S[y, x], te.const(0, "float32")), name="R")
    x, w = normal(height, width), normal(3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    return qpu([X, W, R], [x, w], np.maximum((windows * w).sum((2, 3)), 0))


def window(n, size):
    X, r = te.placeholder((n,), name="X"), te.reduce_axis(size, name="r")
    Y = te.compute((n - size + 1,), lambda i: te.sum(X[i + r], axis=r), name="Y")
    x = normal(n)
    return qpu([X, Y], [x], np.lib.stride_tricks.sliding_window_view(x, size).sum(1))


def reduction(n):
    X, r = te.placeholder((n,), name="X"), te.reduce_axis(n, name="r")
    Y = te.compute((1,), lambda i: te.sum(X[r], axis=r), name="Y")
    x = normal(n)
    return qpu([X, Y], [x], np.array([x.astype("f8").sum()]))


def softmax(rows, columns):
    X = te.placeholder((rows, columns), name="X")
    k, m = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="m")
    M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    Z = te.compute((rows,), lambda i: te.sum(E[i, m], axis=m), name="Z")
    Y = te.compute((rows, columns), lambda i, j: E[i, j] / Z[i], name="Y")
    x = normal(rows, columns)
    e = np.exp(x - x.max(1, keepdims=True))
    return qpu([X, Y], [x], e / e.sum(1, keepdims=True))


QPU = [
    (gemv, 100, 4096), (gemv, 64, 1000), (gemm, 512, 512, 512), (gemm, 256, 256, 256), (gemm, 128, 96, 200),
    (conv, 130, 130), (window, 65536, 9), (reduction, 65536), (softmax, 64, 512), (softmax, 96, 1000),
]  # fmt: skip


def vta(func, *arrays):
    """Cycles of the cycle model, without data."""
    env = weft.vta.env()
    device = env.device(mode="cycles")
    held = [weft.zeros(shape, dtype=dtype, device=device) for shape, dtype in arrays]
    return int(weft.build(func, target=env.target).time_evaluator("main", number=1)(*held).cycles)


def vta_gemm(m, n, k):
    func = op.matmul(m, n, k, shift=8, clip=(0, 127), transposed=True)
    return vta(func, ((m, k), "int8"), ((n, k), "int8"), ((m, n), "int8"))


# Name: image, channels in and out, kernel, stride; ResNet-18's.
LAYERS = {
    "C2": (56, 64, 64, 3, 1), "C3": (56, 64, 128, 3, 2), "C4": (56, 64, 128, 1, 2), "C5": (28, 128, 128, 3, 1),
    "C6": (28, 128, 256, 3, 2), "C7": (28, 128, 256, 1, 2), "C8": (14, 256, 256, 3, 1), "C9": (14, 256, 512, 3, 2),
    "C10": (14, 256, 512, 1, 2), "C11": (7, 512, 512, 3, 1),
}  # fmt: skip


def vta_conv(size, ci, co, k, stride):
    func = op.conv2d_packed(
        weft.vta.env(), 1, ci, size, size, co, k, stride, k // 2, bias=True, shift=8, clip=(0, 127)
    )
    out = (size + 2 * (k // 2) - k) // stride + 1
    return vta(
        func,
        ((1, ci // 16, size, size, 1, 16), "int8"),
        ((co // 16, ci // 16, k, k, 16, 16), "int8"),
        ((co // 16, 1, 16), "int32"),
        ((1, co // 16, out, out, 1, 16), "int8"),
    )


def vta_conv_row(name):
    return " ".join(map(str, ("vta conv", *LAYERS[name])))


def hand_written(rows):
    """Cycles of the kernels of this repository, by row."""
    program = ROOT / "build" / "machines_hand"
    rows = list(dict.fromkeys(rows))
    return json.loads(
        subprocess.run([program, *rows], check=True, capture_output=True, text=True).stdout
    )


record = Record(
    "tensor programs beside hand-written ones", "simulators", {"": {"least": 0.9}}, unit="cycles"
)


def row(machine, what, ours, hand):
    record.row(f"{machine} {what.split()[0]}", f"{machine} {what}", ours, {"by hand": hand})
    mark = "" if hand / ours >= 0.9 else " **Short**: 0.9"
    print(f"| {machine} | {what} | {ours:,} | {hand:,} | {hand / ours:.2f}{mark} |", flush=True)
    return hand / ours


def name_of(function, sizes):
    return " ".join([function.__name__, *map(str, sizes)])


# Kind: sizes of a random row.
DRAWS = {
    "qpu": {
        gemv: lambda r: (size(r, 4, 300), size(r, 16, 4096)),
        gemm: lambda r: (size(r, 4, 300), size(r, 16, 300), size(r, 8, 300)),
        conv: lambda r: (size(r, 5, 200), size(r, 18, 200)),
        window: lambda r: (size(r, 1000, 70000), r.randint(2, 12)),
        reduction: lambda r: (size(r, 500, 200000),),
        softmax: lambda r: (size(r, 4, 200), size(r, 16, 1500)),
    },
    "vta": {
        vta_gemm: lambda r: (size(r, 1, 300), 16 * size(r, 1, 40), 16 * size(r, 1, 40)),
        vta_conv: lambda r: (
            size(r, 5, 60), 16 * size(r, 1, 20), 16 * size(r, 1, 20), r.choice([1, 3, 3, 5]), r.choice([1, 1, 2]),
        ),
    },
}  # fmt: skip

# As DRAWS; a row of the wafer gives both numbers of cycles. PEs along a side, and what one of them holds.
WAFER = {
    "gemm": lambda r: (size(r, 2, 8), size(r, 2, 20)),
    "gemv": lambda r: (size(r, 2, 16), size(r, 4, 120), size(r, 2, 80)),
    "allreduce": lambda r: (size(r, 3, 16), size(r, 4, 200)),
    "stencil": lambda r: (size(r, 2, 8), size(r, 4, 200), r.random() < 0.5),
}


def size(random, low, high):
    """Log-uniform."""
    return round(math.exp(random.uniform(math.log(low), math.log(high))))


def random_rows(machine, count, seed):
    """Random shapes of each kind; the least ratio and the geometric mean of each."""
    draws = WAFER if machine == "wse" else DRAWS[machine]
    for key, draw in draws.items():
        random = Random(seed)
        kind = key if machine == "wse" else key.__name__.removeprefix("vta_")
        shapes = list(dict.fromkeys(draw(random) for _ in range(count)))
        names = [" ".join(map(str, (machine, kind, *sizes))) for sizes in shapes]
        if machine == "wse":
            cycles = (wafer_cycles(kind, *sizes) for sizes in shapes)
        else:
            hand = hand_written(names)
            cycles = ((key(*sizes), hand[name]) for name, sizes in zip(names, shapes))
        ratios = [
            row(machine, name.removeprefix(machine + " "), *both)
            for name, both in zip(names, cycles)
        ]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        short = sum(r < 0.9 for r in ratios)
        print(
            f"{machine} {kind}: {len(ratios)} shapes, least {min(ratios):.2f}, mean {mean:.2f}, {short} below 0.9",
            flush=True,
        )


def wafer_cycles(kind, *sizes):
    """Of the tensor program's stages and of the program by hand."""
    sys.path.insert(0, str(ROOT / "bench/wse"))
    import tensor_programs

    (stages, _), by_hand = getattr(tensor_programs, kind)("wse3", *sizes)
    return stages, by_hand


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("machines", nargs="*", default=["qpu", "vta", "wse"])
    parser.add_argument(
        "--random",
        type=int,
        default=0,
        metavar="N",
        help="N random shapes of each kind instead",
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wanted = given.machines
    print("| machine | program | cycles | hand-written | ratio |")
    print("|---|---|---|---|---|")
    if given.random:
        for machine in wanted:
            random_rows(machine, given.random, given.seed)
        return
    if "qpu" in wanted:
        names = [name_of(function, sizes) for function, *sizes in QPU]
        hand = hand_written(f"qpu {name}" for name in names)
        for (function, *sizes), name in zip(QPU, names):
            row("qpu", name, function(*sizes), hand[f"qpu {name}"])
    if "vta" in wanted:
        products = [(1, 1024, 1024), (256, 256, 256), (512, 512, 512)]
        names = [" ".join(map(str, ("vta gemm", *sizes))) for sizes in products]
        hand = hand_written([*names, *map(vta_conv_row, LAYERS)])
        for sizes, name in zip(products, names):
            row("vta", name.removeprefix("vta "), vta_gemm(*sizes), hand[name])
        for name, sizes in LAYERS.items():
            row("vta", f"conv {name}", vta_conv(*sizes), hand[vta_conv_row(name)])
    if "wse" in wanted:
        for what, kind, *sizes in (
            ("gemm 112, 8 x 8 PEs", "gemm", 8, 14),
            ("gemv 32 x 128, 8 x 1 PEs", "gemv", 8, 32, 16),
            ("gemv 64 x 512, 8 x 1 PEs", "gemv", 8, 64, 64),
            ("reduction of 64 x 8, 8 x 1 PEs", "allreduce", 8, 64),
            ("stencil 8 x 8 x 128, from the host", "stencil", 8, 128),
            ("stencil 8 x 8 x 128, of values on the wafer", "stencil", 8, 128, True),
        ):
            row("wse3", what, *wafer_cycles(kind, *sizes))


if __name__ == "__main__":
    main()
