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
