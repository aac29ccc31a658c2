# SPDX-License-Identifier: Apache-2.0
"""The compiling half of ``weft playground``: one request from standard input, one answer on standard output, both JSON.

It runs as a process of its own, because the schedule is Python that the reader of the page writes.
"""

import contextlib
import io
import json
import os
import sys
import traceback

LIMIT = 400_000  # characters of one part of the answer
ALLOWED = 1e-3  # relative difference from the reference


def _cut(text):
    return text if len(text) <= LIMIT else text[:LIMIT] + f"\n... {len(text) - LIMIT} more"


def _own_line(failure):
    """What a mistake in the schedule's Python says, with the line of the schedule."""
    lines = [f.lineno for f in traceback.extract_tb(failure.__traceback__) if f.filename == NAME]
    if isinstance(failure, SyntaxError):
        lines = [failure.lineno]
    where = f"schedule, line {lines[-1]}: " if lines and lines[-1] else "schedule: "
    return f"{where}{type(failure).__name__}: {failure}"


NAME = "<schedule>"


def _scheduled(program, text, out):
    """The Schedule after the reader's lines; what they print goes into the answer."""
    import weft
    from weft import script, te

    schedule, printed = weft.Schedule(program), io.StringIO()
    names = {"sch": schedule, "weft": weft, "te": te, "T": script, "__name__": NAME}
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(text, NAME, "exec"), names)  # noqa: S102: what the playground is for
    finally:
        out["scheduled"] = _cut(schedule.mod.script())
        out["printed"] = _cut(printed.getvalue())
    return schedule


def _run(module, program, target, given, check):
    """Runs the first function on random data beside the reference; returns the device's counters."""
    import weft
    from weft.cli import programs

    device = weft.device(target)
    if not device.available:
        check("run", "left out", device.reason.splitlines()[0])
        return {}
    name = module.functions[0]
    values = programs.random_values(module.plan(name), given.items(), 0)
    mine = programs.arguments_of(values, device)
    reference = programs.arguments_of(values, weft.device("ref"))
    device.clear_stats()
    module[name](*mine)
    device.synchronize()
    stats = dict(device.stats())
    weft.build(program, target="ref", tuned=False)[name](*reference)
    worst = programs.worst_difference(values, mine, reference)
    check(
        "result",
        "ok" if worst <= ALLOWED else "failed",
        f"largest difference from the reference interpreter: {worst:.2g} (allowed: {ALLOWED:g})",
    )
    if "cycles" in stats:
        check("cycles", "ok", f"{stats['cycles']:,.0f} simulated cycles")
    else:
        timed = module.time_evaluator(name, number=5, repeat=3)(*mine)
        check("time", "ok", f"{timed.median * 1e6:,.2f} microseconds, median of {3 * 5} calls")
    return stats


def answer(request):
    """What the page shows for one program, schedule and target. Parts after the one that failed are empty."""
    import weft
    from weft import script

    out = {"program": "", "scheduled": "", "printed": "", "passes": [], "source": "", "notes": []}
    out.update(checks=[], stats={}, error="")

    def check(name, state, text):
        out["checks"].append({"name": name, "state": state, "text": text})

    def after(name, function, seconds):
        text = _cut(function.script())
        if not out["passes"] or out["passes"][-1]["text"] != text:  # passes that changed something
            out["passes"].append({"name": name, "text": text})

    stage, target, lines = "program", request["target"], request["schedule"].strip()
    try:
        program = script.from_source(request["program"], "program")
        out["program"] = out["scheduled"] = _cut(program.script())
        check("program", "ok", "parsed and verified")
        stage, subject = "schedule", program
        if lines:
            subject = _scheduled(program, request["schedule"], out)
            check("schedule", "ok", f"accepted; {len(subject.trace)} entries in its trace")
        stage = "build"
        module = weft.build(subject, target=target, after=after, tuned=False)
        out["source"], out["notes"] = _cut(module.source()), list(module.notes)
        check("build", "ok", f"lowered for {target}; no races between parallel iterations")
        stage = "run"
        out["stats"] = _run(module, program, target, request["values"], check)
    except weft.Error as refusal:
        out["error"] = str(refusal)
        repair = f"; help: {refusal.help}" if refusal.help else ""  # the error's own is at its end
        check(stage, "failed", refusal.message + repair)
    except (Exception, SystemExit, KeyboardInterrupt) as failure:  # noqa: BLE001: the reader's own Python
        if stage == "schedule":
            out["error"] = _own_line(failure)
        elif isinstance(failure, MemoryError):
            out["error"] = (
                f"{stage}: the program's arrays do not fit into memory: take smaller extents"
            )
        else:
            out["error"] = f"{stage}: a fault of weft: {type(failure).__name__}: {failure}"
        check(stage, "failed", out["error"])
    return out


def main():
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what compilers and the schedule write does not mix with the answer
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    json.dump(answer(json.load(sys.stdin)), channel, default=str)
    channel.close()


if __name__ == "__main__":
    main()
