// SPDX-License-Identifier: Apache-2.0
#include "timing_programs.h"

namespace weft::wse::timing_programs {

namespace {
const std::string kClock = R"(
const tsc = @import_module("<time>");
var t0 = @zeros([3]u16);
var t1 = @zeros([3]u16);
export var took: u32 = 0;
fn start() void { tsc.enable_tsc(); tsc.get_timestamp(&t0); }
fn stop() void { tsc.get_timestamp(&t1); took = (@as(u32, t1[0]) | (@as(u32, t1[1]) << 16)) - (@as(u32, t0[0]) | (@as(u32, t0[1]) << 16)); }
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); }
)";
}  // namespace

const std::string kOne =
    "param n: u16; param k: u16; param m: u16; layout { @set_rectangle(1, 1); "
    "@set_tile_code(0, 0, \"pe.csl\", .{ .n = n, .k = k, .m = m }); }";

// One @fmuls over registers that are already loaded. The second source begins `k` elements into its
// array, which decides whether the two meet in a bank of the memory.
const std::string kMultiply = "param n: u16; param k: u16; param m: u16;" + kClock + R"(
var a = @zeros([n]f32); var b = @zeros([n + k]f32);
const dest = @get_dsr(dsr_dest, 1); const left = @get_dsr(dsr_src0, 1); const right = @get_dsr(dsr_src1, 1);
task main() void {
  @load_to_dsr(dest, @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = n }));
  @load_to_dsr(left, @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = n }));
  @load_to_dsr(right, @get_dsd(mem1d_dsd, .{ .base_address = &b[k], .extent = n }));
  start();
  @fmuls(dest, left, right);
  stop();
}
)";

// The inner part of a product, as it was measured: descriptor registers; the one of A is set for
// each k, the one of C for each column j, and one multiply-add follows.
const std::string kColumns = "param n: u16; param k: u16; param m: u16;" + kClock + R"(
const K: i16 = k; const M: i16 = m;
var A = @zeros([n * k]f32); var B = @zeros([k * m]f32); var C = @zeros([n * m]f32);
const A_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> A[i * k] });
const C_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> C[i * m] });
const A_dsr = @get_dsr(dsr_src1, 0); const C_dsr = @get_dsr(dsr_src0, 1); const out = @get_dsr(dsr_dest, 1);
task main() void {
  start();
  for (@range(i16, K)) |p| {
    @load_to_dsr(A_dsr, @increment_dsd_offset(A_dsd, p, f32));
    for (@range(i16, M)) |j| {
      @load_to_dsr(C_dsr, @increment_dsd_offset(C_dsd, j, f32));
      const b = B[p * M + j];
      @fmacs(C_dsr, C_dsr, A_dsr, b);
    }
  }
  stop();
}
)";

// Chains towards PE 0 in groups of `step`, then a chain of the groups' first PEs.
const std::string kTwoPhaseLayout = R"(
param w: u16; param n: u16; param step: u16;
const c = [2]color { @get_color(0), @get_color(1) };
const e = [2]color { @get_color(2), @get_color(3) };
layout {
  @set_rectangle(w, 1);
  for (@range(u16, w)) |x| {
    const place = x % step;
    const group = x / step;
    const lead = place == 0;
    const last = place == step - 1 or x == w - 1;
    const groups = (w + step - 1) / step;
    @set_tile_code(x, 0, "pe.csl", .{ .n = n, .lead = lead, .alone = lead and last, .last = last, .root = x == 0,
      .final = lead and group == groups - 1, .phases = if (groups > 1 and step > 1) 2 else 1, .two = groups > 1,
      .to = c[place % 2], .from = c[(place + 1) % 2], .far_to = e[group % 2], .far_from = e[(group + 1) % 2] });
    if (!lead) @set_color_config(x, 0, c[place % 2], .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } });
    if (!last) @set_color_config(x, 0, c[(place + 1) % 2], .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });
    if (groups > 1) {
      if (lead) {
        if (x > 0) @set_color_config(x, 0, e[group % 2], .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } });
        if (group < groups - 1) @set_color_config(x, 0, e[(group + 1) % 2], .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });
      } else if (group < groups - 1) {
        @set_color_config(x, 0, e[(group + 1) % 2], .{ .routes = .{ .rx = .{EAST}, .tx = .{WEST} } });
      }
    }
  }
}
)";
const std::string kTwoPhasePe =
    "param n: u16; param lead: bool; param alone: bool; param last: bool; param root: bool; param "
    "final: bool; param phases: u16; param two: bool; param to: color; param from: color; param "
    "far_to: color; param far_from: color;" +
    kClock + R"(
