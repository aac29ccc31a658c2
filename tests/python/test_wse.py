# SPDX-License-Identifier: Apache-2.0
"""The wafer from Python: the printed GEMV and its exercises, the SDK's runtime, layout and debug classes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "compat" / "cerebras"))
import weft  # noqa: E402
from present import wafer  # noqa: E402

wse = wafer()

from cerebras.geometry.geometry import IntVector  # noqa: E402
from cerebras.sdk.debug.debug_util import debug_util  # noqa: E402
from cerebras.sdk.runtime.sdkruntimepybind import (  # noqa: E402
    Color,
    Edge,
    MemcpyDataType,
    MemcpyOrder,
    Route,
    RoutingPosition,
    SdkLayout,
    SdkRuntime,
    SdkTarget,
    SimfabConfig,
    get_platform,
)
from cerebras.sdk.sdk_utils import (  # noqa: E402
    calculate_cycles,
    input_array_to_u32,
    memcpy_view,
)

SEED = ROOT / "examples/wse/seed"
M, N = 4, 6
COPY = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, data_type=MemcpyDataType.MEMCPY_32BIT)


def tool(name, *arguments, cwd, check=True):
    """Runs cslc or cs_python as a command."""
    module = {"cslc": "compiler", "cs_python": "script"}[name]
    code = f"import sys; from weft_wse.{module} import {name}_main as m; sys.exit(m())"
    env = dict(os.environ, PYTHONPATH=f"{ROOT / 'python'}")
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def cslc(folder, layout="layout.csl", check=True, more=()):
    flags = "--fabric-dims=8,3 --fabric-offsets=4,1 --memcpy --channels=1 -o out".split()
    return tool("cslc", layout, *flags, *more, cwd=folder, check=check)


def compiled(folder, layout, pe, dims=(8, 3), pe_name="pe_program.csl", **options):
    (folder / "layout.csl").write_text(layout)
    (folder / pe_name).write_text(pe)
    out = str(folder / "out")
    wse.compile_csl(
        str(folder / "layout.csl"),
        out,
        fabric_dims=dims,
        fabric_offsets=(4, 1),
        memcpy=True,
        **options,
    )
    return out


def started(out, **options):
    runner = SdkRuntime(out, **options)
    runner.load()
    runner.run()
    return runner


def put(runner, name, array):
    runner.memcpy_h2d(runner.get_id(name), array, 0, 0, 1, 1, array.size, nonblock=False, **COPY)


def get(runner, name, count, dtype=np.float32):
    out = np.zeros(count, dtype)
    runner.memcpy_d2h(out, runner.get_id(name), 0, 0, 1, 1, count, nonblock=False, **COPY)
    return out


def seed_texts():
    return (SEED / "layout.csl").read_text(), (SEED / "pe_program.csl").read_text()


# ---- the printed program and its exercises


def test_the_printed_files_end_in_success(tmp_path):
    for name in ("layout.csl", "pe_program.csl", "run.py"):
        (tmp_path / name).write_text((SEED / name).read_text())
    cslc(tmp_path)
    done = tool("cs_python", "run.py", "--name", "out", cwd=tmp_path)
    assert done.stdout.strip().endswith("SUCCESS!")


def test_scripts_load_seldom_used_parts_of_numpy_when_they_use_them(tmp_path):
    """What a script sees of NumPy is what plain Python shows; only when the parts' texts run differs."""
    (tmp_path / "run.py").write_text(
        """
import pickle, sys, threading
import numpy as np
print([type(sys.modules[f"numpy.{part}"]).__name__ for part in ("random", "fft", "ma", "polynomial")], file=sys.stderr)
from numpy.random import RandomState, default_rng
import numpy.ma as ma
import numpy.polynomial.polynomial as P
import numpy.random.mtrand
state = pickle.loads(pickle.dumps(RandomState(7)))
print(state.rand(3), default_rng(5).integers(0, 100, 4), np.random.RandomState is RandomState)
print(P is np.polynomial.polynomial, P.__spec__.loader.__class__.__name__, sys.modules[P.__name__] is P)
print(ma.array([1, 2, 3], mask=[0, 1, 0]).sum(), np.ma.masked is ma.masked, P.polyval(2.0, [1, 2, 3]))
def transform(out):
    out.append(np.fft.ifft(np.fft.fft(np.arange(6.0))).real.round(12).tolist())
outs = []
threads = [threading.Thread(target=transform, args=(outs,)) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(len(outs), outs[0], all(o == outs[0] for o in outs), len(dir(np.ctypeslib)) > 20)
print(type(np.random).__name__, "fft2" in dir(np.fft), hasattr(np.random, "absent"))
"""
    )
    ours = tool("cs_python", "run.py", cwd=tmp_path)
    plain = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ours.stdout == plain.stdout
    assert plain.stderr.split() == ["['module',"] + ["'module',"] * 2 + ["'module']"]
    if int(np.__version__.split(".")[0]) < 2:  # later ones import these parts late themselves
        assert "module" not in ours.stderr.replace("_Later", "")
        assert ours.stderr.count("_Later") == 4, ours.stderr


