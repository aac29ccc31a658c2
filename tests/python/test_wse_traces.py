# SPDX-License-Identifier: Apache-2.0
"""What a run of the wafer leaves for people: traces, logs, pictures, the traffic of links."""

import json

import numpy as np
import pytest

from test_wse import (
    COPY,
    ROOT,
    MemcpyDataType,
    MemcpyOrder,
    calculate_cycles,
    compiled,
    debug_util,
    get,
    input_array_to_u32,
    memcpy_view,
    started,
    wse,
)

RING = """
param memcpy_params: comptime_struct;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
const trace = @import_module("<debug>", .{ .key = "steps", .buffer_size = 60 });
const print = @import_module("<simprint>");
const place = @import_module("<layout>");
const time = @import_module("<time>");
export var half: [6]f16 = [6]f16 { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 };
export var word: u32 = 77;
var stamps = @zeros([6]u16);
var p: [*]f16 = &half;
var q: [*]u16 = &stamps;
fn scale(k: f16, n: u16) void {
  time.enable_tsc();
  time.get_timestamp(@ptrcast(*[3]u16, &stamps[0]));
  trace.trace_string("scale");
  trace.trace_u16(n);
  trace.trace_i16(-3);
  trace.trace_f32(2.5);
  for (@range(u16, n)) |i| { half[i] *= k; }
  word += @as(u32, place.get_x_coord());
  trace.trace_u32(word);
  time.get_timestamp(@ptrcast(*[3]u16, &stamps[3]));
  print.fmt("PE {} scaled {}", .{ place.get_x_coord(), n });
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(p, "half"); @export_symbol(q, "stamps"); @export_symbol(scale); }
"""
RING_LAYOUT = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 3, .height = 1 });
layout {
  @set_rectangle(3, 1);
  for (@range(u16, 3)) |x| { @set_tile_code(x, 0, "pe_program.csl", .{ .memcpy_params = memcpy.get_params(x) }); }
  @export_name("half", [*]f16, true);
  @export_name("stamps", [*]u16, false);
  @export_name("scale", fn(f16, u16)void);
}
"""


def test_sixteen_bits_traces_and_logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = compiled(tmp_path, RING_LAYOUT, RING, dims=(10, 3))
    runner = started(out)
    values = np.arange(18, dtype=np.float16)
    packed = input_array_to_u32(values, None, 6)
    runner.memcpy_h2d(
        runner.get_id("half"),
        packed,
        0,
        0,
        3,
        1,
        6,
        streaming=False,
        order=MemcpyOrder.ROW_MAJOR,
        data_type=MemcpyDataType.MEMCPY_16BIT,
    )
    for arguments, says in [
        ((2.0, 4.5), "argument 1 is the float 4.5; u16 is declared"),
        ((2.0, np.float16(4)), "argument 1 is the float 4.0; u16 is declared"),
        ((2.0, 70000), "argument 1 is 70000, which is no u16"),
    ]:
        with pytest.raises(ValueError, match=says) as caught:
            runner.launch("scale", *arguments)
        assert caught.value.code == "wse.launch.type"
    runner.launch("scale", np.float16(2), np.uint16(4), nonblock=False)
    back = np.zeros(18, np.uint32)
    runner.memcpy_d2h(
        back,
        runner.get_id("half"),
        0,
        0,
        3,
        1,
        6,
        streaming=False,
        order=MemcpyOrder.ROW_MAJOR,
        data_type=MemcpyDataType.MEMCPY_16BIT,
    )
    stamps = np.zeros(18, np.uint32)
    runner.memcpy_d2h(
        stamps,
        runner.get_id("stamps"),
        0,
        0,
        3,
        1,
        6,
        streaming=False,
        order=MemcpyOrder.ROW_MAJOR,
        data_type=MemcpyDataType.MEMCPY_16BIT,
    )
    runner.stop()
    want = values.reshape(3, 6).copy()
    want[:, :4] *= 2
    np.testing.assert_array_equal(memcpy_view(back, np.float16).reshape(3, 6), want)
    cycles = calculate_cycles(memcpy_view(stamps, np.uint16)[:6])
    assert 10 < cycles < 2000
    look = debug_util(out)
    assert look.read_trace(4, 1, "steps") == ["scale", 4, -3, 2.5, 77]
    assert look.read_trace(6, 1, "steps")[-1] == 79
    np.testing.assert_array_equal(look.get_symbol(5, 1, "half", np.float16), want[1])
    rect = look.get_symbol_rect(((4, 1), (3, 1)), "word", np.uint32)
    np.testing.assert_array_equal(rect.ravel(), [77, 78, 79])
    log = (tmp_path / "sim.log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in log] == [f"PE {x} scaled 4" for x in range(3)]
    assert all(line.startswith("@") for line in log)
    assert runner.coord_logical_to_physical((2, 0)) == (6, 1)
    runner.dump_core(str(tmp_path / "core.json"))
    assert json.loads((tmp_path / "core.json").read_text())["cycles"] > 0


def test_links_traces_and_pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layout, pe = (ROOT / "examples/wse/gemv/layout.csl"), (ROOT / "examples/wse/gemv/pe.csl")
    for f in (layout, pe):
        (tmp_path / f.name).write_text(f.read_text())
    out = str(tmp_path / "out")
    params = {"width": 4, "rows": 8, "cols": 3}
    wse.compile_csl(
        str(tmp_path / "layout.csl"),
        out,
        fabric_dims=(11, 3),
        fabric_offsets=(4, 1),
        params=params,
        memcpy=True,
    )
    results = []
    for options in (dict(engine="bytecode"), dict(engine="native"), dict(trace_links=True)):
        runner = started(out, **options)
        A = np.arange(4 * 24, dtype=np.float32)
        runner.memcpy_h2d(runner.get_id("A"), A, 0, 0, 4, 1, 24, **COPY)
        runner.memcpy_h2d(runner.get_id("x"), np.ones(12, np.float32), 0, 0, 4, 1, 3, **COPY)
        runner.launch("multiply", nonblock=False)
        y = get(runner, "y", 8)
        links = runner.link_traffic()
        runner.stop()
        assert links.shape == (1, 4, 4)
        # Partial sums of 8 rows go one hop west from each PE but the first.
        np.testing.assert_array_equal(links[0, :, 1], [0, 8, 8, 8])
        assert links[0, :, [0, 2, 3]].sum() == 0
        assert (runner.stats()["engine.native"] == 0) or options.get("engine") == "native"
        results.append((y.tolist(), runner.cycles()))
    assert results[0] == results[1] and results[0][0] == results[2][0]
    events = json.loads((tmp_path / "simfab_traces/trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    hops = [e for e in events if e.get("name", "").startswith("colour ")]
    assert len(hops) == 24
    for what in ("busy", "traffic", "west"):
        runner.heat_map(tmp_path / f"{what}.svg", what)
        assert (tmp_path / f"{what}.svg").read_text().startswith("<svg")
    runner.heat_map(tmp_path / "busy.png", "busy")
    assert (tmp_path / "busy.png").read_bytes()[:4] == b"\x89PNG"
    untraced = started(out)
    for code, call in (
        ("wse.api.trace", lambda: untraced.save_trace(tmp_path / "t.json")),
        ("wse.api.method", lambda: untraced._call("nothing")),
        ("wse.api.string", lambda: untraced.program_string(4, 1, 999)),
        (
            "wse.api.type",
            lambda: untraced._call(
                "launch",
                {
                    "id": untraced.get_id("multiply"),
                    "args": [1],
                    "types": ["f128"],
                    "nonblock": False,
                },
            ),
        ),
        ("wse.api.links", lambda: untraced._call("links", array=np.zeros(3, np.uint32))),
    ):
        with pytest.raises(wse.WseError) as caught:
            call()
        assert caught.value.code == code
