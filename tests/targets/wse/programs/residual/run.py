# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
W, H, m, n = (params[k] for k in ("width", "height", "m", "n"))
rng = np.random.default_rng(5)
A = rng.standard_normal((H * m, W * n)).astype(np.float32)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
kind = dict(streaming=False, data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.ROW_MAJOR)
blocks = A.reshape(H, m, W, n).transpose(0, 2, 3, 1)
runner.memcpy_h2d(runner.get_id("A"), blocks.ravel(), 0, 0, W, H, m * n, nonblock=True, **kind)
for _ in range(3):
    x = rng.standard_normal(W * n).astype(np.float32)
    b = rng.standard_normal(H * m).astype(np.float32)
    runner.memcpy_h2d(runner.get_id("x"), x, 0, 0, W, 1, n, nonblock=True, **kind)
    runner.memcpy_h2d(runner.get_id("b"), b, 0, 0, 1, H, m, nonblock=True, **kind)
    runner.launch("residual", nonblock=True)
    got = np.zeros(1, np.float32)
    runner.memcpy_d2h(got, runner.get_id("largest"), W - 1, H - 1, 1, 1, 1, nonblock=False, **kind)
    np.testing.assert_allclose(got[0], abs(b - A.astype("f8") @ x).max(), rtol=1e-5)
runner.stop()
print("SUCCESS!")
