# SPDX-License-Identifier: Apache-2.0
"""Products of random shapes and the convolutions of three networks on a CUDA card beside PyTorch in the same run:
bench/gpu/shapes.py [--products N] [--convolutions] [--vectors] [--seconds S] [--json F]

Every row is compared with a product in float64 (a convolution: float32) before it is timed. Samples of the two
libraries are interleaved, figures are medians of wall time; TF32 is off. Prints geometric mean, least and the worst
rows of each class; a wrong result is marked and makes the exit status 1.
"""

import argparse
import json
import math
import random
import statistics
import sys
import time
import traceback

import torch
from timing import seconds as sample
import torch.nn.functional as F

import weft

LAYOUTS = ("NN", "NT", "TN", "TT", "batch")
DTYPES = {"float32": 1e-5, "bfloat16": 6e-3}  # largest relative error of a product


class Bench:
    def __init__(self, rounds):
        self.device = weft.device("cuda:0")
        self.rounds = rounds
        self.rows = []

    def case(self, kind, name, ours, rival, error, bound):
        sync, torch_sync = self.device.synchronize, torch.cuda.synchronize
        first = [sample(ours, sync, 1), sample(rival, torch_sync, 1)]
        number = max(1, min(100, int(1.5e-3 / max(1e-6, sample(rival, torch_sync, 2)))))
        rounds = 2 if first[0] > 0.1 else self.rounds
        if first[0] > 20 * first[1] and first[0] > 5e-3:
            number = 1
        mine, theirs = [], []
        for _ in range(rounds):
            mine.append(sample(ours, sync, number))
            theirs.append(sample(rival, torch_sync, number))
        a, b = statistics.median(mine), statistics.median(theirs)
        wrong = not error <= bound
        self.rows.append(
            dict(
                kind=kind,
                name=name,
                us=a * 1e6,
                rival=b * 1e6,
                ratio=b / a,
                error=error,
                wrong=wrong,
            )
        )
        if wrong:
            print(f"WRONG {kind} {name}: error {error:.1e}", flush=True)

    def attempt(self, f, kind, name, *args):
        """A case that fails is a row with the reason, not the end of the run."""
        try:
            f(self, kind, name, *args)
        except Exception as problem:  # noqa: BLE001
            traceback.print_exc()
            self.rows.append(dict(kind=kind, name=name, failed=str(problem)[:200], wrong=True))

    def report(self, worst):
        for kind in sorted({r["kind"] for r in self.rows}):
            rows = [r for r in self.rows if r["kind"] == kind and "ratio" in r]
            if not rows:
                continue
            mean = math.exp(sum(math.log(r["ratio"]) for r in rows) / len(rows))
            below = sum(r["ratio"] < 0.8 for r in rows)
            print(
                f"\n{kind}: {len(rows)} rows, geometric mean {mean:.3f}, least {min(r['ratio'] for r in rows):.3f}, below 0.8: {below}"
            )
            for r in sorted(rows, key=lambda r: r["ratio"])[:worst]:
                print(
                    f"  {r['ratio']:6.3f} {r['us']:10.1f} us torch {r['rival']:10.1f}  {r['name']}"
                )
        bad = [r for r in self.rows if r["wrong"]]
        print(f"\nwrong or failed: {len(bad)}")
        for r in bad[:20]:
            print(" ", r["kind"], r["name"], r.get("failed", f"error {r.get('error')}"))
        return bad


def relative(out, exact):
    out = torch.from_dlpack(out)
    return float((out.double() - exact).norm() / exact.norm().clamp_min(1e-30))


def operand(shape, dtype, layout):
    """layout: N, T (stored transposed) or B (the batch axis lies between the other two)."""
    batch, rows, columns = shape
    if layout == "B":
        return torch.randn(rows, batch, columns, device="cuda").to(dtype).transpose(0, 1)
    if layout == "T":
        return torch.randn(batch, columns, rows, device="cuda").to(dtype).transpose(1, 2)
    return torch.randn(batch, rows, columns, device="cuda").to(dtype)


def product(bench, kind, name, batch, m, n, k, layout, dtype):
    letters = "BB" if layout == "batch" else layout
    t = getattr(torch, dtype)
    a, b = operand((batch, m, k), t, letters[0]), operand((batch, k, n), t, letters[1])
    if batch == 1:
        a, b = a[0], b[0]
    A, B = weft.from_dlpack(a), weft.from_dlpack(b)
    error = relative(A @ B, a.double() @ b.double())
    bench.case(kind, name, lambda: A @ B, lambda: a @ b, error, DTYPES[dtype])


