# SPDX-License-Identifier: Apache-2.0
"""CSL programs whose PEs have different parts in one text, beside NumPy: turns, routing by value, registers, state machines."""

import numpy as np
import pytest
from csl_machine import CHOICES, SYS, Machine, both, everywhere, layout

rng = np.random.default_rng(41)
w3 = pytest.mark.parametrize("arch", ["wse3"])


@w3
def test_exchange_on_one_color_by_switches(arch, tmp_path):
    """Even PEs of a row send first; a control wavelet turns the roles of both ends of a color."""
    config = """
    const even = x % 2 == 0;
    @set_color_config(x, y, @get_color(4), .{
      .routes = .{ .rx = .{ if (even) RAMP else WEST }, .tx = .{ if (even) EAST else RAMP } },
      .switches = .{ .pos1 = .{ .rx = if (even) EAST else RAMP, .tx = if (even) RAMP else WEST }, .ring_mode = true } });
    """
    n = 5
    pe = (
        SYS
        + """
param n: u16; param even: bool;
const ctl = @import_module("<control>");
const c = @get_color(4);
const iq = @get_input_queue(3); const oq = @get_output_queue(3);
var a = @zeros([n]f32); var b = @zeros([n]f32);
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b;
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] });
const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c, .output_queue = oq });
const ctrl_out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq, .control = true });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c, .input_queue = iq });
const adv = ctl.encode_single_payload(ctl.opcode.SWITCH_ADV, true, {}, 0);
var rounds: u16 = 0;
const turn_id = @get_local_task_id(9); const recv_id = @get_local_task_id(10); const send_id = @get_local_task_id(11); const end_id = @get_local_task_id(12);
fn go(k: u16) void { rounds = k; @activate(turn_id); }
task turn() void {
  if (rounds == 0) { sys.unblock_cmd_stream(); return; }
  rounds -= 1;
  if (even) @activate(send_id) else @activate(recv_id);
}
task send() void {
  @fmovs(out, A);
  @mov32(ctrl_out, adv);
  if (even) @activate(recv_id) else @activate(end_id);
}
task recv() void { @fmovs(B, in, .{ .async = true, .activate = if (even) end_id else send_id }); }
task end() void { @fadds(A, A, B); @activate(turn_id); }
comptime {
  @bind_local_task(turn, turn_id); @bind_local_task(recv, recv_id); @bind_local_task(send, send_id); @bind_local_task(end, end_id);
  @initialize_queue(iq, .{ .color = c });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c });
  @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(go);
}
"""
    )
    text = layout(
        [("a", "[*]f32", True), ("b", "[*]f32", True), ("go", "fn(u16)void")],
        config=config,
        params="param n: u16;",
        binding=".n = n, .even = (x % 2 == 0)",
    )

    def host(m):
        a = rng.random((2, 4, n), dtype=np.float32)
        m.put("a", a)
        m.launch("go", np.uint16(3))
        w = a.copy()
        for _ in range(3):
            s = w.copy()
            s[:, 0::2] = w[:, 0::2] + w[:, 1::2]
            s[:, 1::2] = w[:, 1::2] + w[:, 0::2]
            w = s
        np.testing.assert_allclose(m.get("a", n), w, rtol=1e-5)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=4, h=2, params={"n": n})


