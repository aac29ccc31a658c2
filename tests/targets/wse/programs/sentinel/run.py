# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--cmaddr")
args = parser.parse_args()
params = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
runner = SdkRuntime(args.name, cmaddr=args.cmaddr)
runner.load()
runner.run()
words = dict(data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
rng = np.random.default_rng(11)

w, n = params["w"], params["n"]
half = dict(words, data_type=MemcpyDataType.MEMCPY_16BIT)
v = rng.integers(-99, 99, (w, n)).astype("i2")
runner.memcpy_h2d(
    runner.get_id("v"), v.ravel().astype("u4") & 0xFFFF, 0, 0, w, 1, n, streaming=False, **half
)
for least in (0, 90, -100, 200):
    runner.launch("go", np.int16(least), nonblock=False)
    found, count = np.zeros(w * n, "u4"), np.zeros(w, "u4")
    runner.memcpy_d2h(found, runner.get_id("found"), w - 1, 0, 1, 1, w * n, streaming=False, **half)
    runner.memcpy_d2h(count, runner.get_id("count"), 0, 0, w, 1, 1, streaming=False, **half)
    want = [int(k) for row in v for k in row if k > least]
    np.testing.assert_array_equal(count & 0xFFFF, np.cumsum((v > least).sum(1)))
    np.testing.assert_array_equal(found.astype("u2").view("i2")[: len(want)], want)
runner.stop()
print("SUCCESS!")
