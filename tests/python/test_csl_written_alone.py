# SPDX-License-Identifier: Apache-2.0
"""CSL programs of one PE in the manner of the SDK's users, beside NumPy and Python's libraries."""

import hashlib
import zlib

import numpy as np
from csl_machine import SYS, both, everywhere, layout

rng = np.random.default_rng(1901)


@both
def test_sha256_of_messages(arch, tmp_path):
    """Rotations, tables made at compile time from roots of primes, words gathered from bytes."""
    blocks = 3
    pe = (
        SYS
        + """
param blocks: u16;
const WORDS: u16 = 16 * blocks;
var message = @zeros([WORDS]u32); var digest = @zeros([8]u32);
var message_p: [*]u32 = &message; var digest_p: [*]u32 = &digest;
const K = @import_module("table.csl");
var w = @zeros([64]u32);
inline fn ror(x: u32, comptime n: u16) u32 { return (x >> n) | (x << (32 - n)); }
fn schedule(at: u16) void {
  for (@range(u16, 16)) |i| { w[i] = message[at + i]; }
  for (@range(u16, 16, 64, 1)) |i| {
    const a = w[i - 15]; const b = w[i - 2];
    const s0 = ror(a, 7) ^ ror(a, 18) ^ (a >> 3);
    const s1 = ror(b, 17) ^ ror(b, 19) ^ (b >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
}
fn compress() void {
  var v = digest;
  for (K.k) |k, i| {
    const s1 = ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25);
    const ch = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const t1 = v[7] + s1 + ch + k + w[i];
    const s0 = ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22);
    const maj = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    const t2 = s0 + maj;
    var j: i16 = 7;
    while (j > 0) : (j -= 1) { v[j] = v[j - 1]; }
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (@range(u16, 8)) |i| { digest[i] += v[i]; }
}
fn run(count: u16) void {
  digest = K.initial;
  var b: u16 = 0;
  while (b < count) { defer_schedule(b); b += 1; }
  sys.unblock_cmd_stream();
}
fn defer_schedule(b: u16) void { schedule(16 * b); compress(); }
comptime { @export_symbol(message_p, "message"); @export_symbol(digest_p, "digest"); @export_symbol(run); }
"""
    )
    table = """
fn is_prime(n: u32) bool {
  var d: u32 = 2;
  while (d * d <= n) : (d += 1) { if (n % d == 0) return false; }
  return n > 1;
}
// The first 32 bits behind the point of a root, by integers of any size.
fn root(comptime power: i16, p: u32) u32 {
  var low: comptime_int = 0; var high: comptime_int = 1 << 36;
  while (high - low > 1) {
    const middle = (low + high) / 2;
    const cube = if (power == 2) middle * middle else middle * middle * middle;
    if (cube <= @as(comptime_int, p) << (32 * power)) { low = middle; } else { high = middle; }
  }
  return @as(u32, low & 0xffffffff);
}
fn table(comptime n: u16, comptime power: i16) [n]u32 {
  var out = @zeros([n]u32);
  var p: u32 = 2; var found: u16 = 0;
  while (found < n) : (p += 1) {
    if (!is_prime(p)) continue;
    out[found] = root(power, p);
    found += 1;
  }
  return out;
}
const k = table(64, 3);
const initial = table(8, 2);
"""
    exports = [
        ("message", "[*]u32", True),
        ("digest", "[*]u32", False),
        ("run", "fn(u16)void"),
    ]
    text = layout(exports, params="param blocks: u16;", binding=".blocks = blocks")

    def host(m):
        for size in (0, 5, 55, 56, 120):
            data = bytes(rng.integers(0, 256, size, dtype=np.uint8))
            padded = data + b"\x80" + bytes(-(size + 9) % 64) + (8 * size).to_bytes(8, "big")
            words = np.zeros(16 * blocks, np.uint32)
            words[: len(padded) // 4] = np.frombuffer(padded, ">u4")
            m.put("message", words)
            m.launch("run", np.uint16(len(padded) // 64))
            got = m.get("digest", 8, np.uint32)[0, 0].astype(">u4").tobytes()
            assert got == hashlib.sha256(data).digest()

    files = {"layout.csl": text, "pe.csl": pe, "table.csl": table}
    everywhere(tmp_path, arch, files, host, params={"blocks": blocks})


@both
def test_crc32_by_a_table_of_comptime_and_by_bits(arch, tmp_path):
    n = 77
    pe = (
        SYS
        + """
param n: u16;
var bytes = @zeros([n]u16); var bytes_p: [*]u16 = &bytes;
var result = @zeros([2]u32); var result_p: [*]u32 = &result;
const poly: u32 = 0xedb88320;
fn entry(x: u32) u32 {
  var c = x;
  for (@range(i8, 8)) |_| { c = if (c & 1 == 1) poly ^ (c >> 1) else c >> 1; }
  return c;
}
fn make(comptime f: anytype) [256]u32 {
  var t = @zeros([256]u32);
  for (@range(u32, 256)) |i| { t[@as(u16, i)] = f(i); }
  return t;
}
const table = make(entry);
fn by_table(count: u16) u32 {
  var c: u32 = ~@as(u32, 0);
  for (@range(u16, count)) |i| {
    const at = @as(u8, c & 0xff) ^ @as(u8, bytes[i]);
    c = table[@as(u16, at)] ^ (c >> 8);
  }
  return ~c;
}
fn by_bits(p: [*]u16, count: u16) u32 {
  var c: u32 = 0xffffffff;
  var i: u16 = 0;
  while (i < count) : (i += 1) { c = entry((c ^ @as(u32, p[i])) & 0xff) ^ (c >> 8); }
  return c ^ 0xffffffff;
}
fn run(count: u16) void {
  result = [2]u32{ by_table(count), by_bits(&bytes, count) };
  sys.unblock_cmd_stream();
}
comptime {
  @comptime_assert(table[255] == 0x2d02ef8d);
  @export_symbol(bytes_p, "bytes"); @export_symbol(result_p, "result"); @export_symbol(run);
}
"""
    )
    exports = [
        ("bytes", "[*]u16", True),
        ("result", "[*]u32", False),
        ("run", "fn(u16)void"),
    ]
    text = layout(exports, params="param n: u16;", binding=".n = n")

    def host(m):
        data = rng.integers(0, 256, n).astype(np.uint16)
        m.put16("bytes", data)
        for count in (0, 1, n):
            m.launch("run", np.uint16(count))
            want = zlib.crc32(bytes(data[:count].astype(np.uint8)))
            assert m.get("result", 2, np.uint32).ravel().tolist() == [want, want]

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n})


@both
def test_products_of_wide_integers(arch, tmp_path):
    """Limbs of 16 bits: carries by @addc16 over descriptors, products by 32-bit scalars, a quotient by a digit."""
    n = 13
    pe = (
        SYS
        + """
param n: u16;
const m: u16 = 2 * n;
var a = @zeros([n]u16); var b = @zeros([n]u16); var sum = @zeros([n + 1]u16); var product = @zeros([m]u16); var quotient = @zeros([m + 1]u16);
var a_p: [*]u16 = &a; var b_p: [*]u16 = &b; var sum_p: [*]u16 = &sum; var product_p: [*]u16 = &product; var quotient_p: [*]u16 = &quotient;
fn add() void {
  var carry: u32 = 0;
  for (@range(u16, n)) |i| {
    carry += @as(u32, a[i]) + @as(u32, b[i]);
    sum[i] = @as(u16, carry & 0xffff);
    carry >>= 16;
  }
  sum[n] = @as(u16, carry);
}
fn multiply() void {
  product = @zeros([m]u16);
  for (a) |x, i| {
    if (x == 0) continue;
    var carry: u32 = 0;
    for (b) |y, j| {
      const t = @as(u32, x) * @as(u32, y) + @as(u32, product[i + j]) + carry;
      product[i + j] = @as(u16, t);
      carry = t >> @as(u16, 16);
    }
    product[@as(u16, i) + n] = @as(u16, carry);
  }
}
fn divide(digit: u16) void {
  var rest: u32 = 0;
  var i: u16 = m;
  while (i > 0) {
    i -= 1;
    rest = (rest << 16) | @as(u32, product[i]);
    quotient[i] = @as(u16, rest / @as(u32, digit));
    rest %= @as(u32, digit);
  }
  quotient[m] = @as(u16, rest);
}
fn run(digit: u16) void { add(); multiply(); divide(digit); sys.unblock_cmd_stream(); }
comptime {
  @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(sum_p, "sum"); @export_symbol(product_p, "product");
  @export_symbol(quotient_p, "quotient"); @export_symbol(run);
}
"""
    )
    names = ["a", "b", "sum", "product", "quotient"]
    exports = [*((k, "[*]u16", True) for k in names), ("run", "fn(u16)void")]
    text = layout(exports, params="param n: u16;", binding=".n = n")

    def number(limbs):
        return sum(int(v) << 16 * i for i, v in enumerate(limbs.ravel()))

    def host(m):
        a, b = rng.integers(0, 65536, (2, n)).astype(np.uint16)
        a[-1] = b[0] = 65535
        digit = int(rng.integers(1, 65536))
        m.put16("a", a)
        m.put16("b", b)
        m.launch("run", np.uint16(digit))
        x, y = number(a), number(b)
        assert number(m.get16("sum", n + 1, np.uint16)) == x + y
        assert number(m.get16("product", 2 * n, np.uint16)) == x * y
        q = m.get16("quotient", 2 * n + 1, np.uint16).ravel()
        assert (number(q[:-1]), int(q[-1])) == divmod(x * y, digit)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n})