var v = @zeros([n]f32);
const mem = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from, .input_queue = @get_input_queue(2) });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to, .output_queue = @get_output_queue(3) });
const far_in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = far_from, .input_queue = @get_input_queue(3) });
const far_out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = far_to, .output_queue = @get_output_queue(2) });
task main() void {
  if (root) start();
  if (lead) {
    if (!alone) @fadds(mem, in, mem);
  } else {
    if (last) { @fmovs(out, mem); } else { @fadds(out, in, mem); }
  }
  if (lead and two) {
    if (final) { @fmovs(far_out, mem); }
    else if (root) { @fadds(mem, far_in, mem); }
    else { @fadds(far_out, far_in, mem); }
  }
  if (root) stop();
}
comptime {
  if (@is_arch("wse3")) {
    if (!last) @initialize_queue(@get_input_queue(2), .{ .color = from });
    if (!lead) @initialize_queue(@get_output_queue(3), .{ .color = to });
    if (lead and two and !final) @initialize_queue(@get_input_queue(3), .{ .color = far_from });
    if (lead and two and !root) @initialize_queue(@get_output_queue(2), .{ .color = far_to });
  }
}
)";

// A star or box of radius r over 16 x 16 points on 2 x 2 PEs, 8 x 8 on each. As in the measured
// programs borders leave by descriptors, each followed by a control wavelet, and arrive by data
// tasks of scalar code, a wavelet each; the control wavelet's task closes its color until the sums
// are done. A box sends the corners on in a second round. The diagonal of the whole array keeps its
// values; the two arrays change places. One program each for a radius of one, which counts with 32
// bits and sends descriptors of one dimension, and for more.
const std::string kStencilLayout = R"(
param r: i16; param its: i32; param box: i16;
layout {
  @set_rectangle(2, 2);
  for (@range(i16, 2)) |x| { for (@range(i16, 2)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .r = r, .its = its, .box = box == 1, .x = x, .y = y });
    const ew = if (x == 0) EAST else WEST; const ns = if (y == 0) SOUTH else NORTH;
    @set_color_config(x, y, @get_color(x), .{ .routes = .{ .rx = .{RAMP}, .tx = .{ew} } });
    @set_color_config(x, y, @get_color(1 - x), .{ .routes = .{ .rx = .{ew}, .tx = .{RAMP} } });
    @set_color_config(x, y, @get_color(2 + y), .{ .routes = .{ .rx = .{RAMP}, .tx = .{ns} } });
    @set_color_config(x, y, @get_color(3 - y), .{ .routes = .{ .rx = .{ns}, .tx = .{RAMP} } });
  } }
}
)";
const std::string kStencilPe =
    "param r: i16; param its: i32; param box: bool; param x: i16; param y: i16;" + kClock + R"(