LATER = """
import sys, threading
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime
assert "weft._functions" not in sys.modules, "the array library is imported"
import weft, weft.nn
try:
    SdkRuntime("nowhere")
except weft.Error as error:
    print(error.code)
got = []
threads = [threading.Thread(target=lambda: got.append(weft.ones(2).sum().item())) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
from weft import *
print(got, weft.wse.SdkRuntime is SdkRuntime, callable(weft.build), weft.nn.Linear.__name__, zeros is weft.zeros)
print(hasattr(weft, "nothing"), type(weft).__name__)
"""


def test_a_script_gets_the_array_library_when_it_asks_for_it(tmp_path):
    (tmp_path / "run.py").write_text(LATER)
    said = tool("cs_python", "run.py", cwd=tmp_path).stdout.splitlines()
    assert said == ["wse.artifact.read", "[2.0, 2.0, 2.0] True True Linear True", "False module"]


def test_other_values(tmp_path, rng):
    runner = started(compiled(tmp_path, *seed_texts()))
    A, x, b = (rng.standard_normal(n).astype(np.float32) for n in (M * N, N, M))
    for name, value in (("A", A), ("x", x), ("b", b)):
        put(runner, name, value)
    runner.launch("init_and_compute", nonblock=False)
    y = get(runner, "y", M)
    runner.stop()
    np.testing.assert_allclose(y, A.reshape(M, N) @ x + b, rtol=1e-5)


def test_launched_twice_goes_on_where_it_stopped(tmp_path):
    # A_dsd has moved on by N elements and y was never zeroed: the second launch adds A from the second row on.
    runner = started(compiled(tmp_path, *seed_texts()))
    A = np.arange(M * N, dtype=np.float32)
    x, b = np.full(N, 1, np.float32), np.full(M, 2, np.float32)
    for name, value in (("A", A), ("x", x), ("b", b)):
        put(runner, name, value)
    first = A.reshape(M, N) @ x + b
    runner.launch("init_and_compute", nonblock=False)
    np.testing.assert_array_equal(get(runner, "y", M), first)
    runner.launch("init_and_compute", nonblock=False)
    second = get(runner, "y", M)
    runner.stop()
    rows = A.reshape(M, N)[1:]  # what the moved descriptor covers of A; its last row lies behind A
    np.testing.assert_array_equal(second[: M - 1], first[: M - 1] + rows @ x + b[: M - 1])
    assert second[M - 1] != first[M - 1]


def resetting(m, n):
    layout, pe = seed_texts()
    pe = pe.replace("const M: i16 = 4;", f"const M: i16 = {m};")
    pe = pe.replace("const N: i16 = 6;", f"const N: i16 = {n};")
    pe = pe.replace(
        "// Add b to A*x", "A_dsd = @increment_dsd_offset(A_dsd, -N, f32);\n// Add b to A*x"
    )
    return layout, pe.replace(
        "// Loop over all columns of A",
        "@fmovs(y_dsd, @as(f32, 0.0));\n// Loop over all columns of A",
    )


