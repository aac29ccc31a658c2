# SPDX-License-Identifier: Apache-2.0
"""Eager 16-bit products and convolutions, and a training step in bfloat16, beside PyTorch in the same run.

Device time: calls are queued behind a product that keeps the card busy while the host issues them, between two of
PyTorch's events on the stream that both libraries use. Every case is checked against float64 before it is timed.
"""

import argparse
import json
import statistics

import torch

import weft
from arrays import Bench, resnet9
from weft import nn, optim

busy = None


def device_seconds(f, number):
    """Seconds of one call on the card; the host runs ahead."""
    torch.cuda.synchronize()
    for _ in range(4):
        torch.mm(busy, busy)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(number):
        f()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / number


def beside(ours, rival, number, rounds=7):
    device_seconds(ours, 3), device_seconds(rival, 3)
    a, b = [], []
    for _ in range(rounds):
        a.append(device_seconds(ours, number))
        b.append(device_seconds(rival, number))
    return statistics.median(a), statistics.median(b)


class Rows(list):
    def case(self, name, ours, rival, work, error, number=None):
        number = number or (20 if work > 1e10 else 100)
        a, b = beside(ours, rival, number)
        self.append(dict(name=name, us=a * 1e6, rival_us=b * 1e6, ratio=b / a, error=error))
        print(
            f"{name:<44} {a * 1e6:9.1f} us {work / a / 1e12:7.1f} TFLOP/s  torch {b * 1e6:9.1f}  "
            f"ratio {b / a:5.3f}  error {error:.1e}",
            flush=True,
        )


def error_of(ours, want):
    return float((torch.from_dlpack(ours).double() - want).norm() / want.norm())


def products(rows, dtype):
    for batch, m, n, k, layout in (
        *(((), n, n, n, "NN") for n in (512, 1024, 2048, 4096, 8192)),
        ((), 4096, 4096, 4096, "NT"),
        ((), 4096, 4096, 4096, "TN"),
        ((), 1000, 1001, 999, "NN"),
        ((), 256, 1024, 784, "NN"),
        ((), 784, 1024, 256, "TN"),
        ((), 64, 64, 65536, "NN"),
        ((), 8192, 1024, 1024, "NT"),
        ((64,), 256, 256, 256, "NN"),
        ((16, 12), 512, 512, 64, "NT"),
    ):
        make = lambda *s: torch.randn(*batch, *s, device="cuda").to(dtype)
        a = make(m, k) if layout[0] == "N" else make(k, m)
        b = make(k, n) if layout[1] == "N" else make(n, k)
        A, B = weft.from_dlpack(a), weft.from_dlpack(b)
        if layout[0] == "T":
            a, A = a.mT, weft.matrix_transpose(A)
        if layout[1] == "T":
            b, B = b.mT, weft.matrix_transpose(B)
        want = a.double() @ b.double() if m * n * k < 1 << 34 else (a.float() @ b.float()).double()
        count = 1
        for extent in batch:
            count *= extent
        name = f"{str(dtype)[6:]} {'x'.join(map(str, batch))} {m}x{n}x{k} {layout}"
        rows.case(
            name, lambda: A @ B, lambda: a @ b, 2.0 * count * m * n * k, error_of(A @ B, want)
        )


