# SPDX-License-Identifier: Apache-2.0
"""What a run of a wafer program depends on: SDK versions, orders of tasks, platforms, objects and their neighbours."""

import json
import pathlib
import re
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "compat" / "cerebras"))
import weft  # noqa: E402
from present import wafer  # noqa: E402

wse = wafer()

from weft.wse import (  # noqa: E402
    Color,
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

COPY = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, data_type=MemcpyDataType.MEMCPY_32BIT)


def test_layout_classes_give_colors_as_numbers_and_positions_that_build_on_each_other(tmp_path):
    sender = """
param c: u16;
const ctrl = @import_module("<control>");
const q = @get_output_queue(3);
const word = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(c), .output_queue = q });
const command = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(c), .output_queue = q, .control = true });
task main() void {
  for (@range(u32, 3)) |k| {
    @mov32(word, k + 1);
    @mov32(command, ctrl.encode_single_payload(ctrl.opcode.SWITCH_ADV, true, {}, 0));
  }
}
comptime {
  @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9));
  if (@is_arch("wse3")) @initialize_queue(q, .{ .color = @get_color(c) });
}
"""
    receiver = """
param c: u16;
export var seen = @zeros([3]u32);
var n: u16 = 0;
const q = @get_input_queue(2);
task take(x: u32) void { seen[n] = x; n += 1; }
comptime {
  if (@is_arch("wse3")) { @initialize_queue(q, .{ .color = @get_color(c) }); @bind_data_task(take, @get_data_task_id(q)); }
  else { @bind_data_task(take, @get_data_task_id(@get_color(c))); }
}
"""
    (tmp_path / "send.csl").write_text(sender)
    (tmp_path / "receive.csl").write_text(receiver)
    for target in SdkTarget:
        platform = get_platform(None, SimfabConfig(), target)
        layout = SdkLayout(platform)
        c = Color("c")
        R = RoutingPosition
        paths = {
            "send": [R().set_input([Route.RAMP]).set_output([Route.EAST])],
            "middle": [
                R().set_input([Route.WEST]).set_output([Route.RAMP]),
                R().set_output([Route.EAST]),
                R().set_input([Route.WEST]),
            ],
            "last": [R().set_input([Route.WEST]).set_output([Route.RAMP])],
        }
        for x, (name, positions) in enumerate(paths.items()):
            file = tmp_path / ("send.csl" if x == 0 else "receive.csl")
            region = layout.create_code_region(str(file), name, 1, 1)
            region.set_param_all("c", c)
            region.paint_all(c, positions)
            region.place(x, 0)
        artifacts = layout.compile(out_prefix=str(tmp_path / f"out{target}"), cslc_prefix="")
        runner = SdkRuntime(artifacts, platform, memcpy_required=False)
        runner.load()
        runner.run()
        runner.stop()
        # The third command finds no further position, so that the third word follows the second.
        assert runner.read_symbol(1, 0, "seen", np.uint32).tolist() == [1, 0, 0]
        assert runner.read_symbol(2, 0, "seen", np.uint32).tolist() == [2, 3, 0]


def test_artifacts_hold_colors_and_copies_may_go_one_word_beyond(tmp_path):
    (tmp_path / "layout.csl").write_text(
        """
param c: color;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) });
  @export_name("a", [*]u32, true);
}
"""
    )
    (tmp_path / "pe.csl").write_text(
        """
param memcpy_params;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
var a = @zeros([4]u32);
export var b = [2]u32 { 5, 6 };
var p: [*]u32 = &a;
comptime { @export_symbol(p, "a"); }
"""
    )
    out = str(tmp_path / "out")
    wse.compile_csl(
        str(tmp_path / "layout.csl"),
        out,
        fabric_dims=(8, 3),
        fabric_offsets=(4, 1),
        colors={"c": 9},
        memcpy=True,
    )
    assert int(json.loads((tmp_path / "out/out.json").read_text())["colors"]["c"]) == 9
    for threads in (None, 2):
        config = SimfabConfig(suppress_trace=True)
        platform = get_platform(None, config, SdkTarget.WSE2)
        runner = SdkRuntime(out, platform, simfab_numthreads=threads)
        runner.load()
        runner.run()
        back = np.zeros(5, np.uint32)
        runner.memcpy_d2h(back, runner.get_id("a"), 0, 0, 1, 1, 5, **COPY)
        assert back.tolist() == [0, 0, 0, 0, 5]  # objects lie as they are declared
        with pytest.raises(ValueError, match="has 16 bytes"):
            runner.memcpy_d2h(np.zeros(6, np.uint32), runner.get_id("a"), 0, 0, 1, 1, 6, **COPY)
        with pytest.warns(RuntimeWarning, match='"a" has 16 bytes in "a", a copy moves 20'):
            runner.stop()