@both
def test_wavelets_of_haar_and_back(arch, tmp_path):
    """Levels of a transform by descriptors of stride 2, set anew in a loop at run time; the inverse by 4D descriptors."""
    n = 64
    pe = (
        SYS
        + """
param n: u16;
const math = @import_module("<math>");
var x = @zeros([n]f32); var t = @zeros([n]f32);
var x_p: [*]f32 = &x;
const half: f32 = 1.0 / math.SQRT_2;
var even = @get_dsd(mem1d_dsd, .{ .base_address = &x, .extent = n / 2, .stride = 2 });
const low = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> t[i] });
const whole = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> x[i] });
fn level(size: u16) void {
  const m = size >> 1;
  const e = @set_dsd_length(even, m);
  const o = @increment_dsd_offset(e, 1, f32);
  const l = @set_dsd_length(low, m);
  const h = @increment_dsd_offset(l, @as(i16, m), f32);
  @fadds(l, e, o);
  @fsubs(h, e, o);
  const all = @set_dsd_length(low, size);
  @fmuls(@set_dsd_length(whole, size), all, half);
}
fn forward() void {
  var size = n;
  while (size > 1) : (size /= 2) { level(size); }
  sys.unblock_cmd_stream();
}
fn backward() void {
  var size: u16 = 2;
  while (size <= n) : (size <<= 1) {
    const m = size / 2;
    const l = @set_dsd_length(whole, m);
    const h = @increment_dsd_offset(l, @as(i16, m), f32);
    var e = @get_dsd(mem1d_dsd, .{ .base_address = &t, .extent = m, .stride = @as(i8, 2) });
    @fadds(e, l, h);
    e = @increment_dsd_offset(e, 1, f32);
    @fsubs(e, l, h);
    @fmuls(@set_dsd_length(whole, size), @set_dsd_length(low, size), half);
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(x_p, "x"); @export_symbol(forward); @export_symbol(backward); }
"""
    )
    exports = [("x", "[*]f32", True), ("forward", "fn()void"), ("backward", "fn()void")]
    text = layout(exports, params="param n: u16;", binding=".n = n")

    def host(m):
        x = rng.standard_normal(n).astype(np.float32)
        m.put("x", x)
        m.launch("forward")
        want = x.astype(np.float64)
        size = n
        while size > 1:
            e, o = want[:size:2].copy(), want[1:size:2].copy()
            want[: size // 2], want[size // 2 : size] = (e + o) / 2**0.5, (e - o) / 2**0.5
            size //= 2
        np.testing.assert_allclose(m.get("x", n).ravel(), want, atol=1e-5)
        m.launch("backward")
        np.testing.assert_allclose(m.get("x", n).ravel(), x, atol=1e-5)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n})


