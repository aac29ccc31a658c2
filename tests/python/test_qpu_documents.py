# SPDX-License-Identifier: Apache-2.0
"""Pages about the QPU beside the headers that they describe."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
QPU = ROOT / "src/weft/targets/qpu"
PAGE = (ROOT / "docs/targets/qpu.md").read_text()
UNDOCUMENTED = (ROOT / "docs/targets/undocumented.md").read_text()


def test_the_table_of_the_language_has_every_function():
    header = (QPU / "language/language.h").read_text()
    # Functions of the namespace begin in the first column; names of helpers end in "_".
    declared = set(
        re.findall(
            r"^(?:inline )?(?:void|(?:Int|Uint|Float)Expr|Cond|BoolExpr) (\w*[a-zA-Z0-9])\(",
            header,
            re.M,
        )
    )
    inside = re.findall(r"^namespace detail \{\n(.*?)^\}  // namespace detail", header, re.M | re.S)
    helpers = set(re.findall(r"(\w+)\(", " ".join(inside)))
    declared -= helpers
    assert len(declared) > 35, declared
    table = PAGE[PAGE.index("All functions of the language") :]
    rows = [
        row.split("|")[1]
        for row in table[: table.index("\n\n", 200)].splitlines()
        if row[:2] == "| "
    ]
    named = set(re.findall(r"`(\w+)\(", " ".join(rows)))
    assert named == declared, (declared - named, named - declared)


def test_the_compile_line_names_what_is_installed():
    line = re.search(r"`c\+\+ (.*) program\.cpp (.*)`", PAGE)
    assert line and "-std=c++20" in line[1] and "-lweft_qpu" in line[2]


def test_what_no_document_tells_is_listed():
    assumptions = re.findall(
        r"inline constexpr \S+(?: \S+)? (k\w+) =|inline constexpr \S+ (k\w+) =",
        (QPU / "assumptions.h").read_text(),
    )
    names = {a or b for a, b in assumptions}
    assert len(names) == (QPU / "assumptions.h").read_text().count("inline constexpr")
    for name in names:
        assert f"| `{name}` |" in UNDOCUMENTED, name
    # Constants of the timing model whose comment names no source.
    timing = (QPU / "timing.h").read_text()
    for entry in re.findall(r"inline constexpr [^;]*;[^\n]*(?:\n +//[^\n]*)*", timing):
        if re.search(r"\((?:.*\b)?(?:AG|PI|BRIEF)\b", entry) or re.search(r"= \w+ [/+*]", entry):
            continue
        for name in re.findall(r"(k\w+) =", entry):
            assert f"`{name}`" in UNDOCUMENTED or name == "kClockHz", name
