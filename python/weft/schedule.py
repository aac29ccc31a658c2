# SPDX-License-Identifier: Apache-2.0
"""Schedules. The methods come from the one table of primitives in C++."""

import inspect as _inspect

from ._core import shown as _shown
from . import _core
from ._errors import error as _error
from .ir import IRModule, PrimFunc

BlockRef = _core.BlockRef
LoopRef = _core.LoopRef


class Schedule:
    """A program and its history of steps.

    Every step is checked, then applied; a refused step raises weft.ScheduleError with ``.code``, ``.places``
    and ``.help`` and leaves the program unchanged.

    With ``check="run"`` the interpreter also runs the program after every step, on random whole numbers, and a
    step that changes a result is refused with ``schedule.check.differs``: a proof by rule and a test by example.
    It takes programs of fixed shape that execute at most `step_limit` statements; schedule a small instance
    and replay its trace on the large one.
    """

    def __init__(self, program, seed=0, check=None, step_limit=20_000_000):
        self._core = (
            program if isinstance(program, _core.Schedule) else _core.Schedule(program, seed)
        )
        if check == "run":
            self._core.check_by_running(seed, step_limit)
        elif check is not None:
            raise _error(
                "value",
                "schedule.check.kind",
                f"check is {_shown(check)}",
                help='legal: "run" or None',
            )

    @property
    def checked(self):
        """None, or with check="run": (functions compared so far, programs taken as the new start)."""
        return self._core.checked

    @property
    def mod(self):
        """The program now, an IRModule."""
        return IRModule(self._core.mod)

    @property
    def func(self):
        """The function that is scheduled, as it is now."""
        return PrimFunc(self._core.func)

    @property
    def start(self):
        """The program before the first step, an IRModule: the trace, replayed on it, gives ``mod`` again."""
        return IRModule(self._core.start)

    @property
    def trace(self):
        """The steps so far: ``.as_python()``, ``.as_json()``."""
        return self._core.trace

    def script(self):
        """The program now as T-script."""
        return self._core.script()

    def show(self, *_ignored, **_also):
        """Prints the program as T-script."""
        print(self.script())

    def copy(self):
        """A schedule with the same program and steps that goes its own way."""
        return Schedule(self._core.copy())

    def work_on(self, func_name):
        """The function that get_block looks in by default."""
        self._core.work_on(func_name)

    @staticmethod
    def replay(program, trace):
        """Repeats a recorded trace (JSON text, or what it holds) on another program."""
        if isinstance(trace, _core.Trace):
            trace = trace.as_json()
        return Schedule(_core.Schedule.replay(program, trace))

    def get(self, ref):
        """What a block or loop is now, as plain values.

        Block: name, iters (name, kind "S" or "R", extent), reads and writes (buffer, shape, dtype, scope), has_init.
        Loop: name, extent, axis it is bound to. Symbolic extents are None. Raises weft.ScheduleError when it is gone.
        """
        return self._core.get(ref)

    def __getattr__(self, name):  # only where nothing has the name
        if name.startswith("_"):
            raise AttributeError(name)
        from ._names import no_step

        raise no_step(name, [n for n in dir(Schedule) if not n.startswith("_")])

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return Schedule.replay, (self.start, self.trace.as_json())

    def __repr__(self):
        return f"weft.Schedule({len(self.trace)} steps)\n{self.script()}"


def _make(name, doc, result, fields):
    def step(self, *args, **kwargs):
        return self._core.call(name, *args, **kwargs)

    parameters = [_inspect.Parameter("self", _inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    text = [doc, ""]
    for field, kind, about, mode, default in fields:
        if mode == 2:
            parameters.append(_inspect.Parameter(field, _inspect.Parameter.VAR_POSITIONAL))
        else:
            parameters.append(
                _inspect.Parameter(
                    field,
                    _inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=_inspect.Parameter.empty if mode == 0 else default,
                )
            )
        text.append(f"{field} ({kind}): {about}")
    seen_default = False
    for (
        parameter
    ) in parameters:  # a required field after an optional one: keyword only in the signature
        seen_default = seen_default or parameter.default is not _inspect.Parameter.empty
    try:
        step.__signature__ = _inspect.Signature(parameters)
    except ValueError:
        pass
    text += ["", f"Returns {result}. Raises weft.ScheduleError when the step is illegal."]
    step.__name__ = name
    step.__qualname__ = f"Schedule.{name}"
    step.__doc__ = "\n".join(text)
    return step


for _row in _core.schedule_primitives():
    setattr(Schedule, _row[0], _make(*_row))
