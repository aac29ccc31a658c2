# SPDX-License-Identifier: Apache-2.0
"""The picture of the first page: how every row of some records compares with the better rival.

    python bench/chart.py docs/images/sweep.svg      (matplotlib draws it)

One dot a row; 1 is the rival's speed, to the right is faster; the bar is the geometric mean of the class.
"""

import collections
import json
import math
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
PANELS = (  # what a panel shows, its records
    ("One thread of a host beside NumPy and PyTorch", ("sweep_cpu",)),
    ("One H200 beside PyTorch", ("sweep_cuda", "sweep_cuda_other_shapes")),
    ("Programs on one thread beside TVM", ("te_beside_tvm",)),
)
INK, DOT, BAR = "#808080", "#4f8fe0", "#c0392b"  # readable on white and on black pages


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def panel(records):
    """The ratios of each class, and a line that says how many there are and how they lie."""
    groups, dates = collections.defaultdict(list), set()
    for name in records:
        record = json.loads((RESULTS / f"{name}.json").read_text("utf8"))
        dates.add(record["date"])
        for row in record["rows"]:
            if "ratio" in row:
                groups[row["group"]].append(row["ratio"])
    every = [r for ratios in groups.values() for r in ratios]
    said = f"{len(every)} rows, mean {mean(every):.3g}, least {min(every):.3g}"
    return groups, said, max(dates)


def draw(axis, groups, title, low, high):
    order = sorted(groups, key=lambda name: mean(groups[name]))
    for i, name in enumerate(order):
        ratios = groups[name]
        jitter = [i + 0.6 * ((k * 0.618) % 1 - 0.5) for k in range(len(ratios))]
        axis.plot(ratios, jitter, ".", ms=4, alpha=0.75, mew=0, color=DOT)
        axis.plot([mean(ratios)] * 2, [i - 0.4, i + 0.4], color=BAR, lw=2)
    axis.set_yticks(range(len(order)), order, fontsize=9)
    axis.set_ylim(-0.8, len(order) - 0.2)
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    ticks = [t for t in (0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= t <= high]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks], fontsize=9)
    axis.minorticks_off()
    axis.axvline(1, color=INK, lw=0.8)
    axis.set_title(title, fontsize=10)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def main(out):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "weft", "svg.fonttype": "none", "font.family": "sans-serif"}
    )
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    matplotlib.rcParams.update(dict.fromkeys(inks, INK))
    from matplotlib import pyplot

    panels = [(title, *panel(records)) for title, records in PANELS]
    every = [r for _, groups, *_ in panels for ratios in groups.values() for r in ratios]
    low, high = min(every) * 0.85, max(every) * 1.15
    tall = max(len(groups) for _, groups, *_ in panels[:2])
    small = len(panels[2][1])
    figure = pyplot.figure(figsize=(10, 0.17 * (tall + small) + 2.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(tall + 1, small + 3))
    places = (grid[0, 0], grid[0, 1], grid[1, :])
    for place, (title, groups, said, date) in zip(places, panels):
        draw(figure.add_subplot(place), groups, f"{title}\n{said} ({date})", low, high)
    figure.supxlabel(
        "the better rival's time / weft's: right of 1 weft is faster; bar: mean of the class",
        fontsize=9,
    )
    figure.savefig(out, metadata={"Date": None, "Creator": None}, transparent=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