@both
def test_messages_ended_by_control_wavelets_in_a_fifo(arch, tmp_path):
    """Left sends k messages of random length, each ended by a control wavelet; right receives each by a descriptor of
    unknown extent that a control wavelet ends, through a FIFO, and a running sum goes back."""
    pe = (
        SYS
        + """
param left: bool; param maxn: u16;
const ctl = @import_module("<control>");
const go_c = @get_color(2); const back_c = @get_color(3);
const iq = @get_input_queue(2); const oq = @get_output_queue(2); const iq2 = @get_input_queue(3); const oq2 = @get_output_queue(3);
var data = @zeros([maxn]f32); var data_p: [*]f32 = &data;
var lens = @zeros([8]u16); var lens_p: [*]u16 = &lens;
var sums = @zeros([8]f32); var sums_p: [*]f32 = &sums;
const D = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> data[i] });
const S = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> sums[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = go_c, .output_queue = oq });
const ctrl_out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = go_c, .output_queue = oq, .control = true });
const in = @get_dsd(fabin_dsd, .{ .extent = 0x7fff, .fabric_color = go_c, .input_queue = iq });
const ret = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = back_c, .output_queue = oq2 });
const ret_in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = back_c, .input_queue = iq2 });
var buf = @zeros([64]f32);
const fifo = @allocate_fifo(buf);
var acc: f32 = 0.0;
var k: u16 = 0; var n: u16 = 0; var at: u16 = 0;
const send_id = @get_local_task_id(9); const tail_id = @get_local_task_id(10); const end_id = @get_local_task_id(11); const got_id = @get_local_task_id(12);
fn go(count: u16) void { n = count; k = 0; at = 0; if (left) { @activate(send_id); } else { @activate(got_id); } }
task send() void {
  if (k == n) { sys.unblock_cmd_stream(); return; }
  const len = lens[k];
  @fmovs(@set_dsd_length(out, len), @increment_dsd_offset(@set_dsd_length(D, len), @bitcast(i16, at), f32), .{ .async = true, .activate = tail_id });
  at += len;
}
task tail() void {
  @mov32(ctrl_out, ctl.encode_single_payload(ctl.opcode.NOP, false, {}, 0));
  @fmovs(@increment_dsd_offset(@set_dsd_length(S, 1), @as(i16, k), f32), ret_in, .{ .async = true, .activate = send_id });
  k += 1;
}
var cnt: u16 = 0;
task got() void {
  if (k == n) { sys.unblock_cmd_stream(); return; }
  @fmovs(fifo, in, .{ .async = true, .on_control = .{ .terminate = true }, .activate = end_id });
}
task end() void {
  acc = 0.0;
  var v: f32 = 0.0;
  while (true) {
    const ok = @fmovs(&v, fifo);
    if (!ok) break;
    acc += v;
  }
  @fmovs(ret, acc);
  k += 1;
  @activate(got_id);
}
comptime {
  if (left) { @bind_local_task(send, send_id); @bind_local_task(tail, tail_id);
    if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = go_c });
    @initialize_queue(iq2, .{ .color = back_c });
    @set_local_color_config(go_c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    @set_local_color_config(back_c, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
  } else { @bind_local_task(got, got_id); @bind_local_task(end, end_id);
    @initialize_queue(iq, .{ .color = go_c });
    if (@is_arch("wse3")) @initialize_queue(oq2, .{ .color = back_c });
    @set_local_color_config(go_c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    @set_local_color_config(back_c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
  }
  @export_symbol(data_p, "data"); @export_symbol(lens_p, "lens"); @export_symbol(sums_p, "sums"); @export_symbol(go);
}
"""
    )
    text = layout(
        [
            ("data", "[*]f32", True),
            ("lens", "[*]u16", True),
            ("sums", "[*]f32", True),
            ("go", "fn(u16)void"),
        ],
        params="param maxn: u16;",
        binding=".maxn = maxn, .left = (x == 0)",
    )

    def host(m):
        lens = rng.integers(1, 30, 8)
        data = rng.random(240).astype(np.float32)
        m.put("data", np.tile(data, (1, 2, 1)))
        m.put16("lens", np.tile(lens.astype(np.uint16), (1, 2, 1)))
        m.launch("go", np.uint16(6))
        at = 0
        want = []
        for k in range(6):
            want.append(data[at : at + lens[k]].sum())
            at += lens[k]
        np.testing.assert_allclose(m.get("sums", 8)[0, 0, :6], want, rtol=1e-5)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=2, params={"maxn": 240})


