# SPDX-License-Identifier: Apache-2.0
"""Optimizers that keep more than the last gradient: L-BFGS; and Adam by another name."""

from __future__ import annotations

import weft

from ._core import shown as _shown
from ._errors import error as _error
from ._optimizer import Optimizer


class LBFGS(Optimizer):
    """Limited-memory BFGS: step(closure) makes up to max_iter steps, each with new gradients from the closure.

    The closure clears the gradients, computes the loss, calls backward and returns the loss. line_search_fn None takes steps of lr;
    "strong_wolfe" searches along each direction (by halving until the loss falls enough and the slope is less steep).
    Raises ArgumentError for step without a closure.
    """

    _options = ("lr",)
    _rows = ()

    def __init__(
        self, params, lr=1.0, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
        line_search_fn=None,
    ):  # fmt: skip
        if line_search_fn not in (None, "strong_wolfe"):
            raise _error(
                weft.ArgumentError,
                "optim.lbfgs.search",
                f"line_search_fn {_shown(line_search_fn)}",
                ['legal: None, "strong_wolfe"'],
            )
        super().__init__(params, lr)
        self.max_iter, self.max_eval = max_iter, max_eval or max_iter * 5 // 4
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self._s, self._y, self._rounds = [], [], 0

    def _flat_gradient(self):
        parts = [weft.zeros((p.size,), dtype=p.dtype) if p.grad is None else p.grad.data.reshape(-1) for p in self.params]  # fmt: skip
        return weft.concat(parts)

    def _move(self, start, direction, t):
        flat, at = start + direction * t, 0
        for p in self.params:
            p.data = flat[at : at + p.size].reshape(p.shape).astype(p.dtype)
            at += p.size

    def _direction(self, g):
        """The two-loop recursion over the last steps and changes of gradients."""
        q, alphas = g, []
        rows = [(s, y, 1.0 / self._inner(s, y)) for s, y in zip(self._s, self._y)]
        for s, y, rho in reversed(rows):
            alpha = rho * self._inner(s, q)
            alphas.append(alpha)
            q = q - y * alpha
        if rows:
            s, y, _ = rows[-1]
            q = q * (self._inner(s, y) / self._inner(y, y))
        for (s, y, rho), alpha in zip(rows, reversed(alphas)):
            q = q + s * (alpha - rho * self._inner(y, q))
        return -q

    def _over(self, number, op="sum"):
        """number(slice) over all elements of a row: of parameters that ranks of a job share out, over those of all ranks."""
        from .nn.utils import _parted_over as parted_over

        if not any(map(parted_over, self.params)):
            return number(slice(None))
        totals, at = {}, 0
        for p in self.params:
            groups, own = parted_over(p), number(slice(at, at + p.size)) if p.size else 0.0
            had = totals.get(groups, 0.0)
            totals[groups] = had + own if op == "sum" else max(had, own)
            at += p.size
        for groups in totals:
            for group in groups:
                totals[groups] = group.combined(totals[groups], op)
        return sum(totals.values()) if op == "sum" else max(totals.values(), default=0.0)

    def _inner(self, a, b):
        return self._over(lambda part: float(a[part] @ b[part]))

    def _agreed(self, loss):
        """The loss; its mean over the ranks that share out parameters, so that all of them go on or end together."""
        from .nn.utils import _parted_over as parted_over

        for group in dict.fromkeys(g for p in self.params for g in parted_over(p)):
            loss = group.combined(float(loss), "sum") / group.size
        return loss

    def step(self, closure=None):
        """Up to max_iter steps; gives the loss before the first."""
        if closure is None:
            raise _error(
                weft.ArgumentError,
                "optim.lbfgs.closure",
                "LBFGS.step without a closure",
                help="step(closure), which clears the gradients, calls backward and returns the loss",
            )
        evaluated = self._evaluated(closure)
        loss, g = evaluated()
        first, count = loss, 1
        lr = self.lr
        for _ in range(self.max_iter):
            if self._over(lambda part: float(weft.max(weft.abs(g[part]))), "max") <= self.tolerance_grad:  # fmt: skip
                break
            self._rounds += 1
            d = self._direction(g)
            slope = self._inner(g, d)
            if slope > -self.tolerance_change:
                break
            t = lr
            if self._rounds == 1:
                t = min(1.0, 1.0 / self._over(lambda part: float(weft.sum(weft.abs(g[part]))))) * lr  # fmt: skip
            start = weft.concat([p.data.reshape(-1) for p in self.params])
            before_loss, before = float(loss), g
            if self.line_search_fn is None:
                self._move(start, d, t)
                loss, g = evaluated()
                count += 1
            else:
                t, loss, g, more = self._search(start, d, t, before_loss, slope, evaluated)
                count += more
            y, s = g - before, d * t
            if self._inner(y, s) > 1e-10:
                self._s, self._y = [*self._s, s][-self.history_size :], [*self._y, y][-self.history_size :]  # fmt: skip
            small = self._over(lambda part: float(weft.max(weft.abs(s[part]))), "max") <= self.tolerance_change  # fmt: skip
            if (
                small
                or abs(float(loss) - before_loss) < self.tolerance_change
                or count >= self.max_eval
            ):
                break
        return first

    def _evaluated(self, closure):
        def run():
            with weft.enable_grad():
                loss = closure()
            return self._agreed(loss), self._flat_gradient()

        return run

    def _search(self, start, d, t, loss, slope, evaluated):
        """A step with the strong conditions of Wolfe: between a step too short and one too long, halved or doubled."""
        low, high = 0.0, None
        for k in range(25):
            self._move(start, d, t)
            found, g = evaluated()
            steep = self._inner(g, d)
            if float(found) > loss + 1e-4 * t * slope or steep > -0.9 * slope:
                high = t
            elif steep < 0.9 * slope:
                low = t
            else:
                break
            t = 2.0 * t if high is None else 0.5 * (low + high)
        return t, found, g, k + 1
