# SPDX-License-Identifier: Apache-2.0
"""Factorisations, Fourier transforms, wide and complex products on a CUDA card beside PyTorch in the same run:
bench/gpu/linalg.py [small] [large] [fft] [products] [resnet50]

Every result is compared with NumPy's or PyTorch's in float64 before it is timed; a wrong one is marked and makes the
exit status 1. Figures are medians of wall time, samples of the two libraries in turns; TF32 is off for products and
in cuDNN.
"""

import functools
import statistics
import sys
from pathlib import Path

import numpy as np
import torch
from timing import seconds

import weft
from weft import linalg

CARD = weft.device("cuda:0")
TYPES = {"float32": 1e-4, "float64": 1e-11, "complex64": 1e-4, "complex128": 1e-11}
STACKS = [(64, 16, 16), (1000, 8, 8), (5, 31, 31), (1, 64, 64), (64, 64, 64), (1, 128, 128), (64, 128, 128), (16, 200, 200)]  # fmt: skip
WRONG = []
rng = np.random.default_rng(20261123)


def draw(shape, dtype):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def both(x):
    return weft.asarray(x, device=CARD), torch.from_numpy(x).cuda()


def host(x):
    return np.asarray(x.to("cpu").numpy())


def off(got, want):
    return float(np.abs(host(got) - want).max() / max(1e-300, np.abs(want).max()))


def case(name, ours, rival, error, bound):
    try:
        worst = error()
    except weft.Error as problem:
        WRONG.append(name)
        print(f"{name:48s} FAILED {str(problem).splitlines()[0]}", flush=True)
        return
    number = max(1, min(50, int(5e-3 / max(1e-6, seconds(ours, CARD.synchronize, 1)))))
    mine, theirs = [], []
    for _ in range(5):
        mine.append(seconds(ours, CARD.synchronize, number))
        theirs.append(seconds(rival, torch.cuda.synchronize, number))
    a, b = statistics.median(mine) * 1e6, statistics.median(theirs) * 1e6
    mark = "" if worst <= bound else "  WRONG"
    if mark:
        WRONG.append(name)
    print(f"{name:48s} {a:10.1f} us {b:10.1f} us {b / a:7.3f}  error {worst:.1e}{mark}", flush=True)


def factorisations(shape, dtype):
    count, m, n = shape
    x = draw(shape, dtype)
    wide = x.astype("complex128" if dtype[0] == "c" else "float64")
    h = (x @ np.conj(np.swapaxes(x, 1, 2)) + n * np.eye(n)).astype(dtype)
    wide_h = h.astype(wide.dtype)
    w, t = both(x)
    p, q = both(h)
    w1, t1 = both(draw((count, n, 1), dtype))

    def rebuilt(parts, want, join):
        return float(np.abs(join(*(host(z) for z in parts)) - want).max() / np.abs(want).max())

    rows = {
        "inv": (lambda: linalg.inv(p), lambda: torch.linalg.inv(q), lambda: off(linalg.inv(p), np.linalg.inv(wide_h))),
        "det": (lambda: linalg.det(p), lambda: torch.linalg.det(q), lambda: off(linalg.slogdet(p)[1], np.linalg.slogdet(wide_h)[1])),
        "solve": (lambda: linalg.solve(p, w1), lambda: torch.linalg.solve(q, t1), lambda: off(p @ linalg.solve(p, w1), host(w1))),
        "cholesky": (lambda: linalg.cholesky(p), lambda: torch.linalg.cholesky(q), lambda: off(linalg.cholesky(p), np.linalg.cholesky(wide_h))),
        "qr": (lambda: linalg.qr(w), lambda: torch.linalg.qr(t), lambda: rebuilt(linalg.qr(w), wide, lambda a, b: a @ b)),
        "eigh": (lambda: linalg.eigh(p), lambda: torch.linalg.eigh(q), lambda: rebuilt(linalg.eigh(p), wide_h, lambda v, a: (a * v[:, None, :]) @ np.conj(np.swapaxes(a, 1, 2)))),
        "svd": (lambda: linalg.svd(w, full_matrices=False), lambda: torch.linalg.svd(t, full_matrices=False), lambda: rebuilt(linalg.svd(w, full_matrices=False), wide, lambda a, s, b: (a * s[:, None, :]) @ b)),
        "svdvals": (lambda: linalg.svdvals(w), lambda: torch.linalg.svdvals(t), lambda: off(linalg.svdvals(w), np.linalg.svd(wide, compute_uv=False))),
    }  # fmt: skip
    for name, (ours, rival, error) in rows.items():
        case(f"{name} {dtype} {shape}", ours, rival, error, TYPES[dtype])


def small():
    for dtype in TYPES:
        for shape in STACKS:
            factorisations(shape, dtype)


def large():
    for shape in ((400, 400), (1000, 100), (2000, 50)):
        x = draw(shape, "float32")
        w, t = both(x)
        wide = x.astype("float64")

        def thin(w=w, wide=wide):
            u, s, vh = (host(z) for z in linalg.svd(w, full_matrices=False))
            return float(np.abs((u * s) @ vh - wide).max() / np.abs(wide).max())

        case(f"svd {shape}", lambda: linalg.svd(w, full_matrices=False), lambda: torch.linalg.svd(t, full_matrices=False), thin, 1e-4)  # fmt: skip
        case(f"svdvals {shape}", lambda: linalg.svdvals(w), lambda: torch.linalg.svdvals(t), lambda: off(linalg.svdvals(w), np.linalg.svd(wide, compute_uv=False)), 1e-4)  # fmt: skip
        case(f"pinv {shape}", lambda: linalg.pinv(w), lambda: torch.linalg.pinv(t), lambda: off(linalg.pinv(w), np.linalg.pinv(wide)), 1e-2)  # fmt: skip


