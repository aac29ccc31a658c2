# SPDX-License-Identifier: Apache-2.0
"""Random and evolutionary search over the decisions of the sketches."""

import random
import sys
import time
import warnings

import weft
from weft import _core
from weft._errors import error

from .apart import Apart
from .database import Database, Trial
from .measure import Measurer
from .rank import LEAST, Ranking
from .sketches import sketches_for

_ELITE = 8  # parents are drawn from the fastest so many
_PATIENCE = (
    200  # candidates refused or seen before, in a row, after which the space counts as exhausted
)
_DRAWN = 12  # candidates of which the one that ranks best is measured


class _Draw:
    """Answers a sketch's questions: from `given` where it has a legal answer, else at random; and notes them."""

    def __init__(self, rng, given=None):
        self._rng, self._given, self.made = rng, given or {}, {}

    def __call__(self, name, choices):
        value = self._given.get(name)
        if value not in choices:
            value = self._rng.choice(choices)
        self.made[name] = value
        return value


def _child(rng, trials):
    """Answers of a fast candidate with one or two forgotten, or of two mixed; None: draw afresh."""
    good = sorted((t for t in trials if t.seconds), key=lambda t: t.seconds)[:_ELITE]
    good = [t for t in good if t.decisions["knobs"]]
    if len(good) < 4 or rng.random() < 0.25:
        return None, None
    parent = good[min(rng.randrange(len(good)), rng.randrange(len(good)))]
    knobs = dict(parent.decisions["knobs"])
    if rng.random() < 0.3:
        other = rng.choice(good).decisions
        if other["sketch"] == parent.decisions["sketch"]:
            for name, value in other["knobs"].items():
                if rng.random() < 0.5:
                    knobs[name] = value
    for name in rng.sample(sorted(knobs), min(len(knobs), rng.choice((1, 1, 2)))):
        del knobs[name]
    return parent.decisions["sketch"], knobs


def _propose(rng, program, sketches, trials):
    """A candidate's decisions and schedule. Raises weft.ScheduleError when a step is refused."""
    name, given = _child(rng, trials)
    name = name or rng.choice(sorted(sketches))
    schedule = weft.Schedule(program)
    schedule._core.set_detail(False)
    draw = _Draw(rng, given)
    sketches[name](draw, schedule)
    return {"sketch": name, "knobs": draw.made}, schedule


def _best_of(rng, program, sketches, seen, known, ranked):
    """One candidate that was not seen, as _propose gives it, or None; and how many were refused or known.

    With a ranking, and three times in four, the best of several.
    """
    measured = sum(1 for t in seen if t.seconds)
    many = _DRAWN if ranked and measured >= LEAST and rng.random() < 0.75 else 1
    drawn, wasted = {}, 0
    for _ in range(many):
        try:
            decisions, schedule = _propose(rng, program, sketches, seen)
        except weft.ScheduleError:
            wasted += 1
            continue
        key = Trial(decisions).key
        if key in known or key in drawn:
            wasted += 1
        else:
            drawn[key] = decisions, schedule
    if len(drawn) < 2:
        return next(iter(drawn.values()), None), wasted
    ranking = Ranking(seen)
    return min(drawn.values(), key=lambda pair: ranking.seconds(pair[0])), wasted


def _function(main, name):
    """The function to tune, as a one-function program, and its name."""
    if isinstance(main, weft.Schedule):
        main = main.mod
    if isinstance(main, weft.PrimFunc):
        return main, main.name
    if not isinstance(main, weft.IRModule):
        raise error("dtype", "tune.program", f"not a PrimFunc, IRModule or Schedule: {main!r:.60}")
    functions = main.functions
    name = name or ("main" if "main" in functions else next(iter(functions)))
    if name not in functions:
        raise error(
            "value",
            "tune.function",
            f'the module has no function "{name}"',
            notes=["functions: " + ", ".join(functions)],
        )
    return functions[name], functions[name].name


class _Progress:
    """One line on a terminal; nothing in a pipe."""

    def __init__(self, wanted):
        self._live = sys.stderr.isatty() if wanted is None else wanted

    def __call__(self, done, trials, best, failed):
        if self._live:
            at = f"best {best * 1e3:.4g} ms" if best else "none ran yet"
            text = f"tune: {done}/{trials} trials, {at}, {failed} failed"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self._live:
            print(file=sys.stderr)


