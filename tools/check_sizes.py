#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses source files above 800 lines and lists those above 400. Tables (.def) are exempt."""

import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
files = subprocess.run(
    ["git", "ls-files", "*.cpp", "*.h", "*.py", "*.csl"],
    cwd=root,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
sizes = sorted(
    ((len((root / f).read_text().splitlines()), f) for f in files if (root / f).exists()),
    reverse=True,
)
too_long = [(n, f) for n, f in sizes if n > 800]
for n, f in too_long:
    print(f"{f}: {n} lines, more than 800")
print(
    f"sizes: {len(sizes)} files, median {sizes[len(sizes) // 2][0] if sizes else 0} lines, {sum(n > 400 for n, _ in sizes)} above 400"
)
sys.exit(bool(too_long))
