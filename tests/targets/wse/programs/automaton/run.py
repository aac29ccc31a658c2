# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
W, words, rule = (
    int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("W", "words", "rule")
)
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
cells = np.random.default_rng(0).integers(0, 2, W * words * 16).astype(np.uint8)
pack = lambda bits: (
    np.packbits(bits).view(">u2").astype(np.uint32)
)  # the first cell is the highest bit
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("cells"), pack(cells), 0, 0, W, 1, words, **how)
runner.launch("evolve", np.uint16(21), nonblock=False)
out = np.zeros(W * words, np.uint32)
runner.memcpy_d2h(out, runner.get_id("cells"), 0, 0, W, 1, words, **how)
check = np.zeros(W * 4, np.uint32)
runner.memcpy_d2h(check, runner.get_id("check"), 0, 0, W, 1, 4, **how)
runner.stop()
for _ in range(21):
    padded = np.pad(cells, 1)
    cells = (rule >> (4 * padded[:-2] + 2 * padded[1:-1] + padded[2:])).astype(np.uint8) & 1
np.testing.assert_array_equal(out, pack(cells))
np.testing.assert_array_equal(check.reshape(W, 4), [[0xFFFF, x, 9, 5] for x in range(W)])
print("SUCCESS!")
