# SPDX-License-Identifier: Apache-2.0
import math

from needle import init, ops

from .nn_basic import Module, Parameter

__all__ = ["Sigmoid", "RNNCell", "RNN", "LSTMCell", "LSTM", "Embedding"]


class Sigmoid(Module):
    def forward(self, x):
        return (ops.exp(-x) + 1) ** (-1)


class _Cell(Module):
    gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype="float32"):
        super().__init__()
        self.hidden_size, self.device, self.dtype = hidden_size, device, dtype
        bound, width = 1.0 / math.sqrt(hidden_size), self.gates * hidden_size
        make = lambda *s: Parameter(
            init.rand(*s, low=-bound, high=bound, device=device, dtype=dtype)
        )  # noqa: E731
        self.W_ih, self.W_hh = make(input_size, width), make(hidden_size, width)
        self.bias_ih = make(width) if bias else None
        self.bias_hh = make(width) if bias else None

    def linear(self, x, h):
        y = x @ self.W_ih + h @ self.W_hh
        for b in (self.bias_ih, self.bias_hh):
            if b is not None:
                y = y + b.reshape((1, y.shape[1])).broadcast_to(y.shape)
        return y

    def zero(self, x):
        return init.zeros(x.shape[0], self.hidden_size, device=x.device, dtype=x.dtype)


class RNNCell(_Cell):
    def __init__(
        self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype="float32"
    ):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        assert nonlinearity in ("tanh", "relu")
        self.nonlinearity = nonlinearity

    def forward(self, x, h=None):
        y = self.linear(x, self.zero(x) if h is None else h)
        return ops.tanh(y) if self.nonlinearity == "tanh" else ops.relu(y)


class LSTMCell(_Cell):
    """Gates in the order input, forget, cell, output."""

    gates = 4

    def forward(self, x, h=None):
        h0, c0 = (self.zero(x), self.zero(x)) if h is None else h
        n = x.shape[0]
        y = ops.split(self.linear(x, h0).reshape((n, 4, self.hidden_size)), axis=1)
        i, f, g, o = (y[k] for k in range(4))
        sigmoid = Sigmoid()
        c = sigmoid(f) * c0 + sigmoid(i) * ops.tanh(g)
        return sigmoid(o) * ops.tanh(c), c


def _layers(x):
    return [x[i] for i in range(len(x))]


class RNN(Module):
    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        nonlinearity="tanh",
        device=None,
        dtype="float32",
    ):
        super().__init__()
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.rnn_cells = [
            RNNCell(
                input_size if k == 0 else hidden_size,
                hidden_size,
                bias,
                nonlinearity,
                device,
                dtype,
            )
            for k in range(num_layers)
        ]

    def forward(self, x, h0=None):
        steps = _layers(ops.split(x, 0))
        states = [None] * self.num_layers if h0 is None else _layers(ops.split(h0, 0))
        for k, cell in enumerate(self.rnn_cells):
            out = []
            for step in steps:
                states[k] = cell(step, states[k])
                out.append(states[k])
            steps = out
        return ops.stack(steps, 0), ops.stack(states, 0)


class LSTM(Module):
    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, device=None, dtype="float32"
    ):
        super().__init__()
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.lstm_cells = [
            LSTMCell(input_size if k == 0 else hidden_size, hidden_size, bias, device, dtype)
            for k in range(num_layers)
        ]

    def forward(self, x, h=None):
        steps = _layers(ops.split(x, 0))
        states = (
            [None] * self.num_layers
            if h is None
            else list(zip(*(_layers(ops.split(t, 0)) for t in h)))
        )
        for k, cell in enumerate(self.lstm_cells):
            out = []
            for step in steps:
                states[k] = cell(step, states[k])
                out.append(states[k][0])
            steps = out
        return ops.stack(steps, 0), (
            ops.stack([s[0] for s in states], 0),
            ops.stack([s[1] for s in states], 0),
        )


class Embedding(Module):
    """Through a product with one-hot rows."""

    def __init__(self, num_embeddings, embedding_dim, device=None, dtype="float32"):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, device=device, dtype=dtype)
        )

    def forward(self, x):
        t, n = x.shape
        rows = init.one_hot(
            self.num_embeddings, x.reshape((t * n,)), device=x.device, dtype="float32"
        )
        return (rows @ self.weight).reshape((t, n, self.embedding_dim))
