# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
p = json.load(open(args.name + "/out.json"))["params"]
P, n = int(p["P"]), int(p["n"])
r = SdkRuntime(args.name)
r.load()
r.run()
k = dict(
    streaming=False,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
)
for t, root in enumerate((0, 2, 3, 1, 1, 0)):
    if t:
        r.launch("point", np.uint16(root), nonblock=False)
    d = np.random.default_rng(t).random((P, n), dtype="f4")
    r.memcpy_h2d(r.get_id("data"), d.ravel(), 0, 0, P, 1, n, **k)
    r.launch("send", np.uint16(root), nonblock=False)
    o = np.zeros(P * n, "f4")
    r.memcpy_d2h(o, r.get_id("data"), 0, 0, P, 1, n, **k)
    np.testing.assert_array_equal(o.reshape(P, n), np.broadcast_to(d[root], (P, n)))
t = np.zeros(P * 2, "u4")
r.memcpy_d2h(
    t,
    r.get_id("turns"),
    0,
    0,
    P,
    1,
    2,
    streaming=False,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
)
r.stop()
assert (t == 5).all(), t
print("SUCCESS!")
