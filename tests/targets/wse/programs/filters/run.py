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
for _ in range(3):
    v = rng.integers(0, 2**32, w * n, dtype="u4")
    runner.memcpy_h2d(params["STREAM"], v, 0, 0, 1, 1, w * n, streaming=True, **words)
    got = np.zeros(w * n, "u4")
    runner.memcpy_d2h(got, params["OUT"], 0, 0, w, 1, n, streaming=True, **words)
    np.testing.assert_array_equal(got, v)
runner.stop()
print("SUCCESS!")
