# SPDX-License-Identifier: Apache-2.0
"""Optimizers that see a parameter as a matrix: Adafactor and Muon."""

from __future__ import annotations

import math

import weft

from ._core import shown as _shown
from ._errors import error as _error
from ._optimizer import Optimizer


def _root_mean_square(x):
    return weft.sqrt(weft.mean(weft.square(x)))


class _OfMatrices(Optimizer):
    def add_param_group(self, given):
        """One more group. Raises ArgumentError, DTypeError, ShapeError; a piece of a parameter is not enough."""
        super().add_param_group(given)
        if any(getattr(p, "_parted", None) for p in self.param_groups[-1]["params"]):
            raise _error(
                weft.ArgumentError,
                "optim.params.piece",
                f"{type(self).__name__} over parameters that are shared out among ranks",
                ["it needs whole matrices: a piece has other rows, columns and norms"],
                help="keep the parameters whole (weft.distributed.DataParallel), or take AdamW",
            )


class Adafactor(_OfMatrices):
    """Adam's running squares as the product of one row and one column a matrix (Shazeer and Stern, 2018), so that the state of
    an (m, n) parameter has m + n numbers. The rate follows the parameter's root mean square and falls as 1 / sqrt(step).

    `beta2_decay`: the squares' mean keeps 1 - step ** beta2_decay. `eps`: the least square (None: the type's), and the least root
    mean square. `d`: the largest root mean square of an update. The arguments are PyTorch's.
    """

    _options = ("lr", "beta2_decay", "eps", "d", "weight_decay", "maximize")
    _rows = ("_row", "_column", "_square")

    def __init__(
        self,
        params,
        lr=0.01,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        maximize=False,
    ):
        super().__init__(
            params,
            lr,
            beta2_decay=beta2_decay,
            eps=tuple(eps),
            d=d,
            weight_decay=weight_decay,
            maximize=maximize,
        )
        self._row, self._column, self._square = {}, {}, {}

    def _update(self):
        for i, p, g, options in self._each():
            x, n, lr = p.data, self._count(i), options["lr"]
            least, least_size = options["eps"]
            least = weft.finfo(x.dtype).eps if least is None else least
            share = n ** options["beta2_decay"]
            rate = weft.maximum(_root_mean_square(x), least_size) * min(lr, 1 / math.sqrt(n))
            squares = weft.square(g)
            if g.ndim > 1:
                row = weft.mean(squares, axis=-1, keepdims=True)
                column = weft.mean(squares, axis=-2, keepdims=True)
                self._row[i] = row = self._mean(self._row, i, row, share)
                self._column[i] = column = self._mean(self._column, i, column, share)
                total = weft.maximum(weft.mean(row, axis=-2, keepdims=True), least)
                squares = row * column / total
            else:
                self._square[i] = squares = self._mean(self._square, i, squares, share)
            update = g / weft.sqrt(weft.maximum(squares, least * least))
            size = weft.maximum(_root_mean_square(update) / options["d"], 1.0)
            if options["weight_decay"]:
                x = x * (1 - lr * options["weight_decay"])
            p.data = x - update * (rate / size)

    @staticmethod
    def _mean(known, i, now, share):
        """The running mean with `share` of the new value; the first step's share is 1."""
        return known[i] + (now - known[i]) * share if i in known else now * share


class Muon(_OfMatrices):
    """Momentum whose update is made orthogonal by Newton and Schulz's iteration (Jordan, 2024); for parameters with two axes.

    The iteration computes in bfloat16, `ns_steps` times with `ns_coefficients`. `adjust_lr_fn`: "original" (or None)
    multiplies the rate by sqrt(max(1, outputs / inputs)), "match_rms_adamw" by 0.2 sqrt(max(outputs, inputs)); weights
    have the shape (inputs, outputs), as those of `nn.Linear`. Raises ShapeError for another number of axes.
    """

    _options = (
        *("lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps"),
        *("ns_steps", "adjust_lr_fn", "maximize"),
    )
    _rows = ("_momentum",)

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
        maximize=False,
    ):
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise _error(
                weft.ArgumentError,
                "optim.muon.rate",
                f"Muon with adjust_lr_fn={_shown(adjust_lr_fn)}",
                ['legal: None, "original", "match_rms_adamw"'],
            )
        super().__init__(
            params,
            lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=tuple(ns_coefficients),
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
            maximize=maximize,
        )
        self._momentum = {}

    def add_param_group(self, given):
        """One more group, of parameters with two axes. Raises ArgumentError, DTypeError, ShapeError."""
        super().add_param_group(given)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                raise _error(
                    weft.ShapeError,
                    "optim.muon.shape",
                    f"Muon takes parameters with two axes, got one of shape {tuple(p.shape)}",
                    help="give biases, norms, embeddings and convolutions to AdamW",
                )

    def _update(self):
        for i, p, g, options in self._each():
            keep, lr = options["momentum"], options["lr"]
            known = self._momentum.get(i)
            mean = g * (1 - keep) if known is None else known + (g - known) * (1 - keep)
            self._momentum[i] = mean
            update = g + (mean - g) * keep if options["nesterov"] else mean
            update = _orthogonal(
                update, options["ns_coefficients"], options["ns_steps"], options["eps"]
            )
            inputs, outputs = p.shape
            if options["adjust_lr_fn"] == "match_rms_adamw":
                rate = lr * 0.2 * math.sqrt(max(inputs, outputs))
            else:
                rate = lr * math.sqrt(max(1, outputs / inputs))
            p.data = p.data * (1 - lr * options["weight_decay"]) - update.astype(p.dtype) * rate


def _orthogonal(x, coefficients, steps, eps):
    a, b, c = coefficients
    wide = x.shape[0] <= x.shape[1]
    y = (x if wide else x.T).astype("bfloat16")
    y = y / weft.maximum(weft.sqrt(weft.sum(weft.square(y))), eps)
    for _ in range(steps):
        gram = y @ y.T
        y = y * a + (gram * b + (gram @ gram) * c) @ y
    return y if wide else y.T
