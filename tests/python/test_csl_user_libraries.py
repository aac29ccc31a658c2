# SPDX-License-Identifier: Apache-2.0
"""CSL programs as users of the SDK write them, beside NumPy: the libraries, streams and copies of the host."""

import re
import sys

import numpy as np
import pytest
from csl_machine import COLUMN, ROW, SYS, Machine, both, layout
from test_wse_programs import ROOT, wse

sys.path.insert(0, str(ROOT / "compat" / "cerebras"))
from cerebras.sdk.debug.debug_util import debug_util  # noqa: E402

rng = np.random.default_rng(19)


@both
def test_functions_of_math_in_both_widths(arch, tmp_path):
    n = 33
    names = ["sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "abs", "inv", "atan"]
    calls = "".join(
        f"  for (@range(u16, n)) |i| {{ f[{k} * n + i] = math.{name}(x[i]); h[{k} * n + i] = math.{name}(@as(f16, x[i])); }}\n"
        for k, name in enumerate(names)
    )
    pe = (
        SYS
        + f"""
param n: u16;
const math = @import_module("<math>");
var x = @zeros([n]f32); var f = @zeros([{len(names)} * n]f32); var h = @zeros([{len(names)} * n]f16);
var x_p: [*]f32 = &x; var f_p: [*]f32 = &f; var h_p: [*]f16 = &h;
fn run() void {{
{calls}  sys.unblock_cmd_stream();
}}
comptime {{ @export_symbol(x_p, "x"); @export_symbol(f_p, "f"); @export_symbol(h_p, "h"); @export_symbol(run); }}
"""
    )
    exports = [
        ("x", "[*]f32", True),
        ("f", "[*]f32", False),
        ("h", "[*]f16", False),
        ("run", "fn()void"),
    ]
    text = layout(exports, params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    x = (rng.random(n) * 4 + 0.05).astype(np.float32)
    m.put("x", x)
    m.launch("run")
    f = m.get("f", n * len(names)).reshape(-1, n)
    h = m.get16("h", n * len(names), np.float16).reshape(-1, n)
    other = {"inv": lambda v: 1 / v, "atan": np.arctan}
    for k, name in enumerate(names):
        of = other.get(name) or getattr(np, name)
        np.testing.assert_allclose(f[k], of(x.astype(np.float64)), rtol=1e-6, err_msg=name)
        half = x.astype(np.float16).astype(np.float64)
        np.testing.assert_allclose(h[k], of(half), rtol=2e-3, atol=1e-4, err_msg=name)
    m.stop()


@both
def test_random_numbers_differ_by_seed_and_have_their_moments(arch, tmp_path):
    n = 500
    pe = (
        SYS
        + """
param n: u16;
const random = @import_module("<random>"); const place = @import_module("<layout>");
var u = @zeros([n]f32); var u_p: [*]f32 = &u;
fn draw(seed: u32) void {
  random.set_global_prng_seed(seed + @as(u32, place.get_x_coord()) * 17 + @as(u32, place.get_y_coord()));
  for (@range(u16, n)) |i| { u[i] = random.random_f32(-2.0, 3.0); }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(u_p, "u"); @export_symbol(draw); }
"""
    )
    text = layout(
        [("u", "[*]f32", False), ("draw", "fn(u32)void")], params="param n: u16;", binding=".n = n"
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, 2, 3, {"n": n})
    draws = []
    for seed in (5, 6, 5):
        m.launch("draw", np.uint32(seed))
        draws.append(m.get("u", n))
    np.testing.assert_array_equal(draws[0], draws[2])
    u = draws[0].reshape(6, n)
    assert len({row.tobytes() for row in u}) == 6
    assert u.min() >= -2 and u.max() < 3
    # The mean of 3000 uniform numbers of width 5 has a deviation of 0.026, their variance one of 0.034.
    assert abs(u.mean() - 0.5) < 0.13 and abs(u.var() - 25 / 12) < 0.17
    assert not np.array_equal(draws[0], draws[1])
    m.stop()


@both
def test_counted_cycles_grow_with_the_work(arch, tmp_path):
    pe = (
        SYS
        + """
const time = @import_module("<time>");
var v = @zeros([600]f32); var took = @zeros([3]u32); var took_p: [*]u32 = &took;
var t0 = @zeros([time.tsc_size_words]u16); var t1 = @zeros([time.tsc_size_words]u16);
fn words(t: *[3]u16) u32 { return @as(u32, t.*[0]) | @as(u32, t.*[1]) << 16; }
fn run(n: u16, k: u16) void {
  time.reset_tsc_counter();
  time.enable_tsc();
  time.get_timestamp(&t0);
  const d = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n });
  @fmuls(d, d, 1.5);
  time.get_timestamp(&t1);
  took[k] = words(&t1) - words(&t0);
  time.disable_tsc();
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(took_p, "took"); @export_symbol(run); }
"""
    )
    text = layout([("took", "[*]u32", False), ("run", "fn(u16,u16)void")])
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe})
    for k, n in enumerate((100, 300, 500)):
        m.launch("run", np.uint16(n), np.uint16(k))
    a, b, c = m.get("took", 3, np.uint32)[0, 0].astype(int)
    assert c - b == b - a == 200  # an element a cycle, and the same beginning
    m.stop()