const ctrl = @import_module("<control>");
const I = if (r == 1) i32 else i16;
const L: I = 8;
const R: I = @as(I, r);
const W: I = L + 2 * R;   // a row of a block with its border
var a = @zeros([W * W]f32);
var b = @zeros([W * W]f32);
var now: [*]f32 = &a;
var next: [*]f32 = &b;
var factors = @constants([(2 * r + 1) * (2 * r + 1)]f32, 0.1);
const h_in = @get_color(1 - x); const v_in = @get_color(3 - y);
const h_id = if (@is_arch("wse3")) @get_data_task_id(@get_input_queue(2)) else @get_data_task_id(h_in);
const v_id = if (@is_arch("wse3")) @get_data_task_id(@get_input_queue(4)) else @get_data_task_id(v_in);
const h_queue = @get_output_queue(2); const v_queue = @get_output_queue(4);
const first: u16 = if (r == 1) @as(u16, L) else @as(u16, L * R);
const h_out = @get_dsd(fabout_dsd, .{ .extent = first, .fabric_color = @get_color(x), .output_queue = h_queue });
const v_out = @get_dsd(fabout_dsd, .{ .extent = first, .fabric_color = @get_color(2 + y), .output_queue = v_queue });
const h_end = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(x), .control = true, .output_queue = h_queue });
const v_end = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(2 + y), .control = true, .output_queue = v_queue });
const h_corner = @get_dsd(fabout_dsd, .{ .extent = @as(u16, R * R), .fabric_color = @get_color(x), .output_queue = h_queue });
const h_word = ctrl.encode_control_task_payload(@get_control_task_id(40));
const v_word = ctrl.encode_control_task_payload(@get_control_task_id(41));
const h_word_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &h_word, .extent = 1 });
const v_word_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &v_word, .extent = 1 });
var sent: I = 0; var received: I = 0; var h_count: I = 0; var v_count: I = 0;
var sides: I = 2; var corners: I = 1;
var corner_round: bool = false;
var h_base: I = if (x == 0) R * W + L + R else R * W;
var across: I = R;
var column: I = 0; var row: I = 0;   // where the PE lies, known at run time only
const layout_of = @import_module("<layout>");
fn send() void {
  if (r == 1) {
    var edge = @get_dsd(mem1d_dsd, .{ .base_address = &now[if (x == 0) 2 * L + 2 else W + 1], .stride = W, .extent = L });
    @fmovs(h_out, edge, .{ .async = true, .activate = h_sent });
    edge = @get_dsd(mem1d_dsd, .{ .base_address = &now[if (y == 0) W * L + 1 else W + 1], .stride = 1, .extent = L });
    @fmovs(v_out, edge, .{ .async = true, .activate = v_sent });
  } else {
    const edge = @get_dsd(mem4d_dsd, .{ .base_address = &now[R * W + (if (x == 0) L else R)], .stride = .{ 1, L + R + 1 }, .extent = .{ L, R } });
    @fmovs(h_out, edge, .{ .async = true, .activate = h_sent });
    const line = @get_dsd(mem4d_dsd, .{ .base_address = &now[(if (y == 0) L else R) * W + R], .stride = .{ 1, 2 * R + 1 }, .extent = .{ R, L } });
    @fmovs(v_out, line, .{ .async = true, .activate = v_sent });
  }
}
task h_sent() void { sent += 1; @mov32(h_end, h_word_dsd, .{ .async = true, .activate = sync }); }
task v_sent() void { sent += 1; @mov32(v_end, v_word_dsd, .{ .async = true, .activate = sync }); }
task h_data(v: f32) void {
  if (r == 1) { h_count += 1; now[h_count * W + (if (x == 0) W - 1 else 0)] = v; return; }
  if (box) { now[h_base + h_count % across + h_count / across * W] = v; }
  else { now[R * W + (if (x == 0) L + R else 0) + h_count + h_count / R * (L + R)] = v; }
  h_count += 1;
}
task v_data(v: f32) void {
  if (r == 1) { v_count += 1; now[(if (y == 0) W * (L + 1) else 0) + v_count] = v; return; }
  now[(if (y == 0) R + (L + R) * W else R) + v_count + v_count / L * (2 * R)] = v;
  v_count += 1;
}
fn one_received() void { received += 1; @activate(sync); }
task h_close() void { @block(h_id); h_count = 0; one_received(); }
task v_close() void { @block(v_id); v_count = 0; one_received(); }
task sync() void {
  if (!box) {
    if (sent == sides and received == sides) { sent = 0; received = 0; @activate(compute); }
    return;
  }
  if (!corner_round and sent == sides and received == sides) {
    sent = 0; received = 0; corner_round = true;
    h_base = (if (y == 0) (L + R) * W else 0) + (if (x == 0) L + R else 0);
    @unblock(h_id);
    const corner = @get_dsd(mem4d_dsd, .{ .base_address = &now[(if (y == 0) (L + R) * W else 0) + (if (x == 0) L else R)], .stride = .{ 1, W - (R - 1) }, .extent = .{ R, R } });
    @fmovs(h_corner, corner, .{ .async = true, .activate = h_sent });
  } else if (corner_round and sent == corners and received == corners) {
    sent = 0; received = 0; corner_round = false;
    h_base = R * W + (if (x == 0) L + R else 0);
    @activate(compute);
  }
}
var done: i32 = 0;
task compute() void {
  const result = @get_dsd(mem4d_dsd, .{ .base_address = &next[R * (W + 1)], .stride = .{ 1, 2 * R + 1 }, .extent = .{ L, L } });
  var from = @get_dsd(mem4d_dsd, .{ .base_address = &now[R * (W + 1)], .stride = .{ 1, 2 * R + 1 }, .extent = .{ L, L } });
  var k: I = 0;
  @fmuls(result, from, factors[0]);
  if (box) {
    from = @increment_dsd_offset(from, -(R * (W + 1)), f32);
    for (@range(i16, 2 * r + 1)) |i| {
      for (@range(i16, 2 * r + 1)) |j| {
        if (i != r or j != r) @fmacs(result, result, from, factors[i * (2 * r + 1) + j]);
        from = @increment_dsd_offset(from, 1, f32);
      }
      from = @increment_dsd_offset(from, W - (2 * R + 1), f32);
    }
  } else {
    inline for (.{ -W, W, -1, 1 }) |way| {
      var at = from;
      for (@range(i16, r)) |d| { at = @increment_dsd_offset(at, way, f32); @fmacs(result, result, at, factors[d + 1]); }
    }
  }
  if (column == row) {  // the points on the diagonal of the whole array keep their values
    for (@range(I, L)) |i| { next[(R + i) * W + i + R] = now[(R + i) * W + i + R]; }
  }
  const kept = now; now = next; next = kept;
  @unblock(h_id); @unblock(v_id);
  done += 1;
  if (done == its) { stop(); } else { send(); }
}
task main() void {
  column = @as(I, layout_of.get_x_coord()); row = @as(I, layout_of.get_y_coord());
  start();
  send();
}
comptime {
  @bind_local_task(h_sent, @get_local_task_id(10)); @bind_local_task(v_sent, @get_local_task_id(11));
  @bind_local_task(sync, @get_local_task_id(12)); @bind_local_task(compute, @get_local_task_id(13));
  @bind_data_task(h_data, h_id); @bind_data_task(v_data, v_id);
  @bind_control_task(h_close, @get_control_task_id(40)); @bind_control_task(v_close, @get_control_task_id(41));
  if (@is_arch("wse3")) {
    @initialize_queue(@get_input_queue(2), .{ .color = h_in });
    @initialize_queue(@get_input_queue(4), .{ .color = v_in });
    @initialize_queue(h_queue, .{ .color = @get_color(x) });
    @initialize_queue(v_queue, .{ .color = @get_color(2 + y) });
  }
}
)";

