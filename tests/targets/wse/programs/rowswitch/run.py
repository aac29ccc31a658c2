# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--cmaddr")
args = parser.parse_args()
params = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
runner = SdkRuntime(args.name, cmaddr=args.cmaddr)
runner.load()
runner.run()
words = dict(data_type=MemcpyDataType.MEMCPY_32BIT, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
rng = np.random.default_rng(11)

w, n = params["w"], params["n"]
v = rng.standard_normal((w - 1) * n).astype("f4")
runner.memcpy_h2d(runner.get_id("all"), v, 0, 0, 1, 1, v.size, streaming=False, **words)
runner.launch("go", nonblock=False)
got, echo = np.zeros(v.size, "f4"), np.zeros(n, "f4")
runner.memcpy_d2h(got, runner.get_id("part"), 1, 0, w - 1, 1, n, streaming=False, **words)
runner.memcpy_d2h(echo, runner.get_id("echo"), 0, 0, 1, 1, n, streaming=False, **words)
runner.stop()
np.testing.assert_array_equal(got, v)
np.testing.assert_array_equal(echo, 2 * v[-n:])
print("SUCCESS!")
