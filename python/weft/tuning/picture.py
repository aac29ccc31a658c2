# SPDX-License-Identifier: Apache-2.0
"""A picture of a search: the time of each trial, the best so far, the default schedule, what failed."""

from __future__ import annotations

import weft
import os
from typing import Any
from weft import _core
from weft._errors import error

from .best import default_path
from .database import Database
from .search import _function, _where


def picture(
    path: str | os.PathLike[str],
    main: Any,
    target: str = "cpu",
    database: Any = None,
    device: Any = None,
    function: Any = None,
) -> None:
    """Draws the trials that `database` holds of a function on a target into `path`, an SVG file.

    Raises weft.Error: tune.picture.absent (matplotlib is not installed), tune.picture.empty (no trials),
    tune.database.*.
    """
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as reason:
        raise error(
            "io",
            "tune.picture.absent",
            "a picture of a search needs matplotlib, which is not installed",
            notes=[str(reason)],
            help="pip install matplotlib",
        ) from reason
    program, name = _function(main, function)
    file = Database(default_path() if database is None else database, exists=True)
    try:
        where = _where(target, device, weft.device(device or target))
        trials = file.trials(f"{_core.structural_hash(program._core):x}", where)
    finally:
        file.close()
    ran = [(k, t.seconds * 1e3) for k, t in enumerate(trials, 1) if t.seconds]
    if not ran:
        raise error(
            "value",
            "tune.picture.empty",
            f'{file.path} holds no measured trial of "{name}" on {where}',
            help="run weft.tune first, with the same database",
        )
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    axes.plot(*zip(*ran), ".", label="measured")
    best = [min(ms for at, ms in ran if at <= k) for k, _ in ran]
    axes.plot([k for k, _ in ran], best, drawstyle="steps-post", label="best so far")
    default = [t.seconds * 1e3 for t in trials if t.seconds and t.decisions["sketch"] == "plain"]
    if default:
        axes.axhline(default[0], linestyle="--", color="gray", label="default schedule")
    failed = [k for k, t in enumerate(trials, 1) if not t.seconds]
    if failed:
        axes.plot(failed, [max(ms for _, ms in ran)] * len(failed), "x", label="failed")
    axes.set(xlabel="trial", ylabel="milliseconds", yscale="log", title=f"{name} on {where}")
    axes.legend()
    figure.savefig(path, format="svg")
