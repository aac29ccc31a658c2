# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder
from cerebras.sdk.sdk_utils import input_array_to_u32, memcpy_view
from cerebras.sdk.debug.debug_util import debug_util

p = argparse.ArgumentParser()
p.add_argument("--name")
p.add_argument("--cmaddr")
a = p.parse_args()
q = {k: int(v) for k, v in json.load(open(a.name + "/out.json"))["params"].items()}
kw, kh, LH, LW = (q[k] for k in ("kw", "kh", "LH", "LW"))
rng = np.random.default_rng(3)
A = rng.random((kh * LH, kw * LW)).astype(np.float16)
x = rng.random(kw * LW).astype(np.float16)
b = rng.random(kh * LH).astype(np.float16)
r = SdkRuntime(a.name, cmaddr=a.cmaddr)
r.load()
r.run()
At = A.reshape(kh, LH, kw, LW).transpose(0, 2, 3, 1).ravel()
C = dict(data_type=MemcpyDataType.MEMCPY_16BIT, order=MemcpyOrder.ROW_MAJOR)
r.memcpy_h2d(
    r.get_id("A"),
    input_array_to_u32(At, None, 1),
    0,
    0,
    kw,
    kh,
    LH * LW,
    streaming=False,
    nonblock=False,
    **C,
)
for rep in range(2):
    y32 = np.zeros(kh * LH, np.uint32)
    t = r.memcpy_d2h(y32, 3, kw - 1, 0, 1, kh, LH, streaming=True, nonblock=True, **C)
    r.memcpy_h2d(
        2, input_array_to_u32(b, 0, LH), 0, 0, 1, kh, LH, streaming=True, nonblock=False, **C
    )
    xs = np.tile(x.reshape(1, kw, LW), (kh, 1, 1)).ravel()
    r.memcpy_h2d(
        1,
        input_array_to_u32(np_arr=xs, sentinel=0, fast_dim_sz=LW),
        0,
        0,
        kw,
        kh,
        LW,
        streaming=True,
        nonblock=True,
        **C,
    )
    r.task_wait(t)
    y = memcpy_view(y32, np.dtype(np.float16))
    np.testing.assert_allclose(
        y, A.astype(np.float32) @ x.astype(np.float32) + b, atol=0.01, rtol=0.01
    )
r.stop()
d = debug_util(a.name)
print(d.get_symbol(4, 1, "n", np.uint16))
print("SUCCESS")
