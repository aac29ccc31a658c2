# SPDX-License-Identifier: Apache-2.0
"""Random and evolutionary search over the decisions of the sketches."""

import functools
import os
import time
import warnings

import weft
from weft import _core
from weft._core import shown
from weft._errors import error

from .apart import BUILD_LIMIT, Apart
from .best import default_path
from .database import Database, Trial
from .fleet import Host, RayWorker
from .machines import replayed
from .pool import measured
from .progress import Progress
from .rank import LEAST, Model, Ranking
from .sketches import sketches_for

_ELITE = 8  # parents are drawn from the fastest so many
_PATIENCE = (
    200  # candidates refused or seen before, in a row, after which the space counts as exhausted
)
_DRAWN = 24  # candidates of which the one that ranks best is measured
_BESIDE = 16  # most candidates that are built at once
_NEAR = (0.9, 0.75, 0.5, 0.0)  # shares of a default schedule's decisions that a candidate keeps
_GRACE = 2.0  # seconds that a running candidate may have beyond the budget, or twice what the slowest took
_PLAIN = {"sketch": "plain", "knobs": {}}  # the program as it is: what weft.build makes of it
_clock = time.monotonic


class _Draw:
    """Answers a sketch's questions: from `given` where it has a legal answer, else at random or with the first choice, which
    sketches put where they expect most; and notes them."""

    def __init__(self, rng, given=None, near=0.0):
        """`near`: how often the first choice is taken; 1.0: always."""
        self._rng, self._given, self._near, self.made = rng, given or {}, near, {}
        self.expected = 0.0

    def __call__(self, name, choices):
        value = self._given.get(name)
        if value not in choices:
            first = self._near == 1.0 or (self._near and self._rng.random() < self._near)
            value = choices[0] if first else self._rng.choice(choices)
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


class _SketchFailed(Exception):
    """A sketch raised something else than a refusal: `decisions` it had made, `reason` as a weft.Error."""

    def __init__(self, decisions, reason):
        super().__init__(str(reason))
        self.decisions, self.reason = decisions, reason


def _propose(rng, start, sketches, trials, fresh=False):
    """A candidate's decisions and schedule. Raises weft.Error when a step is refused, _SketchFailed.

    `start`: a schedule without steps, whose copies share what is proved of its nests. `fresh`: a sketch without a trial may begin with its first choices; another worker may be measuring these."""
    name, given = _child(rng, trials)
    name = name or rng.choice(sorted(sketches))
    schedule = start.copy()
    schedule._core.set_detail(False)
    # The first choices of rules are the default schedule, which is measured already: what is near it is drawn.
    if name == "rules":
        near = 0.0 if given else rng.choice(_NEAR)
    else:
        fresh = fresh and not given and all(t.decisions["sketch"] != name for t in trials)
        near = float(fresh)
    draw = _Draw(rng, given, near)
    try:
        sketches[name](draw, schedule)
    except weft.Error:
        raise
    except Exception as reason:
        failed = error(
            "internal",
            "tune.sketch",
            f'sketch "{name}" raised {type(reason).__name__}: {reason}',
            notes=[f"its decisions: {draw.made}"],
        )
        raise _SketchFailed({"sketch": name, "knobs": draw.made}, failed) from reason
    return {"sketch": name, "knobs": draw.made}, schedule


def _best_of(rng, start, sketches, seen, known, model, fresh):
    """One candidate that was not seen, as _propose gives it, or None; and how many were refused or known.

    With a model, and three times in four, the best of several.
    """
    measured = sum(1 for t in seen if t.seconds)
    ranked = model is not None and (model.knows or measured >= LEAST)
    many = _DRAWN if ranked and rng.random() < 0.75 else 1
    drawn, wasted = {}, 0
    for _ in range(many):
        try:
            decisions, schedule = _propose(rng, start, sketches, seen, fresh)
        except weft.Error:
            wasted += 1
            continue
        except _SketchFailed as failure:
            if Trial(failure.decisions).key not in known:
                raise
            wasted += 1
            continue
        key = Trial(decisions).key
        if key in known or key in drawn:
            wasted += 1
        else:
            drawn[key] = decisions, schedule
    if len(drawn) < 2:
        return next(iter(drawn.values()), None), wasted
    ranking = Ranking(seen, model)
    return min(drawn.values(), key=lambda pair: ranking.seconds(*pair)), wasted


