# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--cmaddr")
args = parser.parse_args()
params = json.load(open(f"{args.name}/out.json"))["params"]
P, n = int(params["P"]), int(params["n"])
rng = np.random.default_rng(1)
N = P * n
M = rng.random((N, N), dtype=np.float32)
M = M + M.T
runner = SdkRuntime(args.name, cmaddr=args.cmaddr)
runner.load()
runner.run()
kind = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
blocks = M.reshape(P, n, P, n).transpose(0, 2, 3, 1)  # column-major blocks
runner.memcpy_h2d(runner.get_id("A"), blocks.ravel(), 0, 0, P, P, n * n, **kind)
v = np.ones(N, np.float32)
runner.memcpy_h2d(
    runner.get_id("v"), np.tile(v.reshape(1, P, n), (P, 1, 1)).ravel(), 0, 0, P, P, n, **kind
)
for _ in range(2):
    runner.launch("iterate", np.uint16(6), nonblock=False)
got, value = np.zeros(P * P * n, np.float32), np.zeros(P * P, np.float32)
runner.memcpy_d2h(got, runner.get_id("v"), 0, 0, P, P, n, **kind)
runner.memcpy_d2h(value, runner.get_id("eigenvalue"), 0, 0, P, P, 1, **kind)
runner.stop()
for _ in range(12):
    w = M.astype("f8") @ v
    length = np.linalg.norm(w)
    v = w / length
got = got.reshape(P, P, n)
np.testing.assert_allclose(value, length, rtol=1e-5)
for y in range(P):
    np.testing.assert_allclose(got[y].ravel(), v, rtol=1e-4)
print("SUCCESS!")
