# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import input_array_to_u32, memcpy_view

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
P, n, span = (
    int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("P", "n", "span")
)
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
keys = np.random.default_rng(5).integers(0, P * span, P * n).astype(np.uint16)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("keys"), input_array_to_u32(keys, None, n), 0, 0, P, 1, n, **how)
for round in range(2):
    runner.launch("sort", nonblock=False)


def read(name, size):
    words = np.zeros(P * size, np.uint32)
    runner.memcpy_d2h(words, runner.get_id(name), 0, 0, P, 1, size, **how)
    return memcpy_view(words, np.dtype(np.uint16)).reshape(P, size)


counts, seen = read("counts", span), read("seen", 4)
runner.stop()
np.testing.assert_array_equal(counts.ravel(), 2 * np.bincount(keys, minlength=P * span))
sent = np.array(
    [
        [2 * np.sum(keys[s * n : s * n + n] // span == x) if s != x else 0 for s in range(4)]
        for x in range(P)
    ]
)
np.testing.assert_array_equal(seen, sent)
print("SUCCESS!")
