# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
P = {k: int(v) for k, v in json.load(open(f"{args.name}/out.json"))["params"].items()}
size = P["size"]
rng = np.random.default_rng(8)
a, b = (np.sort(rng.integers(0, 1 << 30, size)).astype(np.uint32) for _ in range(2))
end = np.array([0xFFFFFFFF], np.uint32)
how = dict(
    streaming=True,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=True,
)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
out = np.zeros(2 * size + 1, np.uint32)
runner.memcpy_d2h(out, P["M_out"], 0, 0, 1, 1, 2 * size + 1, **how)
runner.memcpy_h2d(P["M_in_a"], np.concatenate([a, end]), 0, 0, 1, 1, size + 1, **how)
runner.memcpy_h2d(
    P["M_in_b"], np.concatenate([b, end]), 0, 0, 1, 1, size + 1, **(how | {"nonblock": False})
)
runner.stop()
np.testing.assert_array_equal(out, np.concatenate([np.sort(np.concatenate([a, b])), end]))
print("SUCCESS!")
