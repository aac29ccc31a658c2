# SPDX-License-Identifier: Apache-2.0
"""16-bit elements in wavelets: two in each where a program is written for SDK 2.10, one in each for SDK 1.4, and what
a descriptor's simd_mode says."""

import numpy as np
import pytest
from csl_machine import ARCHS, both
from test_wse_programs import wse

rng = np.random.default_rng(210)
N = 11

# Streams of the host go through one PE, which adds to each half.
LAYOUT = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1, .MEMCPYH2D_1 = %s, .MEMCPYD2H_1 = %s });
layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) }); @export_name("done", [*]u32, false); }
"""
PE = """
param memcpy_params%s;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
const a = @get_color(0); const b = @get_color(1);
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
const in = @get_dsd(fabin_dsd, .{ .extent = %d, .fabric_color = a, .input_queue = iq%s });
const out = %s;
var k = [1]i16{ 7 }; const K = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{%d} -> k[0] });
var done = @zeros([1]u32); var done_p: [*]u32 = &done;
task main() void { @add16(out, in, K, .{ .async = true, .activate = ended }); }
task ended() void { done[0] += 1; }
comptime {
  @bind_local_task(main, @get_local_task_id(8)); @bind_local_task(ended, @get_local_task_id(9)); @activate(@get_local_task_id(8));
  @initialize_queue(iq, .{ .color = a }); if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = b });
  @export_symbol(done_p, "done");
}
"""
OUT = "@get_dsd(fabout_dsd, .{ .extent = %d, .fabric_color = b, .output_queue = oq%s })"
STREAM = "sys.get_streaming_fabout_dsd(b, %d, oq)"
OFF = ", .simd_mode = .{ .simd_off = true }"
MAX = ", .simd_mode = .{ .simd_max = true }"
OLD, NEW = ("@get_color(0)", "@get_color(1)", ": comptime_struct"), (0, 1, "")


def through(folder, arch, language, elements, in_mode, out, sdk="detect"):
    """What N words of the host become, and how many operations ended."""
    (folder / "layout.csl").write_text(LAYOUT % language[:2])
    (folder / "pe.csl").write_text(PE % (language[2], elements, in_mode, out, elements))
    built = wse.compile_csl(
        str(folder / "layout.csl"),
        str(folder / "out"),
        arch=arch,
        fabric_dims=(8, 3),
        fabric_offsets=(4, 1),
        memcpy=True,
        sdk_version=sdk,
    )
    runner = wse.SdkRuntime(str(folder / "out"))
    runner.load()
    runner.run()
    how = dict(
        streaming=True,
        order=wse.MemcpyOrder.ROW_MAJOR,
        data_type=wse.MemcpyDataType.MEMCPY_16BIT,
    )
    words = rng.integers(0, 1 << 32, N, dtype=np.uint32)
    back = np.zeros(N, np.uint32)
    runner.memcpy_h2d(0, words, 0, 0, 1, 1, N, nonblock=True, **how)
    runner.memcpy_d2h(back, 1, 0, 0, 1, 1, N, nonblock=False, **how)
    runner.stop()
    return words, back, int(runner.read_symbol(4, 1, "done", "uint32")[0]), built["sdk_version"]


def halves(words):
    return words.view(np.uint16).reshape(-1, 2)


@both
@pytest.mark.parametrize(
    "language,elements,in_mode,out,pairs",
    [
        (NEW, 2 * N, "", OUT % (2 * N, ""), True),
        (NEW, 2 * N, MAX, OUT % (2 * N, MAX), True),
        (NEW, N, OFF, OUT % (N, OFF), False),
        (NEW, N, "", OUT % (N, OFF), False),  # an operation packs where all its operands do
        (NEW, N, OFF, OUT % (N, ""), False),
        (NEW, N, "", STREAM % N, False),
        (OLD, N, "", OUT % (N, ""), False),
        (OLD, 2 * N, MAX, OUT % (2 * N, MAX), True),
    ],
)
def test_streams_of_halves(language, elements, in_mode, out, pairs, arch, tmp_path):
    words, back, done, sdk = through(tmp_path, arch, language, elements, in_mode, out)
    assert done == 1
    assert sdk == ("2.10" if language is NEW else "1.4")
    if pairs:
        np.testing.assert_array_equal(halves(back), halves(words) + np.uint16(7))
    else:
        np.testing.assert_array_equal(back, (halves(words)[:, 0] + np.uint16(7)).astype(np.uint32))


@both
def test_the_version_of_the_command_line_decides(arch, tmp_path):
    plain = ("@get_color(0)", "@get_color(1)", "")
    words, back, done, _ = through(tmp_path, arch, plain, N, "", OUT % (N, ""), sdk="1.4")
    assert done == 1
    np.testing.assert_array_equal(back & 0xFFFF, halves(words)[:, 0] + np.uint16(7))
    words, back, done, _ = through(tmp_path, arch, plain, 2 * N, "", OUT % (2 * N, ""), sdk="2.10")
    assert done == 1
    np.testing.assert_array_equal(halves(back), halves(words) + np.uint16(7))


SENDER = """
param memcpy_params;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
param first: bool;
const c = @get_color(3); const iq = @get_input_queue(2); const oq = @get_output_queue(3);
var v = @zeros([16]f16); var v_p: [*]f16 = &v;
var got = @zeros([16]u32); var got_p: [*]u32 = &got;
var n: u16 = 0;
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{%d} -> v[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = %d, .fabric_color = c, .output_queue = oq%s });
fn send() void {
  if (first) { @fmovh(out, V%s); }
  sys.unblock_cmd_stream();
}
task take(low: u16, high: u16) void { got[n] = @as(u32, low) | @as(u32, high) << 16; n += 1; }
const id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(c);
comptime {
  if (!first) {
    @bind_data_task(take, id);
    if (@is_arch("wse3")) @initialize_queue(iq, .{ .color = c });
  } else if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c });
  @export_symbol(v_p, "v"); @export_symbol(got_p, "got"); @export_symbol(send);
}
"""
ROW = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 2, .height = 1 });
layout {
  @set_rectangle(2, 1);
  for (@range(u16, 2)) |x| {
    @set_tile_code(x, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(x), .first = x == 0 });
    @set_color_config(x, 0, @get_color(3), .{ .routes = .{ .rx = .{ if (x == 0) RAMP else WEST }, .tx = .{ if (x == 0) EAST else RAMP } } });
  }
  @export_name("v", [*]f16, true); @export_name("got", [*]u32, false); @export_name("send", fn()void);
}
"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "n,mode,index,wavelets",
    [
        (8, "", "", lambda h: h[0::2] | h[1::2] << 16),
        (7, "", "", lambda h: np.append(h[0:6:2] | h[1:6:2] << 16, h[6])),
        (7, OFF, "", lambda h: h),
        # The index takes the high half, so there is room for one element.
        (5, ", .wavelet_index_offset = true", ", .{ .index = 9 }", lambda h: h | 9 << 16),
    ],
)
def test_what_a_data_task_is_given(n, mode, index, wavelets, arch, tmp_path):
    (tmp_path / "layout.csl").write_text(ROW)
    (tmp_path / "pe.csl").write_text(SENDER % (n, n, mode, index))
    wse.compile_csl(
        str(tmp_path / "layout.csl"),
        str(tmp_path / "out"),
        arch=arch,
        fabric_dims=(9, 3),
        fabric_offsets=(4, 1),
        memcpy=True,
    )
    runner = wse.SdkRuntime(str(tmp_path / "out"))
    runner.load()
    runner.run()
    v = rng.standard_normal(16).astype(np.float16)
    h = v.view(np.uint16).astype(np.uint32)
    runner.memcpy_h2d(
        runner.get_id("v"),
        np.tile(h, 2),
        0,
        0,
        2,
        1,
        16,
        streaming=False,
        order=wse.MemcpyOrder.ROW_MAJOR,
        data_type=wse.MemcpyDataType.MEMCPY_16BIT,
        nonblock=False,
    )
    runner.launch("send", nonblock=False)
    runner.stop()
    want = wavelets(h[:n])
    got = runner.read_symbol(5, 1, "got", "uint32")
    np.testing.assert_array_equal(got[: len(want)], want)
    assert runner.read_symbol(5, 1, "n", "uint16")[0] == len(want)
