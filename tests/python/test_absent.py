# SPDX-License-Identifier: Apache-2.0
"""What is not on this machine: libraries that are missing, cards that are not there, compilers that refuse. A library
made of a few lines of C stands where the missing one would, and a process of its own looks at it."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import weft
from present import remote_devices

rpc = remote_devices()

from weft import cli  # noqa: E402
from weft.cli import bench, manual, programs, serve  # noqa: E402

CC = shutil.which("cc") or "cc"

HIDE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void* dlopen(const char* name, int flags) {
  static void* (*real)(const char*, int);
  if (!real) real = dlsym(RTLD_NEXT, "dlopen");
  char words[256], *word, *rest = words;
  strncpy(words, getenv("HIDE"), 255);
  while (name && (word = strsep(&rest, " ")))  // "!word": not those of Python's packages
    if (*word == '!' ? !strstr(name, "/site-packages/") && strstr(name, word + 1) : strstr(name, word) != 0) return 0;
  return real(name, flags);
}
"""

# A driver with one small card, whose every call can be told to fail through the environment.
DRIVER = r"""
#include <stdlib.h>
#include <string.h>
typedef unsigned long long P;
#define TOLD(name) do { const char* t = getenv("FAIL"); if (t && !strcmp(t, #name)) return 999; } while (0)
#define SAYS(name, ...) int name(__VA_ARGS__) { TOLD(name);
SAYS(cuInit, unsigned f) return 0; }
SAYS(cuDeviceGetCount, int* n) *n = 1; return 0; }
SAYS(cuDeviceGet, int* d, int i) *d = i; return 0; }
SAYS(cuDeviceGetName, char* t, int n, int d) strncpy(t, "Loom 1", n); return 0; }
int cuDeviceGetAttribute(int* v, int a, int d) {
  *v = a == 1 ? 512 : a == 8 || a == 97 ? 1024 : a == 75 ? 9 : 0; return 0; }
SAYS(cuDeviceTotalMem_v2, size_t* b, int d) *b = 1 << 20; return 0; }
SAYS(cuDevicePrimaryCtxRetain, void** c, int d) *c = (void*)1; return 0; }
SAYS(cuCtxSetCurrent, void* c) return 0; }
SAYS(cuCtxSynchronize, void) return 0; }
SAYS(cuMemAlloc_v2, P* p, size_t n) if (n > 1 << 20) return 2; *p = (P)malloc(n); return 0; }
SAYS(cuMemFree_v2, P p) free((void*)p); return 0; }
SAYS(cuMemcpyHtoD_v2, P d, const void* s, size_t n) memcpy((void*)d, s, n); return 0; }
SAYS(cuMemcpyDtoH_v2, void* d, P s, size_t n) memcpy(d, (void*)s, n); return 0; }
SAYS(cuMemcpyDtoDAsync_v2, P d, P s, size_t n, void* q) memmove((void*)d, (void*)s, n); return 0; }
SAYS(cuModuleLoadData, void** m, const void* b) *m = (void*)1; return 0; }
SAYS(cuModuleUnload, void* m) return 0; }
SAYS(cuStreamCreate, void** s, unsigned f) *s = (void*)1; return 0; }
SAYS(cuStreamDestroy_v2, void* s) return 0; }
SAYS(cuStreamBeginCapture_v2, void* s, int m) return 0; }
SAYS(cuStreamEndCapture, void* s, void** g) *g = (void*)1; return 0; }
SAYS(cuGraphGetNodes, void* g, void* n, size_t* k) *k = 0; return 0; }
SAYS(cuGraphInstantiateWithFlags, void** e, void* g, unsigned long long f) *e = (void*)1; return 0; }
SAYS(cuGraphLaunch, void* e, void* s) return 0; }
SAYS(cuGraphDestroy, void* g) return 0; }
SAYS(cuGraphExecDestroy, void* e) return 0; }
SAYS(cuModuleGetFunction, void** f, void* m, const char* n) *f = (void*)1; return 0; }
SAYS(cuFuncSetAttribute, void* f, int a, int v) return 0; }
SAYS(cuLaunchKernel, void* f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s,
     void* q, void** p, void** x) return 0; }
SAYS(cuEventCreate, void** e, unsigned f) *e = (void*)1; return 0; }
SAYS(cuEventDestroy_v2, void* e) return 0; }
SAYS(cuEventRecord, void* e, void* s) return 0; }
SAYS(cuEventSynchronize, void* e) return 0; }
SAYS(cuEventElapsedTime, float* m, void* a, void* b) *m = 1; return 0; }
int cuGetErrorName(int c, const char** t) { *t = "CUDA_ERROR_UNKNOWN"; return 0; }
int cuGetErrorString(int c, const char** t) { *t = "the loom is stuck"; return 0; }
"""

