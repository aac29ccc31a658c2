# SPDX-License-Identifier: Apache-2.0
"""The tour: the demo of every folder under examples/ on every device present, a table, a report, a trace.

`demo(quick, progress, output)` of an example yields rows of the table (a dict, see Row) and what the report shows besides:
(title, svg), {"chart": a function of charts.py, its arguments}, {"panes": {name: text}, "title": …},
{"roof": {"device", "flop", "bytes", "source"}}.
"""

import importlib.util
import math
import pathlib
import sys
import tempfile
import textwrap
import time

import numpy
import weft
from weft import _terminal
from weft._errors import error as _error

from . import charts, report
from .manual import not_installed


def relative_error(got, wanted):
    """The largest |got - wanted| divided by the largest |wanted|, in float64 (0 where all are equal).

    Both are arrays of one shape, or numbers. NaN or infinite where a value is, or where only `wanted` is zero.
    """
    got, wanted = (numpy.asarray(value, "float64") for value in (got, wanted))
    if got.shape != wanted.shape:
        raise _error(
            "shape",
            "cli.demo.shape",
            f"a program of the tour compares a result of shape {got.shape} with one of shape {wanted.shape}",
            help="compare results of one shape",
        )
    worst = float(abs(got - wanted).max(initial=0.0))
    most = float(abs(wanted).max(initial=0.0))
    return worst / most if most else worst and math.inf


class Row:
    """One line of the table.

    got and wanted: the result and the reference's, from which the row's relative error is computed; None where the program
    compares for itself (`passed` is what it found), or where there is a `loss` instead. limit: what the relative error, or
    the loss, may be at most. rivals: seconds of others for the same work in this run, by name; flop and bytes: the
    operations of a call and the size of its arguments, for the roofline. absent: why it was not run.
    """

    def __init__(
        self, program, device, seconds, rate, unit, got=None, wanted=None, limit=0.0, note="", loss=None, passed=True,
        rivals=None, flop=0, bytes=0, absent="",
    ):  # fmt: skip
        self.program, self.device, self.seconds, self.rate, self.unit = (
            program,
            device,
            seconds,
            rate,
            unit,
        )
        self.error = None if got is None else relative_error(got, wanted)
        self.limit, self.note, self.loss, self.passed = limit, note, loss, passed
        self.rivals, self.flop, self.bytes, self.absent = rivals or {}, flop, bytes, absent

    @property
    def good(self):
        judged = self.loss if self.error is None else self.error
        return self.passed and (judged is None or judged <= self.limit)

    def cells(self):
        return [
            self.program,
            self.device,
            charts.seconds_text(self.seconds) if self.seconds else "n/a",
            f"{self.rate:.3g} {self.unit}" if self.rate else "n/a",
            "n/a" if self.error is None else f"{self.error:.2g}",
            "n/a" if self.error is None else f"{self.limit:.2g}",
            "not run" if self.absent else "ok" if self.good else "WRONG",
            self.absent or self.note,
        ]


def unless_absent(program, device, rows):
    """The rows of `rows()`; where a library that they need is not installed, one row that says so instead of the rest."""
    try:
        yield from rows()
    except weft.Error as error:
        missing = not_installed(error)
        if not missing:
            raise
        yield dict(
            program=program, device=device, seconds=0, rate=0, unit="", absent=missing
        )  # fmt: skip


def examples_folder():
    """The folder examples/: of the current folder, of the source tree, or of an installation."""
    package = pathlib.Path(weft.__file__).resolve().parent
    places = [pathlib.Path.cwd(), package, *package.parents]
    folder = next((p / "examples" for p in places if list(p.glob("examples/*/demo.py"))), None)
    if folder is None:
        raise _error(
            "io",
            "cli.demo.examples",
            f"the examples are not part of this installation in {package}",
            help="install weft again, or run weft demo in a source tree",
        )
    return folder


def _examples():
    return sorted(examples_folder().glob("*/demo.py"))


def _load(path):
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"weft_demo_{path.parent.name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


def _print(rows):
    """The table, in a pipe as wide as it is; on a terminal columns that do not fit are left to the report."""
    cells = [report.HEAD, *(r.cells() for r in rows)]
    shown = list(range(len(report.HEAD)))
    widths = [max(len(c[i]) for c in cells) for i in shown]
    room = _terminal.columns() or math.inf
    for name in ("note", "allowed", "error", "rate"):
        if sum(widths[i] + 2 for i in shown) - 2 > room:
            shown.remove(report.HEAD.index(name))
    widths[0] = min(widths[0], max(room - sum(widths[i] + 2 for i in shown[1:]), 12))
    for line in cells:
        line = [textwrap.shorten(line[0], widths[0], placeholder="…"), *line[1:]]
        print(
            "  ".join(
                line[i].rjust(widths[i]) if report.HEAD[i] in report.NUMBERS else line[i].ljust(widths[i])
                for i in shown
            ).rstrip()
        )  # fmt: skip
    left = [name for i, name in enumerate(report.HEAD) if i not in shown]
    if left:
        said = f"Left out at {room} columns, shown in the report: {', '.join(left)}"
        print(f"\n{textwrap.fill(said, room)}")
        for row in rows:
            if row.absent or not row.good:
                note = row.cells()[-1]
                print(textwrap.fill(f"{row.program}, {row.device}: {note}", room))


def run(args):
    started = time.time()
    output = pathlib.Path(args.output)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(
        dir=output
    ) as file:  # a full disk is found before the minutes of work
        file.write(bytes(1 << 20))
    rows, items, failures = [], [], []
    live = _terminal.live()

    def progress(text):
        if live:
            _terminal.show(text)

    profile = weft.profile()
    profile.__enter__()
    for path in _examples():
        name = path.parent.name
        progress(f"{name} ...")
        try:
            for item in _load(path).demo(
                quick=args.quick,
                progress=lambda t, n=name: progress(f"{n}: {t}"),
                output=output,
            ):
                if isinstance(item, dict) and "program" in item:
                    rows.append(Row(**item))
                else:
                    items.append(item)
        except (weft.Error, ImportError, OSError) as error:
            failures.append((name, error))
    profile.__exit__()
    progress("")
    _print(rows)
    print()
    for name, meaning in report.MEANINGS.items():
        print(_terminal.filled(f"{name}: {meaning}", "  "))
    for name, error in failures:
        print(f"\n{name} failed:\n{_terminal.filled_error(str(error))}")
    absent = report.write(output / "report.html", rows, items)
    profile.save(output / "trace.json")
    if absent:
        print("\n" + _terminal.filled(absent))
    wrong = [r for r in rows if not r.good]
    end = (
        f"{sum(not r.absent for r in rows)} runs, {len(wrong)} wrong, {len(failures)} programs failed, {time.time() - started:.1f} s. "
        f"Report: {output / 'report.html'}, trace: {output / 'trace.json'}"
    )
    print("\n" + _terminal.filled(end))
    return 1 if wrong or failures or not rows else 0
