# SPDX-License-Identifier: Apache-2.0
"""What a build and a call are given, and the default device."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from refusal import refused

import weft
from present import remote_devices
from weft import te


def add(n=64):
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])


def test_build_says_what_it_was_given():
    assert refused(weft.Error, "python.program", weft.build, None).help
    assert (
        "list"
        in refused(weft.DTypeError, "build.target", weft.build, add(), target=["cpu"]).message
    )
    seen = []
    weft.build(add(), after=lambda name, function, seconds: seen.append(function))
    assert seen and all(isinstance(f, weft.PrimFunc) for f in seen)
    error = refused(
        weft.ArgumentError,
        "target.option.range",
        weft.build,
        add(),
        target="cuda:max_threads_per_block=-1",
    )
    assert "-1" in error.message and "legal: 1" in error.notes[0]


@pytest.mark.targets("wse")
def test_an_option_that_no_target_knows_is_refused():
    for target, slug, legal in [
        ("cpu:mcp=host", "cpu.option.unknown", "mcpu"),
        ("cpu:1", "cpu.option.unknown", "mcpu"),
        ("wse:2x2,foo=1", "wse.option.unknown", "WxH, arch"),
        ("c:foo=1", "c.option.unknown", "flags"),
    ]:
        error = refused(weft.ArgumentError, slug, weft.build, add(), target=target)
        assert legal in error.notes[0], error
    assert (
        "mcpu" in refused(weft.ArgumentError, "cpu.option.unknown", weft.device, "cpu:mcp=x").help
    )
    assert weft.device("cpu:0") == weft.device("cpu")


@pytest.mark.targets("qpu")
def test_host_memory_serves_every_target_that_computes_there():
    a = weft.asarray(np.arange(64, dtype="float32"))
    for target in ("c", "ref", "cpu"):
        out = weft.zeros(64, dtype="float32")
        weft.build(add(), target=target)["main"](a, a, out)
        np.testing.assert_array_equal(out.numpy(), 2 * a.numpy())
    f = weft.build(add(), target="qpu")["main"]
    error = refused(weft.DeviceError, "call.device", f, a, a, a)
    assert "lies on cpu" in error.message and "runs on qpu" in error.message


def test_a_wrong_argument_is_named_by_its_type():
    f = weft.build(add())["main"]
    a = weft.zeros(64, dtype="float32")
    error = refused(weft.ArgumentError, "call.kind", f, a, np.zeros(64, "float32"), a)
    assert error.message == "argument 2 is a numpy.ndarray, which no kernel takes"
    assert "\n" not in error.message and "asarray" in error.help


def test_empty_arrays_are_compact_arguments():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "float32", name="A")
    f = te.create_prim_func([a, te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")])
    for target in ("cpu", "c"):
        module = weft.build(f, target=target)
        for shape in ((5, 0), (0, 5), (0, 0)):
            module["main"](weft.zeros(shape, dtype="float32"), weft.ones(shape, dtype="float32"))


@pytest.mark.targets("qpu")
def test_the_default_device_belongs_to_the_thread():
    seen = {}

    def other():
        seen["before"] = weft.zeros(1).device.name
        with weft.use("ref"):
            seen["inside"] = weft.zeros(1).device.name
        seen["after"] = weft.zeros(1).device.name

    with weft.use("null"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert weft.zeros(1).device.name == "null"
        with weft.use("ref"):
            assert weft.zeros(1).device.name == "ref"
        assert weft.zeros(1).device.name == "null"
    assert seen == {"before": "cpu", "inside": "ref", "after": "cpu"}
    with pytest.raises(weft.DeviceError):
        with weft.use("qpu:hw"):
            pass
    assert weft.zeros(1).device.name == "cpu"


@pytest.mark.targets("qpu")
def test_an_absent_default_device_is_no_import_error(tmp_path):
    text = (
        "import weft\n"
        "print(weft.zeros(2, device='cpu').device)\n"
        "for _ in range(2):\n"
        "    try: weft.zeros(2)\n"
        "    except weft.Error as e: print(e.code)\n"
    )
    for name, code in [("qpu:hw", "qpu.absent"), ("nope", "target.unknown")]:
        done = subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "WEFT_DEVICE": name,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        assert done.stdout.split() == ["cpu", code, code], done.stdout + done.stderr


def test_everything_that_is_loaded_later_is_listed():
    for name in (
        "nn",
        "optim",
        "init",
        "data",
        "te",
        "script",
        "rpc",
        "vta",
        "wse",
        "qpu",
        "torch",
    ):
        assert name in dir(weft), name
    assert weft.qpu.__name__ == "weft.qpu"


def test_scheduling_opens_no_driver():
    text = (
        "import weft\n"
        "from weft import te\n"
        "a = te.placeholder((8,), name='A')\n"
        "f = te.create_prim_func([a, te.compute((8,), lambda i: a[i] + 1.0, name='B')])\n"
        "sch = weft.Schedule(f)\n"
        "sch.bind(sch.get_loops('B')[0], 'threadIdx.x')\n"
        "maps = open('/proc/self/maps').read()\n"
        "print([n for n in ('libOpenCL', 'libcuda', 'libLLVM', 'libpocl') if n in maps])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_reduction_across_threads_feeds_the_same_block():
    """Softmax's shape: a sum over threads into shared memory, used by all threads of the block."""
    n, m = 5, 70
    a = te.placeholder((n, m), "float32", name="A")
    k = te.reduce_axis((0, m), name="k")
    s = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="s")
    f = te.create_prim_func([a, te.compute((n, m), lambda i, j: a[i, j] / s[i], name="o")])
    sch = weft.Schedule(f)
    i, _ = sch.get_loops("o")
    sch.set_scope("s", 0, "shared")
    sch.compute_at("s", i)
    sch.bind(i, "blockIdx.x")
    for block in ("s", "o"):
        _, inner = sch.split(sch.get_loops(block)[-1], [None, 32])
        sch.bind(inner, "threadIdx.x")
    for target in ("cuda", "metal"):
        assert "s_tree" in weft.build(sch, target=target).source()
    x = np.random.RandomState(1).rand(n, m).astype("float32")
    device = weft.device("opencl")
    if not device.available:
        device = weft.device("ref")
    out = weft.zeros((n, m), dtype="float32", device=device)
    weft.build(sch, target=device)["main"](weft.asarray(x, device=device), out)
    np.testing.assert_allclose(out.numpy(), x / x.sum(1, keepdims=True), rtol=1e-5)


