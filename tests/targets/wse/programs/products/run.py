# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
M, K, N = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in "MKN")
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
rng = np.random.default_rng(0)
A, B = rng.random((M, K), dtype=np.float32), rng.random((K, N), dtype=np.float32)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("A"), A.ravel(), 0, 0, 1, 1, M * K, **how)
runner.memcpy_h2d(runner.get_id("B"), B.ravel(), 0, 0, 1, 1, K * N, **how)
for way in (0, 1, 2):
    runner.call("multiply", [np.uint16(way)], nonblock=False)
    C = np.zeros(M * N, np.float32)
    runner.memcpy_d2h(C, runner.get_id("C"), 0, 0, 1, 1, M * N, **how)
    np.testing.assert_allclose(C.reshape(M, N), A @ B, rtol=1e-5, err_msg=str(way))
times = np.zeros(3, np.float32)
runner.memcpy_d2h(times, runner.get_id("times"), 0, 0, 1, 1, 3, **how)
runner.stop()
assert (times > M * N * K / 8).all(), times
print("cycles", times)
print("SUCCESS!")