def test_several_products(tmp_path, rng):
    runner = started(compiled(tmp_path, *resetting(M, N)))
    A, b = (rng.standard_normal(n).astype(np.float32) for n in (M * N, M))
    put(runner, "A", A)
    put(runner, "b", b)
    for _ in range(5):
        x = rng.standard_normal(N).astype(np.float32)
        put(runner, "x", x)
        runner.launch("init_and_compute", nonblock=False)
        np.testing.assert_allclose(get(runner, "y", M), A.reshape(M, N) @ x + b, rtol=1e-4)
    runner.stop()


def test_y_fed_back_as_x(tmp_path, rng):
    n = 5
    runner = started(compiled(tmp_path, *resetting(n, n)))
    A = (rng.standard_normal((n, n)) / n).astype(np.float32)
    x, b = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    put(runner, "A", A.ravel())
    put(runner, "b", b)
    want = x.astype(np.float64)
    for _ in range(6):
        put(runner, "x", x)
        runner.launch("init_and_compute", nonblock=False)
        x = get(runner, "y", n)
        want = A @ want + b
        np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-5)
    runner.stop()


# ---- commands and artifacts


def test_out_json_holds_the_params(tmp_path):
    layout = "param width: u16;\nparam depth: i16;\n" + seed_texts()[0].replace(
        "@set_rectangle(1, 1);",
        "@comptime_assert(width == 3 and depth == 7);\n@set_rectangle(1, 1);",
    )
    (tmp_path / "layout.csl").write_text(layout)
    (tmp_path / "pe_program.csl").write_text(seed_texts()[1])
    cslc(tmp_path, more=["--params=width:3", "--params", "depth:7"])
    params = json.loads((tmp_path / "out/out.json").read_text())["params"]
    assert params == {"width": "3", "depth": "7"}
    assert int(params["width"]) == 3
    names = {row["name"] for row in json.loads((tmp_path / "out/bin/out_rpc.json").read_text())}
    assert {"A", "x", "b", "y", "init_and_compute"} <= names


def test_every_option_of_the_compiler(tmp_path):
    layout, pe = seed_texts()
    layout = layout.replace(
        "layout {",
        "param n: u16;\nparam tag: color;\nlayout {\n@comptime_assert(@get_int(tag) == 9 and n == 5);",
    ).replace(
        "@set_rectangle(1, 1);",
        "@set_rectangle(1, 1);\n@set_color_config(0, 0, tag, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, "
        ".switches = .{ .pos1 = .{ .rx = RAMP }, .ring_mode = true } });",
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "pe_program.csl").write_text(pe)
    (tmp_path / "layout.csl").write_text(
        layout.replace('"pe_program.csl"', '"more/pe_program.csl"')
    )
    more = "--arch wse3 --params=n:5 --colors=tag:9 --width-west-buf=0 --width-east-buf=0 --verbose --import-path more "
    more += "--fp16-format=bf16 --max-inlined-iterations=100 --max-parallelism=2 -g0 --out-routes --output-json"
    done = cslc(tmp_path, more=more.split())
    rows = [line.split() for line in done.stdout.splitlines() if line[:1] == " "]
    assert ["0", "0", "9", "WEST", "EAST", "RAMP", "pos1", "rx", "RAMP;", "ring;"] in rows, (
        done.stdout
    )
    assert json.loads((tmp_path / "out.json").read_text())["params"]["n"] == "5"
    done = cslc(
        tmp_path,
        more=["--params=n:5", "--colors", "tag:9", "--output-json=named.json", "-o=second"],
    )
    assert (tmp_path / "second" / "out.json").exists()
    assert (tmp_path / "named.json").read_text() == (tmp_path / "second/out.json").read_text()
    assert "pos1" not in done.stdout
    refused = cslc(tmp_path, more=["--arch=wse9"], check=False)
    assert refused.returncode == 2 and "wse9" in refused.stderr


