# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk import sdk_utils
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--cmaddr")
args = parser.parse_args()
with open(f"{args.name}/out.json", encoding="utf-8") as f:
    meta = json.load(f)["params"]
W, n = int(meta["W"]), int(meta["n"])
ways = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
b32, b16 = MemcpyDataType.MEMCPY_32BIT, MemcpyDataType.MEMCPY_16BIT

rng = np.random.default_rng(3)
N = 2 * W * n
body = np.stack([rng.random(N), rng.random(N), 1 + rng.random(N)]).astype(np.float32)
eps = np.float32(1e-2)
tiles = body.reshape(3, 2, W, n).transpose(1, 2, 0, 3)

runner = SdkRuntime(args.name, cmaddr=args.cmaddr, simfab_numthreads=2)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("bodies"), tiles.ravel(), 0, 0, W, 2, 3 * n, data_type=b32, **ways)
runner.launch("run", eps, nonblock=False)
f = np.zeros(2 * N, np.float32)
runner.memcpy_d2h(f, runner.get_id("forces"), 0, 0, W, 2, 2 * n, data_type=b32, **ways)
t = np.zeros(2 * W * 6, np.uint32)
runner.memcpy_d2h(t, runner.get_id("clock"), 0, 0, W, 2, 6, data_type=b16, **ways)
runner.stop()
clocks = sdk_utils.memcpy_view(t, np.dtype(np.uint16)).reshape(2, W, 6)
cycles = [sdk_utils.calculate_cycles(c) for c in clocks.reshape(-1, 6)]
assert min(cycles) > 0, cycles

d = body[:2, None, :].astype(np.float64) - body[:2, :, None]
w = body[2] / (np.sum(d * d, 0) + eps) ** 1.5
want = np.sum(d * w, axis=2)
got = f.reshape(2, W, 2, n).transpose(2, 0, 1, 3).reshape(2, N)
np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-3)
print("cycles", max(cycles))
print("SUCCESS!")
