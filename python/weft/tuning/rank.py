# SPDX-License-Identifier: Apache-2.0
"""What a candidate will probably take: a model of the machine before anything is measured, corrected by what was.

The model (src/weft/rules/expected_time) reads the scheduled program: occupancy, instructions, bytes of each memory. Ridge
regression on the logarithms of a candidate's decisions, their squares and their products fits how far the measured times are
from it; another one, whether a candidate failed. Where the model knows nothing, regression learns the times themselves.
"""

import itertools
import math

import weft
from weft import _core

from .machines import replayed

LEAST = 6  # fewer measured candidates give no correction
_RIDGE = 0.03  # in units of a feature's variance
_FAILED = 3.0  # what certainly fails counts as exp(3) times slower


class _Answers:
    """Gives the answers of a trial again; what it has none for, and each of an empty one, is the rules' own choice."""

    def __init__(self, knobs):
        self._knobs, self.expected = knobs, 0.0

    def __call__(self, name, options):
        value = self._knobs.get(name)
        return value if value in options else options[0]


class Model:
    """What the machine's table and its device say of a schedule of one program."""

    def __init__(self, program, target, device=None):
        self._program, self._target, self._kept = program, target, {}
        opened = weft.device(device or target)
        self._facts = {k: v for k, v in opened.limits.items() if isinstance(v, int)}
        name = target.partition(":")[0]
        self.knows = name in ("cpu", "c") or _core.target_has_rules(target)

    def of_schedule(self, schedule):
        """Seconds, or None."""
        if not self.knows:
            return None
        # A rule's own model knows its kernel better than what can be read from loops.
        own = getattr(schedule, "expected", 0.0)
        return own or _core.expected_seconds(schedule._core, self._target, self._facts) or None

    def of_trial(self, trial):
        """Seconds, or None: a trace that does not replay."""
        if trial.key not in self._kept:
            try:
                by_rules = trial.decisions["sketch"] in ("plain", "rules")
                made, answers = None, _Answers(trial.decisions["knobs"])
                if by_rules and self.knows:
                    made = _core.open_schedule(self._program._core, self._target, answers)
                if made is None:
                    schedule = replayed(self._program, self._target, trial.trace)
                else:
                    schedule = weft.Schedule(made)
                    schedule.expected = answers.expected
                self._kept[trial.key] = self.of_schedule(schedule)
            except (weft.Error, TypeError):
                self._kept[trial.key] = None
        return self._kept[trial.key]


class Ranking:
    """Fitted to trials; `seconds(decisions, schedule)` estimates one that was not measured."""

    def __init__(self, trials, model=None):
        import numpy as np

        self._model = model
        self._names = sorted({name for t in trials for name in t.decisions["knobs"]})
        self._fitted = sum(1 for t in trials if t.seconds) >= LEAST
        if not self._fitted:
            return
        expected = [model.of_trial(t) if model else None for t in trials]
        x = np.array([self._features(t.decisions["knobs"], e) for t, e in zip(trials, expected)])
        self._mean, self._scale = x.mean(0), x.std(0)
        self._scale[self._scale == 0] = 1.0
        z = (x - self._mean) / self._scale
        ran = np.array([bool(t.seconds) for t in trials])
        off = [math.log(t.seconds / (e or 1.0)) for t, e in zip(trials, expected) if t.seconds]
        self._time = _fitted(z[ran], np.array(off))
        self._failure = _fitted(z, 1.0 - ran)

    def _features(self, knobs, expected):
        """A present knob v: 1, log2(1 + v) and its square; products of the logarithms of all pairs."""
        logs, out = [], [math.log(expected) if expected else 0.0, float(bool(expected))]
        for name in self._names:
            value = knobs.get(name)
            # Words are told apart by their length: those that one name may have differ in it.
            level = value if isinstance(value, (int, float)) else len(value or "")
            log = math.log2(1 + level)
            logs.append(log)
            out += [float(value is not None), log, log * log]
        return out + [a * b for a, b in itertools.combinations(logs, 2)]

    def seconds(self, decisions, schedule=None):
        """The estimate, in seconds."""
        import numpy as np

        expected = self._model.of_schedule(schedule) if self._model and schedule else None
        if not self._fitted:
            return expected or 1.0
        z = (np.array(self._features(decisions["knobs"], expected)) - self._mean) / self._scale
        failed = min(max(_value(self._failure, z), 0.0), 1.0)
        off = _value(self._time, z) + _FAILED * failed
        return (expected or 1.0) * math.exp(min(max(off, -80.0), 80.0))


def _fitted(z, y):
    """(weights, constant). As many unknowns as rows, not as many as features."""
    import numpy as np

    middle = y.mean()
    gram = z @ z.T + _RIDGE * z.shape[1] * np.eye(len(z))
    return z.T @ np.linalg.solve(gram, y - middle), middle


def _value(fitted, z):
    return float(z @ fitted[0]) + fitted[1]
