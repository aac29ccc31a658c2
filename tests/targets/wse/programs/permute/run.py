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
A, B, C = (int(p[k]) for k in "ABC")
r = SdkRuntime(args.name)
r.load()
r.run()
k = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
b32, b16 = MemcpyDataType.MEMCPY_32BIT, MemcpyDataType.MEMCPY_16BIT
x = np.arange(A * B * C, dtype="f4").reshape(A, B, C)
h = np.arange(4 * B * C, dtype="f2").reshape(2 * B, 2 * C)
r.memcpy_h2d(r.get_id("x"), x.ravel(), 0, 0, 1, 1, x.size, data_type=b32, **k)
r.memcpy_h2d(
    r.get_id("h"), input_array_to_u32(h.ravel(), None, 1), 0, 0, 1, 1, h.size, data_type=b16, **k
)
r.launch("permute", nonblock=False)


def get(name, shape):
    o = np.zeros(shape, "f4")
    f = o.ravel()
    r.memcpy_d2h(f, r.get_id(name), 0, 0, 1, 1, f.size, data_type=b32, **k)
    return f.reshape(shape)


np.testing.assert_array_equal(get("cba", (C, B, A)), x.transpose(2, 1, 0))
np.testing.assert_array_equal(get("bca", (B, C, A)), x.transpose(1, 2, 0))
np.testing.assert_array_equal(get("flip", (x.size,)), x.ravel()[::-1])
np.testing.assert_array_equal(get("diag", (A,)), [x[i, i, i] for i in range(A)])
np.testing.assert_array_equal(get("patch", (2, 2, 3)), -x[1:3, 1::2, 2:5])
e = np.zeros(B * C, np.uint32)
r.memcpy_d2h(e, r.get_id("evens"), 0, 0, 1, 1, B * C, data_type=b16, **k)
np.testing.assert_array_equal(memcpy_view(e, np.dtype(np.float16)).reshape(B, C), h[::2, 1::2])
r.stop()
print("SUCCESS!")
