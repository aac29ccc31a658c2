# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

p = argparse.ArgumentParser()
p.add_argument("--name")
a = p.parse_args()
q = json.load(open(a.name + "/out.json"))["params"]
P, n = int(q["P"]), int(q["n"])
r = SdkRuntime(a.name)
r.load()
r.run()
v, c = r.get_id("v"), r.get_id("counts")
x = np.random.default_rng(4).standard_normal((P, P * n)).astype("f4")
kw = dict(streaming=False, data_type=MemcpyDataType.MEMCPY_32BIT, nonblock=False)
for op, f in ((0, np.sum), (1, np.max)):
    r.memcpy_h2d(
        v,
        np.asfortranarray(x).ravel(order="F"),
        0,
        0,
        P,
        1,
        P * n,
        order=MemcpyOrder.COL_MAJOR,
        **kw,
    )
    r.launch("allreduce", np.uint16(op), nonblock=False)
    y = np.zeros(P * P * n, "f4")
    r.memcpy_d2h(y, v, 0, 0, P, 1, P * n, order=MemcpyOrder.ROW_MAJOR, **kw)
    np.testing.assert_allclose(y.reshape(P, -1), np.tile(f(x, 0), (P, 1)), rtol=1e-5, atol=1e-5)
k = np.zeros(2 * P, "u4")
r.memcpy_d2h(k, c, 0, 0, P, 1, 2, order=MemcpyOrder.ROW_MAJOR, **kw)
r.stop()
assert (k.reshape(P, 2) == [4 * (P - 1), 2]).all(), k
print("SUCCESS!")
