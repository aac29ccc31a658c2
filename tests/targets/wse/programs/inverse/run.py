# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
N = int(json.load(open(f"{args.name}/out.json"))["params"]["N"])
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
A = np.random.default_rng(2).random((N, N)).astype(np.float32) + N * np.eye(N, dtype=np.float32)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("column"), A.T.ravel(), 0, 0, N, 1, N, **how)
runner.launch("invert", nonblock=False)
out = np.zeros(N * N, np.float32)
runner.memcpy_d2h(out, runner.get_id("inverse"), 0, 0, N, 1, N, **how)
one = np.zeros(N * N, np.float32)
runner.memcpy_d2h(one, runner.get_id("column"), 0, 0, N, 1, N, **how)
runner.stop()
np.testing.assert_allclose(one.reshape(N, N), np.eye(N), atol=1e-5)
np.testing.assert_allclose(out.reshape(N, N).T @ A, np.eye(N), atol=1e-4)
print("SUCCESS!")
