# SPDX-License-Identifier: Apache-2.0
"""Vector add, window sum and the GEMM ladder on every device present, against NumPy."""

import numpy as np
import programs
import weft
from weft.cli.demo import unless_absent


def _check(name, sch, device, inputs, expected, flop, number):
    module = weft.build(sch, target=device.name.split(":")[0])
    arrays = [weft.asarray(x, device=device) for x in inputs]
    out = weft.zeros(expected.shape, dtype="float32", device=device)
    seconds = module.time_evaluator("main", number=number, repeat=3)(*arrays, out).median
    return dict(
        program=name,
        device=device.name,
        seconds=seconds,
        rate=flop / seconds / 1e9,
        unit="Gop/s",
        got=out.numpy(),
        wanted=expected,
        limit=1e-5,
        flop=flop,
        bytes=sum(x.nbytes for x in inputs) + expected.nbytes,
    )


def demo(quick=False, progress=lambda text: None, output="out"):
    for device in weft.devices():
        rules = _kind(device.name.split(":")[0]) if device.available else None
        if rules is not None:
            yield from unless_absent(
                "vector add, window sum, GEMM", device.name, lambda: _rows(device, rules, quick, progress)  # noqa: B023
            )  # fmt: skip


def _rows(device, rules, quick, progress):
    rng = np.random.default_rng(1)
    a, b, w = (rng.random(n, np.float32) for n in (1024, 1024, 1026))
    progress(f"vector add on {device.name}")
    yield _check("vector add", rules["add"](), device, (a, b), a + b, 1024, 100)
    for name, sch in rules["window"]():
        progress(f"{name} on {device.name}")
        yield _check(name, sch, device, (w,), w[:-2] + w[1:-1] + w[2:], 2048, 100)
    n = rules["n"] // (2 if quick else 1)
    x, y = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    product = x @ y
    for name, make in rules["gemm"]:
        progress(f"{name} {n} on {device.name}")
        yield _check(f"{name} {n}", make(n), device, (x, y), product, 2 * n**3, rules["number"])


def _plain(program):
    return lambda: weft.Schedule(program)


def _kind(target):
    """What to run where: bound loops on machines with blocks and threads, loops on the host."""
    if target in ("cpu", "c"):
        return dict(
            add=_plain(programs.VectorAdd),
            window=lambda: [("window sum", weft.Schedule(programs.WindowSum))],
            n=512,
            gemm=[
                ("GEMM packed", programs.gemm_host_packed)
                if target == "cpu"
                else ("GEMM tiled", programs.gemm_host)
            ],
            number=2,
        )
    if target in ("cuda", "opencl"):
        gemms = [
            ("GEMM-1", programs.gemm_1),
            ("GEMM-2", programs.gemm_2),
            ("GEMM-3", programs.gemm_3),
            ("GEMM-4", programs.gemm_4),
        ]
        return dict(
            add=programs.vector_add,
            window=lambda: [
                ("window sum", programs.window_sum()),
                ("window sum, shared", programs.window_sum(True)),
                ("window sum, cooperative", programs.window_sum(True, True)),
            ],
            n=1024 if target == "cuda" else 128,
            gemm=gemms,
            number=100 if target == "cuda" else 2,
        )
    return None