// A star of radius r over tw x th points on each PE; only the PE in the middle of 3 x 3 computes,
// the others send and receive borders. The values lie in the second of two arrays, in rows of an
// odd pitch; sums go to the first. All operations take descriptors of two dimensions; the tasks at
// the end of each transfer count, the last one of the receptions starts the sums, which wait until
// all sends are done.
const std::string kTilesLayout = R"(
param tw: i16; param th: i16; param r: i16; param its: i16;
layout {
  @set_rectangle(3, 3);
  for (@range(i16, 3)) |x| { for (@range(i16, 3)) |y| {
    const out: i16 = (x + y) % 2;
    @set_tile_code(x, y, "pe.csl", .{ .tw = tw, .th = th, .r = r, .its = its, .x = x, .y = y });
    for ([4]direction{ EAST, WEST, NORTH, SOUTH }) |way, k| {
      const at: i16 = @as(i16, k);
      const edge = (at == 0 and x == 2) or (at == 1 and x == 0) or (at == 2 and y == 0) or (at == 3 and y == 2);
      if (!edge) {
        @set_color_config(x, y, @get_color(at + 4 * out), .{ .routes = .{ .rx = .{RAMP}, .tx = .{way} } });
        const back: i16 = if (at % 2 == 0) at + 1 else at - 1;
        @set_color_config(x, y, @get_color(back + 4 * (1 - out)), .{ .routes = .{ .rx = .{way}, .tx = .{RAMP} } });
      }
    }
  } }
}
)";
const std::string kTilesPe =
    "param tw: i16; param th: i16; param r: i16; param its: i16; param x: i16; param y: i16;" +
    kClock + R"(
const W: i16 = tw + 2 * r + 1;
const out: i16 = (x + y) % 2;
const inner = x == 1 and y == 1;
const E = x < 2; const V = x > 0; const N = y > 0; const S = y < 2;
const ways: i16 = @as(i16, E) + @as(i16, V) + @as(i16, N) + @as(i16, S);
var factors = @constants([r + 1]f32, 0.1);
var sums: [th + 2 * r, W]f32 = @zeros([th + 2 * r, W]f32);
var values: [th + 2 * r, W]f32 = @zeros([th + 2 * r, W]f32);
const here = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> values[i + r, j + r] });
const sum = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> sums[i + r, j + r] });
const out_e = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, r} -> values[i + r, j + tw] });
const out_w = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, r} -> values[i + r, j + r] });
const out_n = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{r, tw} -> values[i + r, j + r] });
const out_s = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{r, tw} -> values[i + th, j + r] });
const in_e = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, r} -> values[i + r, j + tw + r] });
const in_w = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, r} -> values[i + r, j] });
const in_n = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{r, tw} -> values[i, j + r] });
const in_s = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{r, tw} -> values[i + th + r, j + r] });
fn to(comptime k: i16, comptime n: i16) fabout_dsd {
  return @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = @get_color(k + 4 * out), .output_queue = @get_output_queue(k + 1) });
}
fn from(comptime k: i16, comptime n: i16) fabin_dsd {
  const back: i16 = if (k % 2 == 0) k + 1 else k - 1;
  return @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = @get_color(back + 4 * (1 - out)), .input_queue = @get_input_queue(k + 4) });
}
const to_e = to(0, th * r); const to_w = to(1, th * r); const to_n = to(2, tw * r); const to_s = to(3, tw * r);
const from_e = from(0, th * r); const from_w = from(1, th * r); const from_n = from(2, tw * r); const from_s = from(3, tw * r);
const compute_id = @get_local_task_id(10);
const main_id = @get_local_task_id(9);
var sent: i16 = 0;
var received: i16 = 0;
var done: i16 = 0;
fn count_sent() void {
  sent += 1;
  if (sent < ways) return;
  sent = 0;
  @unblock(compute_id);
}
fn count_received() void {
  received += 1;
  if (received < ways) return;
  received = 0;
  @activate(compute_id);
}
task sent_e() void { count_sent(); }
task sent_w() void { count_sent(); }
task sent_n() void { count_sent(); }
task sent_s() void { count_sent(); }
task received_e() void { count_received(); }
task received_w() void { count_received(); }
task received_n() void { count_received(); }
task received_s() void { count_received(); }
task main() void {
  if (done == 0) start();
  if (done >= its) { stop(); return; }
  @block(compute_id);
  if (V) @fmovs(to_w, out_w, .{ .async = true, .activate = sent_w });
  if (E) @fmovs(to_e, out_e, .{ .async = true, .activate = sent_e });
  if (N) @fmovs(to_n, out_n, .{ .async = true, .activate = sent_n });
  if (S) @fmovs(to_s, out_s, .{ .async = true, .activate = sent_s });
  if (V) @fmovs(in_w, from_w, .{ .async = true, .activate = received_w });
  if (E) @fmovs(in_e, from_e, .{ .async = true, .activate = received_e });
  if (N) @fmovs(in_n, from_n, .{ .async = true, .activate = received_n });
  if (S) @fmovs(in_s, from_s, .{ .async = true, .activate = received_s });
  done += 1;
}
task compute() void {
  if (inner) {
    inline for (@range(i16, 1, r + 1, 1)) |d| {
      const factor = factors[d];
      const up = @increment_dsd_offset(here, -d * W, f32);
      if (d == 1) { @fmuls(sum, up, factor); } else { @fmacs(sum, sum, up, factor); }
      @fmacs(sum, sum, @increment_dsd_offset(here, d * W, f32), factor);
      @fmacs(sum, sum, @increment_dsd_offset(here, -d, f32), factor);
      @fmacs(sum, sum, @increment_dsd_offset(here, d, f32), factor);
    }
    @fmacs(here, sum, here, factors[0]);
  }
  @activate(main_id);
}
comptime {
  @bind_local_task(compute, compute_id);
  @bind_local_task(sent_e, @get_local_task_id(11)); @bind_local_task(sent_w, @get_local_task_id(12));
  @bind_local_task(sent_n, @get_local_task_id(13)); @bind_local_task(sent_s, @get_local_task_id(14));
  @bind_local_task(received_e, @get_local_task_id(15)); @bind_local_task(received_w, @get_local_task_id(16));
  @bind_local_task(received_n, @get_local_task_id(17)); @bind_local_task(received_s, @get_local_task_id(18));
  inline for (.{ E, V, N, S }) |open, k| {
    if (open) {
      const at: i16 = k;
      const back: i16 = if (at % 2 == 0) at + 1 else at - 1;
      @initialize_queue(@get_input_queue(at + 4), .{ .color = @get_color(back + 4 * (1 - out)) });
      if (@is_arch("wse3")) @initialize_queue(@get_output_queue(at + 1), .{ .color = @get_color(at + 4 * out) });
    }
  }
}
)";

