# SPDX-License-Identifier: Apache-2.0
import argparse, json
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, MemcpyOrder
from cerebras.sdk.sdk_utils import memcpy_view

p = argparse.ArgumentParser()
p.add_argument("--name")
p.add_argument("--inverse", action="store_true")
a = p.parse_args()
P = json.load(open(a.name + "/out.json"))["params"]
N, D = int(P["N"]), int(P["DIM"])
x = (
    np.random.default_rng(1).standard_normal((D, N))
    + 1j * np.random.default_rng(2).standard_normal((D, N))
).astype(np.complex64)
r = SdkRuntime(a.name)
X = r.get_id("X")
r.load()
r.run()
K = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
r.memcpy_h2d(X, x.view(np.float32).ravel(), 0, 0, D, 1, 2 * N, **K)
r.launch("f_fft", np.bool_(a.inverse), nonblock=False)
y = np.zeros(2 * N * D, np.float32)
r.memcpy_d2h(y, X, 0, 0, D, 1, 2 * N, **K)
h = np.zeros(2 * N * D, np.uint32)
K["data_type"] = MemcpyDataType.MEMCPY_16BIT
r.memcpy_d2h(h, r.get_id("Xh"), 0, 0, D, 1, 2 * N, **K)
r.stop()
ref = (np.fft.ifft if a.inverse else np.fft.fft)(x, axis=1)
np.testing.assert_allclose(y.view(np.complex64).reshape(D, N), ref, atol=1e-5)
np.testing.assert_array_equal(memcpy_view(h, np.float16), y.astype(np.float16))
print("SUCCESS!")
