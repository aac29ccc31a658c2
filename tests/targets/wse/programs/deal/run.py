# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
p = json.load(open(args.name + "/out.json"))["params"]
P, block = int(p["P"]), int(p["block"])
r = SdkRuntime(args.name)
r.load()
r.run()
total = (P - 1) * block
k = dict(streaming=True, data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.ROW_MAJOR)
for rnd in range(1):
    x = np.arange(total, dtype="u4") + 100 * rnd
    y = np.zeros(total, "u4")
    r.memcpy_h2d(0, x, 0, 0, 1, 1, total, nonblock=True, **k)
    r.memcpy_d2h(y, 1, 0, 0, 1, 1, total, nonblock=False, **k)
    want = x * x + 1 + np.arange(total) // block
    np.testing.assert_array_equal(y, want)
r.stop()
print("SUCCESS!")
