# SPDX-License-Identifier: Apache-2.0
"""The table of the cycle model on ResNet-18 in docs/targets/vta.md, from `vta_bench cycles`: exact, no clock involved.

python bench/vta/tables.py           writes it
python bench/vta/tables.py --check   exit status 1 when the page says something else
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/targets/vta.md"
BENCH = ROOT / "build/src/weft/targets/vta/vta_bench"


def table(figures):
    layers = {"single": {}, "double": {}}
    for name, value in figures.items():
        if found := re.match(r"utilisation (C\d+) (single|double) \(tile (.*)\)", name):
            layers[found[2]][found[1]] = (value, found[3])
    total = {
        n.removeprefix("utilisation C2-C11 "): v
        for n, v in figures.items()
        if n.startswith("utilisation C2-C11")
    }
    cycles = {
        n.removeprefix("cycles C2-C11 "): v
        for n, v in figures.items()
        if n.startswith("cycles C2-C11")
    }
    rows = [
        "| layer | single-buffered % | double-buffered % | tile co x h x w, ci |",
        "|---|---|---|---|",
    ]
    for layer, (single, _) in layers["single"].items():
        double, tile = layers["double"][layer]
        rows.append(f"| {layer} | {single:.2f} | {double:.2f} | {tile} |")
    assert len(rows) == 12, rows
    both = [f"{total[n]:.2f}** ({cycles[n]:.2f} Mcycles)" for n in ("single", "double")]
    rows.append(f"| **total** | **{both[0]} | **{both[1]} | |")
    plain = [
        f"{total[n]:.2f} ({cycles[n]:.2f} Mcycles)" for n in ("single, no bias", "double, no bias")
    ]
    rows.append(f"| total without bias | {plain[0]} | {plain[1]} | |")
    for name, what in (
        ("double, ALU II 2", "total, ALU II = 2"),
        ("double, bus 16 B", "total, 16-byte bus"),
        ("double, bus 4 B", "total, 4-byte bus"),
        ("double, latency 100", "total, latency 100"),
    ):
        rows.append(f"| {what} | | {total[name]:.2f} | |")
    return "\n".join(rows) + "\n"


def main():
    out = subprocess.run([BENCH, "--json", "cycles"], check=True, capture_output=True, text=True)
    new = table(json.loads(out.stdout))
    page = PAGE.read_text()
    begin, end = "<!-- bench/vta/tables.py -->\n", "<!-- end -->\n"
    before, rest = page.split(begin)
    old, after = rest.split(end, 1)
    if "--check" in sys.argv[1:]:
        if old != new:
            print(f"{PAGE.name} says\n{old}\nthe model says\n{new}")
        return int(old != new)
    PAGE.write_text(before + begin + new + end + after)
    print(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
