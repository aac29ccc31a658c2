# SPDX-License-Identifier: Apache-2.0
"""CSL integers of any width and the bits of packed types, beside Python's integers."""

import numpy as np
import pytest
from csl_machine import SYS, Machine, both, layout
from test_wse_programs import LAYOUT, START, wse

rng = np.random.default_rng(1921)
WIDTHS = ["u0", "u1", "i1", "u3", "i4", "u5", "i7", "u8", "u12", "i13", "u16", "i17", "u24", "i24", "u31", "i33", "u40", "i63", "u64"]  # fmt: skip
OPS = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]
EXPORTS = [("a", "[*]u32", True), ("r", "[*]u32", True), ("run", "fn()void")]
TAIL = """
var a_p: [*]u32 = &a; var r_p: [*]u32 = &r;
comptime { @export_symbol(a_p, "a"); @export_symbol(r_p, "r"); @export_symbol(run); }
"""


def wrap(value, kind):
    bits = int(kind[1:])
    if bits == 0:
        return 0
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "i" and value >> (bits - 1) else value


def result(op, x, y, kind):
    bits = int(kind[1:])
    match op:
        case "+":
            r = x + y
        case "-":
            r = x - y
        case "*":
            r = x * y
        case "/":
            r = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        case "%":
            r = abs(x) % abs(y) * (-1 if x < 0 else 1)
        case "&":
            r = x & y
        case "|":
            r = x | y
        case "^":
            r = x ^ y
        case "<<":
            r = x << y if y < bits else 0
        case _:
            r = x >> y if y < bits else -(x < 0)
    return wrap(r, kind)  # fmt: skip


@both
@pytest.mark.parametrize("kind", WIDTHS)
def test_arithmetic_of_every_width_at_run_time_and_at_compile_time(arch, kind, tmp_path):
    """All operators on random pairs; the first pairs are folded by the compiler, too, and must agree."""
    n = 23
    pairs = [(wrap(int(p), kind), wrap(int(q), kind)) for p, q in rng.integers(0, 2**63, (n, 2))]
    counts = [int(c) for c in rng.integers(0, int(kind[1:]) + 3, n)]
    # A quotient by 0 is a fault; of 0 bits there is no other divisor.
    ops = [op for op in OPS if kind != "u0" or op not in "/%"]
    cases = [
        (op, x, c if op in ("<<", ">>") else (y or 1 if kind != "i1" else -1) if op in "/%" else y)
        for (x, y), c in zip(pairs, counts)
        for op in ops
    ]
    lines, folded = [], []
    for k, (op, x, y) in enumerate(cases):
        right = f"@as(u16, {y})" if op in ("<<", ">>") else f"@as(T, {y})"
        lines.append(
            f"x = @bitcast(i64, wide[{2 * k}]); y = @bitcast(i64, wide[{2 * k + 1}]);"
            f"out({k}, @as(T, x) {op} {'@as(u16, y)' if op in ('<<', '>>') else '@as(T, y)'});"
        )
        if k < 4 * len(ops):
            folded.append(f"out({len(cases) + k}, @as(T, {x}) {op} {right});")
    total = len(cases) + len(folded)
    pe = (
        SYS
        + f"""
const T = {kind};
var a = @zeros([{4 * len(cases)}]u32); var r = @zeros([{2 * total}]u32);
const wide = @ptrcast([*]u64, &a);
fn out(k: u16, v: T) void {{
  const w = @as(i64, v);
  r[2 * k] = @as(u32, w & 0xffffffff); r[2 * k + 1] = @as(u32, (w >> 32) & 0xffffffff);
}}
fn run() void {{
  var x: i64 = 0; var y: i64 = 0;
  {" ".join(lines)}
  {" ".join(folded)}
  sys.unblock_cmd_stream();
}}
"""
        + TAIL
    )
    m = Machine(tmp_path, arch, {"layout.csl": layout(EXPORTS), "pe.csl": pe})
    operands = np.array([v & (2**64 - 1) for _, x, y in cases for v in (x, y)], np.uint64)
    m.put("a", operands.view(np.uint32))
    m.launch("run")
    got = m.get("r", 2 * total, np.uint32)[0, 0].view(np.uint64)
    m.stop()
    want = [result(op, x, y, kind) for op, x, y in cases]
    want += want[: len(folded)]
    for case, g, w in zip(cases + cases, got, want):
        assert int(g) == w & (2**64 - 1), (kind, case, int(g), w)


