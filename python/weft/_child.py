# SPDX-License-Identifier: Apache-2.0
"""Python processes that import this same package, wherever they are started."""

from __future__ import annotations

import os
import pathlib


def environment(**more):
    """This process's variables with the folder of this package first on PYTHONPATH, and `more`.

    A relative PYTHONPATH would mean another folder in a process that starts elsewhere.
    """
    own = str(pathlib.Path(__file__).resolve().parents[1])
    rest = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([own, *rest]), **more}
