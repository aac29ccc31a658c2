# SPDX-License-Identifier: Apache-2.0
"""Runs a wafer program under every choice that the machine's documents leave open and that can be switched, the order of ready
tasks and the depth of routers, and reports whether its result depends on one."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import subprocess
import sys
import time

from ._child import environment

# A run that takes so many times the cycles, or the host's seconds, of the first run does not end: under some order of
# tasks a task that activates itself until another one has run keeps that one from running.
_TIMES, _MORE_CYCLES = 16, 1_000_000
_SECONDS = 120  # a host script may also wait for something by itself, in no cycles at all


def choices(seed: int) -> list[tuple[str, dict]]:
    """Name and options of each run: the four fixed orders, four drawn from `seed`, shallow and deep routers."""
    fixed = ["round-robin", "local-first", "highest-first", "lowest-first"]
    out = [(order, {"task_order": order, "seed": 0}) for order in fixed]
    out += [(f"random {seed + k}", {"task_order": "random", "seed": seed + k}) for k in range(4)]
    return out + [(f"router depth {n}", {"router_depth": n}) for n in (1, 2, 12)]


def _limit(cycles: int) -> int:
    return _TIMES * cycles + _MORE_CYCLES


class _Rows:
    """The runs so far as (choice, status, lines of the result), printed as they end."""

    def __init__(self):
        self.rows: list[tuple[str, str, list[str]]] = []

    def add(self, name: str, status: str, lines: list[str], why: str = "") -> None:
        self.rows.append((name, status, lines))
        same = "same result" if (status, lines) == self.rows[0][1:] else "ANOTHER RESULT"
        print(f"{name:<16} {status:<24} {same}", flush=True)
        if same == "same result":
            return
        if status != self.rows[0][1]:
            if why:
                print(f"  {why[:200]}", flush=True)
            return
        for before, now in itertools.zip_longest(self.rows[0][2], lines, fillvalue="nothing"):
            if before != now:  # a time that a script prints is told from a result
                print(f"  {before[:100]!r} became {now[:100]!r}", flush=True)
                return

    def verdict(self) -> int:
        """Prints what the result depends on; 1: it depends on something."""
        first = self.rows[0][1:]
        others = [name for name, *rest in self.rows if tuple(rest) != first]
        on = ["the order of ready tasks"] * any(not n.startswith("router") for n in others)
        on += ["the depth of routers"] * any(n.startswith("router") for n in others)
        print(f"the result depends on {' and on '.join(on)}" if on else "all results agree")
        return int(bool(on))


def _cycles_in(file: str) -> int:
    """The most cycles that a runtime of a finished script has noted; 0: none has."""
    with contextlib.suppress(OSError), open(file, encoding="utf-8") as f:
        return max((int(line) for line in f), default=0)
    return 0


def of_script(seed: int, arguments: list[str]) -> int:
    """Runs a host script once per choice; its result is its exit status and what it prints."""
    code = (
        f"from weft._child import end_with_parent; end_with_parent({os.getpid()}); "
        "import sys; from weft_wse.script import cs_python_main as m; sys.exit(m(sys.argv[1:]) or 0)"
    )
    rows = _Rows()
    limits: dict[str, str] = {}
    seconds = None  # the first run may take as long as it likes
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cycles_file = os.path.join(folder, "cycles")
        for name, options in choices(seed):
            chosen = {f"WEFT_WSE_{k.upper()}": str(v) for k, v in options.items()}
            env = environment(**chosen, **limits, WEFT_WSE_CYCLES_FILE=cycles_file)
            began = time.monotonic()
            status, output, why = "does not end", b"", ""
            with contextlib.suppress(subprocess.TimeoutExpired):
                run = subprocess.run(
                    [sys.executable, "-c", code, *arguments],
                    env=env,
                    capture_output=True,
                    check=False,
                    timeout=seconds,
                )
                status, output = f"status {run.returncode}", run.stdout
                text = run.stderr.decode(errors="replace").strip()
                why = next(
                    (s for s in text.splitlines() if "error[" in s), text.rpartition("\n")[2]
                )
                if run.returncode and b"wse.limit.cycles" in run.stderr:
                    status = "does not end"
            rows.add(name, status, output.decode(errors="replace").splitlines(), why)
            if seconds is None:
                seconds = _SECONDS + _TIMES * (time.monotonic() - began)
                if cycles := _cycles_in(cycles_file):
                    limits = {"WEFT_WSE_CYCLE_LIMIT": str(_limit(cycles))}
    return rows.verdict()


def of_program(seed: int, directory: str) -> int:
    """Runs a program that needs no host once per choice; its result is the memory of all symbols."""
    from weft import wse

    rows = _Rows()
    limit = None  # the first run may take as long as it likes
    for choice, options in choices(seed):
        runner = wse.SdkRuntime(directory, memcpy_required=False, cycle_limit=limit, **options)
        lines, status, why = [], "ended", ""
        try:
            runner.load()
            runner.run()
            runner.stop()
        except wse.WseError as e:
            status = "does not end" if e.code == "wse.limit.cycles" else e.code
            why = str(e).partition("\n")[0]
        else:
            layout = runner._layout
            for y in range(layout["offset_y"], layout["offset_y"] + layout["height"]):
                for x in range(layout["offset_x"], layout["offset_x"] + layout["width"]):
                    for name in runner.symbols(x, y):
                        held = runner.read_symbol(x, y, name, "uint8").tobytes()
                        if len(held) > 32:
                            held = hashlib.sha256(held).digest()
                        lines.append(f"{name} of PE ({x}, {y}): {held.hex()}")
        rows.add(choice, status, lines, why)
        limit = limit or _limit(runner.cycles())
    return rows.verdict()
