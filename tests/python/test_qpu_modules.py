# SPDX-License-Identifier: Apache-2.0
"""Kernels of one's own as Python functions and torch.ops entries: built by setup.py and by CMake, called from
NumPy, weft and PyTorch; the faults of the published programs are absent."""

import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from present import built

import weft

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "qpu"
sys.path.insert(0, str(EXAMPLES))
import qpu_programs as programs

built("qpu")
weft_qpu = __import__("weft.qpu").qpu
weft_qpu.library()  # that does not open is a failure


@pytest.fixture(scope="module")
def dot():
    return programs.module("dot_cpp")


@pytest.fixture(scope="module")
def matrix():
    return programs.module("matrix_cpp")


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_path():
    return str(pathlib.Path(weft.__file__).resolve().parents[1])


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """The environment of the recipes. The compiler's output is kept by ccache, if that is here."""
    monkeypatch.setenv("PYTHONPATH", environment_path())
    if shutil.which("ccache"):
        monkeypatch.setenv("CC", "ccache cc")
        monkeypatch.setenv("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        monkeypatch.setenv("CCACHE_BASEDIR", str(tmp_path))
        monkeypatch.setenv("CCACHE_NOHASHDIR", "1")


def test_setup_py_recipe(tmp_path, recipe):
    """The documented command, from a copy of the folder; the module is imported by a fresh interpreter."""
    folder = shutil.copytree(EXAMPLES / "dot", tmp_path / "dot")
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=folder)
    out = run(
        sys.executable, "-c",
        "import numpy as np, dot_cpp; print(dot_cpp.add(np.arange(5), np.ones(5)).tolist())",
        cwd=folder,
    )  # fmt: skip
    assert out.strip() == "[1.0, 2.0, 3.0, 4.0, 5.0]"


def test_cmake_recipe(tmp_path, recipe):
    source = shutil.copytree(EXAMPLES / "matrix", tmp_path / "matrix")
    run("cmake", "-S", source, "-B", tmp_path / "b", f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "--build", tmp_path / "b")
    out = run(
        sys.executable, "-c",
        "import numpy as np, matrix_cpp; print(matrix_cpp.gpu(np.eye(3), np.arange(3)).tolist())",
        cwd=tmp_path / "b",
    )  # fmt: skip
    assert out.strip() == "[0.0, 1.0, 2.0]"


def test_the_page_s_module(tmp_path, recipe):
    """docs/targets/qpu.md: its program as it stands there, by two lines of CMake and nothing else."""
    page = (EXAMPLES.parents[1] / "docs" / "targets" / "qpu.md").read_text()
    program = page.split("```cpp not-run: tests/python/test_qpu_modules.py builds it\n")[1]
    (tmp_path / "my_ops.cpp").write_text(program.split("```")[0])
    include = run(sys.executable, "-m", "weft.qpu", "cmake", cwd=tmp_path).strip()
    (tmp_path / "CMakeLists.txt").write_text(
        f'cmake_minimum_required(VERSION 3.20)\nproject(my_ops CXX)\ninclude("{include}")\n'
        "weft_qpu_module(my_ops my_ops.cpp)\n"
    )
    folder = pathlib.Path(sys.prefix)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DPython_ROOT_DIR={folder}")
    run("cmake", "--build", tmp_path / "b")
    out = run(
        sys.executable, "-c",
        "import numpy as np, my_ops; print(*[int(my_ops.scale(np.arange(n), 2).sum()) for n in (0, 1, 17, 200)])",
        cwd=tmp_path / "b",
    )  # fmt: skip
    assert out.split() == ["0", "0", "272", "39800"]


LENGTHS = [0, 1, 15, 16, 17, 64, 100, 191, 192, 193, 1000]


