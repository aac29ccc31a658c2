# SPDX-License-Identifier: Apache-2.0
"""What a candidate will probably take, judged from those that were measured: a ranking before measuring.

Ridge regression of log(seconds) on the logarithms of a candidate's decisions, their squares and their products; another of
whether it failed. Nothing is known of machines: what is a good tile is learnt from the trials of this search, so a ranking
costs microseconds.
"""

import itertools
import math

import numpy as np

LEAST = 6  # fewer measured candidates give no ranking
_RIDGE = 0.03  # in units of a feature's variance
_FAILED = 3.0  # what certainly fails counts as exp(3) times slower


class Ranking:
    """Fitted to trials; `seconds(decisions)` estimates one that was not measured."""

    def __init__(self, trials):
        self._names = sorted({name for t in trials for name in t.decisions["knobs"]})
        x = np.array([self._features(t.decisions["knobs"]) for t in trials])
        self._mean, self._scale = x.mean(0), x.std(0)
        self._scale[self._scale == 0] = 1.0
        z = (x - self._mean) / self._scale
        ran = np.array([bool(t.seconds) for t in trials])
        self._time = _fitted(z[ran], np.array([math.log(t.seconds) for t in trials if t.seconds]))
        self._failure = _fitted(z, 1.0 - ran)

    def _features(self, knobs):
        """A present knob v: 1, log2(1 + v) and its square; products of the logarithms of all pairs."""
        logs, out = [], []
        for name in self._names:
            value = knobs.get(name)
            # Words are told apart by their length: those that one name may have differ in it.
            level = value if isinstance(value, (int, float)) else len(value or "")
            log = math.log2(1 + level)
            logs.append(log)
            out += [float(value is not None), log, log * log]
        return out + [a * b for a, b in itertools.combinations(logs, 2)]

    def seconds(self, decisions):
        """The estimate, in seconds."""
        z = (np.array(self._features(decisions["knobs"])) - self._mean) / self._scale
        failed = min(max(_value(self._failure, z), 0.0), 1.0)
        return math.exp(min(max(_value(self._time, z) + _FAILED * failed, -80.0), 80.0))


def _fitted(z, y):
    """(weights, constant). As many unknowns as rows, not as many as features."""
    middle = y.mean()
    gram = z @ z.T + _RIDGE * z.shape[1] * np.eye(len(z))
    return z.T @ np.linalg.solve(gram, y - middle), middle


def _value(fitted, z):
    return float(z @ fitted[0]) + fitted[1]
