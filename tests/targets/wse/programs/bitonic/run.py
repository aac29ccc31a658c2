# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import input_array_to_u32, memcpy_view

p = argparse.ArgumentParser()
p.add_argument("--name")
a = p.parse_args()
q = {k: int(v) for k, v in json.load(open(a.name + "/out.json"))["params"].items()}
P, n = 1 << q["logP"], q["n"]
r = SdkRuntime(a.name)
v = r.get_id("v")
r.load()
r.run()
kw = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
x = np.random.default_rng(0).integers(-30000, 30000, P * n).astype("i2")
r.memcpy_h2d(v, input_array_to_u32(x, None, n), 0, 0, P, 1, n, **kw)
r.launch("sort", nonblock=False)
o = np.zeros(P * n, "u4")
r.memcpy_d2h(o, v, 0, 0, P, 1, n, **kw)
r.stop()
np.testing.assert_array_equal(memcpy_view(o, np.dtype(np.int16)), np.sort(x))
print("SUCCESS!")
