# SPDX-License-Identifier: Apache-2.0
"""A picture of a sweep: for each class of functions, how every row compares with the better rival.

    python bench/chart.py bench/results/SWEEP.json [...] OUT.svg      (matplotlib draws it)

One dot a row; 1 is the rival's speed, to the right is faster; the bar is the geometric mean of the class.
"""

import collections
import json
import math
import sys


def main(*paths):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"  # the same file for the same figures
    from matplotlib import pyplot

    *inputs, out = paths
    ink = "#808080"  # readable on white and on black pages
    matplotlib.rcParams.update(
        {
            k: ink
            for k in (
                "text.color",
                "axes.labelcolor",
                "axes.edgecolor",
                "xtick.color",
                "ytick.color",
            )
        }
    )
    matplotlib.rcParams["svg.fonttype"] = "none"
    figure, axes = pyplot.subplots(1, len(inputs), figsize=(5.2 * len(inputs), 5.4), squeeze=False)
    for axis, path in zip(axes[0], inputs):
        with open(path) as file:
            sweep = json.load(file)
        groups = collections.defaultdict(list)
        for row in sweep["rows"]:
            if "ratio" in row:
                groups[row["group"]].append(row["ratio"])
        means = {k: math.exp(sum(map(math.log, v)) / len(v)) for k, v in groups.items()}
        for i, name in enumerate(sorted(groups, key=means.get)):
            ratios = groups[name]
            jitter = [i + 0.6 * ((k * 0.618) % 1 - 0.5) for k in range(len(ratios))]
            axis.plot(ratios, jitter, ".", ms=2.5, alpha=0.5, color="#5b7ba5")
            axis.plot([means[name]] * 2, [i - 0.4, i + 0.4], color="#c0392b", lw=2)
        axis.set_yticks(range(len(groups)), sorted(groups, key=means.get), fontsize=8)
        axis.set_xscale("log")
        axis.axvline(1, color=ink, lw=0.8)
        axis.set_xlabel("the better rival's time / weft's (right is faster)")
        rows = sum(map(len, groups.values()))
        axis.set_title(
            f"{sweep['benchmark']}, {sweep['device']}, {sweep['date']}: {rows} rows", fontsize=9
        )
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None}, transparent=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
