# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib

import numpy as np
from cerebras.sdk import sdk_utils
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
p = json.load(open(args.name + "/out.json"))["params"]
W, H, n = (int(p[k]) for k in ("W", "H", "n"))
r = SdkRuntime(pathlib.Path(args.name))
r.load()
r.run()
b16, b32, RM, CM = (
    MemcpyDataType.MEMCPY_16BIT,
    MemcpyDataType.MEMCPY_32BIT,
    MemcpyOrder.ROW_MAJOR,
    MemcpyOrder.COL_MAJOR,
)
rng = np.random.default_rng(0)


def get(name, m, t, w=W, h=H, x=0, y=0, order=RM):
    o = np.zeros(w * h * m, "u4" if np.dtype(t).itemsize == 2 else t)
    r.memcpy_d2h(
        o,
        r.get_id(name),
        x,
        y,
        w,
        h,
        m,
        streaming=False,
        data_type=b16 if np.dtype(t).itemsize == 2 else b32,
        order=order,
        nonblock=False,
    )
    if np.dtype(t).itemsize == 2:
        o = sdk_utils.memcpy_view(o, np.dtype(t)).copy()
    return o.reshape((h, w, m), order="C" if order == RM else "F")


# row broadcast: a column of data across rows; 16 bits
c = rng.integers(0, 65536, (H, n)).astype("u4")
r.memcpy_h2d_rowbcast(
    r.get_id("row"),
    c.ravel(),
    0,
    0,
    W,
    H,
    n,
    streaming=False,
    data_type=b16,
    order=RM,
    nonblock=False,
)
np.testing.assert_array_equal(get("row", n, "u2"), np.broadcast_to(c[:, None], (H, W, n)))
d = rng.random((3, n), dtype="f4")
r.memcpy_h2d_colbcast(
    r.get_id("col"),
    d.ravel(),
    1,
    1,
    3,
    2,
    n,
    streaming=False,
    data_type=b32,
    order=RM,
    nonblock=True,
)
got = get("col", n, "f4")
want = np.zeros((H, W, n), "f4")
want[1:3, 1:4] = d
np.testing.assert_array_equal(got, want)
np.testing.assert_array_equal(get("col", n, "f4", 3, 2, 1, 1, CM), np.broadcast_to(d, (2, 3, n)))
r.launch("clear", nonblock=True)
xi, eta = 1 + (5 - 1) // 2, 1 + (4 - 1) // 3
g = rng.integers(0, 100, (xi, eta, n)).astype("i4")
r.memcpy_h2d_stride(
    r.get_id("grid"),
    g.ravel(),
    0,
    0,
    5,
    4,
    n,
    2,
    3,
    streaming=False,
    data_type=b32,
    order=RM,
    nonblock=False,
)
want = np.full((H, W, n), -1)
want[::3, ::2] = g.transpose(1, 0, 2)
np.testing.assert_array_equal(get("grid", n, "i4"), want)
r.launch(
    "mix",
    np.uint16(0x0FF0),
    np.int16(-5),
    np.float16(1.5),
    np.uint32(70000),
    np.int32(-70000),
    np.float32(0.25),
    np.bool_(True),
    np.uint8(200),
    np.int8(-100),
    nonblock=False,
)
np.testing.assert_array_equal(
    get("out", 9, "f4")[3, 4], [0x0FF0, -5, 1.5, 70000, -70000, 0.25, 1, 200, -100]
)
assert (get("flags", 1, "u4") == (8 | 4 << 8 | 4 << 16)).all()
assert r.coord_logical_to_physical((2, 1)) == (6, 2)
r.stop()
print("SUCCESS!")