def shapes(count, seed):
    draw = random.Random(seed)
    extent = lambda: int(round(2 ** draw.uniform(0, 13)))  # noqa: E731
    for i in range(count):
        m, n, k = extent(), extent(), extent()
        layout = LAYOUTS[i % len(LAYOUTS)]
        batch = draw.randint(2, 12) if layout == "batch" else 1
        while batch * m * n * k > 1 << 38:
            m, n, k = (max(1, v // 2) for v in (m, n, k))
        yield batch, m, n, k, layout


def products(bench, count, seed, ends):
    for batch, m, n, k, layout in shapes(count, seed):
        for dtype in DTYPES:
            if time.perf_counter() > ends:
                return print("products: out of time")
            head = f"{batch} x " if batch > 1 else ""
            name = f"{head}{m} x {n} x {k} {layout} {dtype}"
            bench.attempt(product, f"product {dtype}", name, batch, m, n, k, layout, dtype)


NAMED = [
    (1, 1, 14336, 4096, "NN"), (1, 1, 4096, 4096, "NT"), (1, 4096, 1, 4096, "NN"), (1, 4096, 1, 4096, "TN"),
    (1, 1, 50257, 768, "NT"), (1, 1, 4096, 14336, "NN"), (1, 100, 1, 100000, "NN"), (1, 1, 1, 1 << 20, "NN"),
    (1, 8, 4096, 4096, "NN"), (1, 8, 4096, 4096, "NT"), (1, 2, 14336, 4096, "NN"), (1, 16, 4096, 14336, "NN"),
    (1, 4096, 8, 4096, "NN"), (1, 4096, 3, 4096, "TN"), (64, 1, 128, 2048, "NN"), (64, 1, 2048, 128, "NT"),
    (1, 50, 60, 1000000, "NN"), (1, 64, 64, 100000, "TN"), (1, 3000, 5000, 7000, "NN"),
    (4096, 32, 32, 32, "NN"), (4096, 16, 16, 16, "NT"), (1000, 50, 30, 70, "NN"), (96, 512, 512, 64, "NN"),
    (96, 512, 64, 512, "NN"), (96, 512, 512, 64, "NT"), (1, 100000, 64, 64, "NN"), (1, 100000, 10, 100, "NN"),
]  # fmt: skip


def named(bench, ends):
    for batch, m, n, k, layout in NAMED:
        for dtype in DTYPES:
            if time.perf_counter() > ends:
                return print("named products: out of time")
            name = f"{batch} x {m} x {n} x {k} {layout} {dtype}"
            bench.attempt(product, f"named {dtype}", name, batch, m, n, k, layout, dtype)


# network, images, channels, extent, outputs, window, step, margin, groups
def layers():
    for c, hw, o, k, s in [
        (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
        (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (256, 56, 512, 1, 2), (128, 28, 512, 1, 1), (512, 28, 128, 1, 1),
        (128, 28, 128, 3, 1), (256, 28, 256, 3, 2), (512, 28, 1024, 1, 2), (256, 14, 1024, 1, 1),
        (1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (512, 14, 512, 3, 2), (1024, 14, 2048, 1, 2), (512, 7, 2048, 1, 1),
        (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1),
    ]:  # fmt: skip
        yield "resnet50", 32, c, hw, o, k, s, k // 2, 1
    for c, hw, o, k, s, g in [
        (3, 224, 16, 3, 2, 1), (16, 112, 16, 3, 1, 16), (16, 112, 64, 1, 1, 1), (64, 112, 64, 3, 2, 64),
        (64, 56, 24, 1, 1, 1), (24, 56, 72, 1, 1, 1), (72, 56, 72, 5, 2, 72), (72, 28, 40, 1, 1, 1),
        (120, 28, 120, 5, 1, 120), (240, 28, 240, 3, 2, 240), (200, 14, 80, 1, 1, 1), (480, 14, 480, 3, 1, 480),
        (672, 14, 672, 5, 2, 672), (160, 7, 960, 1, 1, 1), (960, 7, 960, 5, 1, 960), (72, 1, 24, 1, 1, 1),
    ]:  # fmt: skip
        yield "mobilenet", 32, c, hw, o, k, s, k // 2, g
    for c, hw, o, k in [
        (3, 256, 64, 3), (64, 256, 64, 3), (128, 128, 128, 3), (256, 64, 256, 3), (512, 32, 512, 3),
        (1024, 16, 1024, 3), (128, 256, 64, 3), (64, 256, 2, 1),
    ]:  # fmt: skip
        yield "unet", 4, c, hw, o, k, 1, k // 2, 1
    yield "resnext", 32, 128, 56, 128, 3, 1, 1, 32


def convolution(bench, kind, name, n, c, hw, o, k, step, margin, groups, dtype, gradients):
    t = getattr(torch, dtype)
    x = torch.randn(n, c, hw, hw, device="cuda").to(t)
    w = (torch.randn(o, c // groups, k, k, device="cuda") / (c // groups * k * k) ** 0.5).to(t)
    options = dict(stride=step, padding=margin, groups=groups)
    X, W = (
        weft.Tensor(weft.from_dlpack(x), requires_grad=False),
        weft.Tensor(weft.from_dlpack(w), requires_grad=False),
    )
    bound = 2e-2 if dtype == "bfloat16" else 1e-4
    close = lambda a, b: float(
        (torch.from_dlpack(a).float() - b).norm() / b.norm().clamp_min(1e-30)
    )  # noqa: E731
    if not gradients:
        exact = F.conv2d(x.float(), w.float(), **options)
        error = close(weft.nn.functional.conv2d(X, W, **options).data, exact)
        return bench.case(
            kind,
            name,
            lambda: weft.nn.functional.conv2d(X, W, **options),
            lambda: F.conv2d(x, w, **options),
            error,
            bound,
        )
    X, W = weft.Tensor(X.data, requires_grad=True), weft.Tensor(W.data, requires_grad=True)
    x.requires_grad_(), w.requires_grad_()
    g = torch.randn_like(F.conv2d(x, w, **options))
    G = weft.Tensor(weft.from_dlpack(g), requires_grad=False)

    def ours():
        X.grad = W.grad = None
        weft.nn.functional.conv2d(X, W, **options).backward(G)

    def rival():
        x.grad = w.grad = None
        F.conv2d(x, w, **options).backward(g)

    ours()
    fx, fw = x.detach().float().requires_grad_(), w.detach().float().requires_grad_()
    F.conv2d(fx, fw, **options).backward(g.float())
    error = max(close(X.grad.data, fx.grad), close(W.grad.data, fw.grad))
    bench.case(kind, name, ours, rival, error, bound)


def convolutions(bench, ends, dtypes, only):
    order = list(layers())
    random.Random(1).shuffle(order)  # a run that is out of time has a fair sample
    for network, n, c, hw, o, k, step, margin, groups in order:
        for dtype in dtypes:
            for gradients in (False, True):
                if time.perf_counter() > ends:
                    return print("convolutions: out of time")
                what = "with gradients" if gradients else "forward"
                grouped = f" groups {groups}" if groups > 1 else ""
                name = f"{network} {n} x {c} x {hw}^2 -> {o}, {k}x{k} step {step}{grouped} {dtype} {what}"
                if not any(part in name for part in only.split(",")):
                    continue
                bench.attempt(
                    convolution,
                    f"conv {dtype}",
                    name,
                    n,
                    c,
                    hw,
                    o,
                    k,
                    step,
                    margin,
                    groups,
                    dtype,
                    gradients,
                )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--products", type=int, default=200)
    parser.add_argument(
        "--named", action="store_true", help="the products with names in docs/targets/cuda.md"
    )
    parser.add_argument("--convolutions", action="store_true")
    parser.add_argument(
        "--only", default="", help="parts of the names of convolutions, with commas"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=100, help="of each class")
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    bench = Bench(args.rounds)
    parts = []
    if args.named:
        parts.append(lambda ends: named(bench, ends))
    if args.products:
        parts.append(lambda ends: products(bench, args.products, args.seed, ends))
    if args.convolutions:
        parts.append(lambda ends: convolutions(bench, ends, list(DTYPES), args.only))
    for part in parts:
        start = time.perf_counter()
        part(start + args.seconds)
        print(f"{time.perf_counter() - start:.0f} s")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(bench.rows, file)
    sys.exit(1 if bench.report(args.worst) else 0)


if __name__ == "__main__":
    main()
