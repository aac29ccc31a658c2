# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers over (time, batch, features), or (batch, time, features) with batch_first."""

from __future__ import annotations

import math

import weft

from .. import init
from .._core import Tensor
from .._errors import error as _error
from . import functional as F
from .module import Module, Parameter
from .recurrences import GatedSteps, LongSteps, PlainSteps, recur
from .utils.rnn import PackedSequence, run_packed


class RNNCell(Module):
    """h' = f(x W + h U + b)."""

    gates = 1

    def __init__(
        self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None
    ):
        super().__init__()
        bound = 1.0 / math.sqrt(hidden_size)
        width = self.gates * hidden_size
        make = lambda *shape: Parameter(
            init.rand(*shape, low=-bound, high=bound, dtype=dtype, device=device)
        )  # noqa: E731
        self.hidden_size, self.nonlinearity = hidden_size, nonlinearity
        self.weight_ih, self.weight_hh = make(input_size, width), make(hidden_size, width)
        self.bias_ih, self.bias_hh = (make(width), make(width)) if bias else (None, None)

    @property
    def _steps(self):
        return PlainSteps(self.nonlinearity)

    def _inputs(self, x):
        """The part of all sums that does not depend on the state, and the bias that must wait for it."""
        y = x @ self.weight_ih
        return (y, None) if self.bias_ih is None else (y + (self.bias_ih + self.bias_hh), None)

    def start(self, x):
        return Tensor(
            weft.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device),
            requires_grad=False,
        )

    def _started(self, x):
        return (self.start(x),)

    def forward(self, x, h=None):
        return self._advanced(x, self._started(x) if h is None else (h,))[0]

    def _advanced(self, x, state):
        p, bias = self._inputs(x)
        return recur(self._steps, False, p.unsqueeze(0), self.weight_hh, bias, *state)[1]


class LSTMCell(RNNCell):
    """Gates in the order input, forget, cell, output."""

    gates = 4

    _steps = LongSteps()

    def _started(self, x):
        return self.start(x), self.start(x)

    def forward(self, x, state=None):
        return self._advanced(x, self._started(x) if state is None else state)


class GRUCell(RNNCell):
    """Gates in the order reset, update, new, as in PyTorch."""

    gates = 3

    _steps = GatedSteps()

    def _inputs(self, x):
        y = x @ self.weight_ih
        return (y, None) if self.bias_ih is None else (y + self.bias_ih, self.bias_hh)


class RNN(Module):
    """Layers of cells over a sequence or a PackedSequence: (outputs, final states), the states stacked: (layers * directions, batch, hidden).

    The sequence is (time, batch, features), or (batch, time, features) with batch_first; without a batch (time,
    features), and the states lack that axis, too. `bidirectional` runs a second cell of each layer backwards; outputs
    of both are joined along the features. `dropout` acts on the outputs of all layers but the last while training.
    States to start from have the form of those that are returned. Raises ShapeError for an input or a state of another
    shape. Cells are `cells[layer * directions + direction]`; other arguments are the cell's (bias, nonlinearity,
    device, dtype).
    """

    cell = RNNCell
    _reads_children = True

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        **kwargs,
    ):
        super().__init__()
        if proj_size:
            raise _error(
                weft.ArgumentError,
                "nn.rnn.projection",
                f"{type(self).__name__} with proj_size {proj_size}",
                ["legal: 0"],
                help="project the outputs with nn.Linear behind the layer",
            )
        if num_layers < 1 or not 0 <= dropout <= 1:
            raise _error(
                weft.ArgumentError,
                "nn.rnn.layers",
                f"{type(self).__name__} of {num_layers} layers with dropout {dropout}",
                ["legal: 1 layer and more, dropout from 0 to 1"],
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout = batch_first, dropout
        self.bidirectional, self.directions = bool(bidirectional), 2 if bidirectional else 1
        self.cells = [
            self.cell(
                hidden_size * self.directions if k >= self.directions else input_size,
                hidden_size,
                bias=bias,
                **kwargs,
            )
            for k in range(num_layers * self.directions)
        ]

    def _checked(self, x, state, batched):
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise _error(
                weft.ShapeError,
                "nn.rnn.shape",
                f"{type(self).__name__} of {self.input_size} features got shape {x.shape}",
                [
                    "rule: (time, batch, features), (batch, time, features) with batch_first, or (time, features)"
                ],
            )
        if state is None:
            return [None] * len(self.cells)
        n = x.shape[0 if self.batch_first else 1] if batched else None
        want = (
            (len(self.cells), n, self.hidden_size)
            if batched
            else (len(self.cells), self.hidden_size)
        )
        parts = self._parts(state)
        for part in parts:
            if part.shape != want:
                raise _error(
                    weft.ShapeError,
                    "nn.rnn.state",
                    f"{type(self).__name__} got a state of shape {part.shape}, needed is {want}",
                    ["rule: (layers * directions, batch, hidden)"],
                )
        parts = parts if batched else [part.unsqueeze(1) for part in parts]
        return [self._one(k, parts) for k in range(len(self.cells))]

    def _parts(self, state):
        """The stacked tensors of a state; a list of each cell's own is stacked."""
        return [weft.stack(list(state), axis=0) if isinstance(state, (list, tuple)) else state]

    def _one(self, k, parts):
        return parts[0][k]

    def _joined(self, finals):
        return weft.stack(finals, axis=0)

    def steps_first(self, x, state):
        """forward of (time, batch, features), whatever batch_first says."""
        if self.batch_first:
            out, last = self.forward(x.permute(1, 0, 2), state)
            return out.permute(1, 0, 2), last
        return self.forward(x, state)

    def flatten_parameters(self):
        """Nothing: weights lie as they are used."""

    def forward(self, x, state=None):
        if isinstance(x, PackedSequence):
            return run_packed(self, x, state)
        batched = x.ndim == 3
        states = self._checked(x, state, batched)
        time = 1 if self.batch_first and batched else 0
        x = x if batched else x.unsqueeze(1)
        y = x.permute(1, 0, 2) if time else x
        finals = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                y = F.dropout(y, self.dropout)
            ways = []
            for d in range(self.directions):
                cell, s = self.cells[len(finals)], states[len(finals)]
                p, bias = cell._inputs(y)
                s = cell._started(y[0]) if s is None else s if isinstance(s, tuple) else (s,)
                out, last = recur(cell._steps, bool(d), p, cell.weight_hh, bias, *s)
                ways.append(out)
                finals.append(last if len(last) > 1 else last[0])
            y = ways[0] if len(ways) == 1 else weft.concat(ways, axis=2)
        out, last = y.permute(1, 0, 2) if time else y, self._joined(finals)
        if batched:
            return out, last
        without = lambda y: y[:, 0]  # noqa: E731
        return without(out), tuple(map(without, last)) if isinstance(last, tuple) else without(last)


class LSTM(RNN):
    """Layers of LSTM cells over a sequence: (outputs, (h, c)), as RNN says."""

    cell = LSTMCell

    def _parts(self, state):
        state = list(state)
        if isinstance(state[0], (list, tuple)):  # the pairs of the cells
            state = [weft.stack(list(part), axis=0) for part in zip(*state)]
        return state

    def _one(self, k, parts):
        return parts[0][k], parts[1][k]

    def _joined(self, finals):
        return tuple(weft.stack(list(part), axis=0) for part in zip(*finals))


class GRU(RNN):
    """Layers of GRU cells over a sequence, as RNN says."""

    cell = GRUCell
