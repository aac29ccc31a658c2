# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
w, h, n = (
    int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("width", "height", "n")
)
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
u = np.random.default_rng(0).random((h * n, w * n)).astype(np.float32)
tiles = u.reshape(h, n, w, n).transpose(0, 2, 1, 3)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("now"), tiles.ravel(), 0, 0, w, h, n * n, **how)
runner.launch("run", np.uint16(9), nonblock=False)
out = np.zeros(u.size, np.float32)
runner.memcpy_d2h(out, runner.get_id("now"), 0, 0, w, h, n * n, **how)
runner.stop()
c2 = 0.2
before, now = u.astype(np.float64), u.astype(np.float64)
for _ in range(9):
    p = np.pad(now, 1)
    new = -before + (2 - 3 * c2) * now
    for i in range(3):
        for j in range(3):
            if (i, j) != (1, 1):
                new += (0.25 if i != 1 and j != 1 else 0.5) * c2 * p[i : i + h * n, j : j + w * n]
    before, now = now, new
np.testing.assert_allclose(
    out.reshape(h, w, n, n).transpose(0, 2, 1, 3).reshape(h * n, w * n), now, atol=1e-5
)
print("SUCCESS!")
