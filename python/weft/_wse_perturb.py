# SPDX-License-Identifier: Apache-2.0
"""Runs a wafer program under every choice that the machine's documents leave open and that can be switched, the order of ready
tasks and the depth of routers, and reports whether its result depends on one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from ._child import environment


def choices(seed: int) -> list[tuple[str, dict]]:
    """Name and options of each run: the four fixed orders, four drawn from `seed`, shallow and deep routers."""
    fixed = ["local-first", "round-robin", "highest-first", "lowest-first"]
    out = [(order, {"task_order": order, "seed": 0}) for order in fixed]
    out += [(f"random {seed + k}", {"task_order": "random", "seed": seed + k}) for k in range(4)]
    return out + [(f"router depth {n}", {"router_depth": n}) for n in (1, 2, 12)]


def _report(rows: list[tuple[str, str, str]]) -> int:
    """Prints (choice, status, digest) of each run; 1 where two runs differ."""
    first = rows[0][1:]
    for name, status, digest in rows:
        same = "same result" if (status, digest) == first else "ANOTHER RESULT"
        print(f"{name:<16} {status:<24} {same}")
    others = [name for name, *rest in rows if tuple(rest) != first]
    on = ["the order of ready tasks"] * any(not n.startswith("router") for n in others)
    on += ["the depth of routers"] * any(n.startswith("router") for n in others)
    print(f"the result depends on {' and on '.join(on)}" if on else "all results agree")
    return int(bool(on))


def of_script(seed: int, arguments: list[str]) -> int:
    """Runs a host script once per choice; its result is its exit status and what it prints."""
    rows = []
    for name, options in choices(seed):
        env = environment(**{f"WEFT_WSE_{k.upper()}": str(v) for k, v in options.items()})
        code = (
            f"from weft._child import end_with_parent; end_with_parent({os.getpid()}); "
            "import sys; from weft_wse.script import cs_python_main as m; sys.exit(m(sys.argv[1:]) or 0)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=env, capture_output=True, check=False
        )
        rows.append((name, f"status {run.returncode}", hashlib.sha256(run.stdout).hexdigest()))
    return _report(rows)


def of_program(seed: int, directory: str) -> int:
    """Runs a program that needs no host once per choice; its result is the memory of all symbols."""
    from weft import wse

    rows = []
    for choice, options in choices(seed):
        runner = wse.SdkRuntime(directory, memcpy_required=False, **options)
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
        rows.append((choice, status, digest.hexdigest()))
    return _report(rows)
