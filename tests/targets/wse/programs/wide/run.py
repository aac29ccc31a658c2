# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import random

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = json.load(open(f"{args.name}/out.json"))["params"]
W, D = int(params["width"]), int(params["digits"])
rng = random.Random(4)
a = [rng.getrandbits(16 * D) for _ in range(W)]
b = [rng.getrandbits(16 * D) for _ in range(W)]
a[0] = b[0] = (1 << 16 * D) - 1


def words(numbers):
    return np.array(
        [[n >> (16 * k) & 0xFFFF for k in range(D)] for n in numbers], np.uint32
    ).ravel()


kind = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("a"), words(a), 0, 0, W, 1, D, **kind)
runner.memcpy_h2d(runner.get_id("b"), words(b), 0, 0, W, 1, D, **kind)
runner.launch("multiply", nonblock=False)
out = np.zeros(2 * D * W, np.uint32)
runner.memcpy_d2h(out, runner.get_id("product"), 0, 0, W, 1, 2 * D, **kind)
runner.stop()
for k, row in enumerate(out.reshape(W, 2 * D)):
    assert sum(int(v & 0xFFFF) << (16 * i) for i, v in enumerate(row)) == a[k] * b[k], k
print("SUCCESS!")
