# SPDX-License-Identifier: Apache-2.0
"""CSL programs as users of the SDK write them, beside NumPy: types, compile time, descriptors, functions."""

import numpy as np
import pytest
from csl_machine import SYS, Machine, both, layout
from test_wse_programs import wse

rng = np.random.default_rng(19)


@both
def test_packets_of_unions_packed_structs_and_enums(arch, tmp_path):
    n = 37
    pe = (
        SYS
        + """
param n: u16;
const Kind = enum(u16) { add = 1, sub = 2, scale = 5, drop };
const Head = packed struct { kind: u8, times: u8, id: u16 };
const Word = union { raw: u32, head: Head, value: f32 };
const Account = struct { sum: f32, count: [4]u16, last: Kind };
var words = @zeros([2 * n]u32); var words_p: [*]u32 = &words;
var sums = @zeros([3]f32); var sums_p: [*]f32 = &sums;
var counts = @zeros([4]u32); var counts_p: [*]u32 = &counts;
var accounts: [3]Account = @constants([3]Account, Account{ .sum = 0.0, .count = [4]u16{ 0, 0, 0, 0 }, .last = Kind.drop });
fn apply(a: *Account, kind: Kind, v: f32, times: u8) void {
  var k: u8 = 0;
  while (k < times) : (k += 1) {
    switch (kind) {
      Kind.add => a.*.sum += v,
      Kind.sub => a.*.sum -= v,
      Kind.scale => { if (v == 0.0) continue; a.*.sum *= v; },
      else => return,
    }
  }
  a.*.last = kind;
}
fn run() void {
  for (@range(u16, n)) |i| {
    const head = (Word{ .raw = words[2 * i] }).head;
    const v = (Word{ .raw = words[2 * i + 1] }).value;
    const kind = @as(Kind, @as(u16, head.kind));
    const a = &accounts[head.id % 3];
    apply(a, kind, v, head.times);
    a.*.count[@as(u16, head.kind) % 4] += 1;
  }
  for (@range(u16, 3)) |k| {
    sums[k] = accounts[k].sum;
    for (@range(u16, 4)) |j| { counts[j] += @as(u32, accounts[k].count[j]); }
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(words_p, "words"); @export_symbol(sums_p, "sums"); @export_symbol(counts_p, "counts"); @export_symbol(run); }
"""
    )
    exports = [
        ("words", "[*]u32", True),
        ("sums", "[*]f32", False),
        ("counts", "[*]u32", False),
        ("run", "fn()void"),
    ]
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": layout(exports, params="param n: u16;", binding=".n = n"), "pe.csl": pe},
        params={"n": n},
    )
    kinds = rng.choice([1, 2, 5, 6], n)
    times = rng.integers(0, 4, n)
    ids = rng.integers(0, 9, n)
    values = rng.integers(-3, 4, n).astype(np.float32) / 2
    words = np.empty((n, 2), np.uint32)
    words[:, 0] = kinds | times << 8 | ids << 16
    words[:, 1] = values.view(np.uint32)
    m.put("words", words)
    m.launch("run")
    sums, counts = np.zeros(3, np.float32), np.zeros(4, np.uint32)
    for kind, t, k, v in zip(kinds, times, ids % 3, values):
        for _ in range(t):
            if kind == 1:
                sums[k] += v
            elif kind == 2:
                sums[k] -= v
            elif kind == 5 and v != 0:
                sums[k] *= v
        counts[kind % 4] += 1
    np.testing.assert_array_equal(m.get("sums", 3)[0, 0], sums)
    np.testing.assert_array_equal(m.get("counts", 4, np.uint32)[0, 0], counts)
    m.stop()


