# SPDX-License-Identifier: Apache-2.0
"""The report of the tour: one file that opens from the file system, without a network, in light and dark colours."""

import html
import pathlib
import string

import weft

from . import charts

TEMPLATE = pathlib.Path(__file__).with_name("report.html")
HEAD = ["program", "device", "time", "rate", "error", "allowed", "result", "note"]
NUMBERS = ("time", "rate", "error", "allowed")
MEANINGS = {
    "time": "of one call, or of one training step; simulated on qpu, vta and wse",
    "rate": "work of that call in a second",
    "error": "the largest difference from the reference, divided by the reference's largest value",
    "allowed": "the error at which a row is WRONG; 0: the result is exact",
}


def _table(rows):
    """The results, with a choice of one device. rows: objects with device, good and cells()."""
    devices = list(dict.fromkeys(r.device for r in rows))
    options = "".join(f"<option>{html.escape(d)}</option>" for d in devices)
    cells = "".join(
        f"<tr class='{'ok' if r.good else 'bad'}' data-device='{html.escape(r.device, quote=True)}'>"
        + "".join(
            f"<td data-head='{h}'{' class=number' if h in NUMBERS else ''}>{html.escape(c)}</td>"
            for h, c in zip(HEAD, r.cells())
        )
        + "</tr>"
        for r in rows
    )
    top = "".join(f"<th{' class=number' if h in NUMBERS else ''}>{h}</th>" for h in HEAD)
    terms = "".join(f"<dt>{h}</dt><dd>{html.escape(m)}</dd>" for h, m in MEANINGS.items())
    return (
        f"<dl>{terms}</dl><p><label>device <select id=device><option value=''>all</option>{options}</select></label></p>"
        f"<div class=wide><table id=results><thead><tr>{top}</tr></thead><tbody>{cells}</tbody></table></div>"
    )


def _figure(title, svg, note=""):
    said = f"<p>{html.escape(note)}</p>" if note else ""
    named = svg.replace("<svg", f'<svg role=img aria-label="{html.escape(title)}"', 1)
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{named}{said}</figure>"


def _codes(item):
    """One program as the text of several machines, two of them side by side."""
    names = list(item["panes"])
    texts = "".join(f"<pre hidden>{html.escape(text)}</pre>" for text in item["panes"].values())
    panes = ""
    for side in range(min(2, len(names))):
        options = "".join(
            f"<option{' selected' if k == side else ''}>{html.escape(name)}</option>"
            for k, name in enumerate(names)
        )
        panes += f"<div><label>text for <select>{options}</select></label>{texts}</div>"
    return f"<h3>{html.escape(item['title'])}</h3><div class=panes>{panes}</div>"


def _roofs(rows, roofs):
    """A chart for each device that says what it can do at most."""
    for roof in roofs:
        points = [
            (r.program, r.flop, r.bytes, r.seconds)
            for r in rows
            if r.device == roof["device"] and r.flop and r.bytes and r.seconds
        ]
        if points:
            top, note = roof["flop"], roof["source"]
            best = max(points, key=lambda p: p[1] / p[3])
            if best[1] / best[3] > top:  # what was taken for the machine's limit was none
                top = best[1] / best[3]
                note += f" {best[0]} was faster, so its rate is the level line."
            yield {
                "chart": "roofline",
                "title": f"{roof['device']}: rates and the machine's limits",
                "roof": (top, roof["bytes"]),
                "points": points,
                "note": note,
            }


def _rivals(rows):
    """One chart of all programs that were timed beside others in this run."""
    groups = {}
    for r in rows:
        if r.rivals and r.seconds:
            times = groups.setdefault(r.program, {})
            times.update(r.rivals)
            times[f"weft {r.device}"] = r.seconds
    others = [n for n in ("NumPy", "PyTorch") if any(n in group for group in groups.values())]
    if groups:
        yield {
            "chart": "bars",
            "title": f"Times beside {' and '.join(others) or 'other schedules'}",
            "groups": groups,
            "note": "Measured in this run, in turns, with the same number of untimed calls before.",
        }


def write(path, rows, items):
    """Writes the page. items: what the programs gave besides rows: (title, svg), charts, codes, roofs."""
    drawn, asked, codes, roofs = [], [], [], []
    for item in items:
        if isinstance(item, tuple):
            drawn.append((item[0], item[1].replace("<svg", "<svg class=plain", 1), ""))
        elif "chart" in item:
            asked.append(item)
        elif "panes" in item:
            codes.append(item)
        else:
            roofs.append(item["roof"])
    wanted = [*_rivals(rows), *_roofs(rows, roofs), *asked]
    absent = charts.available()
    if absent is None:
        drawn = [(i["title"], charts.draw(i), i.get("note", "")) for i in wanted] + drawn
    pictures = "".join(_figure(*each) for each in drawn)
    said = f"<p>{html.escape(absent)}</p>" if absent and wanted else ""
    sections = {"Results": _table(rows)}
    if pictures or said:
        sections["Charts"] = f"{said}<div class=charts>{pictures}</div>"
    if codes:
        sections["Generated code"] = "".join(_codes(item) for item in codes)
    sections["Trace"] = (
        "<p>Where the time of this run went: <a href=trace.json>trace.json</a>, beside this file. "
        "Open it at ui.perfetto.dev or in chrome://tracing.</p>"
    )
    names = {title: title.lower().replace(" ", "-") for title in sections}
    page = string.Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        version=weft.__version__,
        links="".join(f"<a href='#{at}'>{title}</a>" for title, at in names.items()),
        body="".join(f"<h2 id='{names[t]}'>{t}</h2>{text}" for t, text in sections.items()),
    )
    path.write_text(page, encoding="utf-8")
    return absent if wanted else None
