# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder

parser = argparse.ArgumentParser()
parser.add_argument("--name", help="the test name")
parser.add_argument("--cmaddr", help="IP:port for CS system")
args = parser.parse_args()
with open(f"{args.name}/out.json", encoding="utf-8") as f:
    data = json.load(f)
w, h, nx, ny = (int(data["params"][k]) for k in ("width", "height", "NX", "NY"))
rng = np.random.default_rng(7)
grid = rng.random((h * ny, w * nx)).astype(np.float32)
weights = rng.random((3, 3)).astype(np.float32) / 6
runner = SdkRuntime(args.name, cmaddr=args.cmaddr)
u, ws, worst, stamp = (runner.get_id(k) for k in ("u", "weights", "worst", "stamp"))
runner.load()
runner.run()
o = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, data_type=MemcpyDataType.MEMCPY_32BIT)
tiles = grid.reshape(h, ny, w, nx).transpose(0, 2, 1, 3).ravel()
runner.memcpy_h2d(u, tiles, 0, 0, w, h, nx * ny, nonblock=True, **o)
runner.memcpy_h2d(ws, np.tile(weights.ravel(), w * h), 0, 0, w, h, 9, nonblock=True, **o)
runner.launch("steps", np.int16(3), nonblock=False)
out = np.zeros(w * h * nx * ny, np.float32)
runner.memcpy_d2h(out, u, 0, 0, w, h, nx * ny, nonblock=False, **o)
big = np.zeros(w * h, np.float32)
runner.memcpy_d2h(big, worst, 0, 0, w, h, 1, nonblock=False, **o)
ts = np.zeros(w * h * 6, np.uint32)
runner.memcpy_d2h(
    ts,
    stamp,
    0,
    0,
    w,
    h,
    6,
    streaming=False,
    order=MemcpyOrder.COL_MAJOR,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    nonblock=False,
)
runner.stop()
want = grid.astype(np.float64)
for _ in range(3):
    p = np.pad(want, 1)
    want = sum(
        weights[a, b] * p[a : a + h * ny, b : b + w * nx] for a in range(3) for b in range(3)
    )
got = out.reshape(h, w, ny, nx).transpose(0, 2, 1, 3).reshape(h * ny, w * nx)
np.testing.assert_allclose(got, want, rtol=1e-5)
np.testing.assert_allclose(big.max(), abs(got - grid).max(), rtol=1e-6)
start, end = (
    sum(ts.reshape(6, w, h)[k + j].astype(np.int64) << 16 * j for j in range(3)) for k in (0, 3)
)
assert (end > start).all()
print("SUCCESS!")