def test_halves_copied_into_words_are_a_warning(tmp_path):
    (tmp_path / "layout.csl").write_text(
        'const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 }); layout { @set_rectangle(1, 1); '
        '@set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) }); @export_name("a", [*]f32, true); }'
    )
    (tmp_path / "pe.csl").write_text(
        'param memcpy_params; const sys = @import_module("<memcpy/memcpy>", memcpy_params); var a = @zeros([4]f32); '
        'var p: [*]f32 = &a; comptime { @export_symbol(p, "a"); }'
    )
    out = str(tmp_path / "out")
    place = dict(fabric_dims=(8, 3), fabric_offsets=(4, 1))
    wse.compile_csl(str(tmp_path / "layout.csl"), out, memcpy=True, **place)
    runner = SdkRuntime(out)
    runner.load()
    runner.run()
    halves = COPY | {"data_type": MemcpyDataType.MEMCPY_16BIT}
    runner.memcpy_h2d(runner.get_id("a"), np.zeros(4, np.uint32), 0, 0, 1, 1, 4, **halves)
    with pytest.warns(RuntimeWarning, match=r"\[\*\]f32 is copied as MEMCPY_16BIT"):
        runner.stop()


def test_appliance_scripts_compile_and_run_on_the_simulator(tmp_path):
    from cerebras.sdk.client import SdkCompiler, SdkRuntime as ApplianceRuntime

    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text("export var x: u16 = 5; comptime { x = 6; }")
    with SdkCompiler() as compiler, pytest.raises(ValueError) as caught:
        compiler.compile(tmp_path, "layout.csl", "-o out", tmp_path)
    assert caught.value.code == "wse.client.compile"
    (tmp_path / "pe.csl").write_text(
        "export var x: u16 = 5; task t() void { x += 1; } comptime { @bind_local_task(t, "
        "@get_local_task_id(9)); @activate(@get_local_task_id(9)); }"
    )
    with SdkCompiler(disable_version_check=True) as compiler:
        artifact = compiler.compile(tmp_path, "layout.csl", "--arch=wse3 -o out", tmp_path)
    with pytest.raises(wse.WseError, match="simulator=True") as caught:
        ApplianceRuntime(artifact)
    assert caught.value.code == "wse.client.system"
    with ApplianceRuntime(artifact, simulator=True) as runner:
        pass
    assert runner.read_symbol(0, 0, "x", "uint16")[0] == 6


def test_cslc_looks_for_modules_where_the_environment_says(tmp_path, monkeypatch, capsys):
    from weft_wse.compiler import cslc_main

    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/half.csl").write_text("fn half(x: u16) u16 { return x / 2; }")
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text(
        'const h = @import_module("<half>"); export var x: u16 = h.half(12);'
    )
    command = [str(tmp_path / "layout.csl"), "-o", str(tmp_path / "out")]
    monkeypatch.setenv("CSL_IMPORT_PATH", "")
    assert cslc_main(command) == 1
    assert "there is no library module <half>" in capsys.readouterr().err
    monkeypatch.setenv("CSL_IMPORT_PATH", f"{tmp_path / 'nowhere'}:{tmp_path / 'shared'}")
    assert cslc_main(command) == 0
    assert json.loads((tmp_path / "out/out.json").read_text())["params"] == {}


