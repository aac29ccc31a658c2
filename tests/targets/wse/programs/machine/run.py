# SPDX-License-Identifier: Apache-2.0
import argparse
import struct

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import memcpy_view

parser = argparse.ArgumentParser()
parser.add_argument("--name")
args = parser.parse_args()
r = SdkRuntime(args.name)
r.load()
r.run()
OPS = ["halt", "push", "add", "sub", "mul", "div", "dup", "swap", "pop", "neg", "jnz"]
k = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, nonblock=False)
b32, b16 = MemcpyDataType.MEMCPY_32BIT, MemcpyDataType.MEMCPY_16BIT


def run(text, first):
    words = []
    for t in text.split(","):
        op, *arg = t.split()
        code = OPS.index(op) if op in OPS else 77
        v = 0
        if arg:
            v = (
                int(arg[0])
                if op == "jnz"
                else struct.unpack("<I", struct.pack("<f", float(arg[0])))[0]
            )
        words += [code, v]
    w = np.array(words, np.uint32)
    r.memcpy_h2d(r.get_id("program"), w, 0, 0, 1, 1, w.size, data_type=b32, **k)
    r.launch("execute", np.uint16(w.size // 2), np.float32(first), nonblock=False)
    res = np.zeros(4, np.float32)
    r.memcpy_d2h(res, r.get_id("result"), 0, 0, 1, 1, 4, data_type=b32, **k)
    st = np.zeros(3, np.uint32)
    r.memcpy_d2h(st, r.get_id("status"), 0, 0, 1, 1, 3, data_type=b16, **k)
    return res, memcpy_view(st, np.dtype(np.int16)).copy()


res, st = run("push 2,mul,push 1,add,neg", 3.0)
assert res[0] == -7 and list(st) == [0, 1, 5], (res, st)
res, st = run("add", 3.0)
assert st[0] == -1, st
res, st = run("bogus", 3.0)
assert st[0] == -3, st
res, st = run("dup," * 20 + "halt", 3.0)
assert st[0] == -2, st
# factorial 6: acc n -> loop
res, st = run("push 1,swap,dup,push 0,sub,pop,dup,pop,halt", 6.0)
assert st[0] == 0, (res, st)
res, st = run("push -1,add,jnz 0,halt", 5.0)
assert res[0] == 0 and st[0] == 0 and st[2] == 16, (res, st)
res, st = run("jnz 0", 5.0)
assert st[0] == -4, st
res, st = run("push 7,div", 1.0)
assert res[0] == np.float32(1) / np.float32(7)
r.stop()
print("SUCCESS!")
