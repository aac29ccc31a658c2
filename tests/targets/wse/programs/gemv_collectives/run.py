#!/usr/bin/env cs_python
# SPDX-License-Identifier: Apache-2.0
import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name", help="the test compile output dir")
parser.add_argument("--cmaddr", help="IP:port for CS system")
args = parser.parse_args()
with open(f"{args.name}/out.json", encoding="utf-8") as f:
    params = {k: int(v) for k, v in json.load(f)["params"].items()}
Pw, Ph, Mt, Nt = (params[k] for k in ("Pw", "Ph", "Mt", "Nt"))
order, word = MemcpyOrder.ROW_MAJOR, MemcpyDataType.MEMCPY_32BIT
rng = np.random.default_rng(7)
A = rng.random((Ph * Mt, Pw * Nt), dtype=np.float32)
x = rng.random(Pw * Nt, dtype=np.float32)
tiles = A.reshape(Ph, Mt, Pw, Nt).transpose(0, 2, 1, 3).ravel()

runner = SdkRuntime(args.name, cmaddr=args.cmaddr)
sym_A, sym_x, sym_y = (runner.get_id(n) for n in "Axy")
runner.load()
runner.run()
runner.memcpy_h2d(
    sym_A, tiles, 0, 0, Pw, Ph, Mt * Nt, streaming=False, order=order, data_type=word, nonblock=True
)
runner.memcpy_h2d(
    sym_x, x, 0, 0, 1, 1, Pw * Nt, streaming=False, order=order, data_type=word, nonblock=True
)
runner.launch("main", nonblock=True)
y = np.zeros(Ph * Mt, np.float32)
runner.memcpy_d2h(
    y, sym_y, 0, 0, 1, 1, Ph * Mt, streaming=False, order=order, data_type=word, nonblock=False
)
runner.stop()
np.testing.assert_allclose(y, A @ x, rtol=1e-5)
print("SUCCESS")