@both
def test_products_by_collectives_with_every_root(arch, tmp_path):
    """x goes from a root to its row, partial sums go to the root's column; the root is another one in each launch."""
    w, h, rows, columns = 3, 2, 5, 4
    pe = (
        SYS
        + """
param c2d; param R: u16; param C: u16;
const mx = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.x, .queues = [2]u16{ 2, 4 }, .dest_dsr_ids = [1]u16{ 1 }, .src0_dsr_ids = [1]u16{ 1 }, .src1_dsr_ids = [1]u16{ 1 } });
const my = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.y, .queues = [2]u16{ 3, 5 }, .dest_dsr_ids = [1]u16{ 2 }, .src0_dsr_ids = [1]u16{ 2 }, .src1_dsr_ids = [1]u16{ 2 } });
var A = @zeros([R, C]f32); var x = @zeros([C]f32); var part = @zeros([R]f32); var y = @zeros([R]f32);
var A_p: [*]f32 = @ptrcast([*]f32, &A); var x_p: [*]f32 = &x; var y_p: [*]f32 = &y;
const sent = @get_local_task_id(15); const summed = @get_local_task_id(16);
var root_x: u16 = 0; var begun: bool = false;
fn run(rx: u16, ry: u16) void {
  if (!begun) { mx.init(); my.init(); begun = true; }
  root_x = rx;
  my.broadcast(ry, @ptrcast([*]u32, &x), C, sent);
}
task got_x() void {
  const p = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{R} -> part[i] });
  @fmovs(p, 0.0);
  for (@range(u16, C)) |j| {
    @fmacs(p, p, @increment_dsd_offset(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{R} -> A[i, 0] }), @as(i16, j), f32), x[j]);
  }
  mx.reduce_fadds(root_x, &part, &y, R, summed);
}
task got_y() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(got_x, sent); @bind_local_task(got_y, summed);
  @export_symbol(A_p, "A"); @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(run);
}
"""
    )
    binding = """.R = R, .C = C, .c2d = c2d.get_params(x, y, .{
      .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(10), @get_local_task_id(11) },
      .y_colors = .{ @get_color(4), @get_color(5) }, .y_entrypoints = .{ @get_local_task_id(12), @get_local_task_id(13) } })"""
    text = layout(
        [
            ("A", "[*]f32", True),
            ("x", "[*]f32", True),
            ("y", "[*]f32", True),
            ("run", "fn(u16,u16)void"),
        ],
        params='param R: u16; param C: u16; const c2d = @import_module("<collectives_2d/params>");',
        binding=binding,
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, h, {"R": rows, "C": columns})
    A = rng.random((h, w, rows, columns)).astype(np.float32)
    m.put("A", A)
    for rx in range(w):
        for ry in range(h):
            x = rng.random((h, w, columns)).astype(np.float32)
            m.put("x", x)
            m.launch("run", np.uint16(rx), np.uint16(ry))
            want = np.einsum("hwrc,wc->hr", A, x[ry])
            np.testing.assert_allclose(m.get("y", rows)[:, rx], want, rtol=1e-5)
    m.stop()


