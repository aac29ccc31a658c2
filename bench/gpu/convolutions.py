# SPDX-License-Identifier: Apache-2.0
"""Convolutions of ResNet-50, MobileNetV3 and U-Net with their gradients beside PyTorch (cuDNN, TF32 off) in the same run:

    convolutions.py [--dtype float32] [--only 1,2] [--kernels] [resnet50] [mobilenet] [unet]
    convolutions.py --random 40 --seed 7 [--dtype bfloat16]

Time on the card, calls queued ahead, samples of both in turns. Results and gradients are compared with PyTorch's in
float64, since its float32 gradients of 3 x 3 windows are not exact either; a wrong one makes the exit status 1.
--only: of each net the rows of these numbers, from 0. --kernels: of both libraries the kernels of one call with gradients.
--random: that many drawn ones (odd channels, windows of unequal sides, steps, margins, gaps, groups, transposed ones).
"""

import argparse
import pathlib
import random
import statistics
import sys

import halves
import torch
import weft
from weft import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record

# images, channels, size, results, window, stride, groups; -1 results: as many groups as channels. up: transposed
NETS = {
    "resnet50": [
        (32, 3, 224, 64, 7, 2),
        (32, 64, 56, 64, 1, 1),
        (32, 64, 56, 64, 3, 1),
        (32, 64, 56, 256, 1, 1),
        (32, 256, 56, 128, 1, 1),
        (32, 128, 56, 128, 3, 2),
        (32, 256, 56, 512, 1, 2),
        (32, 128, 28, 128, 3, 1),
        (32, 512, 28, 128, 1, 1),
        (32, 256, 14, 256, 3, 1),
        (32, 1024, 14, 256, 1, 1),
        (32, 512, 7, 512, 3, 1),
        (32, 2048, 7, 512, 1, 1),
    ],
    "mobilenet": [
        (32, 3, 224, 16, 3, 2),
        (32, 16, 112, 0, 3, 1),
        (32, 72, 56, 0, 5, 2),
        (32, 120, 28, 0, 5, 1),
        (32, 240, 28, 0, 3, 2),
        (32, 480, 14, 0, 3, 1),
        (32, 960, 7, 0, 5, 1),
        (32, 24, 56, 72, 1, 1),
        (32, 80, 14, 480, 1, 1),
        (32, 160, 7, 960, 1, 1),
    ],
    "unet": [
        (4, 3, 256, 64, 3, 1),
        (4, 64, 256, 64, 3, 1),
        (4, 128, 128, 128, 3, 1),
        (4, 256, 64, 256, 3, 1),
        (4, 512, 32, 512, 3, 1),
        (4, 1024, 16, 512, 2, "up"),
        (4, 256, 64, 128, 2, "up"),
        (4, 128, 128, 64, 2, "up"),
        (4, 64, 256, 2, 1, 1),
    ],
}


def print_kernels(name, f, number=10):
    """One call's kernels in order: us of each, from the first one's start to its end, name."""
    from torch.profiler import ProfilerActivity, profile

    f()
    with profile(activities=[ProfilerActivity.CUDA]) as taken:
        for _ in range(number):
            f()
            torch.cuda.synchronize()
    events = [e for e in taken.events() if str(e.device_type).endswith("CUDA")]
    events.sort(key=lambda e: e.time_range.start)
    count = len(events) // number
    calls = [events[i * count : (i + 1) * count] for i in range(number)]
    middle = statistics.median
    print(
        f"  {name}: {count} kernels, {middle(sum(e.device_time for e in c) for c in calls):.1f} us"
    )
    for i in range(count):
        us = middle(c[i].device_time for c in calls)
        end = middle(c[i].time_range.end - c[0].time_range.start for c in calls)
        print(f"    {us:7.1f} {end:7.1f} {calls[0][i].name[:100]}")


def recorded(record, net, dtype, name, a, b, c, d, bad):
    facts = {"wrong": "beyond the bound"} if bad else {}
    record.row(f"{net} {dtype}", name, c, {"cuDNN": d}, forward=round(b / a, 3), **facts)


