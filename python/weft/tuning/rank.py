# SPDX-License-Identifier: Apache-2.0
"""What a candidate will probably take, judged from those that were measured: a ranking before measuring.

Ridge regression of log(seconds) on the logarithms of a candidate's decisions, their squares and their products. Nothing is
known of machines: what is a good tile is learnt from the trials of this search, so a ranking costs microseconds.
"""

import itertools
import math

import numpy as np

LEAST = 6  # fewer measured candidates give no ranking
_RIDGE = 0.03  # in units of a feature's variance
_FAILED = 1.5  # a failure counts as exp(1.5) of the slowest


class Ranking:
    """Fitted to trials; `seconds(decisions)` estimates one that was not measured."""

    def __init__(self, trials):
        knobs = [t.decisions["knobs"] for t in trials]
        self._names = sorted({name for k in knobs for name in k})
        logs = [math.log(t.seconds) for t in trials if t.seconds]
        worst = max(logs, default=0.0) + _FAILED
        y = np.array([math.log(t.seconds) if t.seconds else worst for t in trials])
        x = np.array([self._features(k) for k in knobs])
        self._mean, self._scale, self._middle = x.mean(0), x.std(0), y.mean()
        self._scale[self._scale == 0] = 1.0
        z = (x - self._mean) / self._scale
        # As many unknowns as trials, not as many as features.
        gram = z @ z.T + _RIDGE * z.shape[1] * np.eye(len(z))
        self._weights = z.T @ np.linalg.solve(gram, y - self._middle)

    def _features(self, knobs):
        """A present knob v: 1, log2(1 + v) and its square; products of the logarithms of all pairs."""
        logs, out = [], []
        for name in self._names:
            value = knobs.get(name)
            there = value is not None
            level = value if isinstance(value, (int, float)) else len(str(value))
            log = math.log2(1 + level) if there else 0.0
            logs.append(log)
            # A word is told from the others by its letters, no more than two words occur for one name.
            out += [float(there), log, log * log]
        return out + [a * b for a, b in itertools.combinations(logs, 2)]

    def seconds(self, decisions):
        """The estimate, in seconds."""
        z = (np.array(self._features(decisions["knobs"])) - self._mean) / self._scale
        return math.exp(min(max(self._middle + float(z @ self._weights), -80.0), 80.0))