@both
def test_edit_distance_and_its_path(arch, tmp_path):
    """Dynamic programming over a table of structs, a path followed back into a string of operations."""
    pe = (
        SYS
        + """
const MAX: u16 = 24;
const Step = enum(u16) { keep, change, insert, remove };
const Cell = struct { cost: u16, step: Step };
var a = @zeros([MAX]u16); var b = @zeros([MAX]u16); var a_p: [*]u16 = &a; var b_p: [*]u16 = &b;
var cells = @constants([MAX + 1, MAX + 1]Cell, Cell{ .cost = 0, .step = Step.keep });
var path = @zeros([2 * MAX + 2]u16); var path_p: [*]u16 = &path;
fn better(best: *Cell, cost: u16, step: Step) void {
  if (cost < best.*.cost) { best.* = Cell{ .cost = cost, .step = step }; }
}
fn run(na: u16, nb: u16) void {
  for (@range(u16, na + 1)) |i| {
    for (@range(u16, nb + 1)) |j| {
      var best = Cell{ .cost = if (i == 0 and j == 0) @as(u16, 0) else @as(u16, 1000), .step = Step.keep };
      if (i > 0 and j > 0) {
        const same = a[i - 1] == b[j - 1];
        better(&best, cells[i - 1, j - 1].cost + @as(u16, !same), if (same) Step.keep else Step.change);
      }
      if (j > 0) better(&best, cells[i, j - 1].cost + 1, Step.insert);
      if (i > 0) better(&best, cells[i - 1, j].cost + 1, Step.remove);
      cells[i, j] = best;
    }
  }
  var i = na; var j = nb; var n: u16 = 0;
  path[1] = cells[i, j].cost;
  while (i > 0 or j > 0) : (n += 1) {
    const step = cells[i, j].step;
    path[2 + n] = @get_int(step);
    switch (step) {
      Step.keep, Step.change => { i -= 1; j -= 1; },
      Step.insert => j -= 1,
      else => i -= 1,
    }
  }
  path[0] = n;
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(path_p, "path"); @export_symbol(run); }
"""
    )
    exports = [(k, "[*]u16", True) for k in ("a", "b", "path")] + [("run", "fn(u16,u16)void")]
    text = layout(exports)

    def host(m):
        for na, nb in ((24, 20), (3, 24), (0, 4), (7, 7)):
            a, b = rng.integers(0, 4, (2, 24)).astype(np.uint16)
            m.put16("a", a)
            m.put16("b", b)
            m.launch("run", np.uint16(na), np.uint16(nb))
            got = m.get16("path", 50, np.uint16).ravel()
            d = np.zeros((na + 1, nb + 1), int)
            d[:, 0], d[0] = range(na + 1), range(nb + 1)
            for i in range(na):
                for j in range(nb):
                    d[i + 1, j + 1] = min(
                        d[i, j] + (a[i] != b[j]), d[i, j + 1] + 1, d[i + 1, j] + 1
                    )
            assert got[1] == d[na, nb]
            i, j, cost, out = na, nb, 0, []
            for step in got[2 : 2 + got[0]]:
                cost += step != 0
                i -= step != 2
                j -= step != 3
                if step == 0:
                    assert a[i] == b[j]
            assert (i, j, cost) == (0, 0, d[na, nb])

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host)