# A compiler that gives an empty program, or fails where the environment says.
NVRTC = r"""
#include <stdlib.h>
#include <string.h>
#define TOLD(name) do { const char* t = getenv("FAIL"); if (t && !strcmp(t, #name)) return 6; } while (0)
int nvrtcVersion(int* a, int* b) { *a = 13; *b = 99; return 0; }
int nvrtcCreateProgram(void** p, const char* t, const char* n, int k, const char** a, const char** b) {
  TOLD(nvrtcCreateProgram); *p = (void*)1; return 0; }
int nvrtcDestroyProgram(void** p) { return 0; }
int nvrtcCompileProgram(void* p, int n, const char** o) { TOLD(nvrtcCompileProgram); return 0; }
int nvrtcGetProgramLogSize(void* p, size_t* n) { *n = 22; return 0; }
int nvrtcGetProgramLog(void* p, char* t) { strcpy(t, "kernel.cu(7): warped\n"); return 0; }
int nvrtcGetCUBINSize(void* p, size_t* n) { *n = strcmp(getenv("FAIL"), "architecture") ? 4 : 0; return 0; }
int nvrtcGetCUBIN(void* p, char* t) { TOLD(nvrtcGetCUBIN); memcpy(t, "fake", 4); return 0; }
const char* nvrtcGetErrorString(int c) { return c == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS"; }
"""

PRELUDE = """
import numpy as np, sys, weft
from weft import te
def add(n, blocks=None, threads=None, stage=1):
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    sch = weft.Schedule(te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")]))
    block = sch.get_block("C")
    if threads:
        outer, _, inner = sch.split(sch.get_loops(block)[0], [None, stage, threads])
        sch.bind(outer, blocks or "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        if stage > 1:
            sch.compute_at(sch.cache_read(block, 0, "shared"), outer)
    return sch
def refused(f, *a, **k):
    try:
        f(*a, **k)
    except weft.Error as error:
        print(type(error).__name__, error, sep="\\n")
        sys.exit(7)
    print("nothing was refused")
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders with what is built from the texts above, and one for the kernel cache."""
    root = tmp_path_factory.mktemp("absent")
    running = []
    for name, text in {
        "hide.so": HIDE,
        "fakes/libcuda.so.1": DRIVER,
        "fakes/libnvrtc.so.13": NVRTC,
    }.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        source = path.with_suffix(".c")
        source.write_text(text)
        running.append(subprocess.Popen([CC, "-shared", "-fPIC", "-w", "-o", path, source, "-ldl"]))
    assert all(p.wait() == 0 for p in running)
    return root


def look(places, code, library=None, hide=None, fail="", status=7, before=()):
    """What the process refuses: class and text."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "WEFT_CACHE_DIR": str(places / f"cache{fail}"),
        "FAIL": fail,
    }
    if library:
        environment["LD_LIBRARY_PATH"] = str(places / library)
    if hide:
        environment |= {"LD_PRELOAD": str(places / "hide.so"), "HIDE": hide}
    done = subprocess.run(
        [*before, sys.executable, "-c", PRELUDE + code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == status, done.stdout + done.stderr
    kind, _, text = done.stdout.partition("\n")
    return kind, text


@pytest.mark.parametrize(
    "hide, code, kind, slug, parts",
    [
        (
            "libLLVM",
            "refused(weft.build, add(8), target='cpu:mcpu=generic')",
            "Error",
            "jit.llvm.absent",
            ["libLLVM 15 to 19", "searched libLLVM.so.19.1", 'target "c"'],
        ),
        (
            "nvrtc",
            "refused(weft.build, add(64, threads=32), target='cuda:arch=sm_90')",
            "DeviceError",
            "cuda.nvrtc.absent",
            ["sm_90", "searched: libnvrtc.so.13", "nvidia-cuda-nvrtc"],
        ),
        (
            "OpenCL",
            "refused(weft.device('opencl').synchronize)",
            "DeviceError",
            "opencl.absent",
            ["libOpenCL.so.1", "no OpenCL loader is installed"],
        ),
        (
            "blas lapack mkl",
            "refused(weft.linalg.cholesky, weft.asarray(np.eye(20)))",
            "DeviceError",
            "array.lapack.absent",
            ["dpotrf", "libopenblas.so.0", "install liblapack3"],
        ),
    ],
)
def test_a_library_that_is_missing(places, hide, code, kind, slug, parts):
    found, text = look(places, code, hide=hide)
    assert found == kind and text.startswith(f"error[{slug}]: "), (found, text)
    assert all(part in text for part in parts), text


def test_a_machine_without_sys(places):
    """In a chroot where nobody mounted /sys, PoCL finds no processors and would end the process."""
    hidden = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces on this machine")
    kind, text = look(places, "refused(weft.device('opencl').synchronize)", before=hidden)
    assert kind == "DeviceError" and text.startswith("error[opencl.absent]: "), (kind, text)
    assert "mount -t sysfs sys /sys" in text, text


def test_sorting_without_its_vector_library(places):
    """The same bits by the library of vector sorts and without it."""
    code = """