@both
def test_data_and_index_by_u16_pairs(arch, tmp_path):
    """Wavelets with index in the upper half routed by value through tasks east, then south; counted in bins."""
    W, H = 4, 3
    n = 40
    pe = (
        SYS
        + """
param n: u16; param W: u16; param H: u16; param px: u16; param py: u16;
const ex = [2]color{ @get_color(0), @get_color(1) };  // eastward ring by parity (wraps around by west)
const rq = @get_input_queue(2); const dq = @get_input_queue(3); const eoq = @get_output_queue(2); const soq = @get_output_queue(3);
const cin_e = ex[(px + 1) % 2]; const cout_e = ex[px % 2];
const sx = [2]color{ @get_color(2), @get_color(3) };
const cin_s = sx[(py + 1) % 2]; const cout_s = sx[py % 2];
const rid = if (@is_arch("wse3")) @get_data_task_id(rq) else @get_data_task_id(cin_e);
const did = if (@is_arch("wse3")) @get_data_task_id(dq) else @get_data_task_id(cin_s);
var key = @zeros([n]u16); var key_p: [*]u16 = &key;
var bins = @zeros([8]u32); var bins_p: [*]u32 = &bins;
var seen = @zeros([1]u32); var seen_p: [*]u32 = &seen;
const eo = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = cout_e, .output_queue = eoq });
const so = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = cout_s, .output_queue = soq });
const send_id = @get_local_task_id(12);
var at: u16 = 0; var m: u16 = 0;
// key: bin (3 bits), column (4), row (4)
fn deliver(w: u32) void {
  const k = @as(u16, w);
  const x = (k >> 3) & 0xf; const y = (k >> 7) & 0xf;
  seen[0] += 1;
  if (x != px) { @mov32(eo, w); }
  else if (y != py) { @mov32(so, w); }
  else { bins[k & 7] += w >> 16; }
}
task row_task(w: u32) void { deliver(w); }
task col_task(lo: u16, hi: u16) void { deliver((@as(u32, hi) << 16) | @as(u32, lo)); }
task send() void {
  if (at < m) { const k = key[at]; at += 1; deliver((@as(u32, k & 3) + 1 << 16) | @as(u32, k)); @activate(send_id); }
  else { sys.unblock_cmd_stream(); }
}
fn go(c: u16) void { m = c; at = 0; @activate(send_id); }
fn done() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(send, send_id); 
  if (px > 0) @bind_data_task(row_task, rid); 
  if (py > 0) @bind_data_task(col_task, did);
  if (@is_arch("wse3")) { if (px > 0) @initialize_queue(rq, .{ .color = cin_e }); if (py > 0) @initialize_queue(dq, .{ .color = cin_s }); @initialize_queue(eoq, .{ .color = cout_e }); @initialize_queue(soq, .{ .color = cout_s }); }
  if (px + 1 < W) @set_local_color_config(cout_e, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  if (px > 0) @set_local_color_config(cin_e, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  if (py + 1 < H) @set_local_color_config(cout_s, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ SOUTH } } });
  if (py > 0) @set_local_color_config(cin_s, .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ RAMP } } });
  @export_symbol(key_p, "key"); @export_symbol(bins_p, "bins"); @export_symbol(seen_p, "seen"); @export_symbol(go); @export_symbol(done);
}
"""
    )
    text = layout(
        [
            ("key", "[*]u16", True),
            ("bins", "[*]u32", True),
            ("seen", "[*]u32", True),
            ("go", "fn(u16)void"),
            ("done", "fn()void"),
        ],
        params="param n: u16;",
        binding=".n = n, .W = W, .H = H, .px = x, .py = y",
    )

    def host(m):
        keys = np.zeros((H, W, n), np.uint16)
        want = np.zeros((H, W, 8), np.uint32)
        for y in range(H):
            for x in range(W):
                tx = rng.integers(x, W, n)
                ty = rng.integers(y, H, n)
                b = rng.integers(0, 8, n)
                keys[y, x] = b | (tx << 3) | (ty << 7)
                for a, q, c in zip(b, tx, ty):
                    want[c, q, a] += (a & 3) + 1
        m.put16("key", keys)
        m.launch("go", np.uint16(n))
        m.launch("done")
        got = m.get("bins", 8, np.uint32)
        np.testing.assert_array_equal(got, want)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, h=H, params={"n": n})


