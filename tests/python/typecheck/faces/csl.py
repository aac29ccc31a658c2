# SPDX-License-Identifier: Apache-2.0
"""A product written in CSL: compiled, run on the simulated wafer, its result and its clocks read back."""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
import numpy.typing as npt
import weft.wse
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

WIDTH, ROWS, COLS = 8, 12, 4


def compile_layout(layout: pathlib.Path, out: pathlib.Path) -> int:
    result = weft.wse.compile_csl(
        str(layout),
        str(out),
        fabric_dims=(WIDTH + 7, 3),
        fabric_offsets=(4, 1),
        params={"width": WIDTH, "rows": ROWS, "cols": COLS},
        memcpy=True,
        channels=1,
    )
    return len(result["warnings"])


class Product:
    def __init__(self, out: pathlib.Path) -> None:
        self.runner = SdkRuntime(out)
        self.runner.load()
        self.runner.run()

    def send(self, name: str, values: npt.NDArray[np.float32], words: int) -> None:
        symbol = self.runner.get_id(name)
        how = MemcpyOrder.ROW_MAJOR
        data = MemcpyDataType.MEMCPY_32BIT
        flat = np.ascontiguousarray(values).ravel()
        self.runner.memcpy_h2d(
            symbol, flat, 0, 0, WIDTH, 1, words, order=how, data_type=data, nonblock=False
        )

    def result(self) -> npt.NDArray[np.float32]:
        self.runner.launch("multiply", nonblock=False)
        y = np.zeros(ROWS, np.float32)
        self.runner.memcpy_d2h(y, self.runner.get_id("y"), 0, 0, 1, 1, ROWS)
        self.runner.stop()
        return y


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("layout", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"))
    arguments = parser.parse_args()
    print(compile_layout(arguments.layout, arguments.out))
    generator = np.random.default_rng(7)
    a = generator.random((ROWS, WIDTH * COLS), dtype=np.float32)
    x = generator.random(WIDTH * COLS, dtype=np.float32)
    product = Product(arguments.out)
    product.send("A", a.T, ROWS * COLS)
    product.send("x", x, COLS)
    product.send("y", np.zeros((WIDTH, ROWS), np.float32), ROWS)
    print(np.allclose(product.result(), a @ x, rtol=1e-4), product.runner.cycles() > 0)


if __name__ == "__main__":
    main()
