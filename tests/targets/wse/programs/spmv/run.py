# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder

p = argparse.ArgumentParser()
p.add_argument("--name")
a = p.parse_args()
q = {k: int(v) for k, v in json.load(open(f"{a.name}/out.json"))["params"].items()}
n, P, L, M = q["ncols"], q["pcols"], q["local_vec_sz"], q["max_local_nnz"]
rng = np.random.default_rng(5)
A = np.where(rng.random((n, n)) < 0.25, rng.standard_normal((n, n)), 0).astype(np.float32)
vals = np.zeros((P, P, M), np.float32)
rows = np.zeros((P, P, M), np.uint32)
ptr = np.zeros((P, P, L + 1), np.uint32)
for i in range(P):
    for j in range(P):
        B = A[i * L : (i + 1) * L, j * L : (j + 1) * L]
        k = 0
        for c in range(L):
            for r in range(L):
                if B[r, c] != 0 and k < M:
                    vals[i, j, k] = B[r, c]
                    rows[i, j, k] = r
                    k += 1
            ptr[i, j, c + 1] = k
        assert (B != 0).sum() <= M
r = SdkRuntime(a.name, suppress_simfab_trace=True, simfab_numthreads=32)
r.load()
r.run()
K = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=True,
)
K16 = dict(K, data_type=MemcpyDataType.MEMCPY_16BIT)
r.memcpy_h2d(r.get_id("vals"), vals.ravel(), 0, 0, P, P, M, **K)
r.memcpy_h2d(r.get_id("rows"), rows.ravel(), 0, 0, P, P, M, **K16)
r.memcpy_h2d(r.get_id("ptr"), ptr.ravel(), 0, 0, P, P, L + 1, **K16)
for it in range(2):
    x = rng.standard_normal(n).astype(np.float32)
    r.memcpy_h2d(r.get_id("x"), x, 0, 0, P, 1, L, **K)
    r.launch("spmv", nonblock=False)
    y = np.zeros(n, np.float32)
    r.memcpy_d2h(y, r.get_id("y"), 0, 0, 1, P, L, **dict(K, nonblock=False))
    np.testing.assert_allclose(y, A @ x, rtol=1e-5, atol=1e-5)
t = np.zeros(P * P * 2, np.uint32)
r.memcpy_d2h(t, r.get_id("t"), 0, 0, P, P, 2, **dict(K, nonblock=False))
r.stop()
t = t.reshape(P, P, 2)
assert (t[..., 0] == 2).all() and (t[..., 1] >= 200).all() and (t[..., 1] < 260).all(), t
print("SUCCESS!")