def transforms(names, shape, dtype, **where):
    x = draw(shape, dtype)
    w, t = both(x)
    there = {"dim" if k in ("axis", "axes") else k: v for k, v in where.items()}
    for name in names:
        ours = functools.partial(getattr(weft.fft, name), w, **where)
        rival = functools.partial(getattr(torch.fft, name), t, **there)
        want = getattr(np.fft, name)(x, **where)
        case(f"{name} {dtype} {shape} {where}", ours, rival, lambda: off(ours(), want), 1e-5)


def fft():
    for shape, axis in (((1024, 1024), 0), ((1024, 1024), 1), ((4096, 2048), 0), ((64, 256, 256), 0), ((64, 256, 256), 1), ((1000, 64, 4), 1), ((2, 999, 33), 1), ((97, 1000), 0), ((3, 5, 7), 1)):  # fmt: skip
        for dtype in ("complex64", "complex128"):
            transforms(("fft", "ifft", "irfft"), shape, dtype, axis=axis)
        transforms(("rfft",), shape, "float32", axis=axis)
    for shape, axes in (((1024, 1024), (0, 1)), ((64, 256, 256), (1, 2)), ((64, 64, 64), (0, 1, 2)), ((4, 6, 7, 9), (1, 2, 3)), ((6, 10, 3), (0, 1))):  # fmt: skip
        for dtype in ("complex64", "complex128"):
            transforms(("fftn", "ifftn", "irfftn"), shape, dtype, axes=axes)
        transforms(("rfftn",), shape, "float32", axes=axes)


def products():
    sizes = {
        "float64": ((2048, 2048, 2048), (4096, 4096, 4096), (1024, 1024, 1024), (1000, 999, 1001), (300, 500, 700), (48, 40, 5000), (8192, 64, 64), (1, 2048, 2048)),
        "complex128": ((1024, 1024, 1024), (2048, 2048, 2048), (33, 65, 129), (1, 2048, 2048)),
        "complex64": ((1024, 1024, 1024), (2048, 2048, 2048), (100, 100, 100), (1, 2048, 2048), (2048, 1, 2048)),
        "float32": ((1000, 1001, 999), (256, 1024, 784), (100000, 64, 64), (2048, 2048, 2048)),
    }  # fmt: skip
    for dtype, all_sizes in sizes.items():
        wide = torch.complex128 if dtype[0] == "c" else torch.float64
        for m, n, k in all_sizes:
            for layout in ("NN", "NT", "TN"):
                a, b = draw((k, m) if layout == "TN" else (m, k), dtype), draw((n, k) if layout == "NT" else (k, n), dtype)  # fmt: skip
                (wa, ta), (wb, tb) = both(a), both(b)
                if layout == "TN":
                    wa, ta = wa.mT, ta.mT
                if layout == "NT":
                    wb, tb = wb.mT, tb.mT
                want = (ta.to(wide) @ tb.to(wide)).cpu().numpy()
                case(f"{dtype} {m}x{n}x{k} {layout}", lambda: wa @ wb, lambda: ta @ tb, lambda: off(wa @ wb, want), TYPES[dtype])  # fmt: skip


def resnet50():
    """One card's training step of bench/gpu/distributed.py, PyTorch with TF32 in cuDNN off and on."""
    import distributed
    import torchvision
    from weft import optim

    array = draw((32, 3, 224, 224), "float32")
    x = weft.Tensor(weft.asarray(array, device=CARD), requires_grad=False)
    model = distributed.resnet50_of_weft().to(CARD)
    ours = distributed.stepper(model, optim.SGD(model.parameters(), lr=1e-4), x)
    rival = torchvision.models.resnet50().cuda()
    theirs = distributed.stepper(rival, torch.optim.SGD(rival.parameters(), lr=1e-4), torch.from_numpy(array).cuda())  # fmt: skip
    for f in (ours, theirs):
        f()
    for tf32 in (False, True):
        torch.backends.cudnn.allow_tf32 = tf32
        mine = min(seconds(ours, CARD.synchronize, 5) for _ in range(4)) * 1e3
        other = min(seconds(theirs, torch.cuda.synchronize, 5) for _ in range(4)) * 1e3
        print(f"ResNet-50 step, 32 x 224 x 224: {mine:.1f} ms, torch {other:.1f} ms with cudnn.allow_tf32={tf32}, {other / mine:.3f}", flush=True)  # fmt: skip
    torch.backends.cudnn.allow_tf32 = False


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sys.path.insert(0, str(Path(__file__).parent))
    parts = {f.__name__: f for f in (products, small, fft, large, resnet50)}
    asked = sys.argv[1:] or list(parts)
    for name in asked:
        if name not in parts:
            sys.exit(f"{name!r} is no part; legal: {', '.join(parts)}")
    for name in asked:
        parts[name]()
    if WRONG:
        sys.exit(f"{len(WRONG)} wrong or failed: {', '.join(WRONG[:5])}")


if __name__ == "__main__":
    main()