@both
@pytest.mark.parametrize("seed", range(6))
def test_packed_structs_of_random_fields(arch, seed, tmp_path):
    """Fields one after another from the lowest bit on: written by the PE, by the compiler, and copied."""
    draw = np.random.default_rng(seed)
    total = int(draw.choice([16, 32, 64, 96, 128]))
    fields, at = [], 0
    while at < total:
        width = int(min(draw.integers(1, 25), total - at))
        fields.append((f"f{len(fields)}", f"{draw.choice(['i', 'u'])}{width}", at))
        at += width
    values = {f: wrap(int(draw.integers(0, 2**31)), kind) for f, kind, _ in fields}
    second = {f: wrap(int(draw.integers(0, 2**31)), kind) for f, kind, _ in fields}
    order = draw.permutation(len(fields))
    words = total // 32 or 1
    made = ", ".join(f".{f} = {values[f]}" for f, _, _ in fields)
    writes = " ".join(
        f"s[1].{fields[k][0]} = @as({fields[k][1]}, @bitcast(i32, a[{k}]));" for k in order
    )
    reads = " ".join(
        f"r[{k}] = @bitcast(u32, @as(i32, p.*.{f}));" for k, (f, _, _) in enumerate(fields)
    )
    pe = (
        SYS
        + f"""
const S = packed struct {{ {", ".join(f"{f}: {kind}" for f, kind, _ in fields)} }};
var s: [3]S = [3]S{{ S{{ {made} }}, S{{ {made} }}, S{{ {made} }} }};
var a = @zeros([{len(fields)}]u32); var r = @zeros([{len(fields) + 3 * words}]u32);
fn read(p: *const S) void {{ {reads} }}
fn run() void {{
  {writes}
  const copy = s[1];
  s[2] = copy;
  read(&copy);
  const raw = @ptrcast([*]{"u16" if total == 16 else "u32"}, &s);
  for (@range(u16, {3 * words})) |k| {{ r[{len(fields)} + k] = @as(u32, raw[k]); }}
  sys.unblock_cmd_stream();
}}
"""
        + TAIL
    )
    m = Machine(tmp_path, arch, {"layout.csl": layout(EXPORTS), "pe.csl": pe})
    m.put(
        "a", np.array([second[f] for f, _, _ in fields], np.int64).astype(np.int32).view(np.uint32)
    )
    m.launch("run")
    got = m.get("r", len(fields) + 3 * words, np.uint32)[0, 0]
    m.stop()
    assert [wrap(int(g), "i32") for g in got[: len(fields)]] == [
        wrap(second[f], "i32") for f, _, _ in fields
    ]

    def packed(of):
        number = sum((of[f] & ((1 << int(kind[1:])) - 1)) << at for f, kind, at in fields)
        return [number >> 32 * k & 0xFFFFFFFF for k in range(words)]

    assert got[len(fields) :].tolist() == packed(values) + 2 * packed(second)


