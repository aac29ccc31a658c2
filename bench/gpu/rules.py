# SPDX-License-Identifier: Apache-2.0
"""Programs without a schedule, as weft.build schedules them by its rules, and argmax of arrays, on a CUDA card beside
PyTorch in the same run: bench/gpu/rules.py

Results are checked before they are timed; figures are medians of wall time over calls with one synchronisation at the
end. "array" is weft's own eager operation.
"""

import statistics
import time

import torch

import weft
from weft import te

DEVICE = weft.device("cuda:0")


def seconds(f, sync, number):
    samples = []
    for _ in range(5):
        sync()
        start = time.perf_counter()
        for _ in range(number):
            f()
        sync()
        samples.append((time.perf_counter() - start) / number)
    return statistics.median(samples)


def row(name, bytes_moved, rival, **ours):
    number = max(5, int(2e-2 / (bytes_moved / 2e12 + 5e-6)))
    theirs = seconds(rival, torch.cuda.synchronize, number)
    line = f"{name:<34} {bytes_moved / 1e6:8.1f} MB torch {theirs * 1e6:9.1f} us"
    for label, f in ours.items():
        f()
        t = seconds(f, DEVICE.synchronize, number)
        line += f" | {label} {t * 1e6:9.1f} us {bytes_moved / t / 1e12:5.2f} TB/s ratio {theirs / t:5.2f}"
    print(line, flush=True)


def program(shape, axis, op, dtype):
    x = te.placeholder(shape, dtype=dtype, name="X")
    k = te.reduce_axis(shape[axis], name="k")
    kept = shape[:axis] + shape[axis + 1 :]

    def at(i):
        return x[(*i[:axis], k, *i[axis:])]

    return te.create_prim_func(
        [x, te.compute(kept, lambda *i: getattr(te, op)(at(i), axis=k), name="R")]
    )


def reductions():
    for shape, axis in [
        ((1 << 26,), 0),
        ((65536, 1024), 1),
        ((65536, 1024), 0),
        ((1024, 65536), 0),
        ((1 << 20, 64), 1),
        ((128, 1 << 20), 1),
        ((4099, 10007), 1),
        ((4099, 10007), 0),
        ((64, 1000, 512), 1),
    ]:
        t = torch.randint(-9, 9, shape, device="cuda").float()
        w = weft.from_dlpack(t)
        out = weft.zeros(tuple(t.sum(axis).shape), dtype="float32", device=DEVICE)
        f = weft.build(program(shape, axis, "sum", "float32"), target="cuda:0")["main"]
        f(w, out)
        good = torch.equal(
            torch.from_numpy(out.numpy()).cuda().reshape(t.sum(axis).shape), t.sum(axis)
        )
        good &= (
            torch.equal(
                torch.from_numpy(weft.argmax(w, axis=axis).numpy())
                .cuda()
                .reshape(t.sum(axis).shape),
                # the first of equals
                (t == t.amax(axis, keepdim=True)).to(torch.uint8).argmax(axis),
            )
            or "ties"
        )
        size = t.numel() * 4
        row(
            f"sum {shape} axis {axis}",
            size,
            lambda: t.sum(axis),
            build=lambda: f(w, out),
            array=lambda: weft.sum(w, axis=axis),
        )
        row(
            f"argmax, {good}", size, lambda: t.argmax(axis), array=lambda: weft.argmax(w, axis=axis)
        )


def maps():
    for n, dtype in [(1 << 26, "float32"), ((1 << 26) + 3, "float32"), (1 << 27, "float16")]:
        t = torch.randn(n, device="cuda", dtype=getattr(torch, dtype))
        w = weft.from_dlpack(t)
        out = weft.zeros((n,), dtype=dtype, device=DEVICE)
        x = te.placeholder((n,), dtype=dtype, name="X")
        f = weft.build(
            te.create_prim_func([x, te.compute((n,), lambda i: x[i] * x[i], name="C")]),
            target="cuda:0",
        )["main"]
        f(w, out)
        assert torch.equal(torch.from_dlpack(out), t * t)
        row(
            f"x * x, {n} {dtype}",
            2 * n * t.element_size(),
            lambda: t * t,
            build=lambda: f(w, out),
            array=lambda: w * w,
        )


def convolution(images, channels, results, size, window, step, groups, dtype="float32"):
    inner = [window + (e - 1) * step for e in size]
    each, per = channels // groups, results // groups
    x = te.placeholder((images, channels, *inner), dtype, name="X")
    w = te.placeholder((results, each, window, window), dtype, name="W")
    axes = [te.reduce_axis((0, e), name=s) for e, s in ((each, "c"), (window, "p"), (window, "q"))]

    def body(b, o, i, j):
        c, p, q = axes
        at = o // per * each + c if groups > 1 else c
        return te.sum(x[b, at, i * step + p, j * step + q] * w[o, c, p, q], axis=axes)

    return te.create_prim_func([x, w, te.compute((images, results, *size), body, name="Y")])


def windows():
    for images, channels, results, size, window, step, groups in [
        (8, 64, 64, (56, 56), 3, 1, 1),
        (8, 64, 64, (57, 57), 3, 1, 1),
        (4, 37, 53, (61, 43), 5, 1, 1),
        (8, 128, 128, (28, 28), 3, 2, 1),
        (16, 256, 256, (14, 14), 3, 1, 1),
        (32, 512, 512, (7, 7), 3, 1, 1),
        (8, 96, 96, (56, 56), 3, 1, 96),
        (8, 3, 64, (112, 112), 7, 2, 1),
        (1, 16, 16, (500, 333), 3, 1, 1),
    ]:
        f = convolution(images, channels, results, size, window, step, groups)
        module = weft.build(f, target="cuda:0", tuned=False)
        inner = [window + (e - 1) * step for e in size]
        a = torch.randn(images, channels, *inner, device="cuda")
        k = torch.randn(results, channels // groups, window, window, device="cuda")
        y = torch.empty(images, results, *size, device="cuda")
        A, K, Y = map(weft.from_dlpack, (a, k, y))
        conv = torch.nn.functional.conv2d
        module["main"](A, K, Y)
        DEVICE.synchronize()
        want = conv(a.double(), k.double(), stride=step, groups=groups)
        error = float((y.double() - want).norm() / want.norm())
        assert error < 1e-5, error
        row(
            f"{images}x{channels}x{size} to {results}, {window} by {step}, groups {groups}; {module.notes[0][:40]}",
            4 * (a.numel() + y.numel()),
            lambda: conv(a, k, stride=step, groups=groups),
            build=lambda: module["main"](A, K, Y),
            array=lambda: weft.nn.functional.conv2d(A, K, stride=step, groups=groups),
        )


def first_calls():
    for n in (1000, 100_000, 10_000_000):
        w = weft.from_dlpack(torch.randn(7, n, device="cuda"))
        start = time.perf_counter()
        weft.argmax(w, axis=1)
        DEVICE.synchronize()
        print(f"first argmax of (7, {n}): {time.perf_counter() - start:.3f} s", flush=True)


if __name__ == "__main__":
    torch.backends.cudnn.allow_tf32 = False
    windows()
    first_calls()
    reductions()
    maps()