def convolutions(rows, dtype):
    conv = weft.nn.functional.conv2d
    for n, c, o, h, k, s in (
        (128, 64, 128, 32, 3, 1),
        (128, 128, 256, 16, 3, 1),
        (128, 512, 512, 8, 3, 1),
        (64, 256, 256, 14, 3, 1),
        (64, 64, 128, 56, 3, 2),
        (64, 64, 256, 56, 1, 1),
    ):
        p = k // 2
        x = torch.randn(n, c, h, h, device="cuda").to(dtype)
        w = (torch.randn(o, c, k, k, device="cuda") / (c * k * k) ** 0.5).to(dtype)
        want = torch.nn.functional.conv2d(x.double()[:2], w.double(), stride=s, padding=p)
        y = torch.nn.functional.conv2d(x, w, stride=s, padding=p)
        g = torch.randn_like(y)
        X, W = (weft.Tensor(weft.from_dlpack(t), requires_grad=False) for t in (x, w))
        got = torch.from_dlpack(conv(X, W, stride=s, padding=p).data)[:2].double()
        error = float((got - want).norm() / want.norm())
        work = 2.0 * y.numel() * c * k * k
        name = f"{str(dtype)[6:]} conv {c}->{o} {k}x{k}/{s} {h}x{h} b{n}"
        rows.case(
            name + " forward",
            lambda: conv(X, W, stride=s, padding=p),
            lambda: torch.nn.functional.conv2d(x, w, stride=s, padding=p),
            work,
            error,
        )
        X, W, G = weft.Tensor(X.data), weft.Tensor(W.data), weft.from_dlpack(g)
        tx, tw = x.clone().requires_grad_(), w.clone().requires_grad_()

        def ours():
            X.grad = W.grad = None
            conv(X, W, stride=s, padding=p).backward(G)

        def rival():
            tx.grad = tw.grad = None
            torch.nn.functional.conv2d(tx, tw, stride=s, padding=p).backward(g)

        ours(), rival()
        error = max(
            float(
                (torch.from_dlpack(a.grad.data).float() - b.grad.float()).norm()
                / b.grad.float().norm()
            )
            for a, b in ((X, tx), (W, tw))
        )
        rows.case(name + " with gradients", ours, rival, 3 * work, error)


def training(rows):
    """needle's ResNet-9 in bfloat16, batch 128, Adam."""
    bench = Bench()
    theirs = resnet9(torch).cuda().to(torch.bfloat16)
    model = resnet9(weft, "bfloat16")
    for p, t in zip(model.parameters(), theirs.parameters()):
        value = t.detach().t().contiguous() if t.ndim == 2 else t.detach().clone()
        p.data = weft.from_dlpack(value)
    x = torch.randn(128, 3, 32, 32, device="cuda").to(torch.bfloat16)
    labels = torch.randint(0, 10, (128,), device="cuda")
    hot = torch.nn.functional.one_hot(labels, 10).to(torch.bfloat16)
    wx, wh = (weft.Tensor(weft.from_dlpack(t), requires_grad=False) for t in (x, hot))
    mine, other = (
        optim.Adam(model.parameters(), lr=1e-3),
        torch.optim.Adam(theirs.parameters(), lr=1e-3),
    )
    losses = [[], []]

    def ours():
        mine.zero_grad()
        loss = -(model(wx).log_softmax(-1) * wh).sum() * (1.0 / 128)
        loss.backward()
        mine.step()
        return loss

    def rival():
        other.zero_grad()
        loss = torch.nn.functional.cross_entropy(theirs(x), labels)
        loss.backward()
        other.step()
        return loss

    for _ in range(10):
        losses[0].append(float(ours().item()))
        losses[1].append(float(rival().item()))
    print("losses", [round(v, 3) for v in losses[0]], [round(v, 3) for v in losses[1]])
    error = max(abs(a - b) for a, b in zip(*losses)) / abs(losses[1][0])
    bench.case(
        "ResNet-9 b128 bfloat16 step",
        lambda: ours() and None,
        lambda: rival() and None,
        error,
        20,
        5,
    )
    rows += bench.rows


def main():
    global busy
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--dtypes", default="bfloat16,float16")
    parser.add_argument("--only", default="products,convolutions,training")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    rows = Rows()
    for dtype in args.dtypes.split(","):
        if "products" in args.only:
            products(rows, getattr(torch, dtype))
        if "convolutions" in args.only:
            convolutions(rows, getattr(torch, dtype))
    if "training" in args.only:
        training(rows)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(dict(card=torch.cuda.get_device_name(0), rows=rows), file, indent=1)


if __name__ == "__main__":
    main()
