# SPDX-License-Identifier: Apache-2.0
"""The stages' time drawn as a picture: load, compute and store one above another."""

import json

from . import _core
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes

COLORS = {
    "load inp": "#4e79a7",
    "load wgt": "#76b7b2",
    "load acc": "#a0cbe8",
    "load uop": "#bab0ac",
    "gemm": "#e15759",
    "reset": "#ff9d9a",
    "alu": "#f28e2b",
    "store": "#59a14f",
}


def _kind(name):
    for kind in COLORS:
        if name.startswith(kind):
            return kind
    return "load acc" if name.startswith("load") else "store" if name.startswith("store") else "alu"


def spans(trace):
    """[(stage, name, first cycle, cycles)] of a device trace (JSON text)."""
    events = json.loads(trace)
    events = events["traceEvents"] if isinstance(events, dict) else events
    tracks = {
        (e.get("pid"), e.get("tid")): e["args"]["name"]
        for e in events
        if e.get("ph") == "M" and e.get("name") == "thread_name"
    }
    out = []
    for e in events:
        args = e.get("args", {})
        if e.get("ph") == "X" and "cycles" in args:
            track = tracks.get((e.get("pid"), e.get("tid")), str(e.get("tid")))
            out.append((track, e["name"], args["cycle"], args["cycles"]))
    return out


class record:
    """``with weft.vta.picture.record(device) as r: ...`` then ``r.svg("title")``."""

    def __init__(self, device):
        self._device, self._trace = device, None
        self.spans = []

    def __enter__(self):
        self._trace = _core.DeviceTrace(self._device)
        return self

    def __exit__(self, *exception):
        self.spans = spans(self._trace.json())

    def stages(self):
        """[(stage, kind of instruction, first cycle, cycles)]: the spans in the three stages."""
        order = ("load", "compute", "store")
        return [(s, _kind(n), at, c) for s in order for t, n, at, c in self.spans if s in t]

    def svg(self, title, width=1100):
        return timeline(self.spans, title, width)


def timeline(found, title, width=1100):
    """An SVG of spans: one row per stage, one colour per kind of instruction, with each stage's busy share."""
    import html

    if not found:
        raise ValueError(f"nothing was recorded for {title!r}")
    begin = min(s[2] for s in found)
    end = max(s[2] + s[3] for s in found)
    stages = [s for s in ("load", "compute", "store") if any(s in t[0] for t in found)]
    scale = (width - 170) / max(end - begin, 1)
    rows, height, top = [], 34, 46
    for i, stage in enumerate(stages):
        y = top + i * (height + 8)
        mine = [s for s in found if stage in s[0]]
        busy = sum(s[3] for s in mine) / max(end - begin, 1)
        rows.append(
            f'<text x="10" y="{y + 21}">{stage}</text>'
            f'<text x="{width - 62}" y="{y + 21}" class="n">{busy:.0%}</text>'
            f'<rect x="80" y="{y}" width="{(end - begin) * scale:.1f}" height="{height}" fill="#f4f4f4"/>'
        )
        for _, name, first, cycles in mine:
            rows.append(
                f'<rect x="{80 + (first - begin) * scale:.2f}" y="{y}" width="{max(cycles * scale, 0.3):.2f}" '
                f'height="{height}" fill="{COLORS[_kind(name)]}"><title>{html.escape(name)}: {cycles} cycles at '
                f"{first - begin}</title></rect>"
            )
    y = top + len(stages) * (height + 8)
    for k in range(6):
        at = k * (end - begin) / 5
        rows.append(f'<text x="{80 + at * scale:.1f}" y="{y + 12}" class="n">{at:,.0f}</text>')
    kinds = [k for k in COLORS if any(_kind(s[1]) == k for s in found)]
    for k, kind in enumerate(kinds):
        rows.append(
            f'<rect x="{80 + k * 110}" y="{y + 22}" width="12" height="12" fill="{COLORS[kind]}"/>'
            f'<text x="{97 + k * 110}" y="{y + 32}" class="n">{kind}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 44}" viewBox="0 0 {width} {y + 44}">'
        "<style>text{font:14px system-ui,sans-serif}.n{font-size:11px;fill:#555}</style>"
        f'<text x="10" y="24">{html.escape(title)}: {end - begin:,} cycles</text>'
        + "".join(rows)
        + "</svg>"
    )


_publish(__name__)
_publish_classes(__name__)
