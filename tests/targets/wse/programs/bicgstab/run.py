# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
P, n = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("P", "n"))
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
N = P * n
A = 4.0 * np.eye(N) - 1.5 * np.eye(N, k=-1) - 0.5 * np.eye(N, k=1)
b = np.random.default_rng(6).random(N).astype(np.float32)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("b"), b, 0, 0, P, 1, n, **how)
runner.launch("solve", np.int16(40), nonblock=False)
x = np.zeros(N, np.float32)
runner.memcpy_d2h(x, runner.get_id("x"), 0, 0, P, 1, n, **how)
history = np.zeros(P * 40, np.float32)
runner.memcpy_d2h(history, runner.get_id("history"), 0, 0, P, 1, 40, **how)
runner.stop()
history = history.reshape(P, 40)
assert (history == history[0]).all()
count = np.count_nonzero(history[0])
assert 3 < count < 40, history[0]
np.testing.assert_allclose(A @ x, b, atol=1e-4)
print(f"{count} iterations")
print("SUCCESS!")
