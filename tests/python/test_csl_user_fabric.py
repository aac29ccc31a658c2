# SPDX-License-Identifier: Apache-2.0
"""CSL programs as users of the SDK write them, beside NumPy: colors, switches, filters, tasks, microthreads, FIFOs, regions."""

import numpy as np
import pytest
from csl_machine import SYS, Machine, both, layout
from test_wse_programs import wse

rng = np.random.default_rng(19)


@pytest.mark.parametrize("n", [16, 21])
@both
def test_halves_sent_in_pairs_around_a_row(arch, n, tmp_path):
    """Each PE sends its 16-bit vector to the east; what comes from the west is scaled and kept."""
    pe = (
        SYS
        + """
param n: u16; param first: bool; param last: bool; param out: color; param in: color;
const place = @import_module("<layout>");
var v = @zeros([n]f16); var got = @zeros([n]f16);
var v_p: [*]f16 = &v; var got_p: [*]f16 = &got;
const oq = @get_output_queue(2); const iq = @get_input_queue(2);
const simd = .{ .simd_32 = true };
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = out, .output_queue = oq, .simd_mode = simd });
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = in, .input_queue = iq, .simd_mode = simd });
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> v[i] });
const G = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> got[i] });
const done = @get_local_task_id(9);
var waits: u16 = @as(u16, !first) + @as(u16, !last);
fn run() void {
  if (!last) @fmovh(to, V, .{ .async = true, .activate = done });
  if (!first) @fmulh(G, from, 0.5, .{ .async = true, .activate = done });
}
var ended: u16 = 0;
task finished() void {
  ended += 1;
  if (ended == 1 and waits == 2) { @block(done); @unblock(done); return; }
  sys.unblock_cmd_stream();
}
comptime {
  @bind_local_task(finished, done);
  if (!first) @initialize_queue(iq, .{ .color = in });
  if (!last) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out }); }
  @export_symbol(v_p, "v"); @export_symbol(got_p, "got"); @export_symbol(run);
}
"""
    )
    config = """
    if (x > 0) @set_color_config(x, y, c[(x + 1) % 2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    if (x + 1 < W) @set_color_config(x, y, c[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });"""
    text = layout(
        [("v", "[*]f16", True), ("got", "[*]f16", False), ("run", "fn()void")],
        config,
        "param n: u16; const c = [2]color{ @get_color(3), @get_color(4) };",
        ".n = n, .first = x == 0, .last = x == W - 1, .out = c[x % 2], .in = c[(x + 1) % 2]",
    )
    w = 4
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    v = rng.random((1, w, n)).astype(np.float16)
    m.put16("v", v)
    m.launch("run")
    got = m.get16("got", n, np.float16)
    np.testing.assert_array_equal(got[0, 1:], v[0, :-1] * np.float16(0.5))
    np.testing.assert_array_equal(got[0, 0], 0)
    m.stop()


@both
def test_run_lengths_through_a_fifo(arch, tmp_path):
    """A data task expands (value, count) pairs into a FIFO, which a microthread empties into memory as f32."""
    pairs = [(int(v), int(k)) for v, k in zip(rng.integers(0, 99, 23), rng.integers(0, 6, 23))]
    total = sum(k for _, k in pairs)
    pe = (
        SYS
        + """
param total: u16; param n: u16;
const loop = @get_color(5); const oq = @get_output_queue(3); const iq = @get_input_queue(3);
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(loop);
const done = @get_local_task_id(10);
var words = @zeros([n]u32); var out = @zeros([total]f32);
var words_p: [*]u32 = &words; var out_p: [*]f32 = &out;
var room = @zeros([6]u32);
const fifo = @allocate_fifo(room, .{ .activate_push = popped, .activate_pop = popped });
const send = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = loop, .output_queue = oq });
var value: u32 = 0; var left: u16 = 0; var taken: u16 = 0;
var single = @zeros([1]u32); const one = @get_dsd(mem1d_dsd, .{ .base_address = &single, .extent = 1 });
task arrived(count: u16, v: u16) void {
  @block(data_id);
  value = @as(u32, v);
  left = count;
  @activate(fill);
}
task filling() void {
  while (left > 0) {
    single[0] = value;
    if (!@mov32(fifo, one)) { @activate(drain); return; }
    left -= 1;
  }
  @unblock(data_id);
  @activate(drain);
}
const fill = @get_local_task_id(11); const drain = @get_local_task_id(12);
task popped() void {}
task draining() void {
  while (@mov32(one, fifo)) {
    out[taken] = @as(f32, single[0]);
    taken += 1;
  }
  if (left > 0) { @activate(fill); }
  if (taken == total) sys.unblock_cmd_stream();
}
fn run() void { @mov32(send, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> words[i] }), .{ .async = true }); }
comptime {
  @bind_data_task(arrived, data_id); @bind_local_task(popped, done); @bind_local_task(filling, fill); @bind_local_task(draining, drain);
  @set_local_color_config(loop, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } });
  @initialize_queue(iq, .{ .color = loop });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = loop });
  @export_symbol(words_p, "words"); @export_symbol(out_p, "out"); @export_symbol(run);
}
"""
    )
    text = layout(
        [("words", "[*]u32", True), ("out", "[*]f32", False), ("run", "fn()void")],
        params="param total: u16; param n: u16;",
        binding=".total = total, .n = n",
    )
    params = {"total": total, "n": len(pairs)}
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params=params)
    m.put("words", np.array([k | v << 16 for v, k in pairs], np.uint32))
    m.launch("run")
    want = np.repeat([v for v, _ in pairs], [k for _, k in pairs])
    np.testing.assert_array_equal(m.get("out", total)[0, 0], want)
    m.stop()


