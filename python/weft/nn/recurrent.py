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

    def _linear(self, x, h):
        y = x @ self.weight_ih + h @ self.weight_hh
        return y if self.bias_ih is None else y + self.bias_ih + self.bias_hh

    def start(self, x):
        return Tensor(
            weft.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device),
            requires_grad=False,
        )

    def forward(self, x, h=None):
        y = self._linear(x, self.start(x) if h is None else h)
        return weft.tanh(y) if self.nonlinearity == "tanh" else weft.relu(y)


class LSTMCell(RNNCell):
    """Gates in the order input, forget, cell, output."""

    gates = 4

    def forward(self, x, state=None):
        h, c = (self.start(x), self.start(x)) if state is None else state
        y = self._linear(x, h)
        n = self.hidden_size
        i, f, g, o = (y[:, k * n : (k + 1) * n] for k in range(4))
        c = weft.sigmoid(f) * c + weft.sigmoid(i) * weft.tanh(g)
        return weft.sigmoid(o) * weft.tanh(c), c


class GRUCell(RNNCell):
    """Gates in the order reset, update, new, as in PyTorch."""

    gates = 3

    def forward(self, x, h=None):
        h = self.start(x) if h is None else h
        n = self.hidden_size
        a, b = x @ self.weight_ih, h @ self.weight_hh
        if self.bias_ih is not None:
            a, b = a + self.bias_ih, b + self.bias_hh
        r, z = (weft.sigmoid(a[:, k : k + n] + b[:, k : k + n]) for k in (0, n))
        new = weft.tanh(a[:, 2 * n :] + r * b[:, 2 * n :])
        return (h - new) * z + new


class RNN(Module):
    """Layers of cells over a sequence: (outputs, final states), the states stacked: (layers * directions, batch, hidden).

    The sequence is (time, batch, features), or (batch, time, features) with batch_first; without a batch (time,
    features), and the states lack that axis, too. `bidirectional` runs a second cell of each layer backwards; outputs
    of both are joined along the features. `dropout` acts on the outputs of all layers but the last while training.
    States to start from have the form of those that are returned. Raises ShapeError for an input or a state of another
    shape. Cells are `cells[layer * directions + direction]`; other arguments are the cell's (bias, nonlinearity,
    device, dtype).
    """

    cell = RNNCell

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        **kwargs,
    ):
        super().__init__()
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

    def forward(self, x, state=None):
        batched = x.ndim == 3
        states = self._checked(x, state, batched)
        time = 1 if self.batch_first and batched else 0
        x = x if batched else x.unsqueeze(1)
        steps = [x[:, t] if time else x[t] for t in range(x.shape[time])]
        finals = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                steps = [F.dropout(step, self.dropout) for step in steps]
            ways = []
            for d in range(self.directions):
                cell, s = self.cells[len(finals)], states[len(finals)]
                out = []
                for step in reversed(steps) if d else steps:
                    s = cell(step, s)
                    out.append(s[0] if isinstance(s, tuple) else s)
                ways.append(out[::-1] if d else out)
                finals.append(s)
            steps = (
                ways[0] if len(ways) == 1 else [weft.concat(both, axis=1) for both in zip(*ways)]
            )
        out, last = weft.stack(steps, axis=time), self._joined(finals)
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
