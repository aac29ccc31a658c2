# SPDX-License-Identifier: Apache-2.0
"""VTA: the tutorial's product on a device of another process, row-major programs as they are, one layer of ResNet-18
with its stages drawn, and the whole quantised network."""

import time

import matmul
import numpy as np
from weft.vta import op

import weft
from weft.cli.demo import unless_absent


def _row(program, device, seconds, operations, got=None, wanted=None):
    rate = operations / seconds / 1e9 if seconds else 0.0
    return {
        "program": program,
        "device": device,
        "seconds": seconds,
        "rate": rate,
        "unit": "Gop/s",
        "got": got,
        "wanted": wanted,
    }


def demo(quick=False, progress=lambda text: None, output="out"):
    env = weft.vta.env()
    for n in (4,) if quick else (4, 16):
        progress(f"tutorial product m = n = {n} over RPC")
        cycles = matmul.main(1, n, n, show=lambda text: None)  # raises unless exactly equal
        yield _row(f"product m=n={n} over RPC", "vta", cycles / env.clock_hz, 2 * (n * 16) ** 2)

    rng = np.random.default_rng(7)
    progress("row-major product")
    m, n, k = 100, 200, 300
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (k, n)))
    module = weft.build(op.matmul(m, n, k, dtype="int32"), target="vta")
    device = weft.device("vta")
    A, B, C = (weft.asarray(x, device=device) for x in (a, b, np.zeros((m, n), np.int32)))
    result = module.time_evaluator("main", number=1, repeat=1)(A, B, C)
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    yield _row("int8 100x300 . 300x200", "vta", result.mean, 2 * m * n * k, C.numpy(), wanted)

    progress("one layer of ResNet-18")
    size = 28
    layer = op.conv2d_packed(
        env, 1, 128, size, size, 128, 3, pad=1, bias=True, shift=8, clip=(0, 127)
    )
    module = weft.build(layer, target="vta")
    shapes = [(1, 8, size, size, 1, 16), (8, 8, 3, 3, 16, 16), (8, 1, 16)]
    arrays = [rng.integers(-128, 128, s).astype(np.int8) for s in shapes[:2]]
    arrays += [rng.integers(-99, 99, shapes[2]).astype(np.int32), np.zeros(shapes[0], np.int8)]
    moved = [weft.asarray(x, device=device) for x in arrays]
    with weft.vta.picture.record(device) as recorded:
        module["main"](*moved)
    yield {
        "chart": "stages",
        "title": "VTA's stages over time: ResNet-18 C5 (28 x 28, 128 to 128, 3 x 3)",
        "spans": recorded.stages(),
        "colours": weft.vta.picture.COLORS,
    }

    yield from unless_absent(
        "ResNet-18 int8", "vta", lambda: [_network(env, device, 64 if quick else 224, progress)]
    )


def _network(env, device, size, progress):
    """The quantised network, whose first layer and head run on the processor."""
    progress(f"quantised ResNet-18, {size}x{size}")
    net = weft.vta.net.resnet18(env, size=size)
    image = net.image(1)
    net.build()
    start = time.perf_counter()
    _, report = net.run(image, device)
    wall = time.perf_counter() - start
    cycles = sum(row[3] for row in report)
    net.reference(image)
    there = sum(target != "cpu" for _, target, _, _ in report)
    return _row(
        f"ResNet-18 int8 {size}x{size}, {there} of {len(report)} layers ({wall:.2f} s host)",
        "vta",
        cycles / env.clock_hz,
        2 * sum(layer.macs for layer in net.layers),
        net.values["dense"],
        net.expected["dense"],
    )
