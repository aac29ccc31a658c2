# SPDX-License-Identifier: Apache-2.0
"""Programs beyond the compiler's limits, and what has no meaning at compile time: each is refused by name."""

import pytest

from test_wse_programs import START, compiled, wse

EMPTY = "fn f() void {}\n"


def lines(text, count):
    return "".join(text.replace("#", str(k)) for k in range(count))


@pytest.mark.parametrize(
    ("globals_", "body", "files", "code", "words"),
    [
        (
            "",
            lines(
                "var x# = true;\n", 65530
            ),  # no name of a type, which is looked up among all that are alive
            {},
            "wse.csl.emit.registers",
            "the function needs more than 65,520 registers",
        ),
        (
            "var x: u16 = 0;\n",
            "comptime var k: u32 = 0; inline while (k < 90000) : (k += 1) { "
            + "x += 1; " * 60
            + "}",
            {},
            "wse.csl.emit.size",
            "the function has more than 4,000,000 instructions",
        ),
        (
            "",
            lines("const x# = 1;\n", 100_010),
            {},
            "wse.csl.locals",
            "more than 100,000 local variables are alive",
        ),
        (
            "",
            lines('@weft_print_text("a#");\n', 65_540),
            {},
            "wse.csl.emit.strings",
            "more than 65,536 strings",
        ),
        (
            lines('const m# = @import_module("f#.csl");\n', 4010),
            "",
            {f"f{k}.csl": EMPTY for k in range(4010)},
            "wse.csl.file.count",
            "more than 4,000 files are imported",
        ),
        (
            lines('const m# = @import_module("f.csl", .{ .n = # });\n', 20_010),
            "",
            {"f.csl": "param n: u32;\n" + EMPTY},
            "wse.csl.module.count",
            "more than 20,000 modules are instantiated",
        ),
        (
            "",
            "comptime { const U = union { a: [2]u16, b: u32 }; var u = U{ .a = @zeros([2]u16) };"
            " const p = &u.a[1]; u.b = 3; p.* = 4; }",
            {},
            "wse.csl.comptime.path",
            "the value pointed to has changed its shape",
        ),
        (
            "",
            "const x = switch (3) { 3 => while (true) {}, else => 4 };",
            {},
            "wse.csl.type.expression",
            "this is no expression",
        ),
        (
            EMPTY,
            "var x: void = f(); x = f();",
            {},
            "wse.csl.assign.value",
            "the left side is a value, not a place",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("wse.") else "",
)
def test_refused(globals_, body, files, code, words, tmp_path):
    with pytest.raises(wse.WseError) as caught:
        compiled(tmp_path, {"pe.csl": globals_ + START % body, **files})
    assert caught.value.code == code
    assert words in str(caught.value)
