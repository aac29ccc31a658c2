# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime  # pylint: disable=no-name-in-module
from cerebras.sdk.sdk_utils import memcpy_view

p = argparse.ArgumentParser()
p.add_argument("--name", required=True)
p.add_argument("--cmaddr", default=None)
a = p.parse_args()
with open(os.path.join(a.name, "out.json")) as f:
    ps = json.load(f)["params"]
W, H, N = (int(ps[k]) for k in ("width", "height", "N"))
rng = np.random.default_rng(3)
row = rng.random((H, N)).astype(np.float32)
col = rng.integers(-50, 50, (W, N)).astype(np.int16)
r = SdkRuntime(a.name, cmaddr=a.cmaddr, suppress_simfab_trace=True, simfab_numthreads=2)
i_row, i_col, i_out, i_t = map(r.get_id, ("row", "col", "out", "times"))
r.load()
r.run()
r.memcpy_h2d_rowbcast(
    i_row,
    row.ravel(),
    0,
    0,
    W,
    H,
    N,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=True,
)
r.memcpy_h2d_colbcast(
    i_col,
    col.view(np.uint16).astype(np.uint32).ravel(),
    0,
    0,
    W,
    H,
    N,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=True,
)
r.launch("run", np.float32(1.5), np.int16(-3), nonblock=False)
out = np.zeros([H, W, N], np.float32)
r.memcpy_d2h(
    out,
    i_out,
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
# two parts of the rectangle, column major
part = np.zeros(2 * 3 * N, np.float32)
r.memcpy_d2h(
    part,
    i_out,
    1,
    1,
    3,
    2,
    N,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.COL_MAJOR,
    nonblock=False,
)
ts = np.zeros(H * W * 3, np.uint32)
r.memcpy_d2h(
    ts,
    i_t,
    0,
    0,
    W,
    H,
    3,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.stop()
place = np.arange(W * H).reshape(H, W)
place[1::2] = place[1::2, ::-1]
want = np.float32(1.5) * row[0] + (col[None, :, :].astype(np.float32) - 3) * 0.5 + place[:, :, None]
np.testing.assert_allclose(out, want, rtol=1e-5)
np.testing.assert_array_equal(part.reshape(2, 3, N, order="F"), out[1:3, 1:4])
cycles = memcpy_view(ts, np.dtype(np.uint16)).reshape(H, W, 3)[..., 0]
assert (cycles > 0).all()
print("SUCCESS!")