@both
def test_senders_take_turns_by_switches(arch, tmp_path):
    """Each PE of a row sends to the first one when its switch lets it; the last word of a sender advances the switches."""
    w, n = 5, 3
    pe = (
        SYS
        + """
param n: u16; param W: u16; param x: u16;
const ctrl = @import_module("<control>");
const bus = @get_color(6); const oq = @get_output_queue(3); const iq = @get_input_queue(3);
var v = @zeros([n]f32); var all = @zeros([n * W]f32); var v_p: [*]f32 = &v; var all_p: [*]f32 = &all;
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> v[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = bus, .output_queue = oq });
const turn = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = bus, .output_queue = oq, .control = true });
const in = @get_dsd(fabin_dsd, .{ .extent = n * (W - 1), .fabric_color = bus, .input_queue = iq });
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n * (W - 1)} -> all[n + i] });
const done = @get_local_task_id(9); const sent = @get_local_task_id(10);
fn run() void {
  if (x == 0) {
    for (@range(u16, n)) |i| { all[i] = v[i]; }
    @fmovs(A, in, .{ .async = true, .activate = done });
  } else {
    @fmovs(out, V, .{ .async = true, .activate = sent });
  }
}
task pass_on() void {
  // The first command turns the own switch, the second that of the next PE to the west.
  @mov32(turn, ctrl.encode_payload(2, [2]ctrl.opcode{ ctrl.opcode.SWITCH_ADV, ctrl.opcode.NOP }, [2]bool{ true, true }, true, {}), .{ .async = true, .activate = done });
}
task finished() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(finished, done); @bind_local_task(pass_on, sent);
  if (x == 0) { @initialize_queue(iq, .{ .color = bus }); } else { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = bus }); }
  @export_symbol(v_p, "v"); @export_symbol(all_p, "all"); @export_symbol(run);
}
"""
    )
    config = """
    if (x == 0) {
      @set_color_config(x, y, @get_color(6), .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
    } else {
      @set_color_config(x, y, @get_color(6), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } },
        .switches = .{ .pos1 = .{ .rx = EAST }, .pop_mode = .{ .pop_on_advance = true } } });
    }"""
    text = layout(
        [("v", "[*]f32", True), ("all", "[*]f32", False), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .W = W, .x = x",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    v = rng.random((1, w, n)).astype(np.float32)
    m.put("v", v)
    m.launch("run")
    np.testing.assert_array_equal(m.get("all", n * w)[0, 0], v.ravel())
    m.stop()


@both
def test_a_stream_dealt_out_by_filters(arch, tmp_path):
    """Every PE of a row keeps its own n of W * n wavelets; a counter per PE decides."""
    w, n = 4, 5
    pe = (
        SYS
        + """
param n: u16; param W: u16; param x: u16;
const bus = @get_color(9); const oq = @get_output_queue(3); const iq = @get_input_queue(4);
var all = @zeros([n * W]f32); var mine = @zeros([n]f32); var all_p: [*]f32 = &all; var mine_p: [*]f32 = &mine;
const out = @get_dsd(fabout_dsd, .{ .extent = n * W, .fabric_color = bus, .output_queue = oq });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = bus, .input_queue = iq });
const done = @get_local_task_id(9);
fn run() void {
  if (x == 0) {
    for (@range(u16, n)) |i| { mine[i] = all[i]; }
    @fmovs(out, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n * W} -> all[i] }), .{ .async = true, .activate = done });
  } else {
    @fmovs(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> mine[i] }), in, .{ .async = true, .activate = done });
  }
}
task finished() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(finished, done);
  if (x == 0) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = bus }); } else { @initialize_queue(iq, .{ .color = bus }); }
  @export_symbol(all_p, "all"); @export_symbol(mine_p, "mine"); @export_symbol(run);
}
"""
    )
    config = """
    if (x == 0) {
      @set_color_config(x, y, @get_color(9), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    } else {
      const filter = .{ .kind = .{ .counter = true }, .count_data = true, .init_counter = n * (W - x), .limit1 = n * W - 1, .max_counter = n - 1 };
      if (x + 1 < W) {
        @set_color_config(x, y, @get_color(9), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, .filter = filter });
      } else {
        @set_color_config(x, y, @get_color(9), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } }, .filter = filter });
      }
    }"""
    text = layout(
        [("all", "[*]f32", True), ("mine", "[*]f32", False), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .W = W, .x = x",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    data = rng.random((1, w, w * n)).astype(np.float32)
    m.put("all", data)
    for _ in range(2):  # the counters come round
        m.launch("run")
        np.testing.assert_array_equal(m.get("mine", n)[0], data[0, 0].reshape(w, n))
    m.stop()


@both
def test_two_regions_and_their_streams(arch, tmp_path):
    """SdkLayout: a region of one PE scales, a region of 1 x 2 adds a bias by parity; the host streams in and out."""
    (tmp_path / "scale.csl").write_text("""
param in: color; param out: color; param n: u16; param factor: u16;
const iq = @get_input_queue(2); const oq = @get_output_queue(2);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = in, .input_queue = iq });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = out, .output_queue = oq });
const again = @get_local_task_id(9);
export var factor_f: f32 = 0.0;
task run() void { factor_f = @as(f32, factor); @fmuls(to, from, factor_f, .{ .async = true, .activate = again }); }
comptime {
  @bind_local_task(run, again); @activate(again);
  @initialize_queue(iq, .{ .color = in });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out });
}""")
    (tmp_path / "bias.csl").write_text("""
param in: color; param out: color; param n: u16;
const iq = @get_input_queue(2); const oq = @get_output_queue(2);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = in, .input_queue = iq });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = out, .output_queue = oq });
const again = @get_local_task_id(9);
var odd: f32 = -0.5;
fn bias(v: f32) f32 { odd = -odd; return v + odd; }
task run() void { @map(bias, from, to); @activate(again); }
comptime {
  @bind_local_task(run, again); @activate(again);
  @initialize_queue(iq, .{ .color = in });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out });
}""")
    n = 7
    target = wse.SdkTarget.WSE2 if arch == "wse2" else wse.SdkTarget.WSE3
    platform = wse.get_platform(None, wse.SimfabConfig(dump_core=False), target)
    whole = wse.SdkLayout(platform)
    into = wse.RoutingPosition().set_output([wse.Route.RAMP])
    outof = wse.RoutingPosition().set_input([wse.Route.RAMP])
    ports = []
    for k, name in enumerate(("scale", "bias")):
        region = whole.create_code_region(str(tmp_path / f"{name}.csl"), name, 1, 1)
        a, b = wse.Color(f"in{k}"), wse.Color(f"out{k}")
        region.set_param_all("in", a)
        region.set_param_all("out", b)
        region.set_param_all("n", n)
        if k == 0:
            region.set_param_all("factor", 3)
        ports.append(
            (
                region.create_input_port(a, wse.Edge.LEFT, [into], n),
                region.create_output_port(b, wse.Edge.RIGHT, [outof], n),
            )
        )
        region.place(2 + 4 * k, 2 + 3 * k)
    whole.connect(ports[0][1], ports[1][0])
    into_stream = whole.create_input_stream(ports[0][0])
    out_stream = whole.create_output_stream(ports[1][1])
    runner = wse.SdkRuntime(
        whole.compile(out_prefix=str(tmp_path / "out")), platform, memcpy_required=False
    )
    runner.load()
    runner.run()
    sign = 1
    for _ in range(3):
        x, y = rng.random(n).astype(np.float32), np.zeros(n, np.float32)
        runner.send(into_stream, x, nonblock=True)
        runner.receive(out_stream, y, n, nonblock=False)
        signs = sign * (-1.0) ** np.arange(n)
        sign = -sign  # n is odd
        np.testing.assert_array_equal(y, x * np.float32(3) + signs.astype(np.float32) / 2)
    runner.stop()


@both
def test_tasks_that_wait_for_several_microthreads(arch, tmp_path):
    """Two sends and two receptions at once over one looped color each; the end is a task that all must unblock or activate."""
    n = 11
    ut = ", .ut_id = @get_ut_id({0})" if arch == "wse3" else ""
    pe = (
        SYS
        + """
param n: u16;
var a = @zeros([n]f32); var b = @zeros([n]f32); var s = @zeros([n]f32); var log = @zeros([8]u32);
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b; var s_p: [*]f32 = &s; var log_p: [*]u32 = &log;
const c1 = @get_color(3); const c2 = @get_color(4);
const i1 = @get_input_queue(3); const i2 = @get_input_queue(4); const o1 = @get_output_queue(3); const o2 = @get_output_queue(4);
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] }); const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[n - 1 - i] }); const S = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> s[i] });
const X1 = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c1, .output_queue = o1 }); const X2 = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c2, .output_queue = o2 });
const I1 = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c1, .input_queue = i1 }); const I2 = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c2, .input_queue = i2 });
const sent = @get_local_task_id(9); const first = @get_local_task_id(10); const last = @get_local_task_id(11);
var at: u16 = 0;
fn note(what: u32) void { log[at] = what; at += 1; }
fn run() void {
  @block(last);
  @fmovs(X1, A, .{ .async = true, .activate = sent UT5 });
  @fmovs(X2, B, .{ .async = true, .unblock = last UT6 });
  @fmovs(S, I1, .{ .async = true, .activate = first UT2 });
  note(1);
}
task one_sent() void { note(2); }
task added() void { note(3); @fadds(S, S, I2, .{ .async = true, .activate = last UT7 }); }
task ended() void { note(4); sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(one_sent, sent); @bind_local_task(added, first); @bind_local_task(ended, last);
  @set_local_color_config(c1, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } }); @set_local_color_config(c2, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } });
  @initialize_queue(i1, .{ .color = c1 }); @initialize_queue(i2, .{ .color = c2 });
  if (@is_arch("wse3")) { @initialize_queue(o1, .{ .color = c1 }); @initialize_queue(o2, .{ .color = c2 }); }
  @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(s_p, "s"); @export_symbol(log_p, "log"); @export_symbol(run);
}
"""
    )
    for k in (2, 5, 6, 7):
        pe = pe.replace(f" UT{k}", ut.format(k))
    exports = [(v, "[*]f32", True) for v in "abs"] + [("log", "[*]u32", False), ("run", "fn()void")]
    text = layout(exports, params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    a, b = rng.random((2, n)).astype(np.float32)
    m.put("a", a)
    m.put("b", b)
    m.launch("run")
    np.testing.assert_array_equal(m.get("s", n)[0, 0], a + b[::-1])
    log = m.get("log", 8, np.uint32)[0, 0]
    assert log[0] == 1 and log[3] == 4 and set(log[1:3]) == {2, 3}
    m.stop()


@both
def test_odd_even_sort_between_neighbours(arch, tmp_path):
    """Rounds of exchange with one neighbour, then the other; the lower half stays in the west."""
    w, n = 5, 6
    pe = (
        SYS
        + """
param n: u16; param W: u16; param x: u16; param to_e: color; param to_w: color; param from_e: color; param from_w: color;
var mine = @zeros([n]f32); var theirs = @zeros([n]f32); var merged = @zeros([2 * n]f32); var mine_p: [*]f32 = &mine;
const oe = @get_output_queue(2); const ow = @get_output_queue(3); const ie = @get_input_queue(2); const iw = @get_input_queue(3);
const M = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> mine[i] }); const T = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> theirs[i] });
const E = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_e, .output_queue = oe }); const V = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_w, .output_queue = ow });
const FE = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_e, .input_queue = ie }); const FV = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_w, .input_queue = iw });
const merge = @get_local_task_id(9); const step = @get_local_task_id(10); const sent = @get_local_task_id(11);
var round: u16 = 0; var east: bool = false;
fn sort_mine() void {
  for (@range(u16, 1, n, 1)) |i| {
    const v = mine[i]; var k: u16 = i;
    while (k > 0 and mine[k - 1] > v) : (k -= 1) { mine[k] = mine[k - 1]; }
    mine[k] = v;
  }
}
fn run() void { round = 0; sort_mine(); @activate(step); }
task next() void {
  if (round == W) { sys.unblock_cmd_stream(); return; }
  east = (x + round) % 2 == 0;
  round += 1;
  @block(merge);
  if (east) {
    if (x + 1 == W) { @unblock(merge); @activate(step); return; }
    @fmovs(E, M, .{ .async = true, .unblock = merge });
    @fmovs(T, FE, .{ .async = true, .activate = merge });
  } else {
    if (x == 0) { @unblock(merge); @activate(step); return; }
    @fmovs(V, M, .{ .async = true, .unblock = merge });
    @fmovs(T, FV, .{ .async = true, .activate = merge });
  }
}
task merging() void {
  var a: u16 = 0; var b: u16 = 0;
  for (@range(u16, 2 * n)) |i| {
    if (b == n or (a < n and mine[a] <= theirs[b])) { merged[i] = mine[a]; a += 1; } else { merged[i] = theirs[b]; b += 1; }
  }
  const begin: u16 = if (east) 0 else n;
  for (@range(u16, n)) |i| { mine[i] = merged[begin + i]; }
  @activate(step);
}
comptime {
  @bind_local_task(next, step); @bind_local_task(merging, merge);
  if (x + 1 < W) { @initialize_queue(ie, .{ .color = from_e }); if (@is_arch("wse3")) @initialize_queue(oe, .{ .color = to_e }); }
  if (x > 0) { @initialize_queue(iw, .{ .color = from_w }); if (@is_arch("wse3")) @initialize_queue(ow, .{ .color = to_w }); }
  @export_symbol(mine_p, "mine"); @export_symbol(run);
}
"""
    )
    config = """
    const k = x % 2; const o = 1 - k;
    if (x + 1 < W) {
      @set_color_config(x, y, e[k], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
      @set_color_config(x, y, v[o], .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
    }
    if (x > 0) {
      @set_color_config(x, y, v[k], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
      @set_color_config(x, y, e[o], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    }"""
    text = layout(
        [("mine", "[*]f32", True), ("run", "fn()void")],
        config,
        "param n: u16; const e = [2]color{ @get_color(2), @get_color(3) }; const v = [2]color{ @get_color(4), @get_color(5) };",
        ".n = n, .W = W, .x = x, .to_e = e[x % 2], .to_w = v[x % 2], .from_e = v[1 - x % 2], .from_w = e[1 - x % 2]",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    data = rng.integers(0, 40, (1, w, n)).astype(np.float32)
    m.put("mine", data)
    m.launch("run")
    np.testing.assert_array_equal(m.get("mine", n).ravel(), np.sort(data.ravel()))
    m.stop()


@both
def test_commands_in_band_with_their_data(arch, tmp_path):
    """Control wavelets between the data of one color choose what the data tasks do with what follows."""
    n = 12
    pe = (
        SYS
        + """
param n: u16; param first: bool;
const ctrl = @import_module("<control>");
const bus = @get_color(8); const oq = @get_output_queue(4); const iq = @get_input_queue(4);
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(bus);
const set_op = @get_control_task_id(20); const finish = @get_control_task_id(21);
var v = @zeros([n]f32); var r = @zeros([4]f32); var v_p: [*]f32 = &v; var r_p: [*]f32 = &r;
const out = @get_dsd(fabout_dsd, .{ .extent = n / 3, .fabric_color = bus, .output_queue = oq });
const command = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = bus, .output_queue = oq, .control = true });
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n / 3} -> v[i] });
var op: u16 = 3;
fn run() void {
  if (!first) return;
  inline for (.{ 0, 1, 2 }) |k| {
    @mov32(command, comptime ctrl.encode_single_payload(ctrl.opcode.NOP, false, set_op, k));
    @fmovs(out, @increment_dsd_offset(V, @as(i16, k) * @as(i16, n / 3), f32));
  }
  @mov32(command, comptime ctrl.encode_control_task_payload(finish));
  sys.unblock_cmd_stream();
}
task choose(k: u16) void { op = k; }
task take(x: f32) void {
  switch (op) { 0 => r[0] += x, 1 => r[1] -= x, 2 => { if (x > r[2]) r[2] = x; }, else => r[3] += 1.0 }
}
task end() void { sys.unblock_cmd_stream(); }
comptime {
  if (first) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = bus }); }
  else {
    @bind_data_task(take, data_id); @bind_control_task(choose, set_op); @bind_control_task(end, finish);
    @initialize_queue(iq, .{ .color = bus });
  }
  @export_symbol(v_p, "v"); @export_symbol(r_p, "r"); @export_symbol(run);
}
"""
    )
    config = """
    if (x == 0) { @set_color_config(x, y, @get_color(8), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
    else { @set_color_config(x, y, @get_color(8), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }"""
    text = layout(
        [("v", "[*]f32", True), ("r", "[*]f32", False), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .first = x == 0",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, 2, 1, {"n": n})
    v = rng.integers(-9, 9, (1, 2, n)).astype(np.float32)
    m.put("v", v)
    m.launch("run")
    a, b, c = v[0, 0].reshape(3, -1)
    np.testing.assert_array_equal(m.get("r", 4)[0, 1], [a.sum(), -b.sum(), max(0, c.max()), 0])
    m.stop()


@both
def test_control_wavelets_relayed_through_memory(arch, tmp_path):
    """.control_transform: a PE in between stores data and commands in a FIFO; they leave it as what they came."""
    w = 3
    pe = (
        SYS
        + """
param first: bool; param last: bool; param rx: color; param tx: color;
const ctl = @import_module("<control>");
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
const cid = @get_control_task_id(40);
var got = @zeros([16]u32); var got_p: [*]u32 = &got;
var buf = @zeros([4]u32); const fifo = @allocate_fifo(buf);
const in = @get_dsd(fabin_dsd, .{ .extent = 9, .fabric_color = rx, .input_queue = iq, .control_transform = true });
const out = @get_dsd(fabout_dsd, .{ .extent = 9, .fabric_color = tx, .output_queue = oq, .control_transform = true });
const one = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = tx, .output_queue = oq });
const command = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = tx, .output_queue = oq, .control = true });
var at: u16 = 0;
const fin = @get_local_task_id(10);
task take(v: u32) void { got[at] = v; at += 1; if (at == 9) { sys.unblock_cmd_stream(); } }
task order(v: u16) void { got[at] = 0xC0000000 | @as(u32, v); at += 1; if (at == 9) sys.unblock_cmd_stream(); }
task end() void { sys.unblock_cmd_stream(); }
fn run() void {
  if (first) {
    for (@range(u16, 9)) |k| {
      if (k % 4 == 3) { @mov32(command, ctl.encode_single_payload(ctl.opcode.NOP, false, cid, 100 + k)); }
      else { @mov32(one, @as(u32, k) * 1000); }
    }
    sys.unblock_cmd_stream();
  } else if (!last) {
    @mov32(fifo, in, .{ .async = true });
    @mov32(out, fifo, .{ .async = true, .activate = fin });
  }
}
comptime {
  @bind_local_task(end, fin);
  @initialize_queue(iq, .{ .color = rx });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = tx }) else @initialize_queue(oq);
  if (last) { @bind_data_task(take, if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(rx)); @bind_control_task(order, cid); }
  @export_symbol(got_p, "got"); @export_symbol(run);
}
"""
    )
    text = layout(
        [("got", "[*]u32", False), ("run", "fn()void")],
        config="""
    const there = .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } };
    const here = .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } };
    @set_color_config(x, y, if (x % 2 == 0) A else B, there);
    @set_color_config(x, y, if (x % 2 == 0) B else A, here);""",
        params="const A = @get_color(2); const B = @get_color(3);",
        binding=".first = x == 0, .last = x == W - 1, .rx = if (x % 2 == 0) B else A, .tx = if (x % 2 == 0) A else B",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1)
    m.launch("run")
    got = m.get("got", 9, np.uint32)[0, 2]
    m.stop()
    assert got.tolist() == [0xC0000000 | 100 + k if k % 4 == 3 else 1000 * k for k in range(9)]


def filtered(kind, wavelets, limit1=0, limit2=0, max_counter=0, init=0, data=False, control=False, controls=False):  # fmt: skip
    """What the guide's sentences about counters let pass of `wavelets`, (number, whether control) each."""
    out, count, limit, off, second = (
        [],
        init,
        limit1,
        kind == "sparse_counter" and not limit1,
        False,
    )
    for number, is_control in wavelets:
        if off or (not controls if is_control else count <= max_counter):
            out.append(number)
        elif is_control and count == max_counter:
            out.append(number)
        if off or not (control if is_control else data):
            continue
        if count < limit:
            count += 1
            continue
        count = 0
        if kind == "sparse_counter":
            off, limit, second = second or not limit2, limit2, True
    return out


@both
@pytest.mark.parametrize(
    "kind,settings",
    [
        ("counter", dict(limit1=4, max_counter=1, data=True)),
        ("counter", dict(limit1=4, max_counter=2, data=True, control=True, controls=True)),
        ("counter", dict(limit1=3, max_counter=3, control=True)),
        ("counter", dict(limit1=2, max_counter=0, init=2, data=True, controls=True)),
        ("sparse_counter", dict(limit1=3, limit2=5, max_counter=0, data=True)),
        ("sparse_counter", dict(limit1=3, limit2=3, max_counter=1, data=True)),
        ("sparse_counter", dict(limit1=3, max_counter=0, data=True)),
        ("sparse_counter", dict(limit2=3, max_counter=0, data=True)),
        ("sparse_counter", dict(limit1=2, limit2=4, max_counter=0, data=True, control=True)),
    ],
)
def test_counters_of_data_and_control_wavelets(arch, kind, settings, tmp_path):
    n = 20
    names = dict(init="init_counter", data="count_data", control="count_control", controls="filter_control")  # fmt: skip
    fields = "".join(f", .{names.get(k, k)} = {str(v).lower()}" for k, v in settings.items())
    pe = (
        SYS
        + f"""
param sends: bool;
const c = @get_color(2); const ctl = @import_module("<control>"); const cid = @get_control_task_id(40);
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
const one = @get_dsd(fabout_dsd, .{{ .extent = 1, .fabric_color = c, .output_queue = oq }});
const command = @get_dsd(fabout_dsd, .{{ .extent = 1, .fabric_color = c, .output_queue = oq, .control = true }});
var got = @constants([{n}]u32, 99); var got_p: [*]u32 = &got; var at: u16 = 0;
task take(v: u32) void {{ got[at] = v; at += 1; }}
task order(v: u16) void {{ got[at] = @as(u32, v); at += 1; }}
fn run() void {{
  if (sends) {{ for (@range(u16, {n})) |k| {{
    if (k % 3 == 1) {{ @mov32(command, ctl.encode_single_payload(ctl.opcode.NOP, false, cid, k)); }} else {{ @mov32(one, @as(u32, k)); }}
  }} }}
  sys.unblock_cmd_stream();
}}
comptime {{
  if (sends) {{ @set_local_color_config(c, .{{ .routes = .{{ .rx = .{{RAMP}}, .tx = .{{EAST}} }} }}); }}
  else {{ @set_local_color_config(c, .{{ .routes = .{{ .rx = .{{WEST}}, .tx = .{{RAMP}} }}, .filter = .{{ .kind = .{{ .{kind} = true }}{fields} }} }}); }}
  @initialize_queue(iq, .{{ .color = c }});
  if (@is_arch("wse3")) @initialize_queue(oq, .{{ .color = c }}) else @initialize_queue(oq);
  @bind_data_task(take, if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(c)); @bind_control_task(order, cid);
  @export_symbol(got_p, "got"); @export_symbol(run);
}}
"""
    )
    text = layout([("got", "[*]u32", False), ("run", "fn()void")], binding=".sends = x == 0")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, 2, 1)
    m.launch("run")
    got = m.get("got", n, np.uint32)[0, 1].tolist()
    m.stop()
    want = filtered(kind, [(k, k % 3 == 1) for k in range(n)], **settings)
    assert got == want + [99] * (n - len(want))
