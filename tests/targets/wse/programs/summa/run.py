# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder

p = argparse.ArgumentParser()
p.add_argument("--name")
a = p.parse_args()
q = {k: int(v) for k, v in json.load(open(a.name + "/out.json"))["params"].items()}
P, Mt, Kt, Nt = q["P"], q["Mt"], q["Kt"], q["Nt"]
rng = np.random.default_rng(3)
A = rng.standard_normal((P * Mt, P * Kt), dtype=np.float32)
B = rng.standard_normal((P * Kt, P * Nt), dtype=np.float32)
K = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r = SdkRuntime(a.name, simfab_numthreads=8, msg_level="INFO")
r.load()
r.run()


def tiles(M, h, w):  # h,w tile -> [P,P,w*h] column-major
    return np.ascontiguousarray(M.reshape(P, h, P, w).transpose(0, 2, 3, 1)).ravel()


r.memcpy_h2d(r.get_id("A"), tiles(A, Mt, Kt), 0, 0, P, P, Mt * Kt, **K)
r.memcpy_h2d(r.get_id("B"), tiles(B, Kt, Nt), 0, 0, P, P, Kt * Nt, **K)
r.call("main", [], nonblock=False)
C = np.zeros(P * P * Mt * Nt, np.float32)
r.memcpy_d2h(C, r.get_id("C"), 0, 0, P, P, Mt * Nt, **K)
C = C.reshape(P, P, Nt, Mt).transpose(0, 3, 1, 2).reshape(P * Mt, P * Nt)
np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)
for root in range(P):
    S = rng.integers(0, 100, (P, P, 4 * P)).astype(np.float32)
    r.memcpy_h2d(r.get_id("S"), S.ravel(), 0, 0, P, P, 4 * P, **K)
    r.launch("sums", np.uint16(root), nonblock=False)
    out = np.zeros(S.size, np.float32)
    r.memcpy_d2h(out, r.get_id("S"), 0, 0, P, P, 4 * P, **K)
    out = out.reshape(S.shape)
    # scatter from column root on each row; reduce along y to row root; gather to column root
    np.testing.assert_array_equal(out[root, root], S[:, root, :].sum(0))
r.stop()
print("SUCCESS")
