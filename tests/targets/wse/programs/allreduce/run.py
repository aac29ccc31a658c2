# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder
from cerebras.sdk.sdk_utils import memcpy_view

p = argparse.ArgumentParser()
p.add_argument("--name")
p.add_argument("--cmaddr")
a = p.parse_args()
P = {k: int(v) for k, v in json.load(open(a.name + "/out.json"))["params"].items()}
W, N = P["W"], P["N"]
r = SdkRuntime(a.name, cmaddr=a.cmaddr)
r.load()
r.run()
v = np.arange(W * N).astype(np.float32)
K = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.memcpy_h2d(r.get_id("v"), v, 0, 0, W, 1, N, **K)
for k in range(2):
    r.launch("go", np.uint16(3), nonblock=False)
    t = np.zeros(W * N, np.float32)
    r.memcpy_d2h(t, r.get_id("total"), 0, 0, W, 1, N, **K)
    np.testing.assert_array_equal(t.reshape(W, N), np.tile(v.reshape(W, N).sum(0), (W, 1)))
c = np.zeros(W * 2, np.uint32)
K["data_type"] = MemcpyDataType.MEMCPY_16BIT
r.memcpy_d2h(c, r.get_id("rounds"), 0, 0, W, 1, 2, **K)
r.stop()
c = memcpy_view(c, np.dtype(np.uint16)).reshape(W, 2)
assert (c[:, 1] == 6).all() and (c[:-1, 0] == 6).all() and c[-1, 0] == 0, c
print("SUCCESS!")
