# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
p = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
w, h, C, R = p["width"], p["height"], p["ncols"], p["nrows"]
rng = np.random.default_rng(9)
A = rng.random((h * R, w * C)).astype(np.float32)
A[rng.random(A.shape) > 0.08] = 0
x = rng.random(w * C).astype(np.float32)
x[rng.random(x.size) > 0.7] = 0
how = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
b16, b32 = MemcpyDataType.MEMCPY_16BIT, MemcpyDataType.MEMCPY_32BIT
col_of = np.zeros((h, w, p["max_cols"]), np.uint32)
col_begin = np.zeros((h, w, p["max_cols"] + 1), np.uint32)
row_of = np.zeros((h, w, p["max_nnz"]), np.uint32)
value = np.zeros((h, w, p["max_nnz"]), np.float32)
most = 0
for i in range(h):
    for j in range(w):
        block = A[i * R : i * R + R, j * C : j * C + C]
        cols = np.flatnonzero(block.any(axis=0))
        k = 0
        for c, col in enumerate(cols):
            rows = np.flatnonzero(block[:, col])
            col_of[i, j, c], col_begin[i, j, c] = col, k
            row_of[i, j, k : k + rows.size] = rows
            value[i, j, k : k + rows.size] = block[rows, col]
            k += rows.size
        col_begin[i, j, cols.size :] = k
        col_of[i, j, cols.size :] = C  # beyond every column
        most = max(most, cols.size)
runner = SdkRuntime(args.name, simfab_numthreads=2)
runner.load()
runner.run()
for name, data, kind in (
    ("col_of", col_of, b16),
    ("col_begin", col_begin, b16),
    ("row_of", row_of, b16),
    ("value", value, b32),
):
    runner.memcpy_h2d(
        runner.get_id(name), data.ravel(), 0, 0, w, h, data.shape[2], data_type=kind, **how
    )
runner.memcpy_h2d(runner.get_id("x"), x, 0, 0, w, 1, C, data_type=b32, **how)
for _ in range(2):
    runner.launch("spmv", np.uint16(most), nonblock=False)
y = np.zeros(h * R, np.float32)
runner.memcpy_d2h(y, runner.get_id("y"), w - 1, 0, 1, h, R, data_type=b32, **how)
runner.stop()
np.testing.assert_allclose(y, A @ x, rtol=1e-5, atol=1e-6)
print("SUCCESS!")