def test_appliance_scripts_import_what_the_sdk_names():
    from cerebras.appliance import logger
    from cerebras.appliance.pb.sdk import sdk_common_pb2
    from cerebras.sdk.client import debug_util, sdk_utils

    assert logger.name.startswith("cerebras")
    assert sdk_common_pb2.MemcpyDataType is wse.MemcpyDataType
    assert sdk_common_pb2.MemcpyOrder is wse.MemcpyOrder
    assert sdk_utils.memcpy_view(np.zeros(2, np.uint32), np.float16).shape == (2,)
    assert callable(debug_util.debug_util)


def test_launchers_run_commands_beside_the_program(tmp_path):
    from cerebras.sdk.client import SdkCompiler, SdkLauncher

    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text("export var x: u16 = 5; comptime { @comptime_assert(true); }")
    with SdkCompiler() as compiler:
        artifact = compiler.compile(
            codedir=str(tmp_path), layout="layout.csl", args="-o out", outdir=str(tmp_path)
        )
    (tmp_path / "run.py").write_text(
        "import argparse\n"
        "from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime\n"
        "p = argparse.ArgumentParser(); p.add_argument('--name'); p.add_argument('--cmaddr')\n"
        "a = p.parse_args()\n"
        "r = SdkRuntime(a.name, cmaddr=a.cmaddr, memcpy_required=False); r.load(); r.run(); r.stop()\n"
        "x = int(r.read_symbol(0, 0, 'x', 'uint16')[0])\n"
        "open('result.txt', 'w').write(str(x)); print('x is', x)\n"
    )
    with pytest.raises(wse.WseError, match="simulator=True"):
        SdkLauncher(artifact, simulator=False)
    with SdkLauncher(artifact, simulator=True, disable_version_check=True) as launcher:
        (tmp_path / "more.txt").write_text("staged")
        launcher.stage(tmp_path / "more.txt")
        assert launcher.run("cat more.txt") == "staged"
        said = launcher.run("echo BEGIN", 'cs_python run.py --name out --cmaddr "%CMADDR%"')
        assert said.split() == ["BEGIN", "x", "is", "5"]
        assert launcher.run("cs_python run.py --name out --cmaddr %CMADDR%").endswith("5\n")
        written = launcher.download_artifact("result.txt", str(tmp_path))
        assert open(written).read() == "5"
        deeper = launcher.download_artifact("result.txt", str(tmp_path / "new/result.txt"))
        assert open(deeper).read() == "5"
        assert launcher.download_artifact("out", str(tmp_path / "kept")).endswith("kept.tar.gz")
        with pytest.raises(wse.WseError, match="ended with status 3") as caught:
            launcher.run("echo why; exit 3")
        assert caught.value.code == "wse.client.run" and "why" in str(caught.value)
        with pytest.raises(wse.WseError, match="no file 'absent.txt'"):
            launcher.download_artifact("absent.txt", ".")
        with pytest.raises(wse.WseError, match="to stage"):
            launcher.stage(tmp_path / "absent.txt")
    with pytest.raises(wse.WseError, match="with SdkLauncher"):
        launcher.run("true")


ORDER = """
export var first: u16 = 0;
task a() void { if (first == 0) first = 1; }
task b() void { if (first == 0) first = %s; }
comptime {
  @bind_local_task(a, @get_local_task_id(9)); @bind_local_task(b, @get_local_task_id(10));
  @activate(@get_local_task_id(9)); @activate(@get_local_task_id(10));
}
"""


