#!/usr/bin/env cs_python
# SPDX-License-Identifier: Apache-2.0
import argparse, json, os, shutil, subprocess, time
from pathlib import Path
from typing import Optional
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder
from cerebras.sdk import sdk_utils


def make_u48(words):
    return words[0] + (words[1] << 16) + (words[2] << 32)


def hwl_2_oned_colmajor(height, width, pe_length, A_hwl, dtype):
    A_1d = np.zeros(height * width * pe_length, dtype)
    idx = 0
    for l in range(pe_length):
        for w in range(width):
            for h in range(height):
                A_1d[idx] = A_hwl[(h, w, l)]
                idx = idx + 1
    return A_1d


p = argparse.ArgumentParser()
p.add_argument("-m", type=int)
p.add_argument("-n", type=int)
p.add_argument("-k", type=int)
p.add_argument("--latestlink")
p.add_argument("--channels", type=int)
p.add_argument("--width-west-buf", type=int)
p.add_argument("--width-east-buf", type=int)
p.add_argument("--zDim", type=int)
p.add_argument("--run-only", action="store_true")
p.add_argument("--cmaddr")
args = p.parse_args()
with open(f"{args.latestlink}/out.json", encoding="utf-8") as f:
    compile_data = json.load(f)
width, height, K = (int(compile_data["params"][k]) for k in ("width", "height", "MAX_ZDIM"))
assert (width, height) == (args.n, args.m)
z = args.zDim
np.random.seed(2)
x = np.zeros((height, width, K), np.float32)
x[:, :, :z] = np.random.randn(height, width, z)
c = np.random.randn(height, width, 7).astype(np.float32)
sim = SdkRuntime(args.latestlink, cmaddr=args.cmaddr)
sx, sy, sc = sim.get_id("x"), sim.get_id("y"), sim.get_id("coeff")
st = sim.get_id("time_buf")
sr = sim.get_id("time_ref")
sim.load()
sim.run()
sim.memcpy_h2d(
    sx,
    hwl_2_oned_colmajor(height, width, K, x, np.float32),
    0,
    0,
    width,
    height,
    K,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.COL_MAJOR,
    nonblock=True,
)
sim.memcpy_h2d(
    sc,
    hwl_2_oned_colmajor(height, width, 7, c, np.float32),
    0,
    0,
    width,
    height,
    7,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.COL_MAJOR,
    nonblock=True,
)
sim.launch("f_enable_timer", nonblock=False)
sim.launch("f_spmv", np.int16(z), nonblock=False)
sim.launch("f_memcpy_timestamps", nonblock=False)
t = np.zeros(height * width * 3, np.float32)
sim.memcpy_d2h(
    t,
    st,
    0,
    0,
    width,
    height,
    3,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r = np.zeros(height * width * 3, np.uint32)
sim.memcpy_d2h(
    r,
    sr,
    0,
    0,
    width,
    height,
    3,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
y = np.zeros(height * width * K, np.float32)
sim.memcpy_d2h(
    y,
    sy,
    0,
    0,
    width,
    height,
    K,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.COL_MAJOR,
    nonblock=False,
)
sim.stop()
y = np.reshape(y, (height, width, K), order="F")
ref = np.zeros_like(x)
for i in range(height):
    for j in range(width):
        for k in range(z):
            v = c[i, j, 6] * x[i, j, k]
            if k + 1 < z:
                v += c[i, j, 4] * x[i, j, k + 1]
            if k > 0:
                v += c[i, j, 5] * x[i, j, k - 1]
            if j + 1 < width:
                v += c[i, j, 0] * x[i, j + 1, k]
            if j > 0:
                v += c[i, j, 1] * x[i, j - 1, k]
            if i > 0:
                v += c[i, j, 2] * x[i - 1, j, k]
            if i + 1 < height:
                v += c[i, j, 3] * x[i + 1, j, k]
            ref[i, j, k] = v
np.testing.assert_allclose(y[:, :, :z], ref[:, :, :z], rtol=1e-4, atol=1e-5)
tw = t.view(np.uint32).reshape(height, width, 3)
for i in range(height):
    for j in range(width):
        w = tw[i, j].view(np.uint16)
        dt = make_u48([int(v) for v in w[3:]]) - make_u48([int(v) for v in w[:3]])
        assert 20 < dt < 5000, dt
print("time ref", r.reshape(height, width, 3)[0, 0], "dt", dt)
print("SUCCESS!")
