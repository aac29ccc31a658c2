# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
W, n = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("W", "n"))
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
A = np.random.default_rng(0).random((W * n, W * n)).astype(np.float32)
tiles = lambda M: M.reshape(W, n, W, n).transpose(0, 2, 1, 3).ravel()
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("block"), tiles(A), 0, 0, W, W, n * n, **how)
runner.launch("transpose", nonblock=False)
out = np.zeros(A.size, np.float32)
runner.memcpy_d2h(out, runner.get_id("turned"), 0, 0, W, W, n * n, **how)
runner.stop()
np.testing.assert_array_equal(out, tiles(A.T))
print("SUCCESS!")
