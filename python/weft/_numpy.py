# SPDX-License-Identifier: Apache-2.0
"""NumPy for modules that need it only when they are called: importing it takes a third of the time of all of weft."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import *  # noqa: F403


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import numpy

    found = globals()[name] = getattr(numpy, name)
    return found
