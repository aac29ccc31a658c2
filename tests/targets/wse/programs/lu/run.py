# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = json.load(open(f"{args.name}/out.json"))["params"]
W, n = int(params["W"]), int(params["n"])
rng = np.random.default_rng(2)
A = (rng.random((n, n)) + n * np.eye(n)).astype(np.float32)
runner = SdkRuntime(args.name, suppress_simfab_trace=True)
columns = runner.get_id("columns")
runner.load()
runner.run()
kind = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, data_type=MemcpyDataType.MEMCPY_32BIT)
tasks = []
for x in range(W):
    own = A[:, x::W].T
    tasks.append(
        runner.memcpy_h2d(
            columns, np.ascontiguousarray(own).ravel(), x, 0, 1, 1, own.size, nonblock=True, **kind
        )
    )
tasks.append(runner.launch("factor", np.uint16(n), nonblock=True))
for t in tasks:
    runner.task_wait(t)
assert all(runner.is_task_done(t) for t in tasks)
got = np.zeros((n, n), np.float32)
for x in range(W):
    own = np.zeros(got[:, x::W].size, np.float32)
    runner.memcpy_d2h(own, columns, x, 0, 1, 1, own.size, nonblock=False, **kind)
    got[:, x::W] = own.reshape(-1, n).T
runner.stop()
L, U = np.tril(got, -1) + np.eye(n), np.triu(got)
np.testing.assert_allclose(L @ U, A, rtol=2e-5, atol=1e-4)
assert all(runner.read_symbol(4 + x, 1, "steps", "uint16")[0] == n - 1 for x in range(W))
print("SUCCESS!")
