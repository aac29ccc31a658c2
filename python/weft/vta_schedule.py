# SPDX-License-Identifier: Apache-2.0
"""Default schedules in public steps: ``sch = weft.vta.default_schedule(f, env)``; ``print(sch.trace.as_python())``.

They are those that ``weft.build(f, target="vta")`` uses: the function is packed (``weft.vta.pack``), everything after
that is steps which one would write by hand: memory scopes, ``cache_read``, tiles by ``split`` and ``reorder``,
copies moved to where their tile begins, ``decompose_reduction``, ``tensorize``. They can be edited, replayed and built.
"""

from __future__ import annotations

from typing import Any as _Any

from ._boundary import publish as _publish
from . import _core
from .ir import PrimFunc
from .schedule import Schedule


def _target(env):
    from . import vta as _vta

    return (env or _vta.env()).target


def default_schedule(
    func: PrimFunc, env: _Any = None, tiles: _Any = None, threads: int = 1
) -> _Any:
    """A weft.Schedule of `func` for the machine `env` (weft.vta.env()), the one that weft.build uses.

    Its trace replays on ``weft.vta.pack(func, env)``, which is where the steps begin (``sch.start``).
    `tiles`: iterator -> whole elements of a tile, for those that should not be chosen here. `threads` > 1: so many
    virtual threads over the outermost tile loop of each stage that has enough steps.
    Raises weft.Error (vta.accepts.*) for what the machine cannot do, weft.ScheduleError (vta.schedule.*) for tiles
    and threads that do not fit.
    """
    options = {"tiles": dict(tiles or {}), "threads": int(threads)}
    return Schedule(_core.default_schedule(func, _target(env), options))


def pack(func: PrimFunc, env: _Any = None) -> _Any:
    """The function over whole elements of the machine, without a schedule: arrays packed by copies, sums and chains
    over [...][BATCH][BLOCK] arrays, results unpacked. Equals `func`; default schedules begin here.
    Raises weft.Error (vta.accepts.*) for what the machine cannot do."""
    return default_schedule(func, env).start[func.name]


__all__ = ["default_schedule", "pack"]


_publish(__name__)
