# SPDX-License-Identifier: Apache-2.0
import argparse

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
name = parser.parse_args().name
WIDTH, HEIGHT = 5, 8


def ways(streaming=False, order=MemcpyOrder.ROW_MAJOR, bits=MemcpyDataType.MEMCPY_32BIT):
    return dict(streaming=streaming, data_type=bits, order=order, nonblock=True)


def cycles(runner):
    words = np.zeros(WIDTH * HEIGHT * 6, np.uint32)
    bits = MemcpyDataType.MEMCPY_16BIT
    runner.memcpy_d2h(
        words,
        runner.get_id("times"),
        0,
        0,
        WIDTH,
        HEIGHT,
        6,
        **ways(bits=bits) | {"nonblock": False},
    )
    t = words.reshape(HEIGHT, WIDTH, 2, 3).astype(np.int64)
    t = t[..., 0] + (t[..., 1] << 16) + (t[..., 2] << 32)
    return int(t[..., 1].max() - t[..., 0].min())


table = {}
for channels in (1, 2, 4):
    runner = SdkRuntime(f"{name}_{channels}")
    runner.load()
    runner.run()
    data = runner.get_id("data")
    for size in (1, 64, 256, 512):
        for mode in ("h2d", "d2h"):
            sent = np.arange(WIDTH * HEIGHT * size, dtype=np.uint32)
            got = np.zeros_like(sent)
            runner.launch("tic", nonblock=True)
            if mode == "h2d":
                runner.memcpy_h2d(data, sent, 0, 0, WIDTH, HEIGHT, size, **ways())
            else:
                runner.memcpy_d2h(got, data, 0, 0, WIDTH, HEIGHT, size, **ways())
            runner.launch("toc", nonblock=True)
            table[channels, mode, size] = cycles(runner)
            if mode == "d2h":
                np.testing.assert_array_equal(got, sent)
        for order in (MemcpyOrder.ROW_MAJOR, MemcpyOrder.COL_MAJOR):
            ones = np.ones(WIDTH * HEIGHT * size, np.uint32)
            runner.memcpy_h2d(data, ones * 0, 0, 0, WIDTH, HEIGHT, size, **ways())
            runner.launch("expect", np.uint16(size), nonblock=False)
            runner.memcpy_h2d(1, ones, 0, 0, WIDTH, HEIGHT, size, **ways(True, order))
            table[channels, "stream", order, size] = cycles(runner)
            sums = np.zeros(WIDTH * HEIGHT, np.uint32)
            last = runner.memcpy_d2h(sums, data, 0, 0, WIDTH, HEIGHT, 1, **ways())
            runner.task_wait(last)
            assert (sums == size).all()
    runner.stop()
    # A word a cycle and channel: what a size adds is what the rows of a channel get more.
    per_word = WIDTH * (HEIGHT // channels)
    for mode in ("h2d", "d2h"):
        assert table[channels, mode, 512] - table[channels, mode, 64] == per_word * 448, table
    for order in (MemcpyOrder.ROW_MAJOR, MemcpyOrder.COL_MAJOR):
        slope = (table[channels, "stream", order, 512] - table[channels, "stream", order, 64]) / 448
        # No faster than the channel, no slower than the data task of a PE lets it be.
        assert per_word * 0.99 <= slope <= max(per_word, 60) * 1.6, (slope, per_word)
print({str(k): v for k, v in table.items() if 512 in k})
print("SUCCESS")
