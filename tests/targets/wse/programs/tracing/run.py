# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os

import numpy as np
from cerebras.sdk.debug.debug_util import debug_util
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
width, n = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("width", "n"))
data = np.random.default_rng(0).normal(3, 2, n).astype(np.float32)
runner = SdkRuntime(args.name, suppress_simfab_trace=False)
runner.load()
runner.run()
runner.memcpy_h2d(
    runner.get_id("data"),
    data,
    0,
    0,
    1,
    1,
    n,
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
runner.launch("begin", nonblock=False)
runner.stop()
tool = debug_util(args.name)
X, Y = 4, 1
for x in range(1, width):
    mean = tool.get_symbol(X + x, Y, "mean", np.float32)
    deviation = tool.get_symbol(X + x, Y, "deviation", np.float32)
    np.testing.assert_allclose([mean[0], deviation[0]], [data.mean(), data.std()], rtol=1e-4)
    seen = tool.get_symbol(X + x, Y, "seen", np.uint16).reshape(2, 3)
    np.testing.assert_array_equal(seen, [[x] * 3, [0, 1, 2]])
    steps = tool.read_trace(X + x, Y, "steps")
    assert steps[0] == "begin" and steps[-1] == n, steps
    np.testing.assert_array_equal(np.array(steps[1:-1], np.float32), data)
    times = tool.read_trace(X + x, Y, "times")
    assert len(times) == 2 and times[1] > times[0], times
assert tool.read_trace(X, Y, "steps") == ["begin", "sent"]
rect = tool.get_symbol_rect(((X + 1, Y), (width - 1, 1)), "mean", np.float32)
assert rect.shape[:2] == (width - 1, 1), rect.shape
if os.path.exists("sim.log"):
    text = open("sim.log").read()
    assert f"sender sends {n} words" in text, text
    assert text.count("mean") == width - 1
print("SUCCESS!")