@both
def test_generic_containers_of_types_and_numbers(arch, tmp_path):
    """A stack, a heap and a hash table, each a struct made by a function of a type and a size; functions over `anytype`."""
    n = 40
    pe = (
        SYS
        + """
param n: u16;
fn Stack(comptime T: type, comptime size: u16) type { return struct { at: u16, items: [size]T }; }
fn push(s: anytype, x: anytype) void { s.*.items[s.*.at] = x; s.*.at += 1; }
fn pop(s: anytype) @element_type(@type_of(s.*.items)) { s.*.at -= 1; return s.*.items[s.*.at]; }
const Floats = Stack(f32, 64);
const Words = Stack(u32, 64);
var floats: Floats = Floats{ .at = 0, .items = @zeros([64]f32) };
var heap: Words = Words{ .at = 0, .items = @zeros([64]u32) };
const Slot = struct { key: u16, count: u16, used: bool };
var slots = @constants([128]Slot, Slot{ .key = 0, .count = 0, .used = false });
fn swap(comptime T: type, a: *T, b: *T) void { const t = a.*; a.* = b.*; b.* = t; }
fn heap_add(x: u32) void {
  push(&heap, x);
  var i = heap.at - 1;
  while (i > 0) {
    const up = (i - 1) / 2;
    if (heap.items[up] <= heap.items[i]) break;
    swap(u32, &heap.items[up], &heap.items[i]);
    i = up;
  }
}
fn heap_take() u32 {
  const least = heap.items[0];
  heap.at -= 1;
  heap.items[0] = heap.items[heap.at];
  var i: u16 = 0;
  while (true) {
    var c = 2 * i + 1;
    if (c >= heap.at) break;
    if (c + 1 < heap.at and heap.items[c + 1] < heap.items[c]) c += 1;
    if (heap.items[i] <= heap.items[c]) break;
    swap(u32, &heap.items[i], &heap.items[c]);
    i = c;
  }
  return least;
}
fn slot_of(key: u16) *Slot {
  var at = (key * 40503) % 128;
  while (slots[at].used and slots[at].key != key) { at = (at + 1) % 128; }
  return &slots[at];
}
var keys = @zeros([n]u16); var sorted = @zeros([n]u32); var counts = @zeros([n]u16); var reversed = @zeros([n]f32);
var keys_p: [*]u16 = &keys; var sorted_p: [*]u32 = &sorted; var counts_p: [*]u16 = &counts; var reversed_p: [*]f32 = &reversed;
fn run() void {
  for (slots) |_, i| { slots[i].used = false; }
  for (keys) |k| {
    heap_add(@as(u32, k) * 3);
    push(&floats, @as(f32, k) / 2.0);
    const s = slot_of(k);
    if (!s.*.used) { s.* = Slot{ .key = k, .count = 1, .used = true }; } else { s.*.count += 1; }
  }
  for (@range(u16, n)) |i| {
    sorted[i] = heap_take();
    reversed[i] = pop(&floats);
    counts[i] = slot_of(keys[i]).*.count;
  }
  sys.unblock_cmd_stream();
}
comptime {
  @comptime_assert(!@is_same_type(Floats, Words) and @is_same_type(Floats, Stack(f32, 64)));
  @export_symbol(keys_p, "keys"); @export_symbol(sorted_p, "sorted"); @export_symbol(counts_p, "counts"); @export_symbol(reversed_p, "reversed"); @export_symbol(run);
}
"""
    )
    exports = [
        ("keys", "[*]u16", True),
        ("sorted", "[*]u32", False),
        ("counts", "[*]u16", False),
        ("reversed", "[*]f32", False),
        ("run", "fn()void"),
    ]
    text = layout(exports, params="param n: u16;", binding=".n = n")

    def host(m):
        for high in (5, 60000):
            keys = rng.integers(0, high, n).astype(np.uint16)
            m.put16("keys", keys)
            m.launch("run")
            np.testing.assert_array_equal(
                m.get("sorted", n, np.uint32)[0, 0], 3 * np.sort(keys).astype(np.uint32)
            )
            np.testing.assert_array_equal(
                m.get("reversed", n)[0, 0], keys[::-1].astype(np.float32) / 2
            )
            want = [(keys == k).sum() for k in keys]
            np.testing.assert_array_equal(m.get16("counts", n, np.uint16)[0, 0], want)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n})


