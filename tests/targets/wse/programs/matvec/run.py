# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
W, H, M, N = (params[k] for k in ("width", "height", "rows", "columns"))
rng = np.random.default_rng(3)
A = rng.random((H, W, M, N), dtype=np.float32)
x = rng.random((H, W, N), dtype=np.float32)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
kind = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
runner.memcpy_h2d(runner.get_id("A"), A.transpose(0, 1, 3, 2).ravel(), 0, 0, W, H, M * N, **kind)
runner.memcpy_h2d(runner.get_id("x"), x.ravel(), 0, 0, W, H, N, **kind)
cycles = []
for repeat in (1, 3):
    runner.launch("multiply", np.int16(repeat), nonblock=False)
    y, clock = np.zeros(H * W * M, np.float32), np.zeros(H * W * 3, np.float32)
    runner.memcpy_d2h(y, runner.get_id("y"), 0, 0, W, H, M, **kind)
    runner.memcpy_d2h(clock, runner.get_id("clock"), 0, 0, W, H, 3, **kind)
    want = np.einsum("hwmn,hwn->hwm", A.astype("f8"), x)
    np.testing.assert_allclose(y.reshape(H, W, M), want, rtol=1e-5)
    t = clock.view(np.uint16).reshape(H * W, 2, 3).astype(np.int64)
    t = t[..., 0] + (t[..., 1] << 16) + (t[..., 2] << 32)
    cycles.append((t[:, 1] - t[:, 0]).max())
runner.stop()
each = (cycles[1] - cycles[0]) / 2
print(f"{each:.0f} cycles, {4 * (M * N + N + 3 * M * N) / each:.1f} bytes a cycle and PE")
assert M * N / 2 < each < 8 * M * N, each
print("SUCCESS!")
