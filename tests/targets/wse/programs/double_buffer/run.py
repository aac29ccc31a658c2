# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

p = argparse.ArgumentParser()
p.add_argument("--name")
p.add_argument("--cmaddr")
a = p.parse_args()
ps = json.load(open(f"{a.name}/out.json"))["params"]
W, H, N = int(ps["W"]), int(ps["H"]), int(ps["N"])
I, O = int(ps["IN"]), int(ps["OUT"])
r = SdkRuntime(a.name, cmaddr=a.cmaddr, suppress_simfab_trace=True)
r.load()
r.run()
K = 4
rng = np.random.default_rng(9)
x = rng.random((K, H, W, N)).astype(np.float32)
r.launch("start", np.int16(K), nonblock=False)
out = [np.zeros(H * W * N, np.float32) for _ in range(K)]
kw = dict(streaming=True, data_type=MemcpyDataType.MEMCPY_32BIT, nonblock=True)
hs = []
for k in range(K):
    order = (MemcpyOrder.ROW_MAJOR, MemcpyOrder.COL_MAJOR)[k % 2]
    src = x[k].ravel() if k % 2 == 0 else x[k].ravel(order="F")
    hs.append(r.memcpy_h2d(I, src, 0, 0, W, H, N, order=order, **kw))
    hs.append(r.memcpy_d2h(out[k], O, 0, 0, W, H, N, order=order, **kw))
for h in hs:
    r.task_wait(h)
assert all(r.is_task_done(h) for h in hs)
acc = np.zeros(H * W * N, np.float32)
r.memcpy_d2h(
    acc,
    r.get_id("acc"),
    0,
    0,
    W,
    H,
    N,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
t = np.zeros(H * W * 3, np.float32)
r.memcpy_d2h(
    t,
    r.get_id("t"),
    0,
    0,
    W,
    H,
    3,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.stop()
s = np.zeros((H, W, N), np.float32)
for k in range(K):
    s = s + x[k]
    got = out[k].reshape(H, W, N) if k % 2 == 0 else out[k].reshape(H, W, N, order="F")
    np.testing.assert_array_equal(got, s)
np.testing.assert_array_equal(acc.reshape(H, W, N), s)
u = t.view(np.uint32).reshape(H, W, 3)
cyc = ((u[..., 1] >> 16) + ((u[..., 2] & 0xFFFF).astype(np.int64) << 16)) - u[..., 0].astype(
    np.int64
)
assert (cyc > K * N).all(), cyc
print("SUCCESS!")
