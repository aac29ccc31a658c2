#!/usr/bin/env cs_python
# SPDX-License-Identifier: Apache-2.0
"""Runs the product on 8 PEs, checks it, and draws what the fabric did."""

import argparse
import json

import numpy as np

from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name", default="out")
parser.add_argument("--picture", help="where to draw the traffic, .svg or .png")
args = parser.parse_args()
with open(f"{args.name}/out.json", encoding="utf-8") as f:
    params = {k: int(v) for k, v in json.load(f)["params"].items()}
width, rows, cols = params["width"], params["rows"], params["cols"]

rng = np.random.default_rng(7)
A = rng.standard_normal((rows, width * cols)).astype(np.float32)
x = rng.standard_normal(width * cols).astype(np.float32)
b = rng.standard_normal(rows).astype(np.float32)

runner = SdkRuntime(args.name)
runner.load()
runner.run()
how = dict(
    streaming=False,
    order=MemcpyOrder.ROW_MAJOR,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    nonblock=False,
)
runner.memcpy_h2d(
    runner.get_id("A"), np.ascontiguousarray(A.T).ravel(), 0, 0, width, 1, rows * cols, **how
)
runner.memcpy_h2d(runner.get_id("x"), x, 0, 0, width, 1, cols, **how)
start = np.zeros((width, rows), np.float32)
start[0] = b
runner.memcpy_h2d(runner.get_id("y"), start.ravel(), 0, 0, width, 1, rows, **how)
runner.launch("multiply", nonblock=False)
y = np.zeros(rows, np.float32)
runner.memcpy_d2h(y, runner.get_id("y"), 0, 0, 1, 1, rows, **how)
runner.stop()

np.testing.assert_allclose(y, A @ x + b, rtol=1e-4, atol=1e-4)
if args.picture:
    runner.heat_map(args.picture, "traffic")
print("SUCCESS!", runner.cycles(), "cycles")
