# SPDX-License-Identifier: Apache-2.0
"""The first tour's programs: two kernels of one's own called from PyTorch, and the product as a tensor program."""

import importlib
import pathlib
import subprocess
import sys

import weft
from weft import te
from weft._child import environment

HERE = pathlib.Path(__file__).resolve().parent
# Raspberry Pi 3B, as published with the programs: seconds of its CPU and of its QPUs for 100 x 10**i.
PUBLISHED = {
    0: (0.000004, 0.000164),
    1: (0.000023, 0.000169),
    2: (0.000206, 0.000171),
    3: (0.002116, 0.000388),
    4: (0.021245, 0.003079),
    5: (0.214486, 0.029622),
}
CLOCK = 300e6  # Hz, of the emulated chip


def module(name, output="out"):
    """dot_cpp or matrix_cpp: from weft's build, or built in `output` by setup.py's recipe."""
    made = pathlib.Path(output).resolve() / "qpu"
    for folder in (*HERE.parents[1].glob("build*/examples/qpu"), made):
        if folder.is_dir() and str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return build(name, made)


def build(name, folder):
    """Builds a module with setuptools into a folder and imports it; ImportError says what the build lacks."""
    source = HERE / name.removesuffix("_cpp") / f"{name.removesuffix('_cpp')}.cpp"
    text = (
        "from setuptools import setup; import weft.qpu; "
        f"setup(name={name!r}, ext_modules=[weft.qpu.extension({name!r}, [{str(source)!r}])], "
        f"script_args=['-q', 'build_ext', '--build-lib', {str(folder)!r}, '--build-temp', {str(folder)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=HERE, env=environment()
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing was printed"]
        raise ImportError(f"{name} needs setuptools and a C++20 compiler to be built: {said[-1]}")
    importlib.invalidate_caches()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)


def matvec(rows, columns):
    A = te.placeholder((rows, columns), "float32", name="A")
    x = te.placeholder((columns,), "float32", name="x")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    return te.create_prim_func([A, x, y])


def te_product(a, x):
    """a @ x on the QPUs as a tensor program; the result and the simulated clocks."""
    m = weft.build(matvec(*a.shape), target="qpu")
    y = weft.zeros(a.shape[0], dtype="float32", device="qpu")
    r = m.time_evaluator("main", number=1, repeat=1)(
        weft.asarray(a, device="qpu"), weft.asarray(x, device="qpu"), y
    )
    return y.numpy(), r.cycles


def bounds(rows, columns):
    """Clocks that no kernel goes below: memory (8 bytes a clock), and issue (a request and a result, each an
    instruction of 4 clocks, for every 16 elements of the matrix, on 12 QPUs)."""
    bytes_read = 4 * (rows * columns + columns)
    return bytes_read / 8, rows * columns / 16 * 2 * 4 / 12