@pytest.mark.parametrize("n", LENGTHS)
def test_add_and_product_at_any_length(dot, n, rng):
    # The device of the module stops at any access outside its arrays: stores beyond the end, prefetch past it.
    a, b = rng.standard_normal((2, n)).astype("float32")
    kept = a.copy(), b.copy()
    np.testing.assert_allclose(dot.add(a, b), a + b, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(dot.product(a, b), a * b, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal((a, b), kept)  # inputs are not overwritten


@pytest.mark.parametrize(
    "rows,columns", [(1, 1), (3, 15), (4, 16), (5, 17), (13, 100), (100, 48), (12, 193)]
)
def test_matrix_vector(matrix, rows, columns, rng):
    a = rng.standard_normal((rows, columns)).astype("float32")
    x = rng.standard_normal(columns).astype("float32")
    kept = a.copy()
    want = a.astype("float64") @ x
    np.testing.assert_allclose(matrix.gpu(a, x), want, atol=2e-5 * columns**0.5)
    np.testing.assert_allclose(matrix.gpu(a.ravel(), x), want, atol=2e-5 * columns**0.5)
    np.testing.assert_allclose(matrix.library(a, x), want, atol=2e-5 * columns**0.5)
    np.testing.assert_array_equal(a, kept)
    assert matrix.cycles() > 0


def test_kernels_are_compiled_and_memory_is_allocated_once(dot, rng):
    a = rng.standard_normal(2000).astype("float32")
    dot.add(a, a), dot.product(a, a)
    compiled, allocated = dot.compiled(), dot.allocated()
    for n in (1, 7, 50, 400, 2000):
        dot.add(a[:n], a[:n]), dot.product(a[:n], a[:n])
    assert compiled == 2 and dot.compiled() == compiled
    assert allocated >= 3 and dot.allocated() == allocated


def test_layouts_and_types_are_read_as_what_they_are(dot):
    i = np.arange(24)
    np.testing.assert_array_equal(dot.add(i, i), (2 * i).astype("float32"))  # integers
    np.testing.assert_array_equal(dot.add(i[::2], i[1::2]), (i[::2] + i[1::2]).astype("float32"))
    m = i.reshape(4, 6).T  # not contiguous, two dimensions
    np.testing.assert_array_equal(dot.product(m, m), (m * m).astype("float32"))
    assert dot.product(m, m).shape == (6, 4)
    w = weft.asarray(i.astype("float32"), device="qpu")
    out = dot.add(w, w)
    assert isinstance(out, weft.NDArray) and out.device.name == "qpu"
    np.testing.assert_array_equal(out.numpy(), 2.0 * i)


def test_mistakes(dot, matrix):
    for call, code in (
        (lambda: dot.add(np.ones(3), np.ones(4)), "dot_cpp.shape"),
        (lambda: matrix.gpu(np.ones(7), np.ones(2)), "matrix_cpp.shape"),
        (lambda: matrix.gpu(np.ones(7), np.ones(0)), "matrix_cpp.shape"),
    ):
        with pytest.raises(weft.Error) as e:
            call()
        assert e.value.code == code
    with pytest.raises(weft.Error, match="takes 2 arguments, got 1") as caught:
        dot.add(np.ones(3))
    assert caught.value.code == "qpu.module.arguments"
    with pytest.raises(weft.DTypeError, match=r"qpu\.module\.dtype.*complex"):
        dot.add(np.ones(3, complex), np.ones(3))
    with pytest.raises(weft.IOError, match="nothing.so") as caught:
        weft_qpu.load("nothing.so")
    assert caught.value.code == "qpu.module.load"
    np.testing.assert_array_equal(dot.add(np.ones(3), np.ones(3)), np.full(3, 2.0))


def test_from_pytorch(dot, matrix):
    torch = pytest.importorskip("torch")
    g = torch.Generator().manual_seed(2022)
    a, b = torch.randn(100, generator=g), torch.randn(100, generator=g)
    kept = a.clone()
    d = dot.product(a, b)
    assert str(d) == str(a * b)  # equal to the last digit printed
    assert torch.equal(a, kept) and isinstance(d, torch.Tensor)
    assert torch.equal(torch.ops.dot_cpp.product(a, b), d)
    torch.testing.assert_close(torch.ops.dot_cpp.add(a, b), a + b)
    m, x = torch.randn((30, 70), generator=g), torch.randn(70, generator=g)
    torch.testing.assert_close(torch.ops.matrix_cpp.gpu(m, x), m @ x, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        torch.ops.matrix_cpp.gpu(m.t().contiguous().t(), x), m @ x, rtol=1e-4, atol=1e-4
    )
    i = torch.arange(40)
    assert torch.equal(dot.product(i, i), (i * i).float())


ENDLESS = """
#include <weft/qpu.h>
#include <weft/qpu_module.h>
using namespace weft::qpu;
int spin(int rounds) {
  auto k = compile(+[](Int n, Ptr<Int> p) {
    Int x = 0;
    While(any(x < n))
      x = x + 1;
    End
    *p = x;
  });
  SharedArray<int> a(16);
  k(rounds, &a);
  return a[3];
}
WEFT_QPU_MODULE(spin_cpp, m) { m.def("spin", &spin, "counts"); }
"""

STOPPED = """
import sys
import weft.qpu
spin = weft.qpu.load(sys.argv[1], "spin_cpp").spin
assert spin(5) == 5
try:
    print("running", flush=True)
    spin(2**31 - 1)
    print("ended")
except KeyboardInterrupt:
    assert spin(7) == 7
    print("stopped, and usable")
"""


def test_ctrl_c_stops_a_kernel(tmp_path, recipe):
    """Ctrl-C arrives as its exception while a module's kernel is emulated, and the module goes on."""
    source, library = tmp_path / "spin.cpp", tmp_path / "libspin_cpp.so"
    source.write_text(ENDLESS)
    compiler = ["ccache", "c++"] if shutil.which("ccache") else ["c++"]
    run(
        *compiler,
        "-std=c++20",
        "-O1",
        "-fPIC",
        f"-I{weft_qpu.include()}",
        "-c",
        source,
        "-o",
        tmp_path / "spin.o",
    )
    lib = pathlib.Path(weft_qpu.library()).parent
    run(
        "c++",
        "-shared",
        tmp_path / "spin.o",
        "-o",
        library,
        f"-L{lib}",
        "-lweft_qpu",
        f"-Wl,-rpath,{lib}",
    )
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, library],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(300, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "running\n", process.communicate()
        time.sleep(0.5)  # into the kernel
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
    assert out == "stopped, and usable\n", (out, err)
