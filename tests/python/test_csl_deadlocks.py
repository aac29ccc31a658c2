# SPDX-License-Identifier: Apache-2.0
"""Programs without a host that stop moving: tasks that wait for ever are a fault with the PE, the task and the line."""

import numpy as np
import pytest
from csl_machine import both
from test_wse_programs import LAYOUT, START, wse


def test_queues_of_one_number_share_a_microthread(tmp_path):
    """Whoever sends while a reception waits on the queue of the same number waits for it: the text says for which."""
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text(
        """
const c = @get_color(3); const iq = @get_input_queue(3); const oq = @get_output_queue(3); var v = @zeros([4]f32);
const V = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 });
comptime { @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } }); @initialize_queue(iq, .{ .color = c }); @initialize_queue(oq, .{ .color = c }); }
"""
        + START
        % (
            "@fmovs(V, @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = c, .input_queue = iq }), .{ .async = true });\n"
            "@fmovs(@get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = c, .output_queue = oq }), V, .{ .async = true });"
        )
    )
    wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch="wse3")
    runner = wse.SdkRuntime(str(tmp_path / "out"), memcpy_required=False)
    runner.load()
    runner.run()
    with pytest.raises(wse.WseError) as caught:
        runner.stop()
    runner.stop()  # whoever comes next does not meet it again
    text = str(caught.value)
    assert caught.value.code == "wse.microthread.deadlock"
    assert ".ut_id" in text
    assert text.count("holds: input") == 1
    assert "waits for microthread 3, which @fmovs of first_task (" in text
    assert "holds: input and output queues of one number share a microthread" in text


WORKER = """
const c = @get_color(3); const back = @get_color(4);
const iq = @get_input_queue(3); const oq = @get_output_queue(3);
param first: bool;
export var v = @zeros([4]f32);
const V = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 });
const in = @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = if (first) back else c, .input_queue = iq });
const out = @get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = if (first) c else back, .output_queue = oq });
comptime {
  @set_local_color_config(c, .{ .routes = .{ .rx = .{ if (first) RAMP else WEST }, .tx = .{ if (first) EAST else RAMP } } });
  @set_local_color_config(back, .{ .routes = .{ .rx = .{ if (first) EAST else RAMP }, .tx = .{ if (first) RAMP else WEST } } });
  @initialize_queue(iq, .{ .color = if (first) back else c });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = if (first) c else back });
}
"""
PAIR = """
layout { @set_rectangle(2, 1);
  @set_tile_code(0, 0, "pe.csl", .{ .first = true }); @set_tile_code(1, 0, "pe.csl", .{ .first = false }); }
"""


def ended(folder, arch, body):
    (folder / "layout.csl").write_text(PAIR)
    (folder / "pe.csl").write_text(WORKER + START % body)
    wse.compile_csl(str(folder / "layout.csl"), str(folder / "out"), arch=arch)
    runner = wse.SdkRuntime(str(folder / "out"), memcpy_required=False)
    runner.load()
    runner.run()
    runner.stop()
    return runner


@both
def test_each_pe_that_waits_for_a_microthread_is_named(arch, tmp_path):
    """Both receive before they send, on queues of one number: neither sends."""
    with pytest.raises(wse.WseError) as caught:
        ended(
            tmp_path, arch, "@fmovs(V, in, .{ .async = true }); @fmovs(out, V, .{ .async = true });"
        )
    text = str(caught.value)
    assert caught.value.code == "wse.microthread.deadlock"
    for x in (0, 1):
        assert f"pe ({x}, 0): main thread in first_task waits for microthread 3" in text
        assert f"pe ({x}, 0): microthread 3 in @fmovs of first_task (" in text
    assert "no wavelet of colour 4 in input queue 3" in text


@both
def test_what_waits_for_wavelets_alone_ends_quietly(arch, tmp_path):
    """Programs may leave receptions open when they end."""
    runner = ended(tmp_path, arch, "@fmovs(out, V); @fmovs(V, in); @fmovs(V, in);")
    assert any("no wavelet of colour" in line for line in runner.waiting())
    np.testing.assert_array_equal(runner.read_symbol(0, 0, "v", "float32"), 0)
