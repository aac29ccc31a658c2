# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers over (time, batch, features), or (batch, time, features) with batch_first."""

from __future__ import annotations

import math

import weft

from .. import init
from .._core import Tensor
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
    """Layers of cells over a sequence: (outputs, final states), one state for each layer."""

    cell = RNNCell

    def __init__(self, input_size, hidden_size, num_layers=1, batch_first=False, **kwargs):
        super().__init__()
        self.batch_first = batch_first
        self.cells = [
            self.cell(input_size if k == 0 else hidden_size, hidden_size, **kwargs)
            for k in range(num_layers)
        ]

    def forward(self, x, state=None):
        time = 1 if self.batch_first else 0
        steps = [x[:, t] if time else x[t] for t in range(x.shape[time])]
        finals = []
        for k, cell in enumerate(self.cells):
            s = None if state is None else state[k]
            out = []
            for step in steps:
                s = cell(step, s)
                out.append(s[0] if isinstance(s, tuple) else s)
            steps = out
            finals.append(s)
        return weft.stack(steps, axis=time), finals


class LSTM(RNN):
    """Layers of LSTM cells over a sequence."""

    cell = LSTMCell


class GRU(RNN):
    """Layers of GRU cells over a sequence."""

    cell = GRUCell
