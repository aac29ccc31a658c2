# SPDX-License-Identifier: Apache-2.0
"""``weft new``: the skeleton of an operation, step, pass, target or rule, written by the source tree's own tools/new.py."""

import pathlib
import subprocess
import sys

import weft
from weft._errors import error


def _tree():
    """The source tree around the current folder, or the one this package lies in."""
    here = pathlib.Path.cwd()
    places = [here, *here.parents, pathlib.Path(weft.__file__).resolve().parents[2]]
    found = next(
        (p for p in places if (p / "tools/new.py").is_file() and (p / "layers.txt").is_file()), None
    )
    if found is None:
        raise error(
            "io",
            "cli.new.tree",
            f"{here} is not inside a source tree of weft",
            help="weft new adds files to weft itself: change into a checkout first",
        )
    return found


def new(args):
    return subprocess.run(
        [sys.executable, _tree() / "tools/new.py", args.kind, args.name]
    ).returncode
