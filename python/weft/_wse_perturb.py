# SPDX-License-Identifier: Apache-2.0
"""Runs a wafer program under every order of ready tasks that the machine's documents leave open, and reports
whether its result depends on the order."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from ._child import environment


def choices(seed: int) -> list[tuple[str, int]]:
    """(order, seed) of each run: the four fixed orders and four drawn from `seed`."""
    fixed = ["local-first", "round-robin", "highest-first", "lowest-first"]
    return [(order, 0) for order in fixed] + [("random", seed + k) for k in range(4)]


def _report(rows: list[tuple[str, int, str, str]]) -> int:
    """Prints (order, seed, status, digest) of each run; 1 where two runs differ."""
    first = rows[0][2:]
    for order, seed, status, digest in rows:
        name = f"random {seed}" if order == "random" else order
        same = "same result" if (status, digest) == first else "ANOTHER RESULT"
        print(f"{name:<16} {status:<24} {same}")
    dependent = any(row[2:] != first for row in rows)
    print("the result depends on the order of ready tasks" if dependent else "all results agree")
    return int(dependent)


def of_script(seed: int, arguments: list[str]) -> int:
    """Runs a host script once per choice; its result is its exit status and what it prints."""
    rows = []
    for order, number in choices(seed):
        env = environment(WEFT_WSE_TASK_ORDER=order, WEFT_WSE_SEED=str(number))
        code = (
            f"from weft._child import end_with_parent; end_with_parent({os.getpid()}); "
            "import sys; from weft.wse_tools import cs_python_main as m; sys.exit(m(sys.argv[1:]) or 0)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=env, capture_output=True, check=False
        )
        rows.append(
            (order, number, f"status {run.returncode}", hashlib.sha256(run.stdout).hexdigest())
        )
    return _report(rows)


def of_program(seed: int, directory: str) -> int:
    """Runs a program that needs no host once per choice; its result is the memory of all symbols."""
    from weft import wse

    rows = []
    for order, number in choices(seed):
        runner = wse.SdkRuntime(directory, memcpy_required=False, task_order=order, seed=number)
        digest, status = hashlib.sha256(), "ended"
        try:
            runner.load()
            runner.run()
            runner.stop()
        except wse.WseError as e:
            status = e.code
        else:
            layout = runner._layout
            for y in range(layout["offset_y"], layout["offset_y"] + layout["height"]):
                for x in range(layout["offset_x"], layout["offset_x"] + layout["width"]):
                    for name in runner.symbols(x, y):
                        digest.update(runner.read_symbol(x, y, name, "uint8").tobytes())
        rows.append((order, number, status, digest.hexdigest()))
    return _report(rows)
