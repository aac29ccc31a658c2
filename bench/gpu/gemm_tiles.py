# SPDX-License-Identifier: Apache-2.0
"""16-bit products by stated tiles of the rule gemm_tensor_core, beside torch.matmul: the timings that rules/gemm_tiles is fitted to.

    gemm_tiles.py FILE

FILE: lines "m n k layout pad: rows,columns,parts,cluster,cluster_columns,turned ...", such as "4096 4096 4096 NT 0: 128,256,1,2,1,0";
turned, 1: rows of the tile lie along n. Without tiles all of ALL that suit the shape. Prints one line for each shape and tile, microseconds last; results are compared
with torch's.
"""

import concurrent.futures
import itertools
import statistics
import sys

import halves
import torch
import weft
from gemm_shapes import operand
from weft import _core

CLUSTERS = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4))
ALL = [
    (rows, columns, parts, *cluster, 0)
    for rows, columns, parts, cluster in itertools.product(
        (192, 128, 64), range(256, 63, -32), (1, 2, 3, 4, 6, 8), CLUSTERS
    )
    if rows < 192 or columns <= 192
]
PROCESSORS = 132


def cases(path):
    for line in open(path):
        shape, _, tiles = line.partition(":")
        m, n, k, layout, pad = shape.split()
        yield (
            (int(m), int(n), int(k), layout, int(pad)),
            [tuple(map(int, t.split(","))) for t in tiles.split()],
        )


def legal(shape, tile):
    (m, n, k, layout, _), (rows, columns, parts, down, across, _) = shape, tile
    high, wide = -(-m // rows), -(-n // columns)
    tiles = -(-high // down) * down * -(-wide // across) * across
    if down > high or across > wide or (layout[1] == "T" and columns % (8 * down)):
        return False
    return parts == 1 or (tiles * parts <= PROCESSORS and -(-k // 64) >= 4 * parts)


def product(shape):
    m, n, k, layout, pad = shape
    a, A = operand((), m, k, layout[0] == "T", pad, torch.bfloat16)
    b, B = operand((), k, n, layout[1] == "T", pad, torch.bfloat16)
    return a, b, A, B, weft.from_dlpack(torch.empty(m, n, device="cuda", dtype=torch.bfloat16))


def build(layout, tiles):
    """All kernels of a layout, several at a time."""
    *_, A, B, out = product((512, 512, 4096, layout, 8))
    with concurrent.futures.ThreadPoolExecutor(14) as pool:
        done = [
            pool.submit(_core._gemm_of_tiles, out, A, B, *tile[:5], bool(tile[5])) for tile in tiles
        ]
    for future in done:
        future.result()


def main():
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    work = [(s, tiles or [t for t in ALL if legal(s, t)]) for s, tiles in cases(sys.argv[1])]
    for layout in sorted({s[3] for s, _ in work}):
        build(layout, sorted({(r, c, min(p, 2), *g) for s, tiles in work if s[3] == layout for r, c, p, *g in tiles}))  # fmt: skip
    print("# m n k layout pad rows columns parts cluster cluster_columns turned us", flush=True)
    for shape, tiles in work:
        a, b, A, B, out = product(shape)
        want, got = (a @ b).float(), torch.from_dlpack(out)
        number = max(3, min(60, int(5e11 / (shape[0] * shape[1] * shape[2]))))
        calls = {"torch": lambda: torch.mm(a, b)}
        for tile in tiles:
            calls[tile] = lambda tile=tile: _core._gemm_of_tiles(
                out, A, B, *tile[:5], bool(tile[5])
            )
            calls[tile]()
            error = float((got.float() - want).norm() / want.norm())
            if not error < 5e-3:
                print("WRONG", *shape, *tile, error, flush=True)
        samples = {name: [] for name in calls}
        for _ in range(3):
            for name, call in calls.items():
                samples[name].append(halves.device_seconds(call, number))
        for name, values in samples.items():
            tile = name if name != "torch" else ("torch",)
            print(*shape, *tile, f"{statistics.median(values) * 1e6:.2f}", flush=True)


if __name__ == "__main__":
    main()