// The same for a radius of one, whose measured program differs: descriptor registers, loaded when
// the program starts, those of the borders in memory again for each iteration; sums of neighbours
// by
// @fadds between two multiplications.
const std::string kTilesOnePe =
    "param tw: i16; param th: i16; param r: i16; param its: i16; param x: i16; param y: i16;" +
    kClock + R"(
const W: i16 = tw + 3;
const out: i16 = (x + y) % 2;
const inner = x == 1 and y == 1;
const E = x < 2; const V = x > 0; const N = y > 0; const S = y < 2;
const ways: i16 = @as(i16, E) + @as(i16, V) + @as(i16, N) + @as(i16, S);
var sent: i16 = 0; var received: i16 = 0; var done: i32 = 0; var last: i32 = its;
var factors = @constants([2]f32, 0.1);
var sums: [th + 2, W]f32 = @zeros([th + 2, W]f32);
var values: [th + 2, W]f32 = @zeros([th + 2, W]f32);
var ratio: f32 = 2.0;
const here = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> values[i + 1, j + 1] });
const sum = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> sums[i + 1, j + 1] });
const up = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> values[i, j + 1] });
const down = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> values[i + 2, j + 1] });
const left = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> values[i + 1, j] });
const right = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{th, tw} -> values[i + 1, j + 2] });
const out_n = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{tw} -> values[1, i + 1] });
const out_s = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{tw} -> values[th, i + 1] });
const out_w = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{th} -> values[i + 1, 1] });
const out_e = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{th} -> values[i + 1, tw] });
const in_n = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{tw} -> values[0, i + 1] });
const in_s = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{tw} -> values[th + 1, i + 1] });
const in_w = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{th} -> values[i + 1, 0] });
const in_e = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{th} -> values[i + 1, tw + 1] });
fn to(comptime k: i16, comptime n: i16) fabout_dsd {
  return @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = @get_color(k + 4 * out), .output_queue = @get_output_queue(k + 1) });
}
fn from(comptime k: i16, comptime n: i16) fabin_dsd {
  const back: i16 = if (k % 2 == 0) k + 1 else k - 1;
  return @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = @get_color(back + 4 * (1 - out)), .input_queue = @get_input_queue(k + 4) });
}
const compute_id = @get_local_task_id(20);
const main_id = @get_local_task_id(9);
fn count_sent() void {
  sent += 1;
  if (sent < ways) return;
  sent = 0;
  @unblock(compute_id);
}
fn count_received() void {
  received += 1;
  if (received < ways) return;
  received = 0;
  @activate(compute_id);
}
task sent_e() void { count_sent(); }
task sent_w() void { count_sent(); }
task sent_n() void { count_sent(); }
task sent_s() void { count_sent(); }
task received_e() void { count_received(); }
task received_w() void { count_received(); }
task received_n() void { count_received(); }
task received_s() void { count_received(); }
fn load_borders() void {
  @load_to_dsr(@get_dsr(dsr_src1, 5), out_n); @load_to_dsr(@get_dsr(dsr_src1, 6), out_s);
  @load_to_dsr(@get_dsr(dsr_src1, 7), out_w); @load_to_dsr(@get_dsr(dsr_src1, 8), out_e);
  @load_to_dsr(@get_dsr(dsr_dest, 11), in_n); @load_to_dsr(@get_dsr(dsr_dest, 12), in_s);
  @load_to_dsr(@get_dsr(dsr_dest, 13), in_w); @load_to_dsr(@get_dsr(dsr_dest, 14), in_e);
}
task main() void {
  if (done == 0) start();
  if (done >= last) { stop(); return; }
  load_borders();
  @block(compute_id);
  if (V) @fmovs(@get_dsr(dsr_dest, 7), @get_dsr(dsr_src1, 7), .{ .async = true, .activate = sent_w });
  if (E) @fmovs(@get_dsr(dsr_dest, 8), @get_dsr(dsr_src1, 8), .{ .async = true, .activate = sent_e });
  if (N) @fmovs(@get_dsr(dsr_dest, 5), @get_dsr(dsr_src1, 5), .{ .async = true, .activate = sent_n });
  if (S) @fmovs(@get_dsr(dsr_dest, 6), @get_dsr(dsr_src1, 6), .{ .async = true, .activate = sent_s });
  if (V) @fmovs(@get_dsr(dsr_dest, 13), @get_dsr(dsr_src1, 13), .{ .async = true, .activate = received_w });
  if (E) @fmovs(@get_dsr(dsr_dest, 14), @get_dsr(dsr_src1, 14), .{ .async = true, .activate = received_e });
  if (N) @fmovs(@get_dsr(dsr_dest, 11), @get_dsr(dsr_src1, 11), .{ .async = true, .activate = received_n });
  if (S) @fmovs(@get_dsr(dsr_dest, 12), @get_dsr(dsr_src1, 12), .{ .async = true, .activate = received_s });
  done += 1;
}
task compute() void {
  if (inner) {
    @fmuls(@get_dsr(dsr_dest, 10), @get_dsr(dsr_src0, 10), ratio);
    @fadds(@get_dsr(dsr_dest, 1), @get_dsr(dsr_src0, 1), @get_dsr(dsr_src1, 1));
    @fadds(@get_dsr(dsr_dest, 2), @get_dsr(dsr_src0, 2), @get_dsr(dsr_src1, 2));
    @fadds(@get_dsr(dsr_dest, 3), @get_dsr(dsr_src0, 3), @get_dsr(dsr_src1, 3));
    @fadds(@get_dsr(dsr_dest, 4), @get_dsr(dsr_src0, 4), @get_dsr(dsr_src1, 4));
    @fmuls(@get_dsr(dsr_dest, 9), @get_dsr(dsr_src0, 9), factors[1]);
  }
  @activate(main_id);
}
comptime {
  @bind_local_task(compute, compute_id);
  @bind_local_task(sent_e, @get_local_task_id(11)); @bind_local_task(sent_w, @get_local_task_id(12));
  @bind_local_task(sent_n, @get_local_task_id(13)); @bind_local_task(sent_s, @get_local_task_id(14));
  @bind_local_task(received_e, @get_local_task_id(15)); @bind_local_task(received_w, @get_local_task_id(16));
  @bind_local_task(received_n, @get_local_task_id(17)); @bind_local_task(received_s, @get_local_task_id(18));
  load_borders();
  @load_to_dsr(@get_dsr(dsr_dest, 5), to(2, tw), .{ .async = true, .activate = sent_n });
  @load_to_dsr(@get_dsr(dsr_dest, 6), to(3, tw), .{ .async = true, .activate = sent_s });
  @load_to_dsr(@get_dsr(dsr_dest, 7), to(1, th), .{ .async = true, .activate = sent_w });
  @load_to_dsr(@get_dsr(dsr_dest, 8), to(0, th), .{ .async = true, .activate = sent_e });
  @load_to_dsr(@get_dsr(dsr_src1, 11), from(2, tw), .{ .async = true, .activate = received_n });
  @load_to_dsr(@get_dsr(dsr_src1, 12), from(3, tw), .{ .async = true, .activate = received_s });
  @load_to_dsr(@get_dsr(dsr_src1, 13), from(1, th), .{ .async = true, .activate = received_w });
  @load_to_dsr(@get_dsr(dsr_src1, 14), from(0, th), .{ .async = true, .activate = received_e });
  @load_to_dsr(@get_dsr(dsr_src0, 1), sum); @load_to_dsr(@get_dsr(dsr_src0, 2), sum);
  @load_to_dsr(@get_dsr(dsr_src0, 3), sum); @load_to_dsr(@get_dsr(dsr_src0, 4), sum);
  @load_to_dsr(@get_dsr(dsr_dest, 1), sum); @load_to_dsr(@get_dsr(dsr_dest, 2), sum);
  @load_to_dsr(@get_dsr(dsr_dest, 3), sum); @load_to_dsr(@get_dsr(dsr_dest, 4), sum);
  @load_to_dsr(@get_dsr(dsr_src1, 1), up); @load_to_dsr(@get_dsr(dsr_src1, 2), down);
  @load_to_dsr(@get_dsr(dsr_src1, 3), left); @load_to_dsr(@get_dsr(dsr_src1, 4), right);
  @load_to_dsr(@get_dsr(dsr_dest, 9), here); @load_to_dsr(@get_dsr(dsr_src0, 9), sum);
  @load_to_dsr(@get_dsr(dsr_dest, 10), sum); @load_to_dsr(@get_dsr(dsr_src0, 10), here);
  inline for (.{ E, V, N, S }) |open, k| {
    if (open) {
      const at: i16 = k;
      const back: i16 = if (at % 2 == 0) at + 1 else at - 1;
      @initialize_queue(@get_input_queue(at + 4), .{ .color = @get_color(back + 4 * (1 - out)) });
      if (@is_arch("wse3")) @initialize_queue(@get_output_queue(at + 1), .{ .color = @get_color(at + 4 * out) });
    }
  }
}
)";

