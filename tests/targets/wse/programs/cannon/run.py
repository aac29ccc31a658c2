# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import memcpy_view

parser = argparse.ArgumentParser()
parser.add_argument("--name", help="the test compile output dir")
parser.add_argument("--cmaddr", help="IP:port for CS system")
args = parser.parse_args()
with open(f"{args.name}/out.json", encoding="utf-8") as f:
    cd = json.load(f)
P, Mt, Kt, Nt = (int(cd["params"][k]) for k in ("P", "Mt", "Kt", "Nt"))
rng = np.random.default_rng(1)
A = rng.random((P * Mt, P * Kt)).astype(np.float32)
B = rng.random((P * Kt, P * Nt)).astype(np.float32)


def tiles(X, a, b):
    return X.reshape(P, a, P, b).transpose(0, 2, 1, 3).copy()


At, Bt = tiles(A, Mt, Kt), tiles(B, Kt, Nt)
As = np.empty_like(At)
Bs = np.empty_like(Bt)
for y in range(P):
    for x in range(P):
        As[y, x] = At[y, (x + y) % P]
        Bs[y, x] = Bt[(x + y) % P, x]
runner = SdkRuntime(args.name, cmaddr=args.cmaddr)
symA, symB, symC, symT = [runner.get_id(s) for s in ("A", "B", "C", "time")]
runner.load()
runner.run()
kw = dict(
    streaming=False,
    order=MemcpyOrder.ROW_MAJOR,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    nonblock=True,
)
runner.memcpy_h2d(symA, As.ravel(), 0, 0, P, P, Mt * Kt, **kw)
runner.memcpy_h2d(symB, Bs.ravel(), 0, 0, P, P, Kt * Nt, **kw)
runner.launch("main", nonblock=False)
C1 = np.zeros(P * P * Mt * Nt, np.float32)
kw["nonblock"] = False
runner.memcpy_d2h(C1, symC, 0, 0, P, P, Mt * Nt, **kw)
t32 = np.zeros(P * P * 6, np.uint32)
kw["data_type"] = MemcpyDataType.MEMCPY_16BIT
runner.memcpy_d2h(t32, symT, 0, 0, P, P, 6, **kw)
runner.stop()
tm = memcpy_view(t32, np.dtype(np.uint16)).reshape(P, P, 6)
C = C1.reshape(P, P, Mt, Nt).transpose(0, 2, 1, 3).reshape(P * Mt, P * Nt)
np.testing.assert_allclose(C, A @ B, rtol=1e-5)
s = [int(v[0]) + (int(v[1]) << 16) + (int(v[2]) << 32) for v in tm[:, :, :3].reshape(-1, 3)]
e = [int(v[0]) + (int(v[1]) << 16) + (int(v[2]) << 32) for v in tm[:, :, 3:].reshape(-1, 3)]
cyc = max(b - a for a, b in zip(s, e))
assert 0 < cyc < 100000
print("cycles", cyc)
print("SUCCESS!")
