# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk import sdk_utils
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--loop_count", type=int, default=2)
args = parser.parse_args()
w, h, size = (
    int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("width", "height", "size")
)
b32, b16, order = MemcpyDataType.MEMCPY_32BIT, MemcpyDataType.MEMCPY_16BIT, MemcpyOrder.ROW_MAJOR
runner = SdkRuntime(args.name, suppress_simfab_trace=True, simfab_numthreads=2)
buf, clock = runner.get_id("buf"), runner.get_id("clock")
runner.load()
runner.run()


def cycles():
    words = np.zeros(w * h * 6, np.uint32)
    runner.memcpy_d2h(
        words, clock, 0, 0, w, h, 6, streaming=False, data_type=b16, order=order, nonblock=False
    )
    t = sdk_utils.memcpy_view(words, np.dtype(np.uint16)).reshape(-1, 6).astype(np.int64)
    ends = t[:, 3] + (t[:, 4] << 16) + (t[:, 5] << 32)
    begins = t[:, 0] + (t[:, 1] << 16) + (t[:, 2] << 32)
    return int(ends.max() - begins.min())


data = np.random.default_rng(0).integers(0, 1 << 32, w * h * size, dtype=np.uint32)
took = {}
for how in ("copy", "stream"):
    streaming = how == "stream"
    runner.launch("f_sync", nonblock=True)
    for _ in range(args.loop_count):
        if streaming:
            runner.launch("f_in", nonblock=True)
        runner.memcpy_h2d(
            1 if streaming else buf,
            data,
            0,
            0,
            w,
            h,
            size,
            streaming=streaming,
            data_type=b32,
            order=order,
            nonblock=True,
        )
    if not streaming:
        runner.launch("f_toc", nonblock=True)
    took[how, "in"] = cycles()
    runner.launch("f_sync", nonblock=True)
    back = [np.zeros(w * h * size, np.uint32) for _ in range(args.loop_count)]
    for out in back:
        if streaming:
            runner.launch("f_out", nonblock=True)
        runner.memcpy_d2h(
            out,
            2 if streaming else buf,
            0,
            0,
            w,
            h,
            size,
            streaming=streaming,
            data_type=b32,
            order=order,
            nonblock=True,
        )
    if not streaming:
        runner.launch("f_toc", nonblock=True)
    took[how, "out"] = cycles()
    for out in back:
        np.testing.assert_array_equal(out, data)
runner.stop()
print(took)
total = w * h * size * args.loop_count
for key, c in took.items():
    print(key, f"{total * 4 / c:.2f} bytes a cycle")
    assert c >= total, (key, c, total)  # one channel: a word a cycle at most
    assert c < total * 2 + 3000, (key, c, total)
print("SUCCESS!")
