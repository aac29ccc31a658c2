# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
W, H, D = params["width"], params["height"], params["depth"]
rng = np.random.default_rng(7)
u = rng.random((H, W, D), dtype=np.float32)
weights = rng.random(5, dtype=np.float32)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
kind = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
runner.memcpy_h2d(runner.get_id("weights"), np.tile(weights, W * H), 0, 0, W, H, 5, **kind)
for _ in range(2):
    runner.memcpy_h2d(runner.get_id("u"), u.ravel(), 0, 0, W, H, D, **kind)
    runner.launch("apply", nonblock=False)
    got = np.zeros(W * H * D, np.float32)
    runner.memcpy_d2h(got, runner.get_id("out"), 0, 0, W, H, D, **kind)
    p = np.pad(u.astype("f8"), 4)
    want = weights[0] * u.astype("f8")
    for axis in range(3):
        for k in range(1, 5):
            for s in (-k, k):
                want += weights[k] * np.roll(p, s, axis)[4:-4, 4:-4, 4:-4]
    np.testing.assert_allclose(got.reshape(H, W, D), want, rtol=1e-5)
    u = (got.reshape(H, W, D) / 25).astype(np.float32)
runner.stop()
print("SUCCESS!")
