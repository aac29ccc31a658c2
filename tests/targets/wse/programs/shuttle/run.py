# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
w, n = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("w", "n"))
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
mine = np.arange(w * n, dtype=np.uint32) + 100
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("mine"), mine, 0, 0, w, 1, n, **how)
rows = mine.reshape(w, n)
done = 0
for rounds in (1, 1, 3):
    runner.launch("go", np.uint16(rounds), nonblock=False)
    done += rounds
    got = np.zeros(w * n, np.uint32)
    runner.memcpy_d2h(got, runner.get_id("got"), 0, 0, w, 1, n, **how)
    turns = np.zeros(w, np.uint32)
    runner.memcpy_d2h(turns, runner.get_id("turns"), 0, 0, w, 1, 1, **how)
    assert (turns == done).all(), turns
    sender = 0 if done % 2 else w - 1
    for x in range(w):
        if x != sender:
            np.testing.assert_array_equal(
                got.reshape(w, n)[x], rows[sender] if 0 < x < w - 1 else rows[sender]
            )
runner.stop()
print("SUCCESS!")
