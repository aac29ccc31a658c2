# SPDX-License-Identifier: Apache-2.0
"""Searching for a fast schedule: ``best = weft.tune(main, target="cuda", trials=64, database="tune.db")``.

Sketches (sketches.py) turn a program into a space of decisions, the search (search.py) draws from it, every candidate
is built, compared with the untuned program and timed on the device (measure.py), and what was seen is kept in a file
(database.py), from which a later call goes on.
"""

from .search import tune

__all__ = ["tune"]
