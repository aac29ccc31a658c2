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

w, n = params["width"], params["n"]
values = runner.get_id("values")
for k in range(2):
    v = rng.integers(-20, 20, w * n).astype("f4") if k else rng.standard_normal(w * n).astype("f4")
    runner.memcpy_h2d(values, v, 0, 0, w, 1, n, streaming=False, **words)
    runner.launch("sort", nonblock=False)
    got = np.zeros(w * n, "f4")
    runner.memcpy_d2h(got, values, 0, 0, w, 1, n, streaming=False, **words)
    np.testing.assert_array_equal(got, np.sort(v))
done = np.zeros(w, "u4")
half = dict(words, data_type=MemcpyDataType.MEMCPY_16BIT)
runner.memcpy_d2h(done, runner.get_id("rounds_done"), 0, 0, w, 1, 1, streaming=False, **half)
runner.stop()
np.testing.assert_array_equal(done & 0xFFFF, w)
print("SUCCESS!")
