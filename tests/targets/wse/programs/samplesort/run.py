# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
params = json.load(open(f"{args.name}/out.json"))["params"]
W, H, n = (int(params[k]) for k in ("W", "H", "n"))
runner = SdkRuntime(args.name, suppress_simfab_trace=True)
values, ordered, count = (runner.get_id(k) for k in ("values", "sorted", "count"))
runner.load()
runner.run()
kind = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
rng = np.random.default_rng(4)
for _ in range(2):
    data = rng.integers(0, 2**32, W * H * n, dtype=np.uint32)
    runner.memcpy_h2d(values, data, 0, 0, W, H, n, data_type=MemcpyDataType.MEMCPY_32BIT, **kind)
    runner.launch("sort", nonblock=False)
    out, counts = np.zeros(W * H * W * H * n, np.uint32), np.zeros(W * H, np.uint32)
    runner.memcpy_d2h(
        out, ordered, 0, 0, W, H, W * H * n, data_type=MemcpyDataType.MEMCPY_32BIT, **kind
    )
    runner.memcpy_d2h(counts, count, 0, 0, W, H, 1, data_type=MemcpyDataType.MEMCPY_16BIT, **kind)
    rows = out.reshape(W * H, -1)
    got = np.concatenate([rows[k, : counts[k]] for k in range(W * H)])
    np.testing.assert_array_equal(got, np.sort(data))
runner.stop()
print("SUCCESS!")