// A star of radius one with a single point on each PE: everything in registers, one element an
// operation. Each PE multicasts its point, WSE-2 takes two neighbours in one operation. The PEs on
// the edge only send, and drop what one neighbour sends them.
const std::string kPointsLayout = R"(
param w: i16; param its: i16;
fn shade(x: i16, y: i16) i16 { return ((x + (y / 2) % 2) % 3) + (y % 2) * 3; }
layout {
  @set_rectangle(w, w);
  for (@range(i16, w)) |x| { for (@range(i16, w)) |y| {
    const edge = x == 0 or y == 0 or x == w - 1 or y == w - 1;
    const own = @get_color(shade(x, y));
    const e = @get_color(shade(x + 1, y)); const v = @get_color(shade(x + 2, y));
    const n = @get_color(shade(x, y + 3)); const s = @get_color(shade(x, y + 1));
    @set_tile_code(x, y, "pe.csl", .{ .its = its, .edge = edge, .x = x, .y = y, .w = w, .own = own, .e = e, .v = v, .n = n, .s = s });
    if (x == 0) { @set_color_config(x, y, own, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } }); }
    else if (x == w - 1) { @set_color_config(x, y, own, .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } }); }
    else if (y == 0) { @set_color_config(x, y, own, .{ .routes = .{ .rx = .{RAMP}, .tx = .{SOUTH} } }); }
    else if (y == w - 1) { @set_color_config(x, y, own, .{ .routes = .{ .rx = .{RAMP}, .tx = .{NORTH} } }); }
    else { @set_color_config(x, y, own, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST, WEST, NORTH, SOUTH} } }); }
    @set_color_config(x, y, e, .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });
    @set_color_config(x, y, v, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });
    @set_color_config(x, y, n, .{ .routes = .{ .rx = .{NORTH}, .tx = .{RAMP} } });
    @set_color_config(x, y, s, .{ .routes = .{ .rx = .{SOUTH}, .tx = .{RAMP} } });
  } }
}
)";
const std::string kPointsPe =
    "param its: i16; param edge: bool; param x: i16; param y: i16; param w: i16; param own: color; "
    "param e: color; param v: color; param n: color; param s: color;" +
    kClock + R"(
