# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
n = int(json.load(open(args.name + "/out.json"))["params"]["n"])
r = SdkRuntime(args.name)
r.load()
r.run()
k = dict(
    streaming=False,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
)
rng = np.random.default_rng(0)
x, y = rng.standard_normal((2, n)).astype("f4")
r.memcpy_h2d(r.get_id("x"), x, 0, 0, 1, 1, n, **k)
r.memcpy_h2d(r.get_id("y"), y, 0, 0, 1, 1, n, **k)
r.launch("go", np.float32(2.5), np.int16(7), nonblock=False)


def get(name, px, m=n, t="f4"):
    o = np.zeros(m, t)
    r.memcpy_d2h(o, r.get_id(name), px, 0, 1, 1, m, **k)
    return o


z = np.float32(2.5) * x + y
np.testing.assert_allclose(get("z", 0), z, rtol=1e-6, atol=1e-6)
np.testing.assert_allclose(get("y", 0), np.hypot(x[::-1], y), rtol=1e-5)
np.testing.assert_array_equal(get("q", 0, t="i4"), np.trunc(x * 128).astype("i4"))
np.testing.assert_allclose(get("stats", 0, 4), [x.min(), z.max(), n, z.sum()], rtol=1e-5, atol=1e-5)
got = get("x", 1)
np.testing.assert_allclose(got, np.float32(2.5) * -z + 1, rtol=1e-5, atol=1e-5)
np.testing.assert_array_equal(get("y", 1), abs(got))
r.stop()
print("SUCCESS!")
