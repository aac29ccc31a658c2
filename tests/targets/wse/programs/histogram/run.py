# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder

a = argparse.ArgumentParser()
a.add_argument("--name")
a.add_argument("--cmaddr")
a = a.parse_args()
q = {k: int(v) for k, v in json.load(open(a.name + "/out.json"))["params"].items() if v.isdigit()}
W, H, N, B = q["width"], q["height"], q["num_inputs"], q["bucket_size"]
rng = np.random.default_rng(2)
X = np.zeros((H, W, N), np.uint32)
for y in range(H):
    for x in range(W):
        ox = rng.integers(x, W, N)
        oy = rng.integers(y, H, N)
        X[y, x] = (oy * W + ox) * B + rng.integers(0, B, N)
s = SdkRuntime(a.name, cmaddr=a.cmaddr)
s.load()
s.run()
D = dict(data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.COL_MAJOR)
s.memcpy_h2d(
    s.get_id("input_array"), X.ravel(order="F"), 0, 0, W, H, N, streaming=False, nonblock=True, **D
)
s.launch("f_run", nonblock=True)
total = np.zeros(1, np.uint32)
s.memcpy_d2h(
    total,
    int(json.load(open(a.name + "/out.json"))["params"].get("RESULT", 20)),
    W - 1,
    0,
    1,
    1,
    1,
    streaming=True,
    nonblock=False,
    **D,
)
assert total[0] == W * H * N, total
b = np.zeros(W * H * B, np.uint32)
s.memcpy_d2h(b, s.get_id("buckets"), 0, 0, W, H, B, streaming=False, nonblock=False, **D)
s.stop()
b = b.reshape((H, W, B), order="F")
np.testing.assert_array_equal(b.ravel(), np.bincount(X.ravel(), minlength=W * H * B))
print("SUCCESS!")
