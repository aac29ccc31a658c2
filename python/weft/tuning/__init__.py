# SPDX-License-Identifier: Apache-2.0
"""Searching for a fast schedule: ``best = weft.tune(main, target="cuda", trials=64, database="tune.db")``.

Sketches (sketches.py) turn a program into a space of decisions, the search (search.py) draws from it, every candidate
is built, compared with the untuned program and timed on the device (measure.py), and what was seen is kept in a file
(database.py), from which a later call goes on.
"""

from .._boundary import public as _public
from .best import default_path as _default_path
from .best import notes as _notes

__all__ = [
    "Host",
    "RayWorker",
    "default_path",
    "export",
    "merge",
    "notes",
    "picture",
    "tune",
    "tune_operations",
]
default_path = _public(_default_path)
notes = _public(_notes)
_WHERE = {"tune": "search", "export": "database", "merge": "database", "picture": "picture"}
_WHERE |= {"tune_operations": "operations"}
_WHERE |= {"Host": "fleet", "RayWorker": "fleet"}


def __getattr__(name):
    """weft.build looks into best.py on every call: the search, its process and sqlite3 are loaded when they are used."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .._boundary import import_later, publish_class

    out = getattr(import_later(f"{__name__}.{_WHERE[name]}"), name)
    if isinstance(out, type):
        publish_class(out)
    else:
        out = _public(out)
    globals()[name] = out
    return out