def test_messages_of_every_pe_to_every_other(tmp_path):
    """WSE-3: an exchange in rounds, each PE with the one whose number differs from its own by the round's in a cycle."""
    w, h, n = 3, 2, 4
    pe = (
        SYS
        + """
param n: u16; param P: u16;
const place = @import_module("<layout>");
const post = @import_module("<message_passing>", .{ .input_queue_id = @get_input_queue(2), .output_queue_id = @get_output_queue(2) });
var out = @zeros([P * n]f32); var got = @zeros([P * n]f32); var out_p: [*]f32 = &out; var got_p: [*]f32 = &got;
const next = @get_local_task_id(12);
var round: u16 = 0; var me: u16 = 0;
fn run() void { post.init(); me = place.get_y_coord() * 3 + place.get_x_coord(); round = 0; @activate(next); }
task step() void {
  round += 1;
  if (round == P) {
    for (@range(u16, n)) |i| { got[me * n + i] = out[me * n + i]; }
    sys.unblock_cmd_stream();
    return;
  }
  const to = (me + round) % P; const from = (me + P - round) % P;
  post.send_message(to % 3, to / 3, &out[to * n], n, .{});
  post.recv_message(&got[from * n], n, .{ .activate = next });
}
comptime { @bind_local_task(step, next); @export_symbol(out_p, "out"); @export_symbol(got_p, "got"); @export_symbol(run); }
"""
    )
    text = layout(
        [("out", "[*]f32", True), ("got", "[*]f32", False), ("run", "fn()void")],
        params="param n: u16;",
        binding=".n = n, .P = W * H",
    )
    m = Machine(tmp_path, "wse3", {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    out = rng.random((w * h, w * h, n)).astype(np.float32)
    m.put("out", out)
    m.launch("run")
    got = m.get("got", w * h * n).reshape(w * h, w * h, n)
    np.testing.assert_array_equal(got, out.transpose(1, 0, 2))
    m.stop()


def test_messages_whose_length_the_receiver_does_not_know(tmp_path):
    """WSE-3: as above, with more elements in each round; a message is received before it is sent."""
    w, h, n = 3, 2, 9
    pe = (
        SYS
        + """
param n: u16; param P: u16;
const place = @import_module("<layout>");
const post = @import_module("<message_passing>", .{ .input_queue_id = 2, .output_queue_id = 3, .enable_asserts = true });
var out = @zeros([P * n]f32); var got = @zeros([P * n]f32); var out_p: [*]f32 = &out; var got_p: [*]f32 = &got;
const next = @get_local_task_id(12);
var round: u16 = 0; var me: u16 = 0;
fn run() void { post.init(); me = place.get_y_coord() * 3 + place.get_x_coord(); round = 0; @activate(next); }
task step() void {
  round += 1;
  if (round == P) { sys.unblock_cmd_stream(); return; }
  const to = (me + round) % P; const from = (me + P - round) % P;
  post.recv_message(&got[from * n], .{ .activate = next });
  post.send_message(to % 3, to / 3, &out[to * n], round + 3, .{});
}
comptime { @bind_local_task(step, next); @export_symbol(out_p, "out"); @export_symbol(got_p, "got"); @export_symbol(run); }
"""
    )
    text = layout(
        [("out", "[*]f32", True), ("got", "[*]f32", False), ("run", "fn()void")],
        params="param n: u16;",
        binding=".n = n, .P = W * H",
    )
    m = Machine(tmp_path, "wse3", {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    count = w * h
    out = rng.random((count, count, n)).astype(np.float32)
    m.put("out", out)
    m.launch("run")
    got = m.get("got", count * n).reshape(count, count, n)
    m.stop()
    want = np.zeros_like(got)
    for to in range(count):
        for sender in range(count):
            k = (to - sender) % count + 3 if to != sender else 0
            want[to, sender, :k] = out[sender, to, :k]
    np.testing.assert_array_equal(got, want)


MAIL = """
const place = @import_module("<layout>");
const iq = @get_input_queue(2);
const post = @import_module("<message_passing>", .{ .input_queue_id = iq, .output_queue_id = @get_output_queue(3) });
var out = @zeros([12]u16); var got = @zeros([40]u32); var got_p: [*]u32 = &got;
var at: u16 = 0;
const done = @get_local_task_id(11);
task end() void { sys.unblock_cmd_stream(); }
comptime { @bind_local_task(end, done); @export_symbol(got_p, "got"); @export_symbol(run); }
"""
MAIL_EXPORTS = [("got", "[*]u32", False), ("run", "fn()void")]


def test_a_data_task_takes_a_messages_header_and_all_but_its_last_element(tmp_path):
    w = 3
    pe = (
        SYS
        + MAIL
        + """
fn run() void {
  post.init();
  const x = place.get_x_coord();
  for (@range(u16, 12)) |k| { out[k] = 100 * x + k; }
  post.send_message((x + 1) % 3, 0, &out, 5 + x, .{});
  post.send_message((x + 2) % 3, 0, &out[5], 3, .{ .activate = done });
}
task take(v: u32) void { got[at] = v; at += 1; }
comptime { @bind_data_task(take, @get_data_task_id(iq)); }
"""
    )
    m = Machine(tmp_path, "wse3", {"layout.csl": layout(MAIL_EXPORTS), "pe.csl": pe}, w, 1)
    m.launch("run")
    got = m.get("got", 40, np.uint32)[0]
    m.stop()
    for x in range(w):
        a, b = (x - 1) % w, (x - 2) % w
        one = [5 + a, *(100 * a + k for k in range(4 + a))]
        other = [3, 100 * b + 5, 100 * b + 6]
        assert got[x, : len(one) + 3].tolist() in (one + other, other + one)
        assert not got[x, len(one) + 3 :].any()


def test_a_message_longer_than_its_receiver_expects(tmp_path):
    pe = (
        SYS
        + MAIL
        + """
fn run() void { post.init(); post.recv_message(&got, 3, .{ .activate = done }); post.send_message(0, 0, &out, 4, .{}); }
"""
    )
    m = Machine(tmp_path, "wse3", {"layout.csl": layout(MAIL_EXPORTS), "pe.csl": pe})
    with pytest.raises(wse.WseError) as caught:
        m.launch("run")
        m.get("got", 1, np.uint32)
    assert caught.value.code == "wse.message.length"
    assert "a message of 4 elements arrives where 3 are received" in str(caught.value)


@pytest.mark.parametrize("order", [ROW, COLUMN])
@both
def test_streams_through_data_tasks(arch, order, tmp_path):
    """Each wavelet of the host is squared by a data task and goes back; the host has its order back."""
    w, h, n = 3, 2, 5
    pe = (
        SYS
        + """
param n: u16;
const iq = @get_input_queue(2); const oq = @get_output_queue(2);
const in_color = sys.MEMCPYH2D_1; const out_color = sys.MEMCPYD2H_1;
const id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(in_color);
const out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = out_color, .output_queue = oq });
var v = @zeros([1]f32); const V = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 1 });
var seen = @zeros([1]u32); var seen_p: [*]u32 = &seen;
task take(x: f32) void { @block(id); seen[0] += 1; v[0] = x * x; @fmovs(out, V, .{ .async = true, .unblock = id }); }
comptime {
  @bind_data_task(take, id);
  if (@is_arch("wse3")) { @initialize_queue(iq, .{ .color = in_color }); @initialize_queue(oq, .{ .color = out_color }); }
  @export_symbol(seen_p, "seen");
}
"""
    )
    text = layout([("seen", "[*]u32", False)], params="param n: u16;", binding=".n = n").replace(
        ".height = H }",
        ".height = H, .MEMCPYH2D_1 = @get_color(0), .MEMCPYD2H_1 = @get_color(1) }",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    x, y = rng.random(w * h * n).astype(np.float32), np.zeros(w * h * n, np.float32)
    how = dict(
        streaming=True,
        order=order,
        data_type=wse.MemcpyDataType.MEMCPY_32BIT,
        nonblock=True,
    )
    handle = m.runner.memcpy_d2h(y, 1, 0, 0, w, h, n, **how)
    m.runner.memcpy_h2d(0, x, 0, 0, w, h, n, **how)
    m.runner.task_wait(handle)
    np.testing.assert_array_equal(y, x * x)
    np.testing.assert_array_equal(m.get("seen", 1, np.uint32), n)
    m.stop()


@both
def test_traces_and_prints(arch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pe = (
        SYS
        + """
const place = @import_module("<layout>");
const print = @import_module("<simprint>");
const trace = @import_module("<debug>", .{ .key = "euclid", .buffer_size = 64 });
fn gcd(a: u16, b: u16) u16 {
  trace.trace_u16(a);
  if (b == 0) return a;
  return gcd(b, a % b);
}
fn run(a: u16, b: u16) void {
  trace.trace_string("begin");
  const g = gcd(a + place.get_x_coord(), b);
  trace.trace_f32(@as(f32, g) / 2.0);
  print.fmt_with_coords("gcd {d} of {X}", .{ g, a });
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(run); }
"""
    )
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": layout([("run", "fn(u16,u16)void")]), "pe.csl": pe},
        2,
    )
    m.launch("run", np.uint16(84), np.uint16(36))
    m.stop()
    tool = debug_util(str(tmp_path / "out"))

    def steps(a, b):
        return [a] if b == 0 else [a, *steps(b, a % b)]

    for x in range(2):
        want = steps(84 + x, 36)
        got = tool.read_trace(4 + x, 1, "euclid")
        assert got == ["begin", *want, np.gcd(84 + x, 36) / 2]
    log = (tmp_path / "sim.log").read_text()
    assert re.search(r"^@\d+ PE\(0,0\): gcd 12 of 0054$", log, re.M | re.I), log
    assert re.search(r"^@\d+ PE\(1,0\): gcd 1 of 0054$", log, re.M | re.I), log


@both
def test_the_kernel_of_fourier_transforms(arch, tmp_path):
    w, n = 2, 4
    text = """
param W: u16; param H: u16; param N: u16;
const fft = @import_module("<kernels/fft/fft3d_layout>", .{ .width = W });
layout { fft.FFT_kernel(W, N, f32); }
"""
    m = Machine(tmp_path, arch, {"layout.csl": text}, w, w, {"N": n})
    x = rng.random((n, n, n)) + 1j * rng.random((n, n, n))  # [z][x][y]
    b = n // w

    def parts(a):  # [py][px][z][x][y][2]
        c = a.reshape(n, w, b, w, b).transpose(3, 1, 0, 2, 4)
        return np.stack([c.real, c.imag], -1).astype(np.float32)

    angles = -2 * np.pi * np.arange(n // 2) / n
    twiddles = np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32).ravel()
    m.put("X", parts(x))
    m.put("twiddle_array", np.tile(twiddles, (w, w, 1)))
    m.launch("csfftExecC2C", np.int16(0), np.int16(0))
    got = m.get("X", 2 * n * b * b).reshape(parts(x).shape)
    np.testing.assert_allclose(got, parts(np.fft.fftn(x)), atol=1e-4)
    m.stop()


@both
def test_one_row_or_column_for_all_and_parts_of_the_rectangle(arch, tmp_path):
    w, h, n = 4, 3, 5
    pe = (
        SYS
        + """
param n: u16;
var a = @zeros([n]f32); var b = @zeros([n]f32); var c = @zeros([n]f32);
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b; var c_p: [*]f32 = &c;
fn run() void {
  @fmuls(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> c[i] }), @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] }), @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[i] }));
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(c_p, "c"); @export_symbol(run); }
"""
    )
    exports = [(v, "[*]f32", True) for v in "abc"] + [("run", "fn()void")]
    text = layout(exports, params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    r, how = (
        m.runner,
        dict(
            streaming=False,
            order=ROW,
            data_type=wse.MemcpyDataType.MEMCPY_32BIT,
            nonblock=False,
        ),
    )
    by_row, by_column = rng.random((h, n)).astype(np.float32), rng.random((w, n)).astype(np.float32)
    r.memcpy_h2d_rowbcast(r.get_id("a"), by_row.ravel(), 0, 0, w, h, n, **how)
    r.memcpy_h2d_colbcast(r.get_id("b"), by_column.ravel(), 0, 0, w, h, n, **how)
    patch = rng.random((2, 3, n)).astype(np.float32)  # columns 1 to 3, rows 1 and 2
    r.memcpy_h2d(
        r.get_id("a"),
        patch.transpose(2, 1, 0).ravel(),
        1,
        1,
        3,
        2,
        n,
        **{**how, "order": COLUMN},
    )
    a = np.broadcast_to(by_row[:, None], (h, w, n)).copy()
    a[1:, 1:] = patch
    m.launch("run")
    np.testing.assert_array_equal(m.get("c", n), a * by_column[None])
    out = np.zeros(2 * 1 * n, np.float32)
    r.memcpy_d2h(out, r.get_id("c"), 2, 0, 1, 2, n, **{**how, "order": COLUMN})
    want = (a * by_column[None])[:2, 2:3]
    np.testing.assert_array_equal(out.reshape(n, 1, 2), want.transpose(2, 1, 0))
    m.stop()
