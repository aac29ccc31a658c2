# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

args = argparse.ArgumentParser()
args.add_argument("--name")
args.add_argument("--cmaddr")
args = args.parse_args()
p = json.load(open(args.name + "/out.json"))["params"]
P, N = int(p["P"]), int(p["N"])
r = SdkRuntime(args.name, cmaddr=args.cmaddr)
r.load()
r.run()
rng = np.random.default_rng(1)
a, b = (rng.random(P * N, dtype=np.float32) for _ in range(2))
s, d = np.zeros(P * N, np.float32), np.zeros(P * N, np.float32)
k = dict(streaming=True, data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.ROW_MAJOR)
t1 = r.memcpy_d2h(s, 2, 0, 0, P, 1, N, nonblock=True, **k)
t2 = r.memcpy_d2h(d, 3, 0, 0, P, 1, N, nonblock=True, **k)
r.memcpy_h2d(0, a, 0, 0, P, 1, N, nonblock=True, **k)
r.memcpy_h2d(1, b, 0, 0, P, 1, N, nonblock=True, **k)
r.task_wait(t1)
r.task_wait(t2)
assert r.is_task_done(t1)
seen = np.zeros(2 * P, np.uint32)
r.memcpy_d2h(
    seen,
    r.get_id("seen"),
    0,
    0,
    P,
    1,
    2,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.stop()
assert (seen == N).all(), seen
np.testing.assert_array_equal(s, a + b)
want = (a - b).reshape(P, N) * np.arange(1, P + 1, dtype=np.float32)[:, None]
np.testing.assert_array_equal(d, want.ravel())
print("SUCCESS!")