@both
def test_tables_made_by_functions_at_compile_time(arch, tmp_path):
    """A table of sines by Taylor's series, primes by a sieve, a permutation, all of them constants of the program."""
    n = 41
    pe = (
        SYS
        + """
param n: u16;
fn sine(comptime x: f32) f32 {
  var term: f32 = x; var sum: f32 = x;
  for (@range(i16, 9)) |k| {
    const d = @as(f32, (2 * k + 2) * (2 * k + 3));
    term = -(term * x * x) / d;
    sum += term;
  }
  return sum;
}
fn sines() [n]f32 {
  var t = @zeros([n]f32);
  for (@range(u16, n)) |i| { t[i] = sine(@as(f32, i) * 0.05); }
  return t;
}
fn primes() [n]u32 {
  var composite = @zeros([4 * n]bool);
  var out = @zeros([n]u32);
  var found: u16 = 0;
  var i: u16 = 2;
  outer: while (i < 4 * n) : (i += 1) {
    if (composite[i]) continue :outer;
    if (found == n) break :outer;
    out[found] = @as(u32, i);
    found += 1;
    var j: u16 = 2 * i;
    while (j < 4 * n) : (j += i) { composite[j] = true; }
  }
  return out;
}
const table = sines();
var table_copy: [n]f32 = table;
var prime_table: [n]u32 = primes();
var picked = @zeros([n]f32);
var table_p: [*]f32 = &table_copy; var primes_p: [*]u32 = &prime_table; var picked_p: [*]f32 = &picked;
fn pick(step: u16) void {
  for (@range(u16, n)) |i| { picked[i] = table[(i * step) % n]; }
  sys.unblock_cmd_stream();
}
comptime {
  @comptime_assert(@element_count(@type_of(table)) == n);
  @export_symbol(table_p, "table"); @export_symbol(primes_p, "primes"); @export_symbol(picked_p, "picked"); @export_symbol(pick);
}
"""
    )
    exports = [
        ("table", "[*]f32", False),
        ("primes", "[*]u32", False),
        ("picked", "[*]f32", False),
        ("pick", "fn(u16)void"),
    ]
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": layout(exports, params="param n: u16;", binding=".n = n"), "pe.csl": pe},
        params={"n": n},
    )
    m.launch("pick", np.uint16(7))
    table = m.get("table", n)[0, 0]
    np.testing.assert_allclose(table, np.sin(np.arange(n) * 0.05), atol=1e-6)
    sieve = [p for p in range(2, 4 * n) if all(p % q for q in range(2, p))][:n]
    sieve += [0] * (n - len(sieve))
    np.testing.assert_array_equal(m.get("primes", n, np.uint32)[0, 0], sieve)
    np.testing.assert_array_equal(m.get("picked", n)[0, 0], table[np.arange(n) * 7 % n])
    m.stop()


