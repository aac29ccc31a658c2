# SPDX-License-Identifier: Apache-2.0
"""Factorisations, Fourier transforms, einsum and convolutions beside NumPy and torch in one run, interleaved; medians.

PYTHONPATH=python python bench/array/linalg.py [--threads N] [--only TEXT ...] [--json F]

The ratio is the best rival's time divided by ours.
"""

import argparse
import json

import large  # sets the threads of the rivals before they are imported
import numpy as np

import weft

torch = large.torch


def factorisations(bench, rng):
    for dtype in ("float32", "float64"):
        for shape in ((32, 16, 16), (200, 200), (1000, 1000)):
            x = rng.standard_normal(shape).astype(dtype)
            h = x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)
            w, hw = weft.asarray(x), weft.asarray(h)
            tag = f"{dtype} {'x'.join(map(str, shape))}"
            cases = {
                "inv": (lambda: weft.linalg.inv(w), lambda: np.linalg.inv(x)),
                "solve": (lambda: weft.linalg.solve(w, w), lambda: np.linalg.solve(x, x)),
                "cholesky": (lambda: weft.linalg.cholesky(hw), lambda: np.linalg.cholesky(h)),
                "slogdet": (lambda: weft.linalg.slogdet(w)[1], lambda: np.linalg.slogdet(x)[1]),
                "qr": (
                    lambda: weft.abs(weft.linalg.qr(w)[1]),
                    lambda: np.abs(np.linalg.qr(x)[1]),
                ),
                "svdvals": (
                    lambda: weft.linalg.svdvals(w),
                    lambda: np.linalg.svd(x, compute_uv=False),
                ),
                "eigh": (lambda: weft.linalg.eigh(hw)[0], lambda: np.linalg.eigh(h)[0]),
            }
            for name, (ours, theirs) in cases.items():
                if shape == (1000, 1000) and name in ("svdvals", "eigh"):
                    continue  # seconds
                bench.case(
                    f"{name} {tag}", ours, tol=2e-1 if dtype == "float32" else 1e-6, numpy=theirs
                )


def transforms(bench, rng):
    for dtype in ("complex64", "complex128"):
        for shape in ((1000, 1000), (64, 4096), (1 << 20,)):
            x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
            w = weft.asarray(x)
            bench.case(
                f"fft {dtype} {'x'.join(map(str, shape))}",
                lambda: weft.fft.fft(w),
                tol=1e-1,
                numpy=lambda: np.fft.fft(x),
            )


def sums(bench, rng):
    for spec, shapes in [
        ("ij,jk,kl,lm,mn->in", [(300, 40), (40, 500), (500, 60), (60, 700), (700, 20)]),
        ("ab,bc,cd,de,ef,fg,gh,hi,ij->aj", [(30, 30)] * 9),
        ("bhqd,bhkd->bhqk", [(4, 8, 64, 32)] * 2),
        ("ij,ij->i", [(1000, 1000)] * 2),
        ("ij,ij->", [(1000, 1000)] * 2),
        ("ijk,ilk->ijl", [(1000, 8, 8)] * 2),
    ]:
        xs = [rng.standard_normal(s) for s in shapes]
        ws = [weft.asarray(x) for x in xs]
        bench.case(
            f"einsum {spec}",
            lambda: weft.einsum(spec, *ws),
            tol=1e-6,
            numpy=lambda: np.einsum(spec, *xs, optimize=True),
        )


def convolutions(bench, rng):
    for n, c, o, size, kernel, stride in [
        (1, 64, 64, 56, 3, 1),
        (16, 3, 32, 32, 3, 1),
        (16, 64, 64, 32, 3, 1),
        (16, 64, 128, 28, 3, 2),
        (16, 128, 128, 14, 1, 1),
        (16, 256, 256, 7, 3, 1),
    ]:
        x = rng.standard_normal((n, c, size, size)).astype("float32")
        k = rng.standard_normal((o, c, kernel, kernel)).astype("float32")
        w = [weft.Tensor(v, requires_grad=False) for v in (x, k)]
        t = [torch.from_numpy(v) for v in (x, k)]
        tag = f"{n}x{c}x{size}, {o} of {kernel}x{kernel} by {stride}"
        pad = kernel // 2
        bench.case(
            f"conv {tag}",
            lambda: weft.nn.functional.conv2d(*w, stride=stride, padding=pad).data,
            tol=1e-2,
            torch=lambda: torch.nn.functional.conv2d(*t, stride=stride, padding=pad),
        )

        def ours():
            a, b = weft.Tensor(x), weft.Tensor(k)
            weft.nn.functional.conv2d(a, b, stride=stride, padding=pad).sum().backward()
            return b.grad.data

        def theirs():
            a, b = (v.detach().requires_grad_() for v in t)
            torch.nn.functional.conv2d(a, b, stride=stride, padding=pad).sum().backward()
            return b.grad

        bench.case(f"conv and gradients {tag}", ours, tol=5e-1, torch=theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case, about")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    weft.set_threads(options.threads)
    bench = large.Bench(options.only, options.seconds)
    rng = np.random.default_rng(0)
    factorisations(bench, rng)
    transforms(bench, rng)
    sums(bench, rng)
    if torch:
        torch.set_num_threads(options.threads)
        convolutions(bench, rng)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(threads=options.threads, rows=bench.rows), file, indent=1)


if __name__ == "__main__":
    main()