def _function(main, name):
    """The function to tune, as a one-function program, and its name."""
    if isinstance(main, weft.Schedule):
        main = main.mod
    if isinstance(main, weft.PrimFunc):
        return main, main.name
    if not isinstance(main, weft.IRModule):
        raise error(
            "dtype",
            "tune.program",
            f"not a PrimFunc, IRModule or Schedule: {shown(main)}",
            help="pass a program: @T.prim_func, te.create_prim_func(...) or weft.Schedule(...)",
        )
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


class _Search:
    """The trials of one function on one target, and what to try next."""

    def __init__(self, program, target, name, seed, trials, end, model):
        self.program, self.name, self._seed, self._trials = program, name, seed, trials
        self._end, self._model, self._sketches = end, model, sketches_for(target)
        self._start = weft.Schedule(program)
        self._wasted, self._longest = 0, 0.0
        # Beside a kernel of a host that is measured nothing may be built; cards wait for one compiler after another.
        self.beside = min(_BESIDE, os.cpu_count() or 1) if _core.target_has_rules(target) else 1
        self.seen, self._known = [], set()
        self._traces = {self._default_steps(target)}

    def remember(self, trials):
        self.seen = trials
        self._known = {t.key for t in trials}
        self._traces.update(t.trace for t in trials if t.trace)

    def _default_steps(self, target):
        """The trace of the default schedule where rules make it, or None: the first candidate has it already."""
        if "rules" not in self._sketches:
            return None
        try:
            made = _core.open_schedule(self.program._core, target, lambda _, options: options[0])
        except weft.Error:
            return None
        return None if made is None else str(made.trace.as_json())

    @property
    def best(self):
        return min((t.seconds for t in self.seen if t.seconds), default=None)

    @property
    def default(self):
        """The trial of the default schedule, or None."""
        plain = Trial(_PLAIN).key
        return next((t for t in self.seen if t.key == plain), None)

    def allowed(self):
        """Seconds that the next candidate may take; None: no budget was given."""
        if self._end is None:
            return None
        grace = max(_GRACE, 2 * self._longest) if self.best else BUILD_LIMIT
        return max(self._end - _clock(), 0.0) + grace

    def took(self, seconds):
        self._longest = max(self._longest, seconds)

    def next(self, running):
        """(trial, schedule) to measure, (trial, None) for a sketch that failed; None: none is left."""
        plain = Trial(_PLAIN)
        while True:
            if plain.key not in self._known:
                return self._taken(plain, weft.Schedule(self.program))
            if len(self.seen) + running >= self._trials:
                return None
            if self._end is not None and self.best and _clock() >= self._end:
                return None
            if not self._sketches or self._wasted >= _PATIENCE:
                return None
            import random

            rng = random.Random(f"{self._seed}/{len(self.seen) + running}/{self._wasted}")
            try:
                fresh = self._wasted == 0
                found, more = _best_of(
                    rng, self._start, self._sketches, self.seen, self._known, self._model, fresh
                )
            except _SketchFailed as failure:
                warnings.warn(str(failure.reason), RuntimeWarning, stacklevel=3)
                return self._taken(Trial(failure.decisions, failure=failure.reason.code), None)
            self._wasted += more
            if found is None:
                continue
            try:
                trial = Trial(found[0], trace=str(found[1].trace.as_json()))
            except weft.Error as reason:  # steps that nobody could repeat
                warnings.warn(str(reason), RuntimeWarning, stacklevel=3)
                return self._taken(Trial(found[0], failure=reason.code), None)
            if found[0]["sketch"] == "rules" and trial.trace in self._traces:  # the same steps
                self._known.add(trial.key)
                self._wasted += 1
                continue
            return self._taken(trial, found[1])

    def _taken(self, trial, schedule):
        self._known.add(trial.key)
        self._wasted = 0
        if schedule is not None:
            trial.trace = str(schedule.trace.as_json())
            self._traces.add(trial.trace)
        return trial, schedule

    def winner(self, device):
        """The fastest trial. Raises tune.nothing."""
        good = [t for t in self.seen if t.seconds]
        if good:
            return min(good, key=lambda t: t.seconds)
        raise error(
            "value",
            "tune.nothing",
            f'none of {len(self.seen)} candidates for "{self.name}" ran on {device}',
            notes=["refused with " + ", ".join(sorted({str(t.failure) for t in self.seen}))],
        )


