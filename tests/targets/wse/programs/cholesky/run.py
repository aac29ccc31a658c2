# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder

a = argparse.ArgumentParser()
a.add_argument("--name")
a.add_argument("--cmaddr")
a = a.parse_args()
p = json.load(open(a.name + "/out.json"))["params"]
P, Nt = int(p["P"]), int(p["Nt"])
N = P * Nt
np.random.seed(0)
B = np.random.rand(N, N)
S = (B @ B.T + N * np.eye(N)).astype(np.float32)
L0 = np.tril(S)
tiles = L0.reshape(P, Nt, P, Nt).transpose(0, 2, 3, 1)  # y, x, col, row
r = SdkRuntime(a.name, cmaddr=a.cmaddr)
r.load()
r.run()
K = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.memcpy_h2d(r.get_id("A"), np.ascontiguousarray(tiles).ravel(), 0, 0, P, P, Nt * Nt, **K)
r.launch("factor", nonblock=False)
g = np.zeros(N * N, np.float32)
r.memcpy_d2h(g, r.get_id("A"), 0, 0, P, P, Nt * Nt, **K)
r.stop()
L = np.tril(g.reshape(P, P, Nt, Nt).transpose(0, 3, 1, 2).reshape(N, N))
np.testing.assert_almost_equal(L, np.linalg.cholesky(S.astype(np.float64)), decimal=2)
print("SUCCESS")
