#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses includes against layers.txt, relative includes, targets' names outside targets/, and loops of Python's imports."""

import pathlib
import re
import sys

import python_imports

root = pathlib.Path(__file__).resolve().parent.parent
src = root / "src/weft"
allowed = {}
for line in (root / "layers.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        name, deps = line.split(":")
        allowed[name] = set(deps.split()) | {name}
rows = (src / "targets/targets.list").read_text().splitlines()
targets = [t for t in rows if t and not t.startswith("#") and t not in ("ref", "null", "c")]
names = (
    re.compile(r"(?<![\w.\"/-])(%s)(?![\w-])" % "|".join(map(re.escape, targets)))
    if targets
    else None
)
problems = []
for path in sorted(src.rglob("*")):
    if path.suffix not in (".h", ".cpp", ".def", ".inl"):
        continue
    relative = path.relative_to(src)
    layer = relative.parts[0]
    if layer not in allowed:
        continue  # src/weft/*.h: public doors
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#include "([^"]+)"', line)
        if match:
            include = match.group(1)
            if not include.startswith("weft/"):
                if not include.endswith(".inc"):
                    problems.append(
                        f'{relative}:{number}: include "{include}" does not begin with weft/'
                    )
                continue
            parts = include.split("/")
            if len(parts) < 3:
                continue
            if parts[1] not in allowed[layer]:
                problems.append(
                    f"{relative}:{number}: {layer} may not include {parts[1]}; allowed: {' '.join(sorted(allowed[layer]))}"
                )
            if (
                layer == "targets"
                and parts[1] == "targets"
                and len(parts) > 3
                and parts[2] != relative.parts[1]
                and len(relative.parts) > 2
            ):
                problems.append(
                    f"{relative}:{number}: target {relative.parts[1]} may not include target {parts[2]}"
                )
        elif layer != "targets" and names and not line.lstrip().startswith(("//", "*", "/*")):
            code = re.sub(r"//.*", "", line)
            hit = names.search(code)
            if hit and f'"{hit.group(1)}' in code:
                problems.append(
                    f'{relative}:{number}: the target name "{hit.group(1)}" outside targets/'
                )
problems += python_imports.problems(root / "python/weft")
print("\n".join(problems) if problems else "layers: good")
sys.exit(bool(problems))
