# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--max-ite", type=int, default=60)
args = parser.parse_args()
meta = json.load(open(f"{args.name}/out.json"))["params"]
w, h, d = (int(meta[k]) for k in ("width", "height", "depth"))
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.COL_MAJOR,
    nonblock=False,
)
rng = np.random.default_rng(11)
b = rng.random((h, w, d)).astype(np.float32)
diagonal = (6.5 + 3 * rng.random((h, w, d))).astype(np.float32)


def apply(v):
    out = diagonal * v
    for axis in range(3):
        up = [slice(None)] * 3
        down = [slice(None)] * 3
        up[axis], down[axis] = slice(1, None), slice(None, -1)
        out[tuple(up)] -= v[tuple(down)]
        out[tuple(down)] -= v[tuple(up)]
    return out


runner = SdkRuntime(args.name, suppress_simfab_trace=True)
runner.load()
runner.run()
for name, values in (("b", b), ("diagonal", diagonal)):
    runner.memcpy_h2d(runner.get_id(name), values.ravel(order="F"), 0, 0, w, h, d, **how)
runner.launch("f_solve", np.uint16(args.max_ite), np.float32(1e-5), nonblock=False)
x = np.zeros(h * w * d, np.float32)
runner.memcpy_d2h(x, runner.get_id("x"), 0, 0, w, h, d, **how)
state = np.zeros(4 * w * h, np.float32)
runner.memcpy_d2h(state, runner.get_id("state"), 0, 0, w, h, 4, **how)
runner.stop()
x = x.reshape((h, w, d), order="F")
state = state.reshape((h, w, 4), order="F")
assert (state == state[0, 0]).all()
assert 3 < state[0, 0, 0] < args.max_ite, state[0, 0]
np.testing.assert_allclose(apply(x.astype(np.float64)), b, atol=2e-5)
print(f"{int(state[0, 0, 0])} iterations, |r| = {np.sqrt(state[0, 0, 1])}")
print("SUCCESS!")
