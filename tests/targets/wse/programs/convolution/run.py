# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import input_array_to_u32, memcpy_view

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
P, w, taps = (
    int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("P", "w", "taps")
)
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_16BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
rng = np.random.default_rng(0)
image = rng.integers(-4, 5, w).astype(np.float16)
filters = rng.integers(-2, 3, (P, taps)).astype(np.float16)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("image"), input_array_to_u32(image, None, w), 0, 0, 1, 1, w, **how)
runner.memcpy_h2d(
    runner.get_id("weights"),
    input_array_to_u32(filters.ravel(), None, taps),
    0,
    0,
    P,
    1,
    taps,
    **how,
)
for _ in range(3):
    runner.launch("go", nonblock=False)
out = np.zeros(w - taps + 1, np.uint32)
runner.memcpy_d2h(out, runner.get_id("result"), P - 1, 0, 1, 1, w - taps + 1, **how)
runner.stop()
want = np.correlate(image.astype(np.float32), filters.sum(0).astype(np.float32), "valid")
np.testing.assert_array_equal(memcpy_view(out, np.dtype(np.float16)).astype(np.float32), want)
print("SUCCESS!")
