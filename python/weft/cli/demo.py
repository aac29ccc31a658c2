# SPDX-License-Identifier: Apache-2.0
"""The tour: the demo of every folder under examples/ on every device present, a table, a report, a trace."""

import html
import importlib.util
import pathlib
import sys
import time

import weft
from weft._errors import error as _error


class Row:
    """One line of the table.

    error is the largest difference from the reference; None where the program checks itself, or where there is a
    `loss` instead. limit is what either may be.
    """

    def __init__(self, program, device, seconds, rate, unit, error, limit, note="", loss=None):
        self.program, self.device, self.seconds, self.rate, self.unit = (
            program,
            device,
            seconds,
            rate,
            unit,
        )
        self.error, self.limit, self.note, self.loss = error, limit, note, loss

    @property
    def good(self):
        judged = self.loss if self.error is None else self.error
        return judged is None or judged <= self.limit

    def cells(self):
        return [
            self.program,
            self.device,
            f"{self.seconds * 1e3:.3g} ms" if self.seconds else "n/a",
            f"{self.rate:.3g} {self.unit}" if self.rate else "n/a",
            "n/a" if self.error is None else f"{self.error:.2g}",
            "ok" if self.good else "WRONG",
            self.note,
        ]


STYLE = """
:root{color-scheme:light dark;--line:#d0d7de;--bad:#ffd7d5}
@media(prefers-color-scheme:dark){:root{--line:#3d444d;--bad:#6b1d1d}}
body{font:15px/1.45 system-ui,sans-serif;margin:1.5em auto;padding:0 1em;max-width:75em}
.wide{overflow-x:auto}table{border-collapse:collapse}
td,th{padding:.3em .8em;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
td:nth-child(3),td:nth-child(4),td:nth-child(5){text-align:right;font-variant-numeric:tabular-nums}
.bad{background:var(--bad)}figure{margin:1.5em 0;overflow-x:auto}svg{max-width:100%;height:auto;background:#fff;color:#000}
"""
HEAD = ["program", "device", "time", "rate", "error", "result", "note"]


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
    cells = [HEAD, *(r.cells() for r in rows)]
    widths = [max(len(c[i]) for c in cells) for i in range(len(HEAD))]
    for line in cells:
        print(
            "  ".join(
                c.rjust(w) if i in (2, 3, 4) else c.ljust(w)
                for i, (c, w) in enumerate(zip(line, widths))
            ).rstrip()
        )


def _report(path, rows, pictures):
    body = "".join(
        "<tr class='%s'>%s</tr>"
        % ("ok" if r.good else "bad", "".join(f"<td>{html.escape(c)}</td>" for c in r.cells()))
        for r in rows
    )
    images = "".join(
        f"<figure>{svg}<figcaption>{html.escape(title)}</figcaption></figure>"
        for title, svg in pictures
    )
    head = "".join(f"<th>{h}</th>" for h in HEAD)
    path.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>weft</title>"
        f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style>"
        f"<h1>weft {weft.__version__}</h1><p>Each program on every device present, checked against its reference. "
        "time: of one call, or of one training step; simulated on qpu, vta and wse. error: the largest difference from the reference.</p>"
        f"<div class=wide><table><tr>{head}</tr>{body}</table></div>{images}\n",
        encoding="utf-8",
    )


def run(args):
    started = time.time()
    output = pathlib.Path(args.output)
    output.mkdir(parents=True, exist_ok=True)
    rows, pictures, failures = [], [], []
    live = sys.stderr.isatty()

    def progress(text):
        if live:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

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
                if isinstance(item, tuple):
                    pictures.append(item)
                    continue
                rows.append(Row(**item))
        except (weft.Error, ImportError, OSError) as error:
            failures.append((name, error))
    profile.__exit__()
    progress("")
    _print(rows)
    for name, error in failures:
        print(f"\n{name} failed:\n{error}")
    _report(output / "report.html", rows, pictures)
    profile.save(output / "trace.json")
    for title, svg in pictures:
        if not svg.startswith("<svg"):  # a page of its own, which the report shows in a frame
            continue
        name = "".join(c if c.isalnum() else "-" for c in title.lower())
        (output / f"{name}.svg").write_text(svg)
    wrong = [r for r in rows if not r.good]
    print(
        f"\n{len(rows)} runs, {len(wrong)} wrong, {len(failures)} programs failed, {time.time() - started:.1f} s. "
        f"Report: {output / 'report.html'}, trace: {output / 'trace.json'}"
    )
    return 1 if wrong or failures or not rows else 0
