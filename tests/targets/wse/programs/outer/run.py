# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
colors = json.load(open(f"{args.name}/out.json")).get("colors", {})
w, h, n = params["width"], params["height"], params["n"]
row, b32, b16 = MemcpyOrder.ROW_MAJOR, MemcpyDataType.MEMCPY_32BIT, MemcpyDataType.MEMCPY_16BIT
rng = np.random.default_rng(1)
u = rng.random((h, n), dtype=np.float32)  # a row of PEs has one u
v = rng.random((w, n), dtype=np.float32)  # a column of PEs one v
want = u[:, None, :, None] * v[None, :, None, :]
runner = SdkRuntime(args.name)
runner.load()
runner.run()
copy = dict(streaming=False, order=row, data_type=b32)
runner.memcpy_h2d_rowbcast(runner.get_id("u"), u.ravel(), 0, 0, w, h, n, **copy, nonblock=True)
runner.memcpy_h2d_colbcast(runner.get_id("v"), v.ravel(), 0, 0, w, h, n, **copy, nonblock=True)
small = np.arange(h * n, dtype=np.uint32)
runner.memcpy_h2d_rowbcast(
    runner.get_id("h"),
    small,
    0,
    0,
    w,
    h,
    n,
    streaming=False,
    order=row,
    data_type=b16,
    nonblock=False,
)
runner.launch("f_outer", nonblock=False)
got = np.zeros(w * h * n * n, np.float32)
runner.memcpy_d2h(got, runner.get_id("outer"), 0, 0, w, h, n * n, **copy, nonblock=False)
np.testing.assert_array_equal(got.reshape(want.shape), want)
words = np.zeros(w * h * n, np.uint32)
runner.memcpy_d2h(
    words,
    runner.get_id("h"),
    0,
    0,
    w,
    h,
    n,
    streaming=False,
    order=row,
    data_type=b16,
    nonblock=False,
)
np.testing.assert_array_equal(
    words.reshape(h, w, n), (small.reshape(h, 1, n) + np.arange(n, dtype=np.uint32)).repeat(w, 1)
)
# A part of the rectangle only.
part = rng.random((h - 1, n), dtype=np.float32)
runner.memcpy_h2d_rowbcast(
    runner.get_id("u"), part.ravel(), 1, 1, w - 1, h - 1, n, **copy, nonblock=False
)
u2 = u[:, None].repeat(w, 1)
u2[1:, 1:] = part[:, None]
back = np.zeros(w * h * n, np.float32)
runner.memcpy_d2h(back, runner.get_id("u"), 0, 0, w, h, n, **copy, nonblock=False)
np.testing.assert_array_equal(back.reshape(h, w, n), u2)
# Streams: the results are asked for before the operands are sent.
stream = dict(streaming=True, order=row, data_type=b32)
runner.launch("f_stream", nonblock=False)
out = np.zeros(w * h * n * n, np.float32)
runner.memcpy_d2h(out, 4, 0, 0, w, h, n * n, **stream, nonblock=True)
runner.memcpy_h2d_rowbcast(2, u.ravel(), 0, 0, w, h, n, **stream, nonblock=True)
task = runner.memcpy_h2d_colbcast(3, v.ravel(), 0, 0, w, h, n, **stream, nonblock=True)
runner.task_wait(task)
assert runner.is_task_done(task)
runner.stop()
np.testing.assert_array_equal(out.reshape(want.shape), want)
print("SUCCESS!")