@both
def test_all_to_all_in_a_row_by_turns_on_one_color(arch, tmp_path):
    """Every PE broadcasts to the whole row in its turn: position 0 passes from the west, 1 sends; commands popped on the way."""
    W, n = 5, 3
    pe = (
        SYS
        + """
param n: u16; param W: u16; param px: u16;
const ctl = @import_module("<control>");
const c = @get_color(4); const l = @get_color(5);
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
var a = @zeros([n]i32); var a_p: [*]i32 = &a; var b = @zeros([W * n]i32); var b_p: [*]i32 = &b;
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] });
const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{(px + 1) * n} -> b[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c, .output_queue = oq });
const co = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq, .control = true });
const in = @get_dsd(fabin_dsd, .{ .extent = (px + 1) * n, .fabric_color = c, .input_queue = iq });
const send_id = @get_local_task_id(9); const ctl_id = @get_local_task_id(10); const done_id = @get_local_task_id(11); const rst_id = @get_local_task_id(12);
var open: u16 = 0;
fn go() void {
  open = 2;
  @mov32(B, in, .{ .async = true, .activate = rst_id });
  @mov32(out, A, .{ .async = true, .activate = ctl_id });
}
// The next PE sends after this one: its switch advances; the own one stays with the ramp until the reset at the end.
task after() void {
  if (px + 1 < W) {
    const cmds = [2]ctl.opcode{ ctl.opcode.SWITCH_RST, ctl.opcode.SWITCH_ADV };
    @mov32(co, ctl.encode_payload(2, cmds, [2]bool{ true, true }, true, {}), .{ .async = true, .activate = done_id });
  } else {
    @mov32(co, ctl.encode_single_payload(ctl.opcode.SWITCH_RST, true, {}, 0), .{ .async = true, .activate = done_id });
  }
}
task received() void { open -= 1; if (open == 0) sys.unblock_cmd_stream(); }
task done() void { open -= 1; if (open == 0) sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(after, ctl_id); @bind_local_task(done, done_id); @bind_local_task(received, rst_id);
  @initialize_queue(iq, .{ .color = c }); if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c });
  if (px == 0) { @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP, EAST } }, .switches = .{ .pos1 = .{ .rx = RAMP }, .pop_mode = .{ .always_pop = true }, .ring_mode = true } }); }
  else if (px + 1 < W) { @set_local_color_config(c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, .switches = .{ .pos1 = .{ .rx = RAMP }, .pop_mode = .{ .always_pop = true } } }); }
  else { @set_local_color_config(c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } }, .switches = .{ .pos1 = .{ .rx = RAMP }, .pop_mode = .{ .always_pop = true } } }); }
  @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(go);
}
"""
    )
    text = layout(
        [("a", "[*]i32", True), ("b", "[*]i32", True), ("go", "fn()void")],
        params="param n: u16;",
        binding=".n = n, .W = W, .px = x",
    )

    def host(m):
        a = rng.integers(-99, 99, (2, W, n)).astype(np.int32)
        m.put("a", a)
        m.launch("go")
        got = m.get("b", W * n, np.int32)
        for y in range(2):
            for x in range(W):
                np.testing.assert_array_equal(got[y, x, : (x + 1) * n], a[y, : x + 1].ravel())

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, h=2, params={"n": n})