def test_one_loop_over_results_and_terms_is_not_reduced_across_threads():
    """fuse(i, k) counts results and terms: threads would add into each other's results."""
    from weft import script as T

    @T.prim_func
    def rows(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    sch = weft.Schedule(rows)
    both = sch.fuse(*sch.get_loops(sch.get_block("B")))
    with pytest.raises(weft.ScheduleError, match="reduction iterator") as caught:
        sch.bind(both, "threadIdx.x")
    assert caught.value.code == "schedule.bind.iterator"
    sch = weft.Schedule(rows)
    sch.bind(sch.get_loops(sch.get_block("B"))[1], "threadIdx.x")  # terms alone: a cross-thread sum


def test_a_connection_is_closed(tmp_path):
    with remote_devices().local("cpu") as remote:
        assert remote.device("cpu").available
        error = refused(weft.IOError, "rpc.file.read", remote.upload, tmp_path / "none")
        assert "No such file" in error.message
        refused(weft.IOError, "rpc.file.read", remote.reconfigure, "none.json")
        refused(weft.IOError, "rpc.file.read", remote.program, tmp_path / "none.bit")
    error = refused(weft.DeviceError, "rpc.closed", remote.device)
    assert "connect again" in error.help
    remote.close()


def test_arrays_on_a_remote_device_have_no_operators():
    remote = remote_devices().local("cpu")
    x = weft.ones(4, dtype="float32").to(remote.device())
    error = refused(weft.DeviceError, "array.device.remote", lambda: x + x)
    assert "add" in error.message and "upload" in error.help
    refused(weft.DeviceError, "array.device.remote", weft.sum, x)


def test_passes_are_validated_on_demand():
    from generate import compare
    from generate import programs as P

    seen = []
    for seed in range(12):
        f = weft.script.from_source(P.text(compare.case(seed)[0])[0])
        weft.build(f, target="cpu", validate=True, after=lambda name, f, s: seen.append(name))
        weft.build(f, target="cpu", validate=False)
        weft.build(f, target="cpu", validate=50)
    assert "simplify" in seen  # the caller still sees every pass
    with pytest.raises(weft.Error) as caught:
        weft.build(f, validate="much")
    assert caught.value.code == "build.validate" and "'much'" in str(caught.value)


@pytest.mark.skipif(not weft.device("opencl:0").available, reason="no OpenCL device: opencl:0")
def test_texts_may_call_what_no_text_of_ours_calls():
    """PoCL is given declarations of our functions alone; a program that calls another one gets all."""
    f = weft.script.from_source("""
@T.prim_func
def main(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(9):
        with T.block("B"):
            v = T.axis.spatial(9, i)
            B[v] = T.call_extern("cbrt", A[v], dtype="float32")
""")
    a = weft.full((9,), 8.0, dtype="float32", device="opencl:0")
    b = weft.zeros((9,), dtype="float32", device="opencl:0")
    weft.build(f, target="opencl")["main"](a, b)
    assert b.tolist() == [2.0] * 9


PARALLEL = {
    "sums": """
    for i in T.parallel(6):
        for k in range(5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]""",
    "memory of one iteration": """
    for i in T.parallel(6):
        with T.block("row"):
            vi = T.axis.spatial(6, i)
            held = T.alloc_buffer((5,), "int32")
            for k in range(5):
                with T.block("held"):
                    vk = T.axis.spatial(5, k)
                    held[vk] = A[vi, 4 - vk]
            B[vi] = 0
            for k in range(5):
                with T.block("B"):
                    vk = T.axis.reduce(5, k)
                    B[vi] = B[vi] + held[vk]""",
    "memory of all": """
    held = T.alloc_buffer((5,), "int32")
    for i in T.parallel(6):
        for k in range(5):
            with T.block("held"):
                vi = T.axis.opaque(6, i)
                vk = T.axis.spatial(5, k)
                held[vk] = A[vi, vk]
        for k in range(5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + held[vk]""",
    "terms": """
    for i in range(6):
        for k in T.parallel(5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]""",
}


@pytest.mark.parametrize("target", ["ref", "null", "cpu", "c"])
@pytest.mark.parametrize("name", PARALLEL)
def test_races_of_parallel_loops_are_refused_and_nothing_else(name, target):
    """Inits, blocks' own memory and memory outside the loop, also where functions stay whole."""
    program = weft.script.from_source(
        "from weft import script as T\n\n@T.prim_func\n"
        f'def main(A: T.Buffer((6, 5), "int32"), B: T.Buffer((6,), "int32")):{PARALLEL[name]}\n'
    )
    racy = {"memory of all": "held", "terms": "B"}.get(name)
    if racy:
        error = refused(weft.Error, "verify.race", weft.build, program, target=target)
        assert f'"{racy}"' in error.message
        return
    device = weft.device(target)
    a = np.arange(30, dtype="int32").reshape(6, 5)
    b = weft.zeros(6, dtype="int32", device=device)
    weft.build(program, target=target)(weft.asarray(a, device=device), b)
    if target != "null":
        np.testing.assert_array_equal(b.numpy(), a.sum(1))