def _compared(measurer, plain, faster):
    """((least, median) of the default schedule, of the winner): in turns where the measurer can, else one after the other."""
    if hasattr(measurer, "beside"):
        return measurer.beside([plain, faster])
    return [(measurer.measure(each, None)[0],) * 2 for each in (plain, faster)]


def _confirmed(search, measurer, file, workload, where, target):
    """The winner, measured once more in turns with the default schedule: one that is not faster there, in the best sample
    and in the middle one, loses its place.

    What is returned is what the database holds as the fastest, so weft.build takes the same."""
    while True:
        winner, default = search.winner(measurer.device.name), search.default
        if winner is default or default is None or not default.seconds or winner.cycles:
            return winner
        faster = replayed(search.program, target, winner.trace)
        try:
            plain, again = _compared(measurer, weft.Schedule(search.program), faster)
        except weft.Error:
            return winner  # the device is gone: what was measured stands
        if again[0] <= plain[0] and again[1] <= plain[1]:
            return winner
        if plain[0] < default.seconds:  # it was slow by chance, and every candidate looked fast
            default.seconds = plain[0]
            file.correct(workload, where, default)
        ratio = max(a / max(p, 1e-12) for a, p in zip(again, plain))
        winner.seconds = max(again[0], default.seconds * ratio)
        file.correct(workload, where, winner)


def _checked(trials, seconds, limit, seed):
    if trials < 1:
        raise error(
            "value",
            "tune.trials",
            f"trials is {trials}; at least 1 is needed",
            help="leave trials out, or give seconds=",
        )
    for what, value in (("seconds", seconds), ("limit", limit)):
        if value is not None and not value > 0:
            raise error(
                "value", "tune.budget", f"{what} is {value}", notes=["legal: above 0, or None"]
            )
    if not isinstance(seed, int) or seed < 0:
        raise error("value", "tune.seed", f"seed is {shown(seed)}", notes=["legal: integers from 0 on"])  # fmt: skip


def _plain_argument(value):
    """As another process can have it: a NumPy array or a number."""
    if type(value) in (bool, int, float, complex):
        return value
    if not isinstance(value, (weft.NDArray, weft.Tensor)):
        value = weft.asarray(value)
        if value.ndim == 0:
            return value.item()
    return (value.astype("float32") if str(value.dtype) == "bfloat16" else value).numpy()


def _where(target, device, opened):
    """The name under which trials are kept: the target, with the device where it is not the target's own."""
    if device is None:
        return target
    if "#" not in opened.name and opened.name == weft.device(target).name:
        return target
    return f"{target} on {opened.name.split('#')[0]}"


_AWAY = ("rpc.connect", "rpc.busy", "rpc.deadline", "rpc.lost")  # a host may answer later


def _reached(devices):
    """The devices, of hosts and workers those that they open; the hosts and workers themselves; and [host, reason] of those that do not answer yet.

    Raises the last reason where nothing answers.
    """
    out, hosts, absent = [], [], []
    for each in devices:
        host = each if isinstance(each, (Host, RayWorker)) else None
        try:
            out.append(each if host is None else host.open())
        except weft.Error as reason:
            absent.append((host, reason))
            if reason.code not in _AWAY or len(absent) == len(devices):
                raise
        else:
            hosts.append(host)
    return out, hosts, absent


