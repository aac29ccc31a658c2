# SPDX-License-Identifier: Apache-2.0
"""Kernels of one's own on emulated Raspberry Pi QPUs, called from PyTorch, and the same product as a tensor program."""

import time

import numpy as np
from qpu_programs import CLOCK, PUBLISHED, module, te_product


def _torch():
    try:
        import torch
    except ImportError:
        return None
    return torch


def _row(program, seconds, got, wanted, limit, note, rate=0.0):
    return {
        "program": program, "device": "qpu", "seconds": seconds, "rate": rate, "unit": "Gop/s", "got": got,
        "wanted": wanted, "limit": limit, "note": note,
    }  # fmt: skip


def demo(quick=False, progress=lambda text: None, output="out"):
    torch = _torch()
    try:
        dot, matrix = (module(name, output) for name in ("dot_cpp", "matrix_cpp"))
    except ImportError as error:
        dot = matrix = None
        yield {
            "program": "kernels of one's own", "device": "qpu", "seconds": 0, "rate": 0, "unit": "", "absent": str(error),
        }  # fmt: skip
    rng = np.random.default_rng(100)
    host = "PyTorch" if torch else "NumPy"
    give = torch.from_numpy if torch else (lambda a: a)
    for name, f, want in (
        ("100 products", "product", lambda a, b: a * b),
        ("100 sums", "add", lambda a, b: a + b),
    ):
        if dot is None:
            break
        progress(f"{name} from {host}")
        a, b = (give(rng.standard_normal(100).astype("float32")) for _ in range(2))
        start = time.perf_counter()
        got = getattr(dot, f)(a, b)
        seconds = time.perf_counter() - start
        yield _row(
            name,
            0,
            got,
            want(a, b),
            1e-6,  # the last bit: QPUs round products otherwise
            f"called from {host}; {seconds * 1e3:.3g} ms of the host",
        )
    for i in range(4 if quick else 6):
        n = 10**i
        progress(f"matrix-vector 100 x 10^{i}")
        a = rng.standard_normal((100, n)).astype("float32")
        x = rng.standard_normal(n).astype("float32")
        want = a.astype("float64") @ x
        # The adder rounds toward zero: each of the n / 16 steps of a lane, and each of 16 steps that add the lanes, may
        # lose 2^-23 of a partial sum. The sums of the lanes together are about as large as the largest result.
        limit = 2.0**-23 * (n / 16 + 16)
        if matrix is not None:
            cpu, seed = PUBLISHED[i]
            got = np.asarray(matrix.gpu(give(a), give(x)))
            cycles = matrix.cycles()
            yield _row(
                f"matrix-vector 100 x 10^{i}", cycles / CLOCK, got, want, limit,
                f"own kernel, {cycles:,} clocks; published: QPU {seed * 1e3:g} ms, CPU {cpu * 1e3:g} ms",
                200 * n / (cycles / CLOCK) / 1e9,
            )  # fmt: skip
        if i < 2:
            continue
        got, cycles = te_product(a, x)
        yield _row(
            f"te matrix-vector 100 x 10^{i}", cycles / CLOCK, got, want, limit,
            f"tensor program, {cycles:,.0f} clocks", 200 * n / (cycles / CLOCK) / 1e9,
        )  # fmt: skip