import hashlib
rng, all = np.random.default_rng(3), hashlib.sha256()
for dtype in ("int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
    for n in (5, 20, 100, 300, 5000, 200000):
        x = (rng.standard_normal(n) * 90).astype(dtype)
        for w in (weft.asarray(x), weft.asarray(x)[::-1]):
            for down in (False, True):
                all.update(weft.sort(w, descending=down).numpy().tobytes())
                all.update(weft.argsort(w, descending=down).numpy().tobytes())
print(all.hexdigest())
"""
    assert look(places, code, hide="hwy", status=0) == look(places, code, status=0)


def test_mathematics_without_its_vector_library(places):
    """glibc before 2.35 has few vector functions, other C libraries none: each lane is then computed alone."""
    code = """
import math
rng, said = np.random.default_rng(5), []
names = "exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp2 expm1 log2 log10 log1p erf".split()
for n in (1, 7, 37, 1003):
    for dtype in ("float32", "float64"):
        small, y = (rng.uniform(0.01, 0.99, n).astype(dtype) for _ in range(2))
        for name in [*names, "pow", "atan2", "hypot"]:
            if not hasattr(weft, name):
                continue
            x = small + 1 if name == "acosh" else small
            operands = (x, y) if name in ("pow", "atan2", "hypot") else (x,)
            got = getattr(weft, name)(*map(weft.asarray, operands)).numpy()
            of = getattr(math, name, None) or getattr(np, name)
            wanted = np.array([of(*map(float, each)) for each in zip(*operands)])
            worst = abs(got - wanted).max() / abs(wanted).max()
            assert got.dtype == dtype and worst < 8 * np.finfo(dtype).eps, (name, dtype, n, worst)
            said.append(name)
assert len(set(said)) >= 18, set(said)
print(len(said))
"""
    assert look(places, code, hide="mvec libm.so", status=0) == look(places, code, status=0)


def test_modules_load_beside_glibc_2_34():
    """What is built here imports nothing that came with glibc 2.35 or GCC 12 and can be had otherwise."""
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    folder = pathlib.Path(weft.__file__).parent
    modules = [*folder.glob("*.so"), *folder.glob("lib/*.so")]
    assert modules
    for module in modules:
        read = subprocess.run(["readelf", "-dsW", module], capture_output=True, text=True)
        wanted = [line for line in read.stdout.splitlines() if "UND" in line or "NEEDED" in line]
        newer = re.compile(
            r"libmvec|_ZGV[a-e][NM]|\bhypotf?@|hfsf2|truncsfhf|_ZNSt18condition_variable4wait"
        )
        assert read.returncode == 0 and [line for line in wanted if newer.search(line)] == [], (
            module
        )


def test_a_libllvm_that_is_not_known(places, monkeypatch):
    monkeypatch.setenv("WEFT_LLVM", "14")
    found, text = look(places, "refused(weft.build, add(8), target='cpu:mcpu=generic')")
    assert found == "Error" and text.startswith("error[jit.llvm.absent]: "), (found, text)
    assert 'WEFT_LLVM is "14"; it may be 15 to 19, or oldest' in text, text


CALL = """
def call(sch, n, target="cuda:arch=sm_90"):
    m = weft.build(sch, target=target)
    with weft.use("cuda:0"):
        x = [weft.zeros((n,), dtype="float32", device="cuda:0") for _ in range(3)]
    m["main"](*x)
    weft.device("cuda:0").synchronize()
"""


@pytest.mark.parametrize(
    "slug, code, fail, parts",
    [
        (
            "cuda.driver",
            "call(add(64, threads=32), 64)",
            "cuLaunchKernel",
            ["launching a kernel", "999", "stuck"],
        ),
        (
            "cuda.load",
            "call(add(64, threads=32), 64)",
            "cuModuleLoadData",
            ["Loom 1 (sm_90)", "cuda:arch=sm_90"],
        ),
        (
            "cuda.launch.threads",
            "call(add(2048, threads=1024), 2048)",
            "",
            ["1024 threads", "Loom 1 has 512"],
        ),
        (
            "cuda.launch.shared",
            "call(add(32768, threads=32, stage=512), 32768)",
            "",
            ["shared memory", "has 1024"],
        ),
        (
            "cuda.launch.blocks",
            "call(add(te.var('n'), blocks='blockIdx.y', threads=2), 140000)",
            "",
            ["1 x 70000 x 1 blocks", "65535"],
        ),
        (
            "cuda.absent",
            "refused(weft.zeros, (4,), device='cuda:0')",
            "cuInit",
            ["cuInit says", "stuck"],
        ),
        (
            "cuda.absent",
            "refused(weft.zeros, (4,), device='cuda:3')",
            "",
            ["cuda:3 is absent", "cuda:0 to"],
        ),
        (
            "device.memory.exhausted",
            "refused(weft.zeros, (1 << 20,), device='cuda:0')",
            "",
            ["4 MiB", "1 MiB"],
        ),
    ],
)
def test_a_card_that_refuses(places, slug, code, fail, parts):
    options = {
        # The build is told what the card does not hold, so that the refusal is the device's own.
        "cuda.launch.threads": "max_threads_per_block=1024",
        "cuda.launch.shared": "max_shared_memory_per_block=100000",
    }
    target = "cuda:arch=sm_90" + (f",{options[slug]}" if slug in options else "")
    if code.startswith("call("):
        code = f"refused({code.replace('call(', 'call, ', 1)[:-1]}, target={target!r})"
    kind, text = look(places, CALL + code, library="fakes", fail=fail)
    assert text.startswith(f"error[{slug}]: "), text
    assert kind == ("OutOfMemoryError" if "memory" in slug else "DeviceError")
    assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    "slug, fail, parts",
    [
        (
            "cuda.nvrtc.failed",
            "nvrtcCreateProgram",
            ["nvrtcCreateProgram failed", "NVRTC_ERROR_COMPILATION"],
        ),
        (
            "cuda.nvrtc.refused",
            "nvrtcCompileProgram",
            ["refused the generated CUDA C for sm_90", "kernel.cu(7)"],
        ),
        (
            "cuda.nvrtc.arch",
            "architecture",
            ['"sm_90" names no real architecture', "sm_90, not compute_90"],
        ),
    ],
)
def test_a_compiler_that_refuses(places, slug, fail, parts):
    kind, text = look(
        places,
        "refused(weft.build, add(64, threads=32), target='cuda:arch=sm_90')",
        library="fakes",
        fail=fail,
    )
    assert kind == "Error" and text.startswith(f"error[{slug}]: "), (kind, text)
    assert all(part in text for part in parts), text


def test_a_compiler_that_pip_brought(places, tmp_path, monkeypatch):
    """NVIDIA's packages lie in site-packages, where the loader does not look."""
    packages = tmp_path / "site-packages"
    (packages / "nvidia/cu13/lib").mkdir(parents=True)
    fake = packages / "nvidia/cu13/lib/libnvrtc.so.13"
    shutil.copy(places / "fakes/libnvrtc.so.13", fake)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    build = "refused(weft.build, add(64, threads=32), target='cuda:arch=sm_90')"
    # Hidden: what this machine has by itself, and then not what lies among packages.
    without = look(places, build, hide="nvrtc")
    assert without[1].startswith("error[cuda.nvrtc.absent]: ") and "nvidia/*/lib" in without[1]
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])  # before the real one
    kind, text = look(places, build, hide="!nvrtc", fail="nvrtcCompileProgram")
    assert kind == "Error" and text.startswith("error[cuda.nvrtc.refused]: "), (kind, text)
    assert "kernel.cu(7)" in text