@both
def test_registers_walk_matrices_with_saved_addresses_from_the_fabric(arch, tmp_path):
    """A panel arrives row by row into a register that saves its address; products walk it by four-dimensional registers."""
    K, N = 6, 5
    pe = (
        SYS
        + """
param K: u16; param N: u16; param left: bool;
const c = @get_color(3); const iq = @get_input_queue(2); const oq = @get_output_queue(2);
var m = @zeros([K, N]f32); var m_p: [*]f32 = &m; var x = @zeros([K]f32); var x_p: [*]f32 = &x; var y = @zeros([N]f32); var y_p: [*]f32 = &y; var g = @zeros([N, N]f32); var g_p: [*]f32 = &g;
const M0 = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> m[0, i] });
const MT = @get_dsd(mem4d_dsd, .{ .tensor_access = |j, i|{N, K} -> m[i, j] });
const Y = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> y[i] });
const G = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> g[0, i] });
const in = @get_dsd(fabin_dsd, .{ .extent = N, .fabric_color = c, .input_queue = iq });
const out_t = @get_dsd(fabout_dsd, .{ .extent = K * N, .fabric_color = c, .output_queue = oq });
const rd = @get_dsr(dsr_dest, 2); const rs = @get_dsr(dsr_src1, 3); const ry = @get_dsr(dsr_dest, 4); const ry0 = @get_dsr(dsr_src0, 4); const rg = @get_dsr(dsr_dest, 5); const rg0 = @get_dsr(dsr_src0, 5);
const fin = @get_dsr(dsr_src1, 6);
const row_id = @get_local_task_id(9); const mul_id = @get_local_task_id(10); const done_id = @get_local_task_id(11);
var k: u16 = 0;
fn go() void {
  if (left) { @mov32(out_t, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{K * N} -> m[0, i] }), .{ .async = true, .activate = done_id }); return; }
  k = 0;
  @load_to_dsr(rd, M0, .{ .save_address = true });
  @load_to_dsr(fin, in, .{ .async = true, .activate = row_id });
  @fmovs(rd, fin, .{ .async = true });
}
task row() void {
  k += 1;
  if (k < K) { @fmovs(rd, fin, .{ .async = true }); } else { @activate(mul_id); }
}
task mul() void {
  // y += x[k] * m[k, :]; g[i, :] += m[k, i] * m[k, :]
  @fmovs(Y, 0.0);
  @load_to_dsr(rs, M0, .{ .save_address = true });
  @load_to_dsr(ry, Y); @load_to_dsr(ry0, Y);
  for (@range(u16, K)) |q| { @fmacs(ry, ry0, rs, x[q]); }
  for (@range(u16, K)) |q| {
    @load_to_dsr(rg, G, .{ .save_address = true }); @load_to_dsr(rg0, G, .{ .save_address = true });
    const row_q = @increment_dsd_offset(M0, @as(i16, q * N), f32);
    for (@range(u16, N)) |i| { @load_to_dsr(rs, row_q); @fmacs(rg, rg0, rs, m[q, i]); }
  }
  sys.unblock_cmd_stream();
}
task done() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(row, row_id); @bind_local_task(mul, mul_id); @bind_local_task(done, done_id);
  if (left) { @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c }); }
  else { @set_local_color_config(c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); @initialize_queue(iq, .{ .color = c }); }
  @export_symbol(m_p, "m"); @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(g_p, "g"); @export_symbol(go);
}
"""
    )
    text = layout(
        [(s, "[*]f32", True) for s in "mxyg"] + [("go", "fn()void")],
        params="param K: u16; param N: u16;",
        binding=".K = K, .N = N, .left = (x == 0)",
    )

    def host(mm):
        m = rng.integers(-5, 6, (1, 2, K, N)).astype(np.float32)
        x = rng.integers(-5, 6, (1, 2, K)).astype(np.float32)
        mm.put("m", m)
        mm.put("x", x)
        mm.put("g", np.zeros((1, 2, N * N), np.float32))
        mm.launch("go")
        a = m[0, 0]
        np.testing.assert_array_equal(mm.get("m", K * N)[0, 1].reshape(K, N), a)
        np.testing.assert_array_equal(mm.get("y", N)[0, 1], x[0, 1] @ a)
        np.testing.assert_array_equal(mm.get("g", N * N)[0, 1].reshape(N, N), a.T @ a)

    everywhere(
        tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=2, params={"K": K, "N": N}
    )