DEPTH_SENDER = """
param data: color; param mark: color;
const data_q = @get_output_queue(2); const mark_q = @get_output_queue(3);
const words = @zeros([20]u32);
const out = @get_dsd(fabout_dsd, .{ .extent = 20, .fabric_color = data, .output_queue = data_q });
const last = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = mark, .output_queue = mark_q });
var zero = @zeros([20]u32);
const from = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{20} -> zero[i] });
task go() void { @mov32(out, from, .{ .async = true, .activate = sent }); }
task sent() void { @mov32(last, @as(u32, 1)); }
comptime {
  @bind_local_task(go, @get_local_task_id(9)); @bind_local_task(sent, @get_local_task_id(10)); @activate(@get_local_task_id(9));
}
"""
DEPTH_RECEIVER = """
param data: color; param mark: color;
export var first: u16 = 0;
var waste: u16 = 0;
task word(x: u32) void { if (first == 0) first = 1; }
task marked(x: u32) void { if (first == 0) first = 2; }
task busy() void { for (@range(u16, 500)) |i| { waste += i; } @unblock(data); }
comptime {
  @bind_data_task(word, @get_data_task_id(data)); @bind_data_task(marked, @get_data_task_id(mark)); @block(data);
  @bind_local_task(busy, @get_local_task_id(9)); @activate(@get_local_task_id(9));
}
"""


def test_results_that_depend_on_the_depth_of_routers_are_found(tmp_path, monkeypatch, capsys):
    """Twenty wavelets find room on the way to a busy PE only where routers are deep."""
    from weft.wse_tools import cslc_main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "layout.csl").write_text("""
const cs = .{ .data = @get_color(3), .mark = @get_color(2) };
layout {
  @set_rectangle(2, 1); @set_tile_code(0, 0, "send.csl", cs); @set_tile_code(1, 0, "take.csl", cs);
  @set_color_config(0, 0, cs.data, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(0, 0, cs.mark, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(1, 0, cs.data, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  @set_color_config(1, 0, cs.mark, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
}""")
    (tmp_path / "send.csl").write_text(DEPTH_SENDER)
    (tmp_path / "take.csl").write_text(DEPTH_RECEIVER)
    assert cslc_main(["layout.csl", "-o", "out", "--perturb", "5"]) == 1
    text = capsys.readouterr().out
    assert re.search("the result depends on .*the depth of routers", text), text
    for depth, first in ((2, 1), (12, 2)):
        runner = SdkRuntime("out", memcpy_required=False, router_depth=depth)
        runner.load()
        runner.run()
        runner.stop()
        assert runner.read_symbol(1, 0, "first", "u2")[0] == first
    with pytest.raises(ValueError, match="router_depth is 13; legal are 1 to 12") as caught:
        SdkRuntime("out", memcpy_required=False, router_depth=13)
    assert caught.value.code == "wse.runtime.router_depth"


def test_results_that_depend_on_the_order_of_tasks_are_found(tmp_path, monkeypatch, capsys):
    from weft.wse_tools import cs_python_main, cslc_main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    script = (
        "from weft import wse\nr = wse.SdkRuntime('out', memcpy_required=False)\n"
        "r.load(); r.run(); r.stop(); print(r.read_symbol(0, 0, 'first', 'uint16')[0])\n"
    )
    (tmp_path / "run.py").write_text(script)
    for value, status in (("2", 1), ("1", 0)):
        (tmp_path / "pe.csl").write_text(ORDER % value)
        assert cslc_main(["layout.csl", "-o", "out", "--perturb", "5"]) == status
        text = capsys.readouterr().out
        assert ("ANOTHER RESULT" in text) == bool(status) and "highest-first" in text
        found = re.search(
            r"'first of PE \(0, 0\): (\w+)' became 'first of PE \(0, 0\): (\w+)'", text
        )
        assert bool(found) == bool(status) and (not found or found[1] != found[2]), text
        assert cs_python_main(["--perturb", "5", "run.py"]) == status
        text = capsys.readouterr().out
        assert ("depends on the order" in text) == bool(status)
        assert bool(re.search(r"^  '(\d+)' became '(?!\1')\d+'$", text, re.M)) == bool(status)
    assert cslc_main(["layout.csl", "-o", "out", "--memcpy", "--perturb", "5"]) == 2
    with pytest.raises(ValueError, match="task_order") as caught:
        SdkRuntime("out", memcpy_required=False, task_order="any")
    assert caught.value.code == "wse.runtime.task_order"
    with pytest.raises(SystemExit):
        cslc_main(["layout.csl", "--sdk-version", "3"])
    with pytest.raises(ValueError) as caught:
        wse.compile_csl("layout.csl", "out", sdk_version="3")
    assert caught.value.code == "wse.cslc.sdk_version"