@both
def test_a_cell_of_an_lstm_in_halves(arch, tmp_path):
    """Gates by @fmachs over rows of a 16-bit matrix into 32-bit sums, activations by @map and <math>."""
    n, k = 12, 9
    pe = (
        SYS
        + """
param n: u16; param k: u16;
const math = @import_module("<math>");
var weights = @zeros([k, 4 * n]f16); var x = @zeros([k]f16); var c = @zeros([n]f32); var h = @zeros([n]f32);
var gates = @zeros([4 * n]f32);
var w_p: [*]f16 = @ptrcast([*]f16, &weights); var x_p: [*]f16 = &x; var c_p: [*]f32 = &c; var h_p: [*]f32 = &h;
const row = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4 * n} -> weights[0, i] });
const G = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4 * n} -> gates[i] });
fn part(comptime g: i16) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> gates[g * n + i] }); }
const C = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> c[i] });
const H = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> h[i] });
fn sigmoid(v: f32) f32 { return 1.0 / (1.0 + math.exp(-v)); }
fn tanh(v: f32) f32 { return math.tanh(v); }
fn mix(f: f32, old: f32, i: f32, g: f32) f32 { return f * old + i * g; }
fn step() void {
  @fmovs(G, 0.0);
  for (x) |v, j| {
    @fmachs(G, G, @increment_dsd_offset(row, @as(i16, j * (4 * n)), f16), v);
  }
  @map(sigmoid, @set_dsd_length(G, 3 * n), @set_dsd_length(G, 3 * n));
  const g = comptime part(3);
  @map(tanh, g, g);
  @map(mix, comptime part(0), C, comptime part(1), g, C);
  @map(tanh, C, H);
  @fmuls(H, H, comptime part(2));
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(w_p, "w"); @export_symbol(x_p, "x"); @export_symbol(c_p, "c"); @export_symbol(h_p, "h"); @export_symbol(step); }
"""
    )
    exports = [
        ("w", "[*]f16", True),
        ("x", "[*]f16", True),
        ("c", "[*]f32", True),
        ("h", "[*]f32", False),
        ("step", "fn()void"),
    ]
    text = layout(exports, params="param n: u16; param k: u16;", binding=".n = n, .k = k")

    def host(m):
        w = rng.standard_normal((k, 4 * n)).astype(np.float16)
        c = np.zeros(n, np.float32)
        m.put16("w", w)
        m.put("c", c)
        for _ in range(2):
            x = rng.standard_normal(k).astype(np.float16)
            m.put16("x", x)
            m.launch("step")
            g = x.astype(np.float64) @ w.astype(np.float64)
            f, i, o = 1 / (1 + np.exp(-g[: 3 * n].reshape(3, n)))
            c = f * c + i * np.tanh(g[3 * n :])
            np.testing.assert_allclose(m.get("c", n)[0, 0], c, rtol=2e-5, atol=2e-5)
            np.testing.assert_allclose(m.get("h", n)[0, 0], np.tanh(c) * o, rtol=2e-5, atol=2e-5)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n, "k": k})