def named(case):
    """A row of NETS as a case: shapes of the images and weights, options, whether it is transposed."""
    n, channels, size, results, window, stride = case
    groups = 1 if results else channels
    results, up = results or channels, stride == "up"
    stride, padding = 2 if up else stride, 0 if up else window // 2
    weight = (channels, results) if up else (results, channels // groups)
    options = dict(stride=stride, padding=padding, groups=groups)
    return (n, channels, size, size), (*weight, window, window), options, up


def drawn(rng):
    """A case of moderate work; transposed ones have some of their results' borders cut off."""
    while True:
        up = rng.random() < 0.2
        groups = rng.choice([1] * 6 + [2, 3, 4, 7, 8])
        channels, results = (rng.choice([1, 3, 5, 8, 16, 17, 24, 33, 64, 96, 130, 256, 512]) for _ in range(2))  # fmt: skip
        if groups > 1:
            channels, results = (groups * max(1, v // groups) for v in (channels, results))
        n = rng.choice([1, 2, 3, 8, 32])
        size = [rng.choice([7, 9, 14, 15, 28, 31, 56, 57, 64, 100, 128, 200]) for _ in range(2)]
        window = rng.choice([(1, 1), (3, 3), (3, 3), (5, 5), (7, 7), (1, 7), (7, 1), (2, 2), (3, 5), (4, 4)])  # fmt: skip
        stride = rng.choice([(1, 1)] * 4 + [(2, 2)] * 3 + [(2, 1), (3, 3)])
        gap = rng.choice([(1, 1)] * 5 + [(2, 2), (3, 1)])
        padding = [rng.randint(0, k // 2 + rng.randint(0, 1)) for k in window]
        span = [(k - 1) * d + 1 for k, d in zip(window, gap)]
        if any(v + 2 * p < k for v, p, k in zip(size, padding, span)):
            continue
        options = dict(stride=stride, padding=tuple(padding), dilation=gap, groups=groups)
        if up:
            options["output_padding"] = tuple(rng.randint(0, max(s, d) - 1) for s, d in zip(stride, gap))  # fmt: skip
            out = [(v - 1) * s - 2 * p + k for v, s, p, k in zip(size, stride, padding, span)]
            if min(out) < 1:
                continue
            weight = (channels, results // groups, *window)
            places = size[0] * size[1]
        else:
            out = [(v + 2 * p - k) // s + 1 for v, p, k, s in zip(size, padding, span, stride)]
            weight = (results, channels // groups, *window)
            places = out[0] * out[1]
        work = n * places * channels * results // groups * window[0] * window[1]
        elements = n * max(channels * size[0] * size[1], results * out[0] * out[1])
        if 1 << 24 <= work <= 1 << 34 and elements <= 1 << 25:
            return (n, channels, *size), weight, options, up


def text_of(x_shape, weight, options, up):
    groups = options["groups"]
    results = weight[1] * groups if up else weight[0]
    facts = [
        f"{k} {v}" for k, v in options.items() if v not in (0, 1, (1, 1), (0, 0)) and k != "stride"
    ]
    facts = [f for f in facts if not (f.startswith("groups") and groups == 1)]
    n, channels, h, w = x_shape
    size = f"{h}" if h == w else f"{h}x{w}"
    return f"{n}x{channels}x{size} -> {results} {weight[2]}x{weight[3]} /{options['stride']}{' up' if up else ''} {' '.join(facts)}"


def row(net, dtype, kernels, x_shape, shape, options, up):
    kind = getattr(torch, dtype)
    x = torch.randn(x_shape, device="cuda").to(kind)
    w = (torch.randn(shape, device="cuda") / (shape[1] * shape[2] * shape[3]) ** 0.5).to(kind)
    f = torch.nn.functional.conv_transpose2d if up else torch.nn.functional.conv2d
    g = nn.functional.conv_transpose2d if up else nn.functional.conv2d
    xt, wt = x.clone().requires_grad_(), w.clone().requires_grad_()
    xw, ww = (weft.Tensor(weft.from_dlpack(t), requires_grad=True) for t in (x, w))
    xs, ws = (weft.Tensor(weft.from_dlpack(t), requires_grad=False) for t in (x, w))
    y = f(xt, wt, **options)
    by = torch.randn_like(y)
    upper = weft.Tensor(weft.from_dlpack(by))
    wide_x, wide_w = x.double().requires_grad_(), w.double().requires_grad_()
    wide = f(wide_x, wide_w, **options)
    wide.backward(by.double())
    out = g(xw, ww, **options)
    out.backward(upper)
    errors = [
        float((torch.from_dlpack(a.data).double() - b.detach()).norm() / b.detach().norm())
        for a, b in ((out, wide), (xw.grad, wide_x.grad), (ww.grad, wide_w.grad))
    ]
    bound = 2e-5 if dtype == "float32" else 1e-2

    def ours():
        xw.grad = ww.grad = None
        g(xw, ww, **options).backward(upper)

    def rival():
        xt.grad = wt.grad = None
        f(xt, wt, **options).backward(by)

    def forward():
        g(xs, ws, **options)

    def rival_forward():
        with torch.no_grad():
            f(xt, wt, **options)

    once = halves.device_seconds(ours, 3)
    number = max(3, min(20, int(4e-3 / once)))
    a, b = halves.beside(forward, rival_forward, number, 3)
    c, d = halves.beside(ours, rival, number, 3)
    bad = not all(e < bound for e in errors)
    print(
        f"{net:9s} {dtype} {text_of(x_shape, shape, options, up)}: "
        f"forward {a * 1e6:.0f} us torch {b * 1e6:.0f} ratio {b / a:.3f}, "
        f"gradients {(c - a) * 1e6:.0f} us torch {(d - b) * 1e6:.0f} ratio {(d - b) / (c - a):.3f}, both {d / c:.3f}, "
        f"errors {' '.join(f'{e:.0e}' for e in errors)}{' WRONG' if bad else ''}",
        flush=True,
    )
    if kernels:
        for name, call in (
            ("weft forward", forward),
            ("weft both", ours),
            ("torch forward", rival_forward),
            ("torch both", rival),
        ):
            print_kernels(name, call)
    return a, b, c, d, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nets", nargs="*", default=list(NETS))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", type=lambda text: [int(i) for i in text.split(",")])
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    rows = {net: [named(case) for case in NETS[net]] for net in args.nets}
    if args.random:
        rows = {"random": [drawn(rng) for _ in range(args.random)]}
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    asked = {f"{net} {args.dtype}": {"mean": 1.0, "least": 0.7} for net in rows}
    record = Record(f"convolutions with gradients, {args.dtype}", "cuda", asked)
    wrong = False
    for net, cases in rows.items():
        ratios = []
        for case in cases if args.only is None else [cases[i] for i in args.only]:
            try:
                *times, bad = row(net, args.dtype, args.kernels, *case)
            except weft.Error as problem:  # the other rows are still of use
                print(f"{net} {args.dtype} {text_of(*case)}: WRONG, {problem}", flush=True)
                wrong = True
                continue
            recorded(record, net, args.dtype, text_of(*case), *times, bad)
            ratios.append(times[3] / times[2])
            wrong |= bad
        print(
            f"{net} {args.dtype}: {len(ratios)} convolutions with gradients, geometric mean "
            f"{statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}",
            flush=True,
        )
    sys.exit(wrong)


if __name__ == "__main__":
    main()
