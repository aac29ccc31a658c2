# SPDX-License-Identifier: Apache-2.0
"""Calls of the host with their arguments by the names that Cerebras documents, and what they print and write."""

import inspect
import json
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "compat" / "cerebras"))
import weft  # noqa: E402
from present import wafer  # noqa: E402

wse = wafer()

from weft.wse_layout import (  # noqa: E402
    Color,
    Edge,
    Route,
    RoutingPosition,
    SdkLayout,
    get_edge_routing,
)

CODE = """
param rx_color: color; param tx_color: color;
const size: i16 = 4;
const rxq = @get_input_queue(2); const txq = @get_output_queue(3);
const in = @get_dsd(fabin_dsd, .{ .extent = size, .input_queue = rxq });
const out = @get_dsd(fabout_dsd, .{ .extent = size, .output_queue = txq });
const go = @get_local_task_id(10);
task main() void { @mov32(out, in, .{ .async = true }); }
comptime {
  @bind_local_task(main, go);
  @activate(go);
  @initialize_queue(rxq, .{ .color = rx_color });
  @initialize_queue(txq, .{ .color = tx_color });
}
"""


def streamed(folder, size=4):
    """A runtime of a program that sends back each of four words, with the names of its ports."""
    (folder / "pe.csl").write_text(CODE)
    layout = SdkLayout(wse.SdkTarget.WSE3)
    region = layout.create_code_region(str(folder / "pe.csl"), "code", 1, 1)
    region.place(2, 1)
    rx, tx = Color("rx"), Color("tx")
    region.set_param_all("rx_color", rx)
    region.set_param_all("tx_color", tx)
    into = RoutingPosition().set_output([Route.RAMP])
    out = RoutingPosition().set_input([Route.RAMP])
    feed = layout.create_input_stream(region.create_input_port(rx, Edge.LEFT, [into], size))
    drain = layout.create_output_stream(region.create_output_port(tx, Edge.RIGHT, [out], size))
    compiled = layout.compile(out_prefix=str(folder / "out"))
    return wse.SdkRuntime(compiled, memcpy_required=False), feed, drain


def test_streams_take_the_documented_names_and_a_part_of_an_array(tmp_path, capsys):
    runner, feed, drain = streamed(tmp_path)
    runner.report_port_infos()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all("color" in line and "PE (" in line for line in lines), lines
    assert [runner.get_port_id(port_name=str(p)) for p in (feed, drain)] in ([0, 1], [1, 0])
    runner.load()
    runner.run()
    got = np.zeros(6, np.uint32)
    runner.send(feed, src=np.arange(5, 14, dtype=np.uint32), n_wavelets=4, nonblock=True)
    task = runner.receive(drain, dest=got, n_wavelets=4, nonblock=True)
    runner.task_wait(task_handle=task)
    assert runner.is_task_done(task_handle=task)
    runner.stop()
    assert got.tolist() == [5, 6, 7, 8, 0, 0]


@pytest.mark.parametrize("call,array", [("send", "src"), ("receive", "dest")])
@pytest.mark.parametrize(
    "count,words", [(5, "5 wavelets, and the array has 4"), (-1, "legal are 0 to 4")]
)
def test_more_wavelets_than_the_array_has(tmp_path, call, array, count, words):
    runner, feed, drain = streamed(tmp_path)
    runner.load()
    runner.run()
    data = {array: np.zeros(4, np.uint32)}
    with pytest.raises(weft.Error, match=words) as caught:
        getattr(runner, call)(feed if call == "send" else drain, n_wavelets=count, **data)
    assert caught.value.code == "wse.stream.size"


def test_the_names_of_arguments():
    names = {
        "memcpy_h2d": ["dest", "src", "px", "py", "w", "h", "elem_per_pe"],
        "memcpy_d2h": ["dest", "src", "px", "py", "w", "h", "elem_per_pe"],
        "memcpy_h2d_rowbcast": ["dest", "src", "px", "py", "w", "h", "elem_per_pe"],
        "memcpy_h2d_colbcast": ["dest", "src", "px", "py", "w", "h", "elem_per_pe"],
        "get_id": ["symbol"],
        "launch": ["symbol"],
        "read_symbol": ["x", "y", "symbol_name", "dtype"],
        "coord_logical_to_physical": ["logical_coords"],
        "dump_core": ["corefile"],
    }
    for method, wanted in names.items():
        found = list(inspect.signature(getattr(wse.SdkRuntime, method)).parameters)[1:]
        assert found[: len(wanted)] == wanted, method


