# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

p = argparse.ArgumentParser()
p.add_argument("--name")
a = p.parse_args()
q = {k: int(v) for k, v in json.load(open(a.name + "/out.json"))["params"].items()}
n = q["size"]
r = SdkRuntime(a.name)
s = r.get_id("sum")
r.load()
r.run()
kw = dict(streaming=True, data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.ROW_MAJOR)
A, B = (np.random.default_rng(k).random((2, n), dtype="f4") for k in (1, 2))
o = np.zeros(2 * n, "f4")
t = r.memcpy_d2h(o, q["O_ID"], 0, 0, 1, 2, n, nonblock=True, **kw)
h = [
    r.memcpy_h2d(q["B_ID"], B.ravel(), 0, 0, 1, 2, n, nonblock=True, **kw),
    r.memcpy_h2d(q["A_ID"], A.ravel(), 0, 0, 1, 2, n, nonblock=True, **kw),
]
for k in h:
    r.task_wait(k)
r.task_wait(t)
assert r.is_task_done(t)
np.testing.assert_array_equal(o.reshape(2, n), A + B)
r.launch("stop", nonblock=False)
z = np.zeros(2, "f4")
r.memcpy_d2h(
    z,
    s,
    0,
    0,
    1,
    2,
    1,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.stop()
np.testing.assert_allclose(z, B.sum(1), rtol=1e-5)
print("SUCCESS!")
