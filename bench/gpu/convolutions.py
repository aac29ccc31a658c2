# SPDX-License-Identifier: Apache-2.0
"""Convolutions of ResNet-50, MobileNetV3 and U-Net with their gradients beside PyTorch (cuDNN, TF32 off) in the same run:

    convolutions.py [--dtype float32] [--only 1,2] [--kernels] [resnet50] [mobilenet] [unet]

Time on the card, calls queued ahead, samples of both in turns. Results and gradients are compared with PyTorch's in
float64, since its float32 gradients of 3 x 3 windows are not exact either; a wrong one makes the exit status 1.
--only: of each net the rows of these numbers, from 0. --kernels: of both libraries the kernels of one call with gradients.
"""

import argparse
import statistics
import sys

import halves
import torch
import weft
from weft import nn

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


def row(net, dtype, kernels, n, channels, size, results, window, stride):
    groups = 1 if results else channels
    results, up = results or channels, stride == "up"
    stride, padding = 2 if up else stride, 0 if up else window // 2
    kind = getattr(torch, dtype)
    shape = (channels, results, window, window) if up else (results, channels // groups, window, window)  # fmt: skip
    x = torch.randn(n, channels, size, size, device="cuda").to(kind)
    w = (torch.randn(shape, device="cuda") / (shape[1] * window**2) ** 0.5).to(kind)
    f = torch.nn.functional.conv_transpose2d if up else torch.nn.functional.conv2d
    g = nn.functional.conv_transpose2d if up else nn.functional.conv2d
    options = dict(stride=stride, padding=padding, groups=groups)
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
        f"{net:9s} {dtype} {n}x{channels}x{size} -> {results} {window}x{window} /{stride}{' up' if up else ''}"
        f"{f' groups {groups}' if groups > 1 else ''}: forward {a * 1e6:.0f} us torch {b * 1e6:.0f} ratio {b / a:.3f}, "
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
    return d / c, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nets", nargs="*", default=list(NETS))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", type=lambda text: [int(i) for i in text.split(",")])
    parser.add_argument("--kernels", action="store_true")
    args = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    wrong = False
    for net in args.nets:
        ratios = []
        for case in NETS[net] if args.only is None else [NETS[net][i] for i in args.only]:
            ratio, bad = row(net, args.dtype, args.kernels, *case)
            ratios.append(ratio)
            wrong |= bad
        print(
            f"{net} {args.dtype}: {len(ratios)} convolutions with gradients, geometric mean "
            f"{statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}",
            flush=True,
        )
    sys.exit(wrong)


if __name__ == "__main__":
    main()
