# SPDX-License-Identifier: Apache-2.0
"""Charts of the tour's report, drawn by matplotlib as SVG that follows the page's light or dark colours."""

import io
import re

COLOURS = ("#3b7dd8", "#d9622b", "#2e9e5b", "#a95fc4", "#b58900", "#1f9eaf", "#c4475c", "#7a7a7a")
# Drawn at a telephone's width, one unit of the picture a pixel of the page.
WIDTH = 4.3


def available():
    """None when charts can be drawn, else the sentence that says what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return "The charts need matplotlib, which is not installed: pip install matplotlib, then run weft demo again."
    return None


def _figure(height):
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_alpha(0)
    return figure


def _axes(figure, *place):
    axes = figure.add_subplot(*place)
    axes.patch.set_alpha(0)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _svg(figure, name):
    """The figure as SVG for a page: text stays text, black is the page's colour, ids are the picture's own."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = text.replace("#000000", "currentColor").replace("stroke: #ffffff", "stroke: none")
    text = text.replace("'DejaVu Sans', ", "").replace("'DejaVu Sans'", "sans-serif")
    unique = re.sub(r"\W", "", name)
    text = re.sub(r'\bid="', f'id="{unique}-', text)
    text = re.sub(r"url\(#", f"url(#{unique}-", text)
    return re.sub(r'href="#', f'href="#{unique}-', text)


def _colour(names):
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def lines(title, series, x="", y="", log=False):
    """One line for each name of `series`."""
    figure = _figure(2.4)
    axes = _axes(figure)
    for (name, values), colour in zip(series.items(), _colour(series).values()):
        axes.plot(range(len(values)), values, color=colour, label=name, linewidth=1.6)
    if log:
        axes.set_yscale("log")
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.legend(fontsize=8, frameon=False)
    return _svg(figure, title)


def seconds_text(value):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def bars(title, groups):
    """Times of one program each: groups = {program: {who: seconds}}, shorter is faster; the scale is logarithmic."""
    names = list(dict.fromkeys(who for times in groups.values() for who in times))
    colours = _colour(names)
    count = sum(len(times) for times in groups.values())
    figure = _figure(0.7 + 0.19 * (count + 1.6 * len(groups)))
    axes = _axes(figure)
    at, least = 0.0, min(s for times in groups.values() for s in times.values()) / 3
    for program, times in groups.items():
        axes.text(least, at, program, fontsize=8, fontweight="bold", va="center", clip_on=False)
        at += 1
        for who, seconds in sorted(times.items(), key=lambda item: item[1]):
            axes.barh(at, seconds - least, left=least, color=colours[who], height=0.8)
            axes.text(
                seconds * 1.1, at, f"{who} {seconds_text(seconds)}", fontsize=7.5, va="center"
            )
            at += 1
        at += 0.6
    axes.set_xscale("log")
    axes.set_xlim(least, max(s for times in groups.values() for s in times.values()) * 12)
    axes.set_ylim(at - 0.4, -0.8)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("seconds of one call, logarithmic: shorter is faster", fontsize=8)
    return _svg(figure, title)


def roofline(title, roof, points):
    """What a device can do at most, and where its programs are.

    roof = (operations a second, bytes a second); points = [(program, operations, bytes, seconds)].
    """
    top, stream = roof
    from matplotlib.transforms import offset_copy

    rows = (len(points) + 1) // 2
    figure = _figure(2.6 + 0.17 * rows)
    axes = _axes(figure)
    where = [flop / size for _, flop, size, _ in points] + [top / stream]
    low, high = min(where) / 4, max(where) * 8
    ridge = top / stream
    axes.plot([low, ridge, high], [low * stream, top, top], color="#7a7a7a", linewidth=1.4)
    for k, (name, flop, size, seconds) in enumerate(points):
        share = flop / seconds / min(top, flop / size * stream)
        label = f"{name}: {share:.0%}" if share < 1.05 else f"{name}: above"
        colour, mark = COLOURS[k % len(COLOURS)], "os^D"[k // len(COLOURS) % 4]
        axes.plot([flop / size], [flop / seconds], mark, color=colour, markersize=6, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations for each byte of the arguments", fontsize=8)
    axes.set_ylabel("operations a second", fontsize=8)
    axes.legend(
        fontsize=7.5 if rows < 4 else 7, frameon=False, loc="upper center", bbox_to_anchor=(0.45, 0), ncol=2,
        bbox_transform=offset_copy(axes.transAxes, figure, y=-30, units="points"),  # below the axis and its label
        handletextpad=0.1, columnspacing=0.8,
    )  # fmt: skip
    return _svg(figure, title)


def frames(title, pictures, labels, unit=""):
    """Small pictures of one grid at several times, all with the same colours."""
    columns = 2
    rows = (len(pictures) + columns - 1) // columns
    deep, wide = len(pictures[0]), len(pictures[0][0])
    figure = _figure(rows * (WIDTH / columns * deep / wide + 0.3) + 0.5)
    most = max(float(value) for grid in pictures for row in grid for value in row) or 1.0
    every, image = [], None
    for k, (grid, label) in enumerate(zip(pictures, labels)):
        axes = _axes(figure, rows, columns, k + 1)
        image = axes.imshow(grid, vmin=0, vmax=most, cmap="viridis", interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(label, fontsize=8)
        every.append(axes)
    bar = figure.colorbar(image, ax=every, location="bottom", shrink=0.6, aspect=30)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(unit, fontsize=8)
    return _svg(figure, title)


def stages(title, spans, colours):
    """Busy times of a pipeline's stages: spans = [(stage, kind, first cycle, cycles)]."""
    order = list(dict.fromkeys(s[0] for s in spans))
    begin, end = min(s[2] for s in spans), max(s[2] + s[3] for s in spans)
    figure = _figure(0.9 + 0.45 * len(order))
    axes = _axes(figure)
    for k, stage in enumerate(order):
        mine = [s for s in spans if s[0] == stage]
        for kind in dict.fromkeys(s[1] for s in mine):
            ranges = [(s[2] - begin, s[3]) for s in mine if s[1] == kind]
            axes.broken_barh(ranges, (k - 0.38, 0.76), facecolors=colours[kind], label=kind)
        busy = sum(s[3] for s in mine) / max(end - begin, 1)
        axes.text((end - begin) * 1.01, k, f"{busy:.0%}", fontsize=8, va="center")
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xlim(0, (end - begin) * 1.1)
    axes.set_xlabel("cycles; at the right, how much of the time the stage is busy", fontsize=8)
    axes.legend(fontsize=7.5, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=4)
    return _svg(figure, title)


def draw(item):
    """The SVG of one chart: {"chart": function's name, "title": …, its arguments}."""
    values = {key: value for key, value in item.items() if key not in ("chart", "note")}
    kinds = {f.__name__: f for f in (lines, bars, roofline, frames, stages)}
    if item["chart"] not in kinds:
        from weft._errors import error

        raise error(
            "value",
            "cli.demo.chart",
            f'a program of the tour asks for a chart "{item["chart"]}"',
            notes=["there are " + ", ".join(kinds)],
        )
    return kinds[item["chart"]](**values)
