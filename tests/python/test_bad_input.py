# SPDX-License-Identifier: Apache-2.0
"""Bad input ends in a clear error of the right class: slug, what was asked, what was found, what is legal. Nothing
aborts, and no partial file is left behind."""

import os
import subprocess
import sys

import numpy as np
import pytest
import weft
from weft import script as T
from weft import te

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def add(n=64):
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])


def refused(kind, f, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        f(*arguments, **keywords)
    error = caught.value
    assert error.code and str(error).startswith(f"error[{error.code}]: "), error
    return error


def test_an_unknown_target_lists_the_known_ones():
    error = refused(weft.ArgumentError, weft.build, add(), target="opencll")
    assert error.code == "target.unknown" and '"opencll"' in error.message
    assert "opencl" in error.help and any("cuda" in note for note in error.notes)
    assert refused(weft.Error, weft.build, add(), target="cpu:x=").code == "target.parse"
    assert refused(weft.Error, weft.build, add(), target="").code == "target.parse"


@pytest.mark.targets("qpu", "vta")
def test_an_absent_device_says_what_was_searched():
    device = weft.device("qpu:hw")
    assert not device.available and "not available: " in device.reason
    error = refused(weft.DeviceError, weft.zeros, (4,), device=device)
    assert error.code in ("qpu.absent", "device.absent") and "qpu:hw" in str(error)
    error = refused(weft.DeviceError, weft.zeros, (4,), device="vta:hw")
    assert error.code == "vta.absent" and "simulator" in error.help
    if not weft.device("cuda").available:
        error = refused(weft.DeviceError, weft.zeros, (4,), device="cuda:0")
        assert error.code.startswith("cuda.") and "libcuda" in str(error)


@pytest.mark.targets("qpu")
def test_arguments_of_another_dtype_shape_device_or_stride():
    f = weft.build(add(), target="cpu")["main"]
    good = weft.zeros((64,), dtype="float32")

    def call(second):
        return refused(weft.Error, f, good, second, weft.zeros((64,), dtype="float32"))

    dtype = call(weft.zeros((64,), dtype="int32"))
    assert isinstance(dtype, TypeError) and dtype.code == "call.dtype"
    assert "float32" in str(dtype) and "int32" in str(dtype) and '"B"' in dtype.message
    shape = call(weft.zeros((63,), dtype="float32"))
    assert isinstance(shape, ValueError) and shape.code == "call.shape"
    assert "64" in str(shape) and "63" in str(shape)
    rank = call(weft.zeros((8, 8), dtype="float32"))
    assert isinstance(rank, weft.ShapeError) and rank.code == "call.rank"
    device = call(weft.zeros((64,), dtype="float32", device="qpu"))
    assert isinstance(device, weft.DeviceError) and device.code == "call.device"
    assert "lies on qpu" in str(device) and "cpu" in str(device)
    strided = call(weft.zeros((128,), dtype="float32")[::2])
    assert strided.code == "call.strides" and "compact" in str(strided)
    count = refused(weft.Error, f, good, good)
    assert count.code == "call.count" and "takes 3 arguments" in count.message
    kind = refused(weft.ArgumentError, f, good, "text", good)
    assert kind.code == "call.kind" and "'text'" in kind.message
    assert refused(weft.Error, f, good, 3, good).code == "call.kind"


def test_an_illegal_step_changes_nothing():
    sch = weft.Schedule(add())
    (i,) = sch.get_loops(sch.get_block("C"))
    before, steps = sch.script(), len(sch.trace)
    error = refused(weft.ScheduleError, sch.split, i, [None, None])
    assert isinstance(error, ValueError) and error.code.startswith("schedule.split.")
    error = refused(weft.ScheduleError, sch.bind, i, "threadIdx.q")
    assert "threadIdx.q" in str(error) and "threadIdx.x" in str(error)
    error = refused(weft.ScheduleError, sch.get_block, "D")
    assert '"D"' in str(error) and '"C"' in str(error)
    assert (sch.script(), len(sch.trace)) == (before, steps)
    gone = i
    sch.split(i, [None, 8])
    assert refused(weft.ScheduleError, sch.get, gone).code.startswith("schedule.")
    assert refused(weft.Error, sch.get, "C").code == "schedule.get.type"


@pytest.mark.parametrize(
    "line, column, text",
    [
        (3, None, "    A[0] = A[1] +\n"),
        (3, 12, "    A[0] = Z[1]\n"),
        (3, None, "    for i in T.gird(4):\n        A[i] = A[i]\n"),
        (3, None, '    A[0] = "x"\n'),
        (3, None, "    A[0, 1] = T.float32(1)\n"),
    ],
)
def test_unparsable_text_shows_line_column_and_caret(line, column, text):
    source = '@T.prim_func\ndef main(A: T.Buffer((4,), "float32")):\n' + text
    error = refused(weft.ParseError, T.from_source, source, "prog.weft")
    assert f"prog.weft:{line}:{column or ''}" in str(error), error
    shown = str(error).splitlines()
    culprit = text.splitlines()[0].strip()
    at = next(k for k, shown_line in enumerate(shown) if culprit in shown_line)
    assert set(shown[at + 1].strip()) == {"^"}


def threads(n, count):
    sch = weft.Schedule(add(n))
    (i,) = sch.get_loops(sch.get_block("C"))
    outer, inner = sch.split(i, [None, count])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return sch


@pytest.mark.parametrize("target", ["cuda:arch=sm_80,", "opencl:", "metal:"])
def test_too_many_threads_are_found_before_the_launch(target):
    target += "max_threads_per_block=256"
    error = refused(weft.Error, weft.build, threads(4096, 512), target=target)
    assert error.code in ("lower.axis.limit", "lower.axis.group_limit")
    assert "512" in str(error) and "256" in str(error)
    weft.build(threads(4096, 256), target=target)


def staged(n):
    """Stages n floats in shared memory."""
    sch = threads(4 * n, n)
    block = sch.get_block("C")
    cached = sch.cache_read(block, 0, "shared")
    sch.compute_at(cached, sch.get_loops(block)[0])
    return sch


@pytest.mark.parametrize("target", ["cuda:arch=sm_80,", "opencl:", "metal:"])
def test_too_much_shared_memory_is_found_before_the_launch(target):
    error = refused(
        weft.Error, weft.build, staged(256), target=target + "max_shared_memory_per_block=1000"
    )
    assert error.code == "lower.shared.limit"
    assert "1024 bytes" in str(error) and "1000" in str(error)
    weft.build(staged(256), target=target + "max_shared_memory_per_block=1024")


RUN = """
import numpy, weft
from weft import te
a = te.placeholder((100,), "float32", name="A")
f = te.create_prim_func([a, te.compute((100,), lambda i: a[i] * 3.0, name="B")])
x = numpy.arange(100, dtype="float32"); y = weft.zeros((100,), dtype="float32")
weft.build(f, target="cpu")["main"](weft.asarray(x), y)
assert numpy.array_equal(y.numpy(), 3 * x)
"""


def test_damaged_entries_of_the_kernel_cache_are_made_again(tmp_path):
    folder = tmp_path / "cache"

    def run():
        done = subprocess.run(
            [sys.executable, "-c", RUN],
            env={**ENVIRONMENT, "WEFT_CACHE_DIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    whole = run()
    assert whole and folder.stat().st_mode & 0o777 == 0o700
    version = 8  # the magic's length: what follows is the version
    damages = {
        "truncated": lambda b: b[: len(b) // 2],
        "empty": lambda b: b"",
        "foreign": lambda b: b"something else entirely",
        "version": lambda b: b[:version] + bytes([b[version] + 1]) + b[version + 1 :],
        "flipped": lambda b: b[:-20] + bytes([b[-20] ^ 1]) + b[-19:],
    }
    for name, damage in damages.items():
        for path, content in whole.items():
            path.write_bytes(damage(content))
        again = run()
        assert again.keys() == whole.keys(), name  # and no temporary file beside
        assert all(len(again[p]) == len(whole[p]) for p in whole), name
        assert all(again[p] != damage(whole[p]) for p in whole), name  # it was looked at


def test_processes_that_fill_one_cache_at_once_agree(tmp_path):
    """Four at a time, from nothing and from damaged entries: each result is right, each entry is whole."""
    folder = tmp_path / "cache"
    environment = {**ENVIRONMENT, "WEFT_CACHE_DIR": str(folder)}

    def together():
        several = [
            subprocess.Popen([sys.executable, "-c", RUN], env=environment, stderr=subprocess.PIPE)
            for _ in range(4)
        ]
        for process in several:
            _, said = process.communicate(timeout=500)
            assert process.returncode == 0 and said == b""
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    whole = together()
    assert whole
    for name, content in whole.items():
        (folder / name).write_bytes(content[: len(content) // 3])
    again = together()
    assert again.keys() == whole.keys()  # nothing half-written lies beside
    assert all(len(again[n]) == len(whole[n]) for n in whole)


def test_a_cache_folder_open_to_others_is_not_used(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**ENVIRONMENT, "WEFT_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert list(folder.iterdir()) == []
    assert done.returncode == 0 or "error[cache.directory]" in done.stderr


def test_modules_of_another_version_and_damaged_ones(tmp_path):
    path = tmp_path / "m.weft-mod"
    weft.build(add(), target="c").save(path)
    content = path.read_bytes()
    cases = {
        "module.file.foreign": b"no module",
        "module.file.truncated": content[:20],
        "module.file.checksum": content[:-9],
        "module.file.version": content[:8] + b"\x63" + content[9:],
    }
    for code, bad in cases.items():
        path.write_bytes(bad)
        error = refused(weft.IOError, weft.load, path)
        assert error.code == code and isinstance(error, OSError) and "m.weft-mod" in str(error)
    missing = refused(weft.IOError, weft.load, tmp_path / "none.weft-mod")
    assert "none.weft-mod" in str(missing)


def test_saving_leaves_no_partial_file(tmp_path):
    module = weft.build(add(), target="c")
    refused(weft.IOError, module.save, tmp_path / "no" / "such" / "folder.weft-mod")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError), weft.profile() as profile:
        profile.save(tmp_path / "no" / "trace.json")
    assert list(tmp_path.iterdir()) == []


def test_views_outside_their_storage():
    a = weft.zeros((8,), dtype="float32")
    error = refused(
        weft.Error, weft.NDArray.make, (4,), strides=(4,), device=a.device, handle=a.handle
    )
    assert error.code == "array.make.outside" and isinstance(error, IndexError)
    assert np.array_equal(a.numpy(), np.zeros(8, np.float32))


def one_store(body, n=10):
    lines = "\n".join("    " + line for line in body.splitlines())
    return T.from_source(
        "from weft import script as T\n\n@T.prim_func\n"
        f'def main(A: T.Buffer(({n},), "float32"), B: T.Buffer((10,), "float32"), m: T.int64):\n{lines}\n'
    )


BEYOND = {
    "B[0] = A[12]": "is 12, beyond the end",
    "B[-1] = A[0]": "is -1, below 0",
    "for i in range(10):\n    B[i] = A[i + 3]": "goes from 3 to 12, beyond the end",
    "for i in range(4):\n    for j in range(4):\n        B[i * 3 + j] = A[0]": "goes from 0 to 12",
    'for i in range(10):\n    with T.block("B"):\n        v = T.axis.spatial(10, i)\n'
    "        B[v] = A[v - 1]": "goes from -1 to 8, below 0",
}
PERHAPS = [
    "if m > 3:\n    B[0] = A[12]",
    "for i in range(m):\n    B[0] = A[12]",
    "for i in range(0):\n    B[0] = A[12]",
    "for i in range(20):\n    if i < 10:\n        B[i] = A[i]",
    "B[0] = T.if_then_else(m > 3, A[12], A[0])",
    "B[0] = T.Select(m > 3, A[0], A[0])",
    'for i in range(12):\n    with T.block("B"):\n        v = T.axis.spatial(10, i)\n'
    "        T.where(i < 10)\n        B[v] = A[v]",
    "for i in range(10):\n    B[i] = A[9 - i]",
]


@pytest.mark.parametrize("target", ["ref", "cpu", "c", "opencl", "cuda:arch=sm_90", "null"])
@pytest.mark.parametrize("body", BEYOND)
def test_an_index_that_is_certainly_beyond_its_buffer_is_no_program(body, target):
    error = refused(weft.Error, weft.build, one_store(body), target=target)
    assert error.code == "verify.bounds" and BEYOND[body] in error.message, error
    assert "has extent 10" in error.message and "indices of this dimension are 0 to 9" in error.help
    assert "^^^" in str(error)
    asked = weft.accepts(one_store(body), target)
    assert (type(asked), asked.code, asked.message) == (type(error), error.code, error.message)


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
@pytest.mark.parametrize("body", PERHAPS)
def test_an_access_that_may_never_happen_is_not_refused(body, target):
    module = weft.build(one_store(body), target=target)
    a, b = weft.asarray(np.arange(10, dtype="float32")), weft.zeros(10, dtype="float32")
    if target == "ref":
        a, b = a.to_device("ref"), b.to_device("ref")
    elif target == "c":
        a, b = a.to_device("c"), b.to_device("c")
    module["main"](a, b, 0)
    assert np.all(b.numpy() <= 9)


def test_lengths_that_cannot_be():
    i = weft.arange(3)
    for make, code, text in (
        (lambda: weft.repeat(i, [2**62, 2**62, 1]), "array.size.overflow", "64 bits"),
        (lambda: weft.repeat(i, [1, -1, 1]), "array.repeat.negative", "-1 times"),
        (lambda: weft.repeat(i, -2), "array.repeat.negative", "-2 times"),
        (lambda: weft.linspace(0, 1, -3), "array.linspace.number", "-3 numbers"),
        (lambda: weft.stack([]), "array.stack.empty", "0 arrays"),
        (lambda: weft.random.normal((2, -1)), "array.shape.negative", "(2, -1)"),
    ):
        with pytest.raises(weft.ArgumentError) as info:
            make()
        assert info.value.code == code and text in str(info.value)


def test_index_errors_name_the_axis_of_the_array_that_was_indexed():
    x = weft.zeros((2, 3, 4))
    for key, axis, i in (
        ((0, 7), 1, 7),
        ((slice(None), 0, -9), 2, -9),
        ((..., 4), 2, 4),
        ((None, 0, 3), 1, 3),
    ):
        with pytest.raises(weft.IndexError) as info:
            x[key]
        assert f"index {i} is outside axis {axis} of float32[2, 3, 4]" in str(info.value)