def tune(
    main,
    target="cpu",
    trials=64,
    database="tune.db",
    seed=0,
    device=None,
    function=None,
    progress=None,
    seconds=None,
    limit=None,
    ranked=True,
):
    """Searches for a fast schedule of a function and returns it, a weft.Schedule.

    `trials` candidates are built, compared with the untuned program and timed on `device` (default: the target's own;
    a remote device too). They count what `database` already holds for this function and target: a search that was
    interrupted goes on, one that was complete returns at once. `seed` fixes the order of candidates for given times.
    The first trial is the program as it is. Candidates that compute something else are never returned; each is
    reported as a RuntimeWarning with its steps in the database.

    `seconds` is a budget of wall time: no candidate is begun after it, and the best so far is returned; one candidate is
    always measured. `limit` is the longest that one candidate may take, in seconds, building and checking included:
    candidates are then measured in another process, which is ended when they take longer (`tune.limit`) or end it
    themselves (`tune.ended`); not for remote devices. The untuned program, which gives the expected results, runs
    without limit. `ranked`: of several drawn candidates the one that the trials so far let expect most of is measured.

    Raises weft.Error: tune.symbolic, tune.nothing (no candidate ran), tune.budget, tune.database.*; weft.DeviceError for
    an absent device.
    """
    if trials < 1:
        raise error("value", "tune.trials", f"trials is {trials}; at least 1 is needed")
    for what, value in (("seconds", seconds), ("limit", limit)):
        if value is not None and not value > 0:
            raise error(
                "value", "tune.budget", f"{what} is {value}", notes=["legal: above 0, or None"]
            )
    end = None if seconds is None else time.monotonic() + seconds
    program, name = _function(main, function)
    if limit is None:
        measurer = Measurer(program, name, target, device, seed)
    else:
        opened = weft.device(device or target)
        opened.synchronize()
        if "#" in opened.name:
            raise error(
                "value",
                "tune.budget",
                f"limit is {limit} with the remote device {opened.name}",
                notes=["legal: a device of this host"],
                help="give a budget for the whole search: seconds=...",
            )
        measurer = Apart(program, name, target, device, seed, limit)
    measurer.device.synchronize()  # an absent device is an error now
    sketches = sketches_for(target)
    workload, file = f"{_core.structural_hash(program._core):x}", Database(database)
    where = target if device is None else f"{target} on {measurer.device.name.split('#')[0]}"
    show = _Progress(progress)
    try:
        seen = file.trials(workload, where)
        known, wasted = {t.key for t in seen}, 0
        while len(seen) < trials:
            if end is not None and time.monotonic() >= end and any(t.seconds for t in seen):
                break
            rng = random.Random(f"{seed}/{len(seen)}/{wasted}")
            if not seen:
                decisions, schedule = {"sketch": "plain", "knobs": {}}, weft.Schedule(program)
            elif not sketches or wasted >= _PATIENCE:
                break
            else:
                found, more = _best_of(rng, program, sketches, seen, known, ranked)
                wasted += more
                if found is None:
                    continue
                decisions, schedule = found
            trial = Trial(decisions, trace=str(schedule.trace.as_json()))
            best = min((t.seconds for t in seen if t.seconds), default=None)
            try:
                trial.seconds, trial.cycles = measurer.measure(schedule, best)
            except weft.Error as reason:
                if reason.code.startswith("rpc."):
                    raise  # the device is gone; nothing was learnt of the candidate
                trial.failure = reason.code
                if reason.code == "tune.wrong":
                    warnings.warn(str(reason), RuntimeWarning, stacklevel=2)
            file.add(workload, where, seed, trial)
            seen.append(trial)
            known.add(trial.key)
            wasted = 0
            times = [t.seconds for t in seen if t.seconds]
            show(len(seen), trials, min(times, default=None), len(seen) - len(times))
        good = [t for t in seen if t.seconds]
        if not good:
            raise error(
                "value",
                "tune.nothing",
                f'none of {len(seen)} candidates for "{name}" ran on {measurer.device.name}',
                notes=["refused with " + ", ".join(sorted({t.failure for t in seen}))],
            )
        return weft.Schedule.replay(program, min(good, key=lambda t: t.seconds).trace)
    finally:
        show.end()
        file.close()
        if limit is not None:
            measurer.close()