@both
def test_headers_of_flags_enums_pointers_and_nested_packed_types(arch, tmp_path):
    """A message format as bits: built from numbers, read through a union, changed in place."""
    pe = (
        SYS
        + """
const Kind = enum(u3) { idle, data, last = 5, };
const Tag = packed struct { kind: Kind, urgent: bool, hops: i4 };
const Head = packed struct { version: u2, tag: Tag, from: u6, to: u16 };
const Word = packed union { raw: u32, head: Head, value: f32 };
const Cell = packed struct { valid: bool, at: [*]u16, x: i15 };
var a = @zeros([8]u32); var r = @zeros([16]u32);
var field = @constants([4]u16, 77);
var cell = Cell{ .valid = true, .at = &field, .x = -3 };
const fixed = Word{ .head = Head{ .version = 2, .tag = Tag{ .kind = Kind.last, .urgent = true, .hops = -7 }, .from = 33, .to = 0xbeef } };
comptime {
  @comptime_assert(fixed.raw == 0xbeef0000 | 33 << 10 | (5 | 1 << 3 | 9 << 4) << 2 | 2);
  @comptime_assert((Word{ .value = 1.0 }).raw == 0x3f800000);
  @comptime_assert((Word{ .raw = 0x80010014 }).head.tag.kind == Kind.last);
}
fn hop(w: *Word) void {
  w.*.head.tag.hops -= 1;
  w.*.head.tag.urgent = !w.*.head.tag.urgent;
  if (w.*.head.tag.kind == Kind.data) { w.*.head.tag = Tag{ .kind = Kind.last, .urgent = true, .hops = w.*.head.tag.hops }; }
}
fn weight(t: Tag) i16 { return switch (t.kind) { Kind.idle => 0, Kind.data => @as(i16, t.hops), Kind.last => 100 }; }
fn run() void {
  for (@range(u16, 8)) |k| {
    var w = Word{ .raw = a[k] };
    r[k] = @as(u32, w.head.from);
    r[k] += @bitcast(u32, @as(i32, weight(w.head.tag))) << 8;
    hop(&w);
    r[8 + k] = w.raw;
  }
  cell.at[1] = 5; cell.x += 4; cell.valid = cell.x > 0;
  if (cell.valid and cell.x == 1) { r[15] ^= @as(u32, field[1]); }
  sys.unblock_cmd_stream();
}
"""
        + TAIL
    )
    m = Machine(tmp_path, arch, {"layout.csl": layout(EXPORTS), "pe.csl": pe})
    words, first, then = [], [], []
    for _ in range(8):
        kind, urgent = int(rng.choice([0, 1, 5])), int(rng.integers(2))
        hops, other = int(rng.integers(-8, 8)), int(rng.integers(2**22))
        word = other & 3 | kind << 2 | urgent << 5 | (hops & 15) << 6 | other >> 2 << 10
        weight = {0: 0, 1: hops, 5: 100}[kind]
        words.append(word)
        first.append(((word >> 10 & 63) + (weight << 8)) & 0xFFFFFFFF)
        hops = wrap(hops - 1, "i4")
        urgent, kind = (1, 5) if kind == 1 else (1 - urgent, kind)
        then.append(other & 3 | kind << 2 | urgent << 5 | (hops & 15) << 6 | other >> 2 << 10)
    m.put("a", np.array(words, np.uint32))
    m.launch("run")
    then[7] ^= 5
    np.testing.assert_array_equal(
        m.get("r", 16, np.uint32)[0, 0], np.array(first + then, np.uint32)
    )
    m.stop()


