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

P, n = params["P"], params["n"]
b = rng.standard_normal(P * n).astype("f4")
runner.memcpy_h2d(runner.get_id("b"), b, 0, 0, P, 1, n, streaming=False, **words)
runner.launch("solve", np.uint16(80), np.float32(1e-9), nonblock=False)
u, rest = np.zeros(P * n, "f4"), np.zeros(P, "f4")
runner.memcpy_d2h(u, runner.get_id("u"), 0, 0, P, 1, n, streaming=False, **words)
runner.memcpy_d2h(rest, runner.get_id("residual"), 0, 0, P, 1, 1, streaming=False, **words)
runner.stop()
A = 2.5 * np.eye(P * n) - np.eye(P * n, k=1) - np.eye(P * n, k=-1)
np.testing.assert_allclose(u, np.linalg.solve(A, b), rtol=1e-4, atol=1e-4)
assert (rest < 1e-9).all() and (rest == rest[0]).all()
print("SUCCESS!")
