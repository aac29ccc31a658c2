# SPDX-License-Identifier: Apache-2.0
"""Convolutions of ResNet-50, MobileNetV3 and U-Net with their gradients beside PyTorch (cuDNN, TF32 off) in the same run:

    convolutions.py [--dtype float32] [resnet50] [mobilenet] [unet]

Time on the card, calls queued ahead, samples of both in turns. Results and gradients are compared with PyTorch's in
float64, since its float32 gradients of 3 x 3 windows are not exact either; a wrong one makes the exit status 1.
"""

import argparse
import pathlib
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


def recorded(record, net, dtype, case, a, b, c, d, bad):
    n, channels, size, results, window, stride, *groups = case
    how = "transposed" if stride == "up" else f"by {stride}"
    name = f"{n}x{channels}x{size} to {results or channels}, {window}x{window} {how}{'' if results else ', depthwise'}"
    facts = {"wrong": "beyond the bound"} if bad else {}
    record.row(f"{net} {dtype}", name, c, {"cuDNN": d}, forward=round(b / a, 3), **facts)


def row(net, dtype, n, channels, size, results, window, stride):
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
    return a, b, c, d, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nets", nargs="*", default=list(NETS))
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    asked = {f"{net} {args.dtype}": {"mean": 1.0, "least": 0.7} for net in args.nets}
    record = Record(f"convolutions with gradients, {args.dtype}", "cuda", asked)
    wrong = False
    for net in args.nets:
        ratios = []
        for case in NETS[net]:
            *times, bad = row(net, args.dtype, *case)
            recorded(record, net, args.dtype, case, *times, bad)
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