var value: [1]f32 = @constants([1]f32, 1.0); var scaled = @zeros([1]f32);
var one = @zeros([1]f32); var two = @zeros([1]f32); var dropped = @zeros([1]f32);
var center: f32 = 0.2; var side: f32 = 0.2;
fn in(comptime c: color, comptime q: u16) fabin_dsd {
  return @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = c, .input_queue = @get_input_queue(q) });
}
fn of(comptime p: anytype) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .base_address = p, .extent = 1 }); }
const in_e = in(e, 3); const in_v = in(v, 2); const in_n = in(n, 4); const in_s = in(s, 5);
const rest = of(&dropped);
const two_inputs = @is_arch("wse2");
const send_to = @get_dsr(dsr_dest, 1);
const here = @get_dsr(dsr_src0, 1); const here_to = @get_dsr(dsr_dest, 2); const before = @get_dsr(dsr_src1, 3);
const from_e = if (two_inputs) @get_dsr(dsr_src0, 8) else @get_dsr(dsr_src1, 8);
const from_n = if (two_inputs) @get_dsr(dsr_src0, 10) else @get_dsr(dsr_src1, 10);
const from_v = @get_dsr(dsr_src1, 9); const from_s = @get_dsr(dsr_src1, 11);
const one_to = @get_dsr(dsr_dest, 8); const two_to = @get_dsr(dsr_dest, 10);
const one_in = @get_dsr(dsr_src1, 4); const two_in = @get_dsr(dsr_src1, 5);
task main() void {
  const corner = (x == 0 or x == w - 1) and (y == 0 or y == w - 1);
  if (corner) return;
  if (edge) @fmovs(send_to, before);
  start();
  for (@range(i16, its)) |i| {
    if (edge) {
      @fmovs(send_to, before);
      if (x == 0) { @fmovs(rest, in_e); } else if (x == w - 1) { @fmovs(rest, in_v); }
      else if (y == 0) { @fmovs(rest, in_s); } else { @fmovs(rest, in_n); }
    } else {
      @fmuls(send_to, here, side);
      @fmuls(here_to, here, center);
      if (two_inputs) {
        @fadds(one_to, from_e, from_v);
        @fadds(two_to, from_n, from_s);
        @fadds(here_to, here, one_in);
        @fadds(here_to, here, two_in);
      } else {
        @fadds(here_to, here, from_e); @fadds(here_to, here, from_v);
        @fadds(here_to, here, from_n); @fadds(here_to, here, from_s);
      }
    }
  }
  stop();
}
comptime {
  @load_to_dsr(send_to, @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = own, .output_queue = @get_output_queue(1) }));
  @load_to_dsr(here, of(&value)); @load_to_dsr(here_to, of(&value)); @load_to_dsr(before, of(&scaled));
  @load_to_dsr(from_e, in(e, 3)); @load_to_dsr(from_v, in(v, 2)); @load_to_dsr(from_n, in(n, 4)); @load_to_dsr(from_s, in(s, 5));
  @load_to_dsr(one_to, of(&one)); @load_to_dsr(two_to, of(&two)); @load_to_dsr(one_in, of(&one)); @load_to_dsr(two_in, of(&two));
  @initialize_queue(@get_input_queue(3), .{ .color = e }); @initialize_queue(@get_input_queue(2), .{ .color = v });
  @initialize_queue(@get_input_queue(4), .{ .color = n }); @initialize_queue(@get_input_queue(5), .{ .color = s });
  if (@is_arch("wse3")) @initialize_queue(@get_output_queue(1), .{ .color = own });
}
)";