@both
def test_state_machine_of_function_pointers_and_unblocks(arch, tmp_path):
    """A chain of local tasks through a table of pointers to functions; blocks, unblocks by operations, data tasks guarded."""
    n = 4
    pe = (
        SYS
        + """
param n: u16; param px: u16; param W: u16;
const c = [2]color{ @get_color(0), @get_color(1) };
const cin = c[(px + 1) % 2]; const cout = c[px % 2];
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
const did = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(cin);
const step_id = @get_local_task_id(9);
var log = @zeros([16]u16); var log_p: [*]u16 = &log; var at: u16 = 0;
var got = @zeros([n]u32); var got_p: [*]u32 = &got; var ng: u16 = 0;
var src = @zeros([n]u32); var src_p: [*]u32 = &src;
const S = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> src[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = cout, .output_queue = oq });
fn mark(x: u16) void { log[at] = x; at += 1; }
fn s0() void { mark(1); @block(step_id); if (px + 1 < W) { @mov32(out, S, .{ .async = true, .unblock = step_id }); } else { @unblock(step_id); } state = 1; @activate(step_id); }
fn s1() void { mark(2); if (px > 0) { @unblock(did); } state = 2; if (px == 0) @activate(step_id); }
fn s2() void { mark(3); state = 0; sys.unblock_cmd_stream(); }
const table = [3]*const fn () void{ &s0, &s1, &s2 };
var state: u16 = 0;
task step() void { const f = table[state]; f.*(); }
task data(x: u32) void {
  got[ng] = x * 2; ng += 1;
  if (ng == n) { ng = 0; @block(did); @activate(step_id); }
}
fn go() void { at = 0; @activate(step_id); }
comptime {
  @bind_local_task(step, step_id);
  if (px > 0) { @bind_data_task(data, did); @block(did); @set_local_color_config(cin, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); @initialize_queue(iq, .{ .color = cin }); }
  if (px + 1 < W) { @set_local_color_config(cout, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = cout }); }
  @export_symbol(log_p, "log"); @export_symbol(got_p, "got"); @export_symbol(src_p, "src"); @export_symbol(go);
}
"""
    )
    text = layout(
        [
            ("log", "[*]u16", False),
            ("got", "[*]u32", False),
            ("src", "[*]u32", True),
            ("go", "fn()void"),
        ],
        params="param n: u16;",
        binding=".n = n, .px = x, .W = W",
    )

    def host(m):
        for _ in range(2):
            s = rng.integers(0, 1 << 30, (1, 3, n), dtype=np.uint32)
            m.put("src", s)
            m.launch("go")
            np.testing.assert_array_equal(m.get("got", n, np.uint32)[0, 1:], s[0, :-1] * 2)
            assert (m.get16("log", 16, np.uint16)[0, :, :3] == [1, 2, 3]).all()

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=3, params={"n": n})


