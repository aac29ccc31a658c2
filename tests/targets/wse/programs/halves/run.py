# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import input_array_to_u32, memcpy_view

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
p = json.load(open(args.name + "/out.json"))["params"]
P, n = int(p["P"]), int(p["n"])
r = SdkRuntime(args.name)
r.load()
r.run()
k = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
b16 = MemcpyDataType.MEMCPY_16BIT
x = np.random.default_rng(0).integers(-8, 8, (P, n)).astype("f2")
r.memcpy_h2d(
    r.get_id("row"), input_array_to_u32(x.ravel(), None, 1), 0, 0, P, 1, n, data_type=b16, **k
)
r.launch("exchange", np.float16(0.5), nonblock=False)
o = np.zeros(P * n, "u4")
r.memcpy_d2h(o, r.get_id("sum"), 0, 0, P, 1, n, data_type=b16, **k)
q = np.zeros(P, "f4")
r.memcpy_d2h(q, r.get_id("norm"), 0, 0, P, 1, 1, data_type=MemcpyDataType.MEMCPY_32BIT, **k)
r.stop()
pad = np.pad(x, ((1, 1), (0, 0)))
want = x + np.float16(0.5) * pad[:-2] + np.float16(0.5) * pad[2:]
np.testing.assert_array_equal(memcpy_view(o, np.dtype("f2")).reshape(P, n), want)
np.testing.assert_allclose(q, (want.astype("f4") ** 2).sum(1))
print("SUCCESS!")