def tune(
    main,
    target="cpu",
    trials=64,
    database=None,
    seed=0,
    device=None,
    function=None,
    progress=None,
    seconds=None,
    limit=None,
    ranked=True,
    arguments=None,
):
    """Searches for a fast schedule of a function and returns it, a weft.Schedule.

    `trials` candidates are built, compared with the untuned program and timed on `device` (default: the target's own;
    a remote device too; a list: on all at once, which count as equal machines; one that goes away is left out, a
    weft.tuning.Host or RayWorker is called again and takes part when it comes back, or comes for the first time).
    Trials count what `database` already holds for this function and target: a search that was interrupted goes on, one
    that was complete returns at once. `database=None` is the user's own (weft.tuning.default_path()), whose schedules
    weft.build uses. `seed` fixes the order of candidates for given times. The first trial is the default schedule,
    what weft.build makes of the program; nothing slower is returned. Candidates that compute something else are never
    returned; each is reported as a RuntimeWarning with its steps.

    Candidates are built and measured in a process of their own, which is ended when one takes too long (`tune.limit`)
    or ends it (`tune.ended`); remote devices are measured from here. `limit`: seconds that one candidate may take,
    building and checking included; None: a minute to build. `seconds` is a budget of wall time: no candidate is begun
    after it, one that runs gets 2 s more, or twice what the slowest took, and the best so far is returned; the default
    schedule is always measured. The untuned program, which gives the expected results, runs without limit.
    `ranked`: of several drawn candidates the one is measured of which a model of the machine, corrected by the trials so
    far, expects most. `arguments`: those of a call, arrays and numbers in the order of the parameters, for functions whose
    extents are symbols; what is found serves all calls that weft.build builds the same program for.
    `progress`: None (a line on a terminal), True, False, or a function progress(done, trials, best, failed).

    Raises weft.Error: tune.symbolic, tune.nothing (no candidate ran), tune.budget, tune.devices, tune.database.*;
    weft.DeviceError for an absent device.
    """
    _checked(trials, seconds, limit, seed)
    end = None if seconds is None else _clock() + seconds
    program, name = _function(main, function)
    devices = list(device) if isinstance(device, (list, tuple)) else [device]
    if not devices:
        raise error("value", "tune.devices", "the list of devices is empty", help="device=None")
    devices, hosts, absent = _reached(devices)
    for each in devices:
        weft.device(each or target).synchronize()  # an absent device is an error now
    where = _where(target, devices[0], weft.device(devices[0] or target))
    workload = f"{_core.structural_hash(program._core):x}"
    file = Database(default_path() if database is None else database)
    model = Model(program, target, devices[0]) if ranked else None
    search = _Search(program, target, name, seed, trials, end, model)
    given = {}
    if arguments is not None:
        given["arguments"] = [_plain_argument(a) for a in arguments]
    show, measurers, again, away = Progress(progress, trials), [], {}, []
    try:
        search.remember(file.trials(workload, where))
        before = len(search.seen)
        if before < trials or search.default is None:
            for each, host in zip(devices, hosts):
                if host is None:
                    measurers.append(Apart(program, name, target, each, seed, limit, **given))
                    continue
                make = functools.partial(host.measurer, program, name, target, seed, limit, **given)
                measurers.append(make())
                again[id(measurers[-1])] = make, host.patience
            for host, reason in absent:
                warnings.warn(f"{host.host}:{host.port} is called again: {reason}", RuntimeWarning, stacklevel=2)  # fmt: skip
                make = functools.partial(host.measurer, program, name, target, seed, limit, **given)
                away.append(((make, host.patience), reason))
        for trial, reason in measured(search, measurers, _clock, again, away):
            if reason is not None:
                trial.failure = reason.code
                if reason.code in ("tune.wrong", "tune.failed"):
                    warnings.warn(str(reason), RuntimeWarning, stacklevel=2)
            file.add(workload, where, seed, trial)
            search.seen.append(trial)
            show(search.seen, search.default)
        if len(search.seen) > before and measurers:
            winner = _confirmed(search, measurers[0], file, workload, where, target)
        else:
            winner = search.winner(weft.device(devices[0] or target).name)
        return replayed(program, target, winner.trace)
    finally:
        show.end()
        for measurer in measurers:
            measurer.close()
        file.close()
