# SPDX-License-Identifier: Apache-2.0
"""The table of docs/targets/qpu.md: 100 x 10**i on the emulated QPUs beside what was published for a Raspberry Pi 3B.

PYTHONPATH=python python bench/qpu/gemv_table.py
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "qpu"))
from qpu_programs import CLOCK, PUBLISHED, bounds, module, te_product


def main():
    matrix = module("matrix_cpp")
    rng = np.random.default_rng(5)
    print(
        "| 100 x | published CPU, ms | published QPU, ms | own kernel, clocks | ms | te, clocks | ms "
        "| library, clocks | ms | bandwidth bound | issue bound | worst error |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for i, (cpu, qpu) in PUBLISHED.items():
        n = 10**i
        a = rng.standard_normal((100, n)).astype("float32")
        x = rng.standard_normal(n).astype("float32")
        want = a.astype("float64") @ x
        cells, worst = [], 0.0
        for run in (matrix.gpu, te_product, matrix.library):
            got = run(a, x)
            got, cycles = got if isinstance(got, tuple) else (got, matrix.cycles())
            worst = max(worst, float(np.abs(got - want).max()))
            cells += [f"{cycles:,.0f}", f"{cycles / CLOCK * 1e3:.3g}"]
        memory, issue = bounds(100, n)
        print(
            f"| 10^{i} | {cpu * 1e3:g} | {qpu * 1e3:g} | {' | '.join(cells)} | {memory:,.0f} | {issue:,.0f} | {worst:.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