// The last PE's vector goes to everybody, west along the last row and north from there; before
// that, if asked for, a chain along the only row adds all vectors up in it.
const std::string kBroadcastLayout = R"(
param w: u16; param h: u16; param n: u16; param sum: u16;
const b = @get_color(0);
const c = [2]color { @get_color(1), @get_color(2) };
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| { for (@range(u16, h)) |y| {
    const root = x == w - 1 and y == h - 1;
    @set_tile_code(x, y, "pe.csl", .{ .n = n, .sum = sum == 1, .root = root, .first = x == 0, .timed = x == 0 and y == 0, .all = b,
      .to = c[x % 2], .from = c[(x + 1) % 2] });
    if (y == h - 1) {
      const rx = if (root) RAMP else EAST;
      if (root) {
        if (h == 1) { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{rx}, .tx = .{WEST} } }); }
        else { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{rx}, .tx = .{WEST, NORTH} } }); }
      } else if (h == 1) {
        if (x == 0) { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{rx}, .tx = .{RAMP} } }); }
        else { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{rx}, .tx = .{RAMP, WEST} } }); }
      } else {
        if (x == 0) { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{rx}, .tx = .{RAMP, NORTH} } }); }
        else { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{rx}, .tx = .{RAMP, WEST, NORTH} } }); }
      }
    } else if (y == 0) { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{SOUTH}, .tx = .{RAMP} } }); }
    else { @set_color_config(x, y, b, .{ .routes = .{ .rx = .{SOUTH}, .tx = .{RAMP, NORTH} } }); }
    if (sum == 1) {
      if (!root) @set_color_config(x, y, c[x % 2], .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });
      if (x > 0) @set_color_config(x, y, c[(x + 1) % 2], .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });
    }
  } }
}
)";
const std::string kBroadcastPe =
    "param n: u16; param sum: bool; param root: bool; param first: bool; param timed: bool; param "
    "all: "
    "color; param to: color; param from: color;" +
    kClock + R"(
var v = @zeros([n]f32);
const mem = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from, .input_queue = @get_input_queue(2) });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to, .output_queue = @get_output_queue(3) });
const all_in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = all, .input_queue = @get_input_queue(3) });
const all_out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = all, .output_queue = @get_output_queue(2) });
task main() void {
  if (timed) start();
  if (sum) {
    if (first) { @fmovs(out, mem); }
    else if (root) { @fadds(mem, in, mem); }
    else { @fadds(out, in, mem); }
  }
  if (root) { @fmovs(all_out, mem); } else { @fmovs(mem, all_in); }
  if (timed) stop();
}
)";

}  // namespace weft::wse::timing_programs