def test_errors_are_a_compilers(tmp_path):
    layout, pe = seed_texts()
    (tmp_path / "layout.csl").write_text(layout)
    (tmp_path / "pe_program.csl").write_text(
        pe.replace("x[i]", "z[i]").replace("y_dsd, b_dsd", "y_dsd, c")
    )
    done = cslc(tmp_path, check=False)
    assert done.returncode == 1
    assert "pe_program.csl:" in done.stderr and "^" in done.stderr
    assert '"z"' in done.stderr and '"c"' in done.stderr  # several per run
    assert not (tmp_path / "out").exists()
    assert cslc(tmp_path, layout="none.csl", check=False).returncode == 2


def test_a_killed_compiler_leaves_nothing_that_looks_whole(tmp_path):
    layout = (
        seed_texts()[0]
        .replace("@set_rectangle(1, 1);", "@set_rectangle(700, 700);")
        .replace(
            '@set_tile_code(0, 0, "pe_program.csl", .{ .memcpy_params = memcpy.get_params(0) });',
            "for (@range(u16, 700)) |i| { for (@range(u16, 700)) |j| { @set_tile_code(i, j, "
            '"pe_program.csl", .{ .memcpy_params = memcpy.get_params(i) }); } }',
        )
    )
    (tmp_path / "layout.csl").write_text(layout)
    (tmp_path / "pe_program.csl").write_text(seed_texts()[1])
    code = "import sys; from weft.wse_tools import cslc_main; sys.exit(cslc_main())"
    for delay in (0.6, 1.2, 2.0):
        process = subprocess.Popen(
            [sys.executable, "-c", code, "layout.csl", "-o", "out", "--memcpy"],
            cwd=tmp_path,
            env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (tmp_path / "out").exists():  # it had finished: then it must be whole
            SdkRuntime(str(tmp_path / "out"))
        else:
            with pytest.raises(wse.WseError) as caught:
                SdkRuntime(str(tmp_path / "out"))
            assert caught.value.code.startswith("wse.artifact")


# ---- SdkRuntime


def test_no_hardware_stands_behind_an_address(tmp_path):
    out = compiled(tmp_path, *seed_texts())
    for address in ("10.0.0.1:9000", "cs2"):
        with pytest.raises(weft.DeviceError) as caught:
            SdkRuntime(out, cmaddr=address)
        assert caught.value.code == "wse.runtime.hardware" and address in str(caught.value)
    for nothing in (None, ""):
        SdkRuntime(out, cmaddr=nothing)
    with pytest.raises(weft.DeviceError):
        SdkRuntime(out, get_platform("10.0.0.1:9000", SimfabConfig(), SdkTarget.WSE2))
    with pytest.raises(wse.WseDeviceError):
        debug_util(out, cmaddr="10.0.0.1:9000")


def test_columns_strides_and_names_of_the_documentation(tmp_path):
    from cerebras.sdk.runtime import sdkruntimepybind as pybind

    (tmp_path / "pe.csl").write_text("""
param memcpy_params: comptime_struct;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
var v = @zeros([2]u32); var p: [*]u32 = &v;
comptime { @export_symbol(p, "v"); }
""")
    (tmp_path / "layout.csl").write_text("""
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 6, .height = 3 });
layout {
  @set_rectangle(6, 3);
  for (@range(u16, 6)) |x| { for (@range(u16, 3)) |y| { @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x) }); } }
  @export_name("v", [*]u32, true);
}
""")
    wse.compile_csl(
        str(tmp_path / "layout.csl"),
        str(tmp_path / "out"),
        memcpy=True,
        fabric_dims=(13, 5),
        fabric_offsets=(4, 1),
    )
    platform = pybind.get_simulator(target=pybind.SdkTarget.WSE2)
    assert platform.is_simulation() and not platform.is_system()
    runner = wse.SdkRuntime(pybind.SdkCompileArtifacts(str(tmp_path / "out")), platform)
    runner.load()
    runner.run()
    words = np.arange(1, 9, dtype=np.uint32).reshape(-1, 1)  # a column is taken as it is
    runner.memcpy_h2d_stride(
        runner.get_id("v"), words, 1, 0, 5, 3, 2, row_stride=3, col_stride=2, **COPY
    )
    back = np.zeros((36, 1), np.uint32)
    runner.memcpy_d2h(back, runner.get_id("v"), 0, 0, 6, 3, 2, **COPY)
    want = np.zeros((3, 6, 2), np.uint32)
    want[0::2, 1::3] = np.arange(1, 9).reshape(2, 2, 2).transpose(1, 0, 2)
    np.testing.assert_array_equal(back.reshape(3, 6, 2), want)
    for code, array, strides in [
        ("wse.memcpy.stride", words, (0, 1)),
        ("wse.memcpy.size", words, (1, 1)),
    ]:
        with pytest.raises(ValueError) as caught:
            runner.memcpy_h2d_stride(runner.get_id("v"), array, 1, 0, 5, 3, 2, *strides, **COPY)
        assert caught.value.code == code and "memcpy_h2d_stride" in str(caught.value)
    runner._call("stop")
    np.testing.assert_array_equal(memcpy_view(np.array([0x102, 3], np.uint32), np.uint8), [2, 3])
    layout = pybind.SdkLayout(pybind.SdkTarget.WSE3, msg_level="INFO")
    regions = [layout.create_code_region(str(tmp_path / "pe.csl"), n, 2, 1) for n in "ab"]
    assert layout.hstack(regions, wse.IntVector(3, 4)) == 4
    assert [r._data["x"] for r in regions] == [3, 5]
    assert layout.vstack(regions) == 2
    color = regions[0].color("c", 7)
    assert (color.get_value(), color.get_local_param_name(), color.get_global_name()) == (
        7,
        "c",
        "a_c",
    )
    assert pybind.FP16TYPE.BF16 != pybind.FP16TYPE.F16
    assert isinstance(regions[0], pybind.CodeRegion)
    for name in ("PortHandle", "EdgeRouteInfo"):
        assert isinstance(getattr(pybind, name), type)


def test_wrong_calls_name_what_is_legal(tmp_path):
    runner = started(compiled(tmp_path, *seed_texts()))
    with pytest.raises(wse.WseError, match="A"):
        runner.get_id("a")
    A = runner.get_id("A")

    def refused(code, call):
        with pytest.raises(ValueError) as caught:
            call()
        assert caught.value.code == code, caught.value

    ok = np.zeros(24, np.float32)
    runner.memcpy_h2d(A, np.arange(24, dtype=np.float32).reshape(2, 3, 4), 0, 0, 1, 1, 24, **COPY)
    back = np.zeros((4, 6), np.float32)
    runner.memcpy_d2h(back, A, 0, 0, 1, 1, 24, **COPY)
    np.testing.assert_array_equal(back.ravel(), np.arange(24))
    refused(
        "wse.memcpy.strides",
        lambda: runner.memcpy_h2d(A, ok.reshape(4, 6).T, 0, 0, 1, 1, 24, **COPY),
    )
    refused("wse.memcpy.dtype", lambda: runner.memcpy_h2d(A, np.zeros(24), 0, 0, 1, 1, 24, **COPY))
    refused("wse.memcpy.strides", lambda: runner.memcpy_h2d(A, ok[::2], 0, 0, 1, 1, 12, **COPY))
    refused("wse.memcpy.array", lambda: runner.memcpy_h2d(A, [1.0], 0, 0, 1, 1, 1, **COPY))
    frozen = ok.copy()
    frozen.flags.writeable = False
    refused("wse.memcpy.readonly", lambda: runner.memcpy_d2h(frozen, A, 0, 0, 1, 1, 24, **COPY))
    for call in (
        lambda: runner.memcpy_h2d(A, ok[:23], 0, 0, 1, 1, 24, **COPY),  # too few elements
        lambda: runner.memcpy_h2d(A, ok, 1, 0, 1, 1, 24, **COPY),  # outside the rectangle
        lambda: runner.memcpy_h2d(A, ok, 0, 0, 2, 1, 12, **COPY),
        lambda: runner.memcpy_h2d(99, ok, 0, 0, 1, 1, 24, **COPY),
        lambda: runner.launch("init_and_compute", np.float32(1)),  # no argument is declared
        lambda: runner.launch("init_and_compute", np.complex64(1)),
        lambda: runner.launch("init_and_compute", 2**70),
    ):
        with pytest.raises(wse.WseError):
            call()
    with pytest.raises(wse.WseValueError):
        SdkRuntime(str(tmp_path / "out"), simfab_numthreads=65)
    runner.stop()


def test_tasks_of_nonblocking_operations(tmp_path, rng):
    runner = started(compiled(tmp_path, *resetting(M, N)))
    A, x, b = (rng.standard_normal(n).astype(np.float32) for n in (M * N, N, M))
    y = np.zeros(M, np.float32)
    tasks = [
        runner.memcpy_h2d(runner.get_id(n), v, 0, 0, 1, 1, v.size, nonblock=True, **COPY)
        for n, v in (("A", A), ("x", x), ("b", b))
    ]
    tasks.append(runner.launch("init_and_compute", nonblock=True))
    tasks.append(runner.memcpy_d2h(y, runner.get_id("y"), 0, 0, 1, 1, M, nonblock=True, **COPY))
    runner.task_wait(tasks[-1])
    assert all(runner.is_task_done(t) for t in tasks)
    np.testing.assert_allclose(y, A.reshape(M, N) @ x + b, rtol=1e-4)
    with pytest.raises(wse.WseError):
        runner.task_wait(wse.Task(12345))
    runner.stop()


def test_helpers_pack_and_view():
    values = np.arange(6, dtype=np.float16)
    words = input_array_to_u32(values, 0, 3)
    assert list(words >> 16) == [0, 1, 2, 0, 1, 2]
    np.testing.assert_array_equal(memcpy_view(words, np.float16), values)
    assert calculate_cycles(np.array([1, 0, 0, 0, 1, 0], np.uint16)) == 65535
    with pytest.raises(ValueError):
        memcpy_view(np.zeros(2, np.float64), np.float16)
    with pytest.raises(ValueError):
        input_array_to_u32(np.zeros(2), None, 2)


# ---- SdkLayout


def test_layout_classes_route_and_stream(tmp_path):
    code = """
param rx: color;
param tx: color;
param offset: u16;
const rx_iq = @get_input_queue(2);
const tx_oq = @get_output_queue(3);
export var seen: u32 = 0;
const in = @get_dsd(fabin_dsd, .{ .extent = 8, .fabric_color = rx, .input_queue = rx_iq });
const out = @get_dsd(fabout_dsd, .{ .extent = 8, .fabric_color = tx, .output_queue = tx_oq });
var buffer = @zeros([8]u32);
const mem = @get_dsd(mem1d_dsd, .{ .base_address = &buffer, .extent = 8 });
task got() void { for (@range(u16, 8)) |k| { buffer[k] += @as(u32, offset); seen += buffer[k]; } @mov32(out, mem, .{ .async = true }); }
task main() void { @mov32(mem, in, .{ .async = true, .activate = got }); }
comptime {
  @bind_local_task(main, @get_local_task_id(9)); @bind_local_task(got, @get_local_task_id(10)); @activate(@get_local_task_id(9));
  @initialize_queue(rx_iq, .{ .color = rx });
  if (@is_arch("wse3")) @initialize_queue(tx_oq, .{ .color = tx });
}
"""
    (tmp_path / "add.csl").write_text(code)
    platform = get_platform(None, SimfabConfig(num_threads=1), SdkTarget.WSE2)
    layout = SdkLayout(platform)
    regions, ports = [], []
    for k, place in enumerate(((2, 2), (7, 4))):
        region = layout.create_code_region(str(tmp_path / "add.csl"), f"add{k}", 1, 1)
        rx, tx = Color(f"rx{k}"), Color(f"tx{k}")
        region.set_param_all(rx) if False else region.set_param_all("rx", rx)
        region.set_param_all("tx", tx)
        region.set_param_all("offset", 100 * (k + 1))
        into = region.create_input_port(
            rx, Edge.LEFT, [RoutingPosition().set_output([Route.RAMP])], 8
        )
        outof = region.create_output_port(
            tx, Edge.RIGHT, [RoutingPosition().set_input([Route.RAMP])], 8
        )
        region.place(*place)
        regions.append(region)
        ports.append((into, outof))
    layout.connect(ports[0][1], ports[1][0])
    source = layout.create_input_stream(ports[0][0])
    sink = layout.create_output_stream(ports[1][1])
    artifacts = layout.compile(out_prefix=str(tmp_path / "out"))
    runner = SdkRuntime(artifacts, platform, memcpy_required=False)
    runner.load()
    runner.run()
    data, back = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
    handle = runner.receive(sink, back, 8, nonblock=True)
    runner.send(source, data, nonblock=True)
    runner.task_wait(handle)
    runner.stop()
    np.testing.assert_array_equal(back, data + 300)
    assert runner.read_symbol(7, 4, "seen", np.uint32)[0] == int((data + 300).sum())
    assert IntVector(1, 2) is not None


# ---- the device


def test_tensor_program_shows_its_csl(rng):
    from weft import te

    A = te.placeholder((12, 20), "float32", name="A")
    x = te.placeholder((20,), "float32", name="x")
    k = te.reduce_axis(20, name="k")
    y = te.compute((12,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    module = weft.build(te.create_prim_func([A, x, y]), target="wse:4x4")
    text = module.source()
    assert "@set_rectangle" in text and "@fmac" in text
    device = weft.device("wse:4x4")
    a, v = rng.random((12, 20), np.float32), rng.random(20, np.float32)
    out = weft.zeros((12,), dtype="float32", device=device)
    module["main"](weft.asarray(a, device=device), weft.asarray(v, device=device), out)
    np.testing.assert_allclose(out.numpy(), a @ v, rtol=1e-5)
    assert device.stats()["cycles"] > 0


# ---- pictures, links, traces, engines


def test_options_outside_their_range(tmp_path):
    out = compiled(tmp_path, *seed_texts())
    with pytest.raises(wse.WseError) as caught:
        compiled(tmp_path, *seed_texts(), channels=17)
    assert caught.value.code == "wse.cslc.channels"
    with pytest.raises(wse.WseError) as caught:
        SdkRuntime(out, simfab_numthreads=0)
    assert caught.value.code == "wse.runtime.threads"
    runner = started(out)
    with pytest.raises(wse.WseError) as caught:
        runner.launch("init_and_compute", np.complex64(1))
    assert caught.value.code == "wse.launch.type"
    with pytest.raises(weft.Error) as caught:
        weft.device("wse:2x2,threads=99").synchronize()
    assert caught.value.code == "wse.option.threads"


def test_limits_of_the_compiler(tmp_path):
    """Copies larger than a PE's memory, and functions instantiated without end."""
    layout = 'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    task = """
const main_id = @get_local_task_id(8);
task main_task() void { %s }
comptime { @bind_local_task(main_task, main_id); @activate(main_id); }
"""
    halves = "var a = @zeros([40000]u16); var b = @zeros([40000]u16);"
    for code, text, program in [
        ("wse.csl.memory.copy", "a copy of 80000 bytes exceeds", halves + task % "a = b;"),
        (
            "wse.csl.call.instances",
            "more than 30,000 function instances",
            "var g: u16 = 0; fn f(comptime n: u32) void { g = @as(u16, n & 3); }"
            + task % "comptime var k: u32 = 0; inline while (k < 30010) : (k += 1) { f(k); }",
        ),
    ]:
        with pytest.raises(weft.Error) as caught:
            compiled(tmp_path, layout, program, pe_name="pe.csl")
        assert caught.value.code == code and text in str(caught.value)