LAYOUT_NAMES = {
    "CodeRegion": {
        "color": ["name", "value"],
        "create_input_port": ["color", "edge", "routes", "data_size", "prefix"],
        "create_output_port": ["color", "edge", "routes", "data_size", "prefix"],
        "paint": ["coord", "color", "routes"],
        "paint_all": ["color", "routes", "edge_routes"],
        "paint_range": ["rect", "color", "routes"],
        "place": ["x", "y"],
        "set_param": ["coord", "name", "value", "color"],
        "set_param_all": ["name", "value", "color"],
        "set_param_range": ["rect", "name", "value", "color"],
        "set_symbol_all": ["symbol", "data", "width", "height"],
    },
    "SdkLayout": {
        "compile": ["out_prefix", "libs", "cslc_prefix", "save_port_map", "f16_type"],
        "connect": ["tx", "rx"],
        "create_code_region": ["source", "name", "width", "height"],
        "create_input_stream": ["port", "io_loc", "io_buffer_size"],
        "create_input_stream_from_loc": ["loc", "color", "prefix"],
        "create_output_stream": ["port", "io_loc", "io_buffer_size"],
        "create_output_stream_from_loc": ["loc", "color", "prefix"],
        "hstack": ["children", "origin"],
        "vstack": ["children", "origin"],
    },
    "RoutingPosition": {
        "set_input": ["routes"],
        "set_output": ["routes"],
        "add_input": ["route"],
        "add_output": ["route"],
        "get_input": [],
        "get_output": [],
    },
    "Color": {
        "__init__": ["name", "value"],
        "get_global_name": [],
        "get_local_param_name": [],
        "get_value": [],
    },
    "SdkCompileArtifacts": {"__init__": ["artifacts_path"]},
    "SimfabConfig": {"__init__": ["num_threads", "suppress_trace", "dump_core", "core_path"]},
}


def test_the_names_of_arguments_of_a_layout():
    from cerebras.sdk.runtime import sdkruntimepybind as pybind

    for cls, methods in LAYOUT_NAMES.items():
        for method, wanted in methods.items():
            found = inspect.signature(getattr(getattr(pybind, cls), method)).parameters
            assert list(found)[1 : len(wanted) + 1] == wanted, f"{cls}.{method}"
    for call, wanted in [
        (pybind.get_edge_routing, ["edge", "routes"]),
        (pybind.get_platform, ["cmaddr", "config", "target"]),
        (pybind.get_simulator, ["config", "target"]),
        (pybind.get_system, ["cmaddr"]),
    ]:
        assert list(inspect.signature(call).parameters) == wanted, call


def test_a_layout_written_with_names_alone(tmp_path):
    from cerebras.geometry.geometry import IntRectangle, IntVector
    from cerebras.sdk.runtime.sdkruntimepybind import SdkCompileArtifacts, get_edge_routing

    (tmp_path / "pe.csl").write_text(
        """
param c: color; param n: u16; export var sum: u32 = 0; export var a = @zeros([2]i16);
const q = @get_input_queue(2);
task take(x: u32) void { sum += x * @as(u32, n); }
comptime { @bind_data_task(take, @get_data_task_id(q)); @initialize_queue(q, .{ .color = c }); }
"""
    )
    layout = SdkLayout(target=wse.SdkTarget.WSE3, msg_level="INFO")
    region = layout.create_code_region(source=str(tmp_path / "pe.csl"), name="r", width=3, height=1)
    c = region.color(name="c", value=4)
    region.set_param_all(color=c)
    region.set_param_range(
        rect=IntRectangle(origin=IntVector(0, 0), dims=IntVector(2, 1)), name="n", value=1
    )
    region.set_param(coord=IntVector(x=2, y=0), name="n", value=10)
    region.set_symbol_all(symbol="a", data=np.arange(6, dtype=np.int16), width=6, height=1)
    on = RoutingPosition()
    on.set_input(routes=[Route.WEST])
    on.set_output(routes=[Route.RAMP, Route.EAST])
    last = RoutingPosition()
    last.add_input(route=Route.WEST)
    last.add_output(route=Route.RAMP)
    end = get_edge_routing(edge=Edge.RIGHT, routes=[last])
    region.paint_all(color=c, routes=[on], edge_routes=[end])
    first = RoutingPosition().set_output(routes=[Route.RAMP, Route.EAST])
    port = region.create_input_port(color=c, edge=Edge.LEFT, routes=[first], data_size=3)
    feed = layout.create_input_stream(port=port, io_loc=None, io_buffer_size=16)
    assert layout.hstack(children=[region], origin=IntVector(2, 1)) == 3
    compiled = layout.compile(out_prefix=str(tmp_path / "out"), libs=[], save_port_map=False)
    runner = wse.SdkRuntime(
        artifacts=SdkCompileArtifacts(artifacts_path=compiled.directory),
        platform=wse.get_platform(target=wse.SdkTarget.WSE3),
        memcpy_required=False,
    )
    runner.load()
    runner.run()
    runner.send(feed, np.array([1, 2, 3], np.uint32), nonblock=False)
    runner.stop()
    sums = [int(runner.read_symbol(2 + x, 1, "sum", "uint32")[0]) for x in range(3)]
    assert sums == [6, 6, 60]
    assert runner.read_symbol(4, 1, "a", "int16").tolist() == [4, 5]
    with pytest.raises(weft.Error, match="takes a list of code regions") as caught:
        layout.vstack(region)
    assert caught.value.code == "wse.sdklayout.stack"
    assert "vstack([first, second])" in str(caught.value)
    for how in ({}, {"fabric_file": "fabric.json"}):
        with pytest.raises(weft.Error, match="files that describe a fabric are not read") as caught:
            SdkLayout(**how)
        assert caught.value.code == "wse.sdklayout.platform"


