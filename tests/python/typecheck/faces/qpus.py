# SPDX-License-Identifier: Apache-2.0
"""A kernel of the Raspberry Pi's QPUs: built, run on the emulator, its clocks; kernels of one's own in C++."""

from __future__ import annotations

import pathlib

import numpy as np
import weft
import weft.qpu
from weft import te

SOURCE = """#include <weft/qpu.h>
using namespace weft::qpu;
void twice(Int n, Ptr<Float> x, Ptr<Float> y) {
  For (Int i = 0, i < n, i += 16)
    y[i] = x[i] + x[i];
  End
}
"""


def program(n: int) -> weft.PrimFunc:
    a = te.placeholder((n,), "float32", name="A")
    b = te.placeholder((n,), "float32", name="B")
    c = te.compute((n,), lambda i: a[i] * b[i] + 1.0, name="C")
    return te.create_prim_func([a, b, c])


def run(qpus: int, n: int) -> tuple[bool, float]:
    module = weft.build(program(n), target=f"qpu:qpus={qpus}")
    device = weft.device(f"qpu:qpus={qpus}")
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    out = weft.zeros((n,), dtype="float32", device=device)
    arguments = weft.asarray(x, device=device), weft.asarray(x, device=device), out
    result = module.time_evaluator("main", number=1, repeat=1)(*arguments)
    return bool(np.allclose(out.numpy(), x * x + 1, rtol=1e-6)), result.cycles


def eager(side: int) -> tuple[float, int]:
    with weft.use("qpu"):
        product = weft.ones((side, side)) @ weft.ones((side, side))
    return float(product[0, 0].item()), int(weft.device("qpu").stats()["cycles"])


def places() -> list[pathlib.Path]:
    return [
        pathlib.Path(weft.qpu.include()),
        pathlib.Path(weft.qpu.library()),
        pathlib.Path(weft.qpu.cmake()),
    ]


def main() -> None:
    good, one = run(1, 4096)
    also, twelve = run(12, 4096)
    print(good, also, one > twelve)
    print(eager(64))
    print([place.exists() for place in places()])
    module = weft.build(program(64), target="qpu")
    print("fmul" in module.source())
    extension = weft.qpu.extension("twice", ["twice.cpp"])
    print(extension.name)
    print([d.name for d in map(weft.device, ("qpu", "qpu:qpus=4")) if d.available])


if __name__ == "__main__":
    main()