@both
def test_a_matrix_walked_by_registers_that_save_their_address(arch, tmp_path):
    """y = A x on one PE: columns by a DSR whose address moves on, as single-tile products are written; two ways to accumulate."""
    rows, cols = 11, 7
    pe = (
        SYS
        + """
param M: u16; param N: u16;
var A = @zeros([N, M]f32); var x = @zeros([N]f32); var y = @zeros([M]f32); var z = @zeros([M]f32);
var A_p: [*]f32 = @ptrcast([*]f32, &A); var x_p: [*]f32 = &x; var y_p: [*]f32 = &y; var z_p: [*]f32 = &z;
const d = @get_dsr(dsr_dest, 1); const s0 = @get_dsr(dsr_src0, 1); const s1 = @get_dsr(dsr_src1, 2);
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> x[i] });
const column = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> A[0, i] });
const Y = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> y[i] });
fn take(v: f32) void { @fmacs(d, s0, s1, v); }
fn by_map() void {
  @load_to_dsr(d, Y); @load_to_dsr(s0, Y);
  @load_to_dsr(s1, column, .{ .save_address = true });
  @map(take, X);
}
fn by_rows() void {
  const line = @get_dsd(mem1d_dsd, .{ .base_address = A_p, .extent = N, .stride = @as(i8, M) });
  for (@range(i16, M)) |i| {
    var sum: f32 = z[i];
    const l = @increment_dsd_offset(line, i, f32);
    const products = @get_dsd(mem1d_dsd, .{ .base_address = &scratch, .extent = N });
    @fmuls(products, l, X);
    @fadds(&sum, sum, products);
    z[i] = sum;
  }
}
var scratch = @zeros([N]f32);
fn run() void { by_map(); by_rows(); sys.unblock_cmd_stream(); }
comptime { @export_symbol(A_p, "A"); @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(z_p, "z"); @export_symbol(run); }
"""
    )
    exports = [*((k, "[*]f32", True) for k in "Axyz"), ("run", "fn()void")]
    text = layout(exports, params="param M: u16; param N: u16;", binding=".M = M, .N = N")

    def host(m):
        a = rng.standard_normal((rows, cols)).astype(np.float32)
        x, y, z = (rng.standard_normal(k).astype(np.float32) for k in (cols, rows, rows))
        m.put("A", a.T)
        for name, v in (("x", x), ("y", y), ("z", z)):
            m.put(name, v)
        for k in (1, 2):
            m.launch("run")
            np.testing.assert_allclose(
                m.get("y", rows)[0, 0], y + k * (a @ x), rtol=1e-5, atol=1e-5
            )
            np.testing.assert_allclose(
                m.get("z", rows)[0, 0], z + k * (a @ x), rtol=1e-5, atol=1e-5
            )

    everywhere(
        tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"M": rows, "N": cols}
    )
