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

w, h, n = params["w"], params["h"], params["n"]
v = rng.integers(-1000, 1000, h * w * n).astype("i4")
symbol = runner.get_id("v")
runner.memcpy_h2d(symbol, v.view("u4"), 0, 0, w, h, n, streaming=False, **words)
for _ in range(2):
    runner.launch("scan", nonblock=False)
    v = np.cumsum(v, dtype="i4")
got = np.zeros(h * w * n, "u4")
runner.memcpy_d2h(got, symbol, 0, 0, w, h, n, streaming=False, **words)
runner.stop()
np.testing.assert_array_equal(got.view("i4"), v)
print("SUCCESS!")
