# SPDX-License-Identifier: Apache-2.0
"""Every documented built-in function of CSL and every DSD operation is used by a program that passes on each machine
that has it: docs/targets/wse.md holds the table. `python tests/python/test_wse_builtins.py` writes it."""

import pathlib
import re
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
WSE = ROOT / "src/weft/targets/wse"
PROGRAMS = ROOT / "tests/targets/wse/programs"
PAGE = ROOT / "docs/targets/wse.md"
BEGIN, END = "<!-- builtins -->\n", "<!-- end of builtins -->\n"
MACHINES = ["wse2", "wse3"]
ABSENT = {
    "wse2": {
        "bind_rotating_tasks",
        "get_ut_id",
        "queue_flush",
        "set_control_task_table",
        "set_empty_queue_handler",
    }
}


def names(path, macro):
    found = re.findall(rf"^{macro}\((\w+),", path.read_text(), re.M)
    return [n for n in found if not n.startswith("weft_")]


def uses():
    """{(name, machine): programs}, of features.txt and of the whole programs beside it."""
    out, preludes = defaultdict(int), {}

    def count(text, machines):
        for name in set(re.findall(r"@(\w+)\s*\(", text)):
            for machine in machines:
                out[name, machine] += 1

    for text in re.split(r"^==== ", (PROGRAMS / "features.txt").read_text(), flags=re.M)[1:]:
        head, _, rest = text.partition("\n")
        name, *marks = head.split()
        if marks == ["prelude"]:
            preludes[name] = rest
            continue
        rest += "".join(preludes[m[1:]] for m in marks if m[0] == "+")
        rest += "@bind_local_task( @get_local_task_id( @activate( @set_rectangle( @set_tile_code("
        count(rest, [m for m in marks if m[0] != "+"] or MACHINES)
    for folder in filter(pathlib.Path.is_dir, PROGRAMS.iterdir()):
        commands = (folder / "commands.sh").read_text()
        machines = [
            m for m in MACHINES if m in commands or (m == "wse2" and "--arch" not in commands)
        ]
        count("".join(p.read_text() for p in sorted(folder.rglob("*.csl"))), machines)
    return out


def table():
    found = uses()
    lines = ["| built-in | WSE-2 | WSE-3 |\n|---|---|---|\n"]
    for name in sorted(
        names(WSE / "csl/builtins.def", "WEFT_CSL_BUILTIN")
        + names(WSE / "bulk.def", "WEFT_WSE_BULK")
    ):
        cells = [
            "not there" if name in ABSENT.get(m, ()) else str(found[name, m]) for m in MACHINES
        ]
        lines.append(f"| `@{name}` | {cells[0]} | {cells[1]} |\n")
    return "".join(lines)


def test_every_builtin_is_used_by_a_program_that_passes():
    found = uses()
    missing = [
        (name, machine)
        for name in names(WSE / "csl/builtins.def", "WEFT_CSL_BUILTIN")
        + names(WSE / "bulk.def", "WEFT_WSE_BULK")
        for machine in MACHINES
        if name not in ABSENT.get(machine, ()) and not found[name, machine]
    ]
    assert missing == []


def test_the_table_is_current():
    text = PAGE.read_text()
    assert text.partition(BEGIN)[2].partition(END)[0] == table(), "run this file to write the table"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2])