def test_a_core_is_written_where_the_platform_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text("var x: u16 = 3;")
    wse.compile_csl("layout.csl", "out", arch="wse3")
    config = wse.SimfabConfig(dump_core=True)
    platform = wse.get_platform(None, config, wse.SdkTarget.WSE3)
    runner = wse.SdkRuntime("out", platform, memcpy_required=False)
    runner.load()
    runner.run()
    runner.stop()
    assert "cycles" in json.loads((tmp_path / "out.core").read_text())


def test_the_helpers_take_both_names_of_their_arguments():
    from cerebras.sdk.sdk_utils import calculate_cycles, input_array_to_u32, memcpy_view

    x = np.array([1.5, -2, 3], np.float16)
    words = input_array_to_u32(np_arr=x, sentinel=0, fast_dim_sz=3)
    assert words.tolist() == input_array_to_u32(arr=x, sentinel=0, fast_dim_sz=3).tolist()
    for name in ("dtype", "datatype"):
        assert memcpy_view(arr=words, **{name: np.float16}).tolist() == x.tolist()
    assert calculate_cycles(timestamp_buf=np.array([5, 0, 0, 9, 1, 0], np.uint16)) == 65540
    for call, words in [(input_array_to_u32, "wants an array"), (memcpy_view, "wants the type")]:
        with pytest.raises(TypeError, match=words):
            call(*[x] * (call is memcpy_view), **{})


@pytest.mark.parametrize("program", [None, 3])
def test_a_runtime_without_a_program(program):
    with pytest.raises(weft.Error, match="legal are the path of an artifact directory") as caught:
        wse.SdkRuntime(program)
    assert caught.value.code == "wse.runtime.bindir" and 'SdkRuntime("out")' in str(caught.value)


def test_what_lies_beside_a_program_stays(tmp_path):
    out = tmp_path / "out"
    streamed(tmp_path)
    (out / "mine").mkdir()
    (out / "mine" / "a.txt").write_text("a")
    (out / "results.npy").write_text("b")
    before = sorted(p.name for p in (out / "bin").iterdir())
    (out / "bin" / "out_7.bin").write_text("of another program")
    streamed(tmp_path)
    assert (out / "mine" / "a.txt").read_text() == "a"
    assert (out / "results.npy").read_text() == "b"
    assert sorted(p.name for p in (out / "bin").iterdir()) == before
    assert not [p for p in tmp_path.iterdir() if ".old" in p.name or ".part" in p.name]


def test_helpers_of_the_sdk_raise_errors_of_weft():
    from cerebras.sdk.client import SdkCompiler
    from cerebras.sdk.debug.debug_util import debug_util
    from cerebras.sdk.sdk_utils import calculate_cycles, input_array_to_u32, memcpy_view

    for call in (
        lambda: calculate_cycles([1, 2]),
        lambda: calculate_cycles([]),
        lambda: calculate_cycles("a"),
        lambda: memcpy_view(3, np.float16),
        lambda: memcpy_view(np.zeros(3, np.uint32)),
        lambda: input_array_to_u32(None),
        lambda: input_array_to_u32(np.zeros(3)),
        lambda: debug_util(3),
        lambda: debug_util("a", cmaddr="x" * 10**5),
        lambda: SdkCompiler().compile(3),
        lambda: weft.wse.IntVector("a", None),
        lambda: get_edge_routing(3, 4),
    ):
        with pytest.raises(weft.Error) as caught:
            call()
        assert caught.value.code and len(str(caught.value)) < 9000, caught.value
    with pytest.raises(weft.Error, match="2 words of int64") as caught:
        calculate_cycles([1, 2])
    assert caught.value.code == "wse.timestamps"
    assert calculate_cycles(np.array([5, 0, 0, 7, 1, 0], np.uint16)) == 65538