POLL = """
export var rounds: u32 = 0; var ended: bool = false;
task work() void { ended = true; }
task poll() void { rounds += 1; if (!ended) @activate(@get_local_task_id(12)); }
comptime {
  @bind_local_task(work, @get_local_task_id(9)); @activate(@get_local_task_id(9));
  @bind_local_task(poll, @get_local_task_id(12)); @activate(@get_local_task_id(12));
}
"""


def test_a_task_that_keeps_another_from_running_is_found(tmp_path, monkeypatch, capsys):
    """A task that activates itself until another one has run: where the highest id goes first, it never does."""
    from weft.wse_tools import cs_python_main, cslc_main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text(POLL)
    (tmp_path / "run.py").write_text(
        "from weft import wse\nr = wse.SdkRuntime('out', memcpy_required=False)\n"
        "r.load(); r.run(); r.stop(); print('ended')\n"
    )
    assert cslc_main(["layout.csl", "-o", "out", "--perturb", "5"]) == 1
    for text in (capsys.readouterr().out, None):
        if text is None:  # the same by a host script
            assert cs_python_main(["--perturb", "5", "run.py"]) == 1
            text = capsys.readouterr().out
        row = r"^highest-first +does not end +ANOTHER RESULT\n +.*error\[wse.limit.cycles\]"
        assert re.search(row, text, re.M), text
        assert re.search(r"^router depth 1 +(ended|status 0) +same result$", text, re.M), text
        assert "the result depends on the order of ready tasks" in text
    runner = SdkRuntime("out", memcpy_required=False, task_order="highest-first", cycle_limit=5000)
    runner.load()
    with pytest.raises(wse.WseError) as caught:
        runner.run()
        runner.stop()
    assert caught.value.code == "wse.limit.cycles"
    with pytest.raises(ValueError, match="cycle_limit is -1; legal are 1 and more") as caught:
        SdkRuntime("out", memcpy_required=False, cycle_limit=-1)
    assert caught.value.code == "wse.runtime.cycle_limit"


def test_a_deadlock_names_tasks(tmp_path):
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text(
        """
task held() void {}
task again() void {}
task start() void { @activate(@get_local_task_id(10)); @activate(@get_local_task_id(10)); }
comptime {
  @bind_local_task(start, @get_local_task_id(9)); @activate(@get_local_task_id(9));
  @bind_local_task(held, @get_local_task_id(10)); @block(@get_local_task_id(10));
  @bind_local_task(again, @get_local_task_id(11)); @block(@get_local_task_id(11));
}
"""
    )
    wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"))
    runner = SdkRuntime(str(tmp_path / "out"), memcpy_required=False)
    runner.load()
    runner.run()
    runner.stop()
    text = "\n".join(runner.waiting())
    assert "activated and blocked: local task 10 (held)" in text
    assert "blocked, not activated: local task 11 (again)" in text
    assert "activated again before it ran, hence once for several: local task 10 (held)" in text


def test_a_platform_that_wants_a_trace_gets_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text("comptime {}")
    wse.compile_csl("layout.csl", "out")
    for suppress in (True, False):
        platform = get_platform(None, SimfabConfig(suppress_trace=suppress), SdkTarget.WSE2)
        runner = SdkRuntime("out", platform, memcpy_required=False)
        runner.load()
        runner.run()
        runner.stop()
        assert (tmp_path / "simfab_traces/trace.json").exists() != suppress


def test_a_build_without_the_simulator_is_an_error_of_ours(monkeypatch):
    from weft_wse import library

    monkeypatch.setattr(library.ctypes, "CDLL", lambda path: object())
    with pytest.raises(weft.DeviceError) as caught:
        library.Library().get()
    assert caught.value.code == "wse.library" and isinstance(caught.value, ImportError)
    assert "was built without the target wse" in str(caught.value)
    assert "help: configure the build with WEFT_TARGETS empty" in str(caught.value)
