# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
name = parser.parse_args().name
params = json.load(open(f"{name}/out.json"))["params"]
width, height = int(params["width"]), int(params["height"])
start = np.random.default_rng(5).integers(0, 2, (height, width)).astype(np.uint32)


def generation(cells):
    p = np.pad(cells, 1).astype(np.int64)
    around = sum(
        p[1 + i : 1 + i + height, 1 + j : 1 + j + width]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if i or j
    )
    return ((around == 3) | ((around == 2) & (cells == 1))).astype(np.uint32)


want = start
for _ in range(7):
    want = generation(want)

ways = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
runs = []
for threads in (1, 3):
    runner = SdkRuntime(name, simfab_numthreads=threads)
    runner.load()
    runner.run()
    cell = runner.get_id("cell")
    runner.memcpy_h2d(cell, start.ravel(), 0, 0, width, height, 1, **ways)
    runner.launch("generations", np.uint16(7), nonblock=False)
    got = np.zeros(width * height, np.uint32)
    runner.memcpy_d2h(got, cell, 0, 0, width, height, 1, **ways)
    runner.stop()
    np.testing.assert_array_equal(got.reshape(height, width), want)
    runs.append(runner.stats()["cycles"])
assert runs[0] == runs[1], runs
assert 0 < want.sum() < want.size
print("SUCCESS")