@both
def test_permuted_and_reversed_axes_by_descriptors(arch, tmp_path):
    a, b, c = 3, 5, 7
    pe = (
        SYS
        + """
const A = 3; const B = 5; const C = 7;
var x = @zeros([A, B, C]f32); var y = @zeros([C, A, B]f32); var z = @zeros([A, B, C]f32); var s = @zeros([B]f32);
var x_p: [*]f32 = @ptrcast([*]f32, &x); var y_p: [*]f32 = @ptrcast([*]f32, &y); var z_p: [*]f32 = @ptrcast([*]f32, &z); var s_p: [*]f32 = &s;
const whole = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, B, C} -> x[i, j, k] });
const turned = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, B, C} -> y[k, i, j] });
const flipped = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, B, C} -> z[A - 1 - i, j, C - 1 - k] });
const sums = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, C, B} -> s[k] });
const lines = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, C, B} -> x[i, k, j] });
fn run() void {
  @fmovs(turned, whole);
  @fmovs(flipped, whole);
  @fadds(sums, sums, lines);
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(z_p, "z"); @export_symbol(s_p, "s"); @export_symbol(run); }
"""
    )
    exports = [
        ("x", "[*]f32", True),
        ("y", "[*]f32", False),
        ("z", "[*]f32", False),
        ("s", "[*]f32", False),
        ("run", "fn()void"),
    ]
    m = Machine(tmp_path, arch, {"layout.csl": layout(exports), "pe.csl": pe})
    x = rng.random((a, b, c)).astype(np.float32)
    m.put("x", x)
    m.launch("run")
    np.testing.assert_array_equal(m.get("y", x.size).reshape(c, a, b), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(m.get("z", x.size).reshape(a, b, c), x[::-1, :, ::-1])
    np.testing.assert_allclose(m.get("s", b)[0, 0], x.sum((0, 2)), rtol=1e-5)
    m.stop()


@both
def test_maps_with_several_inputs(arch, tmp_path):
    n = 19
    pe = (
        SYS
        + """
param n: u16;
var a = @zeros([n]f32); var b = @zeros([n]f32); var k = @zeros([n]i32); var r = @zeros([n]f32); var q = @zeros([n]i32); var low: f32 = 0.0;
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b; var k_p: [*]i32 = &k; var r_p: [*]f32 = &r; var q_p: [*]i32 = &q;
const math = @import_module("<math>");
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] });
const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[n - 1 - i] });
const K = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> k[i] });
const R = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> r[i] });
const Q = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> q[i] });
var worst: f32 = -1.0;
fn mix(x: f32, y: f32, z: i32, bias: f32) f32 {
  const v = if (z % 2 == 0) x * y else x - y;
  worst = math.max(worst, v);
  return v + bias;
}
fn collatz(z: i32) i32 {
  var x = z; var steps: i32 = 0;
  while (x > 1) : (steps += 1) { x = if (x % 2 == 0) x / 2 else 3 * x + 1; }
  return steps;
}
fn run(bias: f32) void {
  @map(mix, A, B, K, bias, R);
  @map(collatz, K, Q);
  r[0] = worst;
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(k_p, "k"); @export_symbol(r_p, "r"); @export_symbol(q_p, "q"); @export_symbol(run); }
"""
    )
    exports = [(s, "[*]f32", True) for s in "abr"] + [(s, "[*]i32", True) for s in "kq"]
    text = layout([*exports, ("run", "fn(f32)void")], params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    a, b = rng.random((2, n)).astype(np.float32)
    k = rng.integers(1, 30, n).astype(np.int32)
    for name, v in (("a", a), ("b", b), ("k", k)):
        m.put(name, v)
    m.launch("run", np.float32(0.25))
    v = np.where(k % 2 == 0, a * b[::-1], a - b[::-1])
    want = v + np.float32(0.25)
    want[0] = v.max()
    np.testing.assert_array_equal(m.get("r", n)[0, 0], want)

    def steps(x):
        return 0 if x <= 1 else 1 + steps(x // 2 if x % 2 == 0 else 3 * x + 1)

    np.testing.assert_array_equal(m.get("q", n, np.int32)[0, 0], [steps(int(x)) for x in k])
    m.stop()


@both
def test_strings_as_arrays(arch, tmp_path):
    pe = (
        SYS
        + """
const text = @strcat("wafer ", "scale");
const letters = @get_array(text);
const n = @strlen(text);
fn moved() [n]u8 {
  var out = @zeros([n]u8);
  for (@range(u16, n)) |i| {
    const c = letters[i];
    out[i] = if (c >= 'a' and c <= 'z') (c - 'a' + 13) % 26 + 'a' else c;
  }
  return out;
}
const hidden = moved();
var out = @zeros([n]u32); var out_p: [*]u32 = &out;
fn back() void {
  for (hidden) |c, i| { out[i] = @as(u32, if (c >= 'a' and c <= 'z') (c - 'a' + 13) % 26 + 'a' else c); }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(out_p, "out"); @export_symbol(back); }
"""
    )
    text = layout([("out", "[*]u32", False), ("back", "fn()void")])
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe})
    m.launch("back")
    assert bytes(m.get("out", 11, np.uint32)[0, 0].astype(np.uint8)) == b"wafer scale"
    m.stop()


@both
def test_a_filter_of_taps_in_registers(arch, tmp_path):
    """DSRs that keep their place: blocks of a signal, each of the taps an @fmacs over registers."""
    taps, block, blocks = 5, 8, 3
    n = block * blocks
    pe = (
        SYS
        + """
param taps: u16; param block: u16; param blocks: u16;
const n = block * blocks;
var x = @zeros([n + taps - 1]f32); var y = @zeros([n]f32); var w = @zeros([taps]f32);
var x_p: [*]f32 = &x; var y_p: [*]f32 = &y; var w_p: [*]f32 = &w;
const to = @get_dsr(dsr_dest, 2); const acc = @get_dsr(dsr_src0, 2); const from = @get_dsr(dsr_src1, 2);
const Y = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{block} -> y[i] });
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{block} -> x[i] });
fn run() void {
  for (@range(i16, @as(i16, taps))) |t| {
    @load_to_dsr(to, Y, .{ .save_address = true });
    @load_to_dsr(acc, Y, .{ .save_address = true });
    @load_to_dsr(from, @increment_dsd_offset(X, t, f32), .{ .save_address = true });
    for (@range(u16, blocks)) |b| { @fmacs(to, acc, from, w[t]); }
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(w_p, "w"); @export_symbol(run); }
"""
    )
    exports = [(v, "[*]f32", True) for v in "xyw"] + [("run", "fn()void")]
    text = layout(
        exports,
        params="param taps: u16; param block: u16; param blocks: u16;",
        binding=".taps = taps, .block = block, .blocks = blocks",
    )
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": text, "pe.csl": pe},
        params={"taps": taps, "block": block, "blocks": blocks},
    )
    x, w = rng.random(n + taps - 1).astype(np.float32), rng.random(taps).astype(np.float32)
    m.put("x", x)
    m.put("w", w)
    m.launch("run")
    want = np.correlate(x.astype(np.float64), w, "valid")
    np.testing.assert_allclose(m.get("y", n)[0, 0], want, rtol=1e-5)
    m.stop()