def refused(kind, f, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        f(*arguments, **keywords)
    return caught.value


def test_benchmarks_that_fail_or_are_wrong(tmp_path, monkeypatch):
    error = refused(weft.Error, bench._check, "loom", np.ones(3), np.array([1, 1, 2]))
    assert error.code == "bench.wrong" and "loom: the result is off by 0.5" in error.message
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(bench, "_scripts", lambda: {"loom/broken": script})
    arguments = argparse.Namespace(names=["loom/broken"], list=False, json=None)
    error = refused(weft.Error, bench.run, arguments)
    assert error.code == "bench.failed" and "loom/broken ended with status 3" in error.message


def test_an_empty_key_file(tmp_path):
    key = tmp_path / "key"
    key.write_text("\n")
    error = refused(weft.Error, serve._key, argparse.Namespace(key_file=key))
    assert error.code == "cli.serve.key" and f"{key} is empty" in error.message


def test_an_installation_without_the_manual(tmp_path, monkeypatch):
    monkeypatch.setattr(weft, "__file__", str(tmp_path / "lib" / "weft" / "__init__.py"))
    error = refused(weft.IOError, manual.errors, argparse.Namespace(slug=None))
    assert error.code == "cli.errors.page" and str(tmp_path) in str(error)


def test_a_result_that_is_not_the_reference_s(tmp_path):
    program = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] {}
