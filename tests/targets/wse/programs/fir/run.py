# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
taps, n = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("taps", "n"))
rng = np.random.default_rng(0)
w, x = rng.random(taps).astype(np.float32), rng.random(n).astype(np.float32)
kind = dict(order=MemcpyOrder.ROW_MAJOR, data_type=MemcpyDataType.MEMCPY_32BIT)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(
    runner.get_id("weights"), w, 0, 0, 1, 1, taps, streaming=False, nonblock=False, **kind
)
for _ in range(2):
    y = np.zeros(n, np.float32)
    runner.launch("start", nonblock=False)
    out = runner.memcpy_d2h(y, 4, 0, 0, 1, 1, n, streaming=True, nonblock=True, **kind)
    runner.memcpy_h2d(3, x, 0, 0, 1, 1, n, streaming=True, nonblock=True, **kind)
    runner.task_wait(out)
    np.testing.assert_allclose(y, 0.5 * np.convolve(x, w)[:n], rtol=1e-5)
runner.stop()
exponent = runner.read_symbol(4, 1, "exponent", np.uint16)[0]
assert exponent == (y[-1:].view(np.uint32)[0] >> 23) & 0xFF
print("SUCCESS!")