@both
def test_pointers_to_functions_and_recursion(arch, tmp_path):
    """Quicksort by recursion over pointers, with the order as a pointer to a function."""
    n = 40
    pe = (
        SYS
        + """
param n: u16;
var v = @zeros([n]i32); var v_p: [*]i32 = &v; var swaps: u32 = 0;
var swaps_a = @zeros([1]u32); var swaps_p: [*]u32 = &swaps_a;
fn up(a: i32, b: i32) bool { return a < b; }
fn down(a: i32, b: i32) bool { return a > b; }
fn by_digit(a: i32, b: i32) bool { return if (a % 10 == b % 10) a < b else a % 10 < b % 10; }
const orders = [3]*const fn(i32, i32)bool{ &up, &down, &by_digit };
fn swap(a: *i32, b: *i32) void { const t = a.*; a.* = b.*; b.* = t; swaps += 1; }
fn sort(at: [*]i32, first: i16, last: i16, before: *const fn(i32, i32)bool) void {
  if (first >= last) return;
  const pivot = at[last];
  var k = first;
  for (@range(i16, first, last, 1)) |i| {
    if (before.*(at[i], pivot)) { swap(&at[i], &at[k]); k += 1; }
  }
  swap(&at[k], &at[last]);
  sort(at, first, k - 1, before);
  sort(at, k + 1, last, before);
}
fn run(which: u16) void { sort(v_p, 0, @as(i16, n) - 1, orders[which]); swaps_a[0] = swaps; sys.unblock_cmd_stream(); }
comptime { @export_symbol(v_p, "v"); @export_symbol(swaps_p, "swaps"); @export_symbol(run); }
"""
    )
    text = layout(
        [("v", "[*]i32", True), ("swaps", "[*]u32", False), ("run", "fn(u16)void")],
        params="param n: u16;",
        binding=".n = n",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    v = rng.integers(0, 1000, n).astype(np.int32)
    for which, want in enumerate(
        (np.sort(v), np.sort(v)[::-1], sorted(v, key=lambda x: (x % 10, x)))
    ):
        m.put("v", v)
        m.launch("run", np.uint16(which))
        np.testing.assert_array_equal(m.get("v", n, np.int32)[0, 0], want)
    assert m.get("swaps", 1, np.uint32) > 0
    m.stop()


@both
def test_arguments_of_every_width_and_names_of_other_modules(arch, tmp_path):
    store = """
param n: u16;
export var total: f32 linkname("the_total") = 0.0;
var steps = @zeros([n]f32);
export fn keep(at: u16, v: f32) f32 { steps[at % n] = v; total += v; return total; }
fn largest() f32 { var m = steps[0]; for (steps) |s| { if (s > m) m = s; } return m; }
"""
    pe = (
        SYS
        + """
extern var total: f32 linkname("the_total");
extern fn keep(at: u16, v: f32) f32;
const store = @import_module("store.csl", .{ .n = 3 });
var out = @zeros([6]f32); var out_p: [*]f32 = &out;
fn run(a: i8, b: u16, c: i32, d: f16, e: f32, f: u32) void {
  out[0] = keep(0, @as(f32, a)); out[1] = keep(1, @as(f32, b)); out[2] = keep(2, @as(f32, c));
  out[3] = keep(3, @as(f32, d)); out[4] = keep(4, e); out[5] = store.largest();
  total += @as(f32, f);
  sys.unblock_cmd_stream();
}
var sum_p: *f32 = &total;
comptime { @export_symbol(out_p, "out"); @export_symbol(sum_p, "sum"); @export_symbol(run); }
"""
    )
    text = layout(
        [
            ("out", "[*]f32", False),
            ("sum", "*f32", False),
            ("run", "fn(i8,u16,i32,f16,f32,u32)void"),
        ]
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe, "store.csl": store})
    values = [np.int8(-7), np.uint16(65000), np.int32(-100000), np.float16(0.375), np.float32(2.5)]
    m.launch("run", *values, np.uint32(70000))
    sums = np.cumsum(np.array(values, np.float32), dtype=np.float32)
    np.testing.assert_array_equal(m.get("out", 6)[0, 0], [*sums, 2.5])
    assert m.get("sum", 1)[0, 0, 0] == sums[-1] + np.float32(70000)
    m.stop()


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32", "i64"])
@both
def test_quotients_and_remainders_by_constants(kind, arch, tmp_path):
    """By divisors that become shifts and products, at the ends of the type and between: as by a divisor in a variable."""
    dtype = np.dtype({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
    info = np.iinfo(dtype)
    drawn = [int(d) for d in rng.integers(2, min(info.max, 10**9), 6)]
    divisors = sorted({1, 2, 3, 7, 8, 10, 64, 100, 127, info.max, info.max // 2 + 1, *drawn})
    n = 64
    ends = [0, 1, info.max, info.max - 1, info.min, info.min + 1]
    values = np.array([*ends, *rng.integers(info.min, info.max, n - len(ends))], dtype)
    size = len(divisors)
    lines = "".join(
        f"    q[{k} * n + i] = x[i] / {d}; r[{k} * n + i] = x[i] % {d};\n"
        for k, d in enumerate(divisors)
    )
    pe = f"""
const n = {n};
export var x = [n]{kind}{{ {", ".join(map(str, values))} }};
export var q = @zeros([{size} * n]{kind}); export var r = @zeros([{size} * n]{kind});
task run() void {{
  for (@range(u16, n)) |i| {{
{lines}  }}
}}
comptime {{ @bind_local_task(run, @get_local_task_id(8)); @activate(@get_local_task_id(8)); }}
"""
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text(pe)
    wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    for engine in ("bytecode", "native"):
        runner = wse.SdkRuntime(str(tmp_path / "out"), memcpy_required=False, engine=engine)
        runner.load()
        runner.run()
        runner.stop()
        q = runner.read_symbol(0, 0, "q", dtype).reshape(size, n)
        r = runner.read_symbol(0, 0, "r", dtype).reshape(size, n)
        for k, d in enumerate(divisors):
            exact = [int(v) for v in values]
            want = [abs(v) // d * (1 if v >= 0 else -1) for v in exact]
            np.testing.assert_array_equal(q[k], want, err_msg=f"{kind} / {d} on {engine}")
            rest = [v - w * d for v, w in zip(exact, want)]
            np.testing.assert_array_equal(r[k], rest, err_msg=f"{kind} % {d} on {engine}")