@both
def test_routes_made_by_modules_at_compile_time(arch, tmp_path):
    """Routes, switches and parameters of PEs are made by functions of two modules, from arrays, structs and recursion."""
    lay = """
param W: u16; param H: u16; param K: i16 = 3;
const routes = @import_module("lib/routes.csl", .{ .W = W, .H = H, .first_color = 4 });
const memcpy = @import_module("<memcpy/get_params>", .{ .width = W, .height = H });
const names = .{ "a", "b" };
fn sum_to(comptime n: i16) i16 { if (n == 0) { return 0; } return n + sum_to(n - 1); }
const weights = routes.table(5);
layout {
  @set_rectangle(W, H);
  var count: i16 = 0;
  for (@range(i16, @as(i16, H))) |y| {
    var x: i16 = 0;
    while (x < @as(i16, W)) : (x += 1) {
      const role = routes.role(x, y);
      const extra = routes.describe(x, y);
      const base = .{ .memcpy_params = memcpy.get_params(x), .role = role, .number = count, .weight = weights[@as(u16, x)], .sum = sum_to(K + 1) };
      @set_tile_code(x, y, "src/pe.csl", @concat_structs(base, .{ .io = extra }));
      routes.paint(x, y);
      count += 1;
    }
  }
  @export_name("a", [*]i32, true); @export_name("b", [*]i32, false);
  @export_name("go", fn()void);
}
"""
    mod = """
param W: u16; param H: u16; param first_color: i16;
const dirs = @import_module("dirs.csl");
const Role = enum(u16) { head = 1, body = 2, tail = 3 };
fn role(x: i16, y: i16) u16 {
  const r = if (x == 0) Role.head else if (x + 1 == @as(i16, W)) Role.tail else Role.body;
  return @get_int(r);
}
fn color_of(y: i16) color { return @get_color(@as(u16, first_color + y % 2)); }
fn describe(x: i16, y: i16) comptime_struct {
  const out = if (x + 1 < @as(i16, W)) .{ .c = color_of(y), .hops = @as(u16, W) - @as(u16, x) - 1 } else .{ .c = color_of(y), .hops = @as(u16, 0) };
  return out;
}
fn table(comptime n: u16) [n]i32 {
  var t = @zeros([n]i32);
  var i: u16 = 0;
  outer: while (i < n) : (i += 1) {
    var k: u16 = 2; var s: i32 = 1;
    while (k <= i) : (k += 1) { if (i % k == 0) { t[i] = -s * @as(i32, i); continue :outer; } s += 1; }
    t[i] = s;
  }
  return t;
}
fn paint(x: i16, y: i16) void {
  const c = color_of(y);
  const ahead = if (y % 2 == 0) EAST else EAST;
  const config = switch (role(x, y)) {
    1 => .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ ahead } } },
    2 => .{ .routes = .{ .rx = .{ dirs.back(ahead) }, .tx = .{ ahead } }, .switches = .{ .pos1 = .{ .tx = RAMP }, .pos2 = .{ .rx = RAMP }, .pos3 = .{ .tx = ahead }, .pop_mode = .{ .pop_on_advance = true } } },
    else => .{ .routes = .{ .rx = .{ dirs.back(ahead) }, .tx = .{ RAMP } } }
  };
  @set_color_config(x, y, c, config);
}
"""
    dirs = 'const std = @import_module("<directions>");\nfn back(d: direction) direction { return std.flip(d); }\n'
    pe = (
        SYS
        + """
param role: u16; param number: i16; param weight: i32; param sum: i16; param io STRUCT;
const ctl = @import_module("<control>");
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
var a = @zeros([2]i32); var b = @zeros([6]i32); var a_p: [*]i32 = &a; var b_p: [*]i32 = &b;
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> a[i] });
const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> b[i + 4] });
const out = @get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = io.c, .output_queue = oq });
const outc = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = io.c, .output_queue = oq, .control = true });
const in = @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = io.c, .input_queue = iq });
const id = @get_local_task_id(9);
fn go() void {
  b[0] = @as(i32, role); b[1] = @as(i32, number); b[2] = weight; b[3] = @as(i32, sum) * 100 + @as(i32, io.hops);
  if (role == 1) { @mov32(out, A, .{ .async = true, .activate = id }); }
  else if (role == 3) { @mov32(B, in, .{ .async = true, .activate = id }); }
  else { sys.unblock_cmd_stream(); }
}
task done() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(done, id);
  if (role == 1) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = io.c }); }
  if (role == 3) @initialize_queue(iq, .{ .color = io.c });
  @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(go);
}
"""
    )
    (tmp_path / "lib").mkdir()
    (tmp_path / "src").mkdir()
    W, H = 5, 3

    def host(m):
        a = rng.integers(-99, 99, (H, W, 2)).astype(np.int32)
        m.put("a", a)
        m.launch("go")
        b = m.get("b", 6, np.int32)
        t = []
        for i in range(5):
            s = 1
            v = None
            for k in range(2, i + 1):
                if i % k == 0:
                    v = -s * i
                    break
                s += 1
            t.append(s if v is None else v)
        for y in range(H):
            for x in range(W):
                assert b[y, x, :4].tolist() == [
                    1 if x == 0 else 3 if x == W - 1 else 2,
                    y * W + x,
                    t[x],
                    1000 + W - 1 - x,
                ]
            np.testing.assert_array_equal(b[y, -1, 4:], a[y, 0])

    text = {"layout.csl": lay, "src/pe.csl": pe, "lib/routes.csl": mod, "lib/dirs.csl": dirs}
    text["src/pe.csl"] = pe.replace("STRUCT", ": comptime_struct")
    m = Machine(tmp_path, arch, text, W, H, sdk="1.4")  # SDK 2.10 has no @concat_structs
    for choice in CHOICES:
        m.start(**choice)
        host(m)
        m.stop()
