# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--inverse", action="store_true")
args = parser.parse_args()
N, P = (int(json.load(open(f"{args.name}/out.json"))["params"][k]) for k in ("N", "P"))
how = dict(
    streaming=False,
    data_type=MemcpyDataType.MEMCPY_32BIT,
    order=MemcpyOrder.ROW_MAJOR,
    nonblock=False,
)
rng = np.random.default_rng(4)
x = (rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N))).astype(np.complex64)
runner = SdkRuntime(args.name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("X"), x.view(np.float32).ravel(), 0, 0, P, 1, 2 * N * N // P, **how)
runner.launch("transform", nonblock=False)
y = np.zeros(2 * N * N, np.float32)
runner.memcpy_d2h(y, runner.get_id("X"), 0, 0, P, 1, 2 * N * N // P, **how)
runner.stop()
want = (np.fft.ifft2 if args.inverse else np.fft.fft2)(x)
# Two transpositions: the result lies as the input did.
np.testing.assert_allclose(y.view(np.complex64).reshape(N, N), want, atol=1e-4)
print("SUCCESS!")