"""
    right, wrong = tmp_path / "right.weft", tmp_path / "module.weft"
    right.write_text(program.format("* T.float32(2)"))
    wrong.write_text(program.format("+ T.float32(9)"))
    arguments = cli.parser().parse_args(["run", str(right), "--target", "cpu", "--check"])
    programs.run_file(arguments)
    build, built = weft.build, []

    def planted(f, target):  # the program of the target is another than that of the reference
        built.append(target)
        return build(f if target == "ref" else programs._program(wrong), target=target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weft, "build", planted)
        error = refused(weft.Error, programs.run_file, arguments)
    assert (
        error.code == "cli.run.check" and "main on cpu differs from the reference" in error.message
    )
    assert built == ["cpu", "ref"]


def test_a_remote_module_of_two_functions_is_asked_which():
    class Core:
        functions = ("first", "second")

    error = refused(weft.Error, rpc.RemoteModule(Core()))
    assert error.code == "rpc.module.function" and "2 functions" in error.message
    assert any("first, second" in note for note in error.notes)


def imported(folder):
    """What `import weft` says of a copy of the package whose compiled part has been changed."""
    run = subprocess.run(
        [sys.executable, "-c", "import weft"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert run.returncode == 1, run.stdout
    return run.stderr.partition("ImportError: ")[2]


@pytest.fixture
def without_core(tmp_path):
    """A folder with the package, whose compiled part is not there."""
    shutil.copytree(
        pathlib.Path(weft.__file__).parent,
        tmp_path / "weft",
        ignore=shutil.ignore_patterns("*.so", "__pycache__"),
    )
    return tmp_path


@pytest.mark.parametrize(
    "module, parts",
    [
        (None, ["compiled part is not in", "pip install ."]),
        (
            "_core.cpython-27-x86_64-linux-gnu.so",
            ["built for Python 2.7, and this is", "python2.7"],
        ),
        ("_core.{}-hppa-linux-gnu.so", ["another machine than", "pip install ."]),
    ],
)
def test_a_package_for_another_python_or_machine(module, parts, without_core):
    if module:
        tag = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
        (without_core / "weft" / module.format(tag)).touch()
    said = imported(without_core)
    assert said.startswith("weft cannot be loaded: ") and "help: " in said
    assert [p for p in parts if p not in said] == [], said


def test_a_system_with_an_older_glibc(without_core):
    """A library that stands for a C library: its version is newer while the module is linked, and older when it is loaded."""

    def library(version):
        (without_core / "f.c").write_text("int f(void) { return 1; }")
        (without_core / "map").write_text(f"{version} {{ global: f; }};")
        subprocess.run(
            [CC, "-shared", "-fPIC", "-Wl,--version-script=map", "-o", "libc_of_then.so", "f.c"],
            cwd=without_core,
            check=True,
        )

    library("GLIBC_9.9")
    (without_core / "g.c").write_text("int f(void); int g(void) { return f(); }")
    module = f"weft/{pathlib.Path(weft._core.__file__).name}"
    subprocess.run(
        [CC, "-shared", "-fPIC", "-o", module, "g.c", "-L.", "-l:libc_of_then.so"]
        + [f"-Wl,-rpath,{without_core}"],
        cwd=without_core,
        check=True,
    )
    library("GLIBC_1.1")
    said = imported(without_core)
    assert "it asks for GLIBC_9.9, and here is" in said and "use a newer system" in said, said
    assert "2.34" in said


@pytest.mark.parametrize(
    "call", ["import weft.torch", "weft.torch", "weft.torch.to_torch(weft.ones(2))"]
)
def test_without_pytorch(call):
    code = f"""
import sys
sys.modules["torch"] = None
import weft
try:
    {call}
except weft.Error as error:
    print(isinstance(error, ImportError), error.name, error)
"""
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)  # fmt: skip
    assert done.stdout.startswith("True torch error[torch.absent]: weft.torch needs PyTorch"), (
        done.stderr
    )
    assert "install torch" in done.stdout