P = "const P = packed struct { a: u3, b: i5, c: bool }; var p = P{ .a = 1, .b = 2, .c = true };"
D = "const A = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 });"
# Globals, body of a function, whether the mistake is in the globals, slug, words of the text.
MISTAKES = [
    ("var x: u3 = 8;", "x = 1;", True, "wse.csl.type.mismatch", "expected u3; 8 does not fit u3"),
    ("var x: i4 = -9;", "x = 1;", True, "wse.csl.type.mismatch", "-9 does not fit i4"),
    ("var x: u3 = 1;", "x = 9;", False, "wse.csl.type.mismatch", "9 does not fit u3"),
    ("var x: u3 = 1; var y: u4 = 2;", "x = y;", False, "wse.csl.type.mismatch", "expected u3, found u4; @as(u3, value) converts"),
    ("var x: u7 = 1; var y: i7 = 2;", "x = x + y;", False, "wse.csl.type.mismatch", "types u7 and i7 do not go together"),
    ("var x: u65 = 1;", "x = 2;", True, "wse.csl.type.width", "integers of 65 bits are not there; legal are 0 to 64 bits"),
    ("var x: i99999 = 1;", "x = 2;", True, "wse.csl.type.width", "integers of 99999 bits are not there"),
    ("var x: u12 = 1;", "var y = @bitcast(i13, x); y = 1;", False, "wse.csl.type.bitcast", "u12 has 12 bits, i13 has 13"),
    ("export var x: u12 = 1;", "x = 2;", True, "wse.csl.export.type", "a symbol of type u12 cannot be exported; legal are integers of 16 and 32 bits"),
    ("export var x = @zeros([3]i24);", "x[0] = 2;", True, "wse.csl.export.type", "a symbol of type [3]i24 cannot be exported"),
    ("var v = @zeros([4]u24);" + D, "@mov16(A, A);", False, "wse.csl.dsd.operand", "@mov16 works on elements of 16 bits, and the descriptor was made over u24; integers and floats of 16 and 32 bits"),
    (P, "const q = &p.b; q.* = 1;", False, "wse.csl.type.packed", "a field of a packed type has no address of its own; copy it to a variable"),
    (P, "p = P{ .a = 8, .b = 0, .c = false };", False, "wse.csl.type.mismatch", 'field "a": 8 does not fit u3'),
    (P, "p.c = 1;", False, "wse.csl.type.mismatch", "expected bool, found comptime_int; a number is compared: x != 0"),
    (P, "p = P(1, 2, true);", False, "wse.csl.call.callee", "a value of type type cannot be called; P{ .a = ... }"),
    ("const U = packed union { a: u8, b: u7 }; var u = U{ .a = 1 };", "u.b = 3;", True, "wse.csl.type.packed", '"b" of a packed union has 7 bits, "a" has 8; the same number of bits'),
    ("const S = packed struct { a: u4, b: [2]u8 }; var s: S;", "s.a = 3;", True, "wse.csl.type.packed", 'field "b" of a packed type is of type [2]u8; legal are integers, floats, bool, enums, pointers and packed types'),
    ("const S = packed struct { a: u4, b: u61 }; var s = S{ .a = 1, .b = 1 };", "s.b = 3;", False, "wse.csl.type.packed", "this field has 61 bits from bit 4 on; at a multiple of 8 bits"),
    ("const E = enum(u2) { a, b, c, d, e };", "var e = E.e; e = E.a;", True, "wse.csl.type.enum", "fit u2"),
    ("var v = @zeros([4]f32);", "@fmovs(v, 1.0);", False, "wse.csl.dsd.operand", "found [4]f32; @get_dsd(mem1d_dsd, .{ .base_address = &A, .extent = n })"),
    ("var v = @zeros([4]f32);" + D + "var h: f16 = 1.0;", "@fmacs(A, A, A, h);", False, "wse.csl.dsd.operand", "scalars of type f32, found f16; @as(f32, x) converts a number"),
    ("var v = @zeros([4]f32); var q: *f32 = &v;", "q.* = 1.0;", True, "wse.csl.type.mismatch", "expected *f32, found *[4]f32; &a[0] points to one element"),
    ('const m = @import_module("<math>"); var x: f32 = 1.0;', "x = m.sqrt(4);", False, "wse.csl.type.mismatch", "sqrt takes a floating-point number, found comptime_int; found here"),
    ("comptime { @initialize_queue(@get_input_queue(3), .{ .color = @get_color(1), .dense = true }); }", "", True, "wse.csl.settings.unknown", "dense mode of SDK 2.10 is not built"),
    ("var v = @zeros([9]f32); const C = @get_dsd(circbuf_dsd, .{ .base_address = &v, .extent = 20, .wraparound = 15 });", "@load_to_dsr_xdsr(@get_dsr(dsr_src1, 1), @get_xdsr(1), C);", True, "wse.csl.dsd.wraparound", "begins anew after 15 elements, and the array has 9"),
    ("var b = @zeros([8]f32); const f = @allocate_fifo(b); var v = @zeros([4]f32);" + D, "@fadds(A, f, A);", False, "wse.csl.dsd.operand", "the first source of @fadds is a FIFO; the second may be a FIFO"),
    ("var b = @zeros([8]u32); const f = @allocate_fifo(b); var v = @zeros([4]u32);" + D + "fn g(x: u32) u32 { return x; }", "@map(g, f, A);", False, "wse.csl.dsd.operand", "@map cannot take a FIFO; @fmovs(dsd, fifo)"),
    ("var b align(2) = @zeros([8]u16); const f = @allocate_fifo(b); var v = @zeros([4]u16);" + D, "@mov16(f, A);", True, "wse.csl.fifo.buffer", "aligned to 4 bytes at least, and this one to 2; align(4)"),
    ("var x: u16 = 3;", "x = x ** 2;", False, "wse.csl.parse.operator", "there is no **; write: a * a"),
    ("var x: i32 = 4; var p: *const i32 = &x;", "var q: *i32 = p; q.* = 1;", False, "wse.csl.type.mismatch", "expected *i32, found *const i32; cannot become a pointer to mutable data"),
    ("fn h() void {} task t() void {} comptime { @set_teardown_handler(h, @get_color(2)); @bind_local_task(t, @get_local_task_id(29)); }", "", True, "wse.csl.teardown.twice", "id 29 is that of teardowns; one task for all of them"),
]  # fmt: skip


@both
@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize("globals_,body,early,slug,words", MISTAKES)
def test_mistakes(globals_, body, early, slug, words, imported, arch, tmp_path):
    """In the program of a PE and in a module that it imports, at their line."""
    code = f"{globals_}\nfn act() void {{\n{body} }}\n"
    (tmp_path / "layout.csl").write_text(LAYOUT)
    if imported:
        (tmp_path / "part.csl").write_text(code)
        code, call = 'const part = @import_module("part.csl");\n', "part.act();"
    else:
        call = "act();"
    (tmp_path / "pe.csl").write_text(code + START % call)
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    text = str(caught.value)
    assert caught.value.code == slug, text
    assert (
        f"{'part' if imported else 'pe'}.csl:{1 if early else 3}:" in text.split(": error:")[0]
    ), text
    for part in words.split("; "):
        assert part in text, text
