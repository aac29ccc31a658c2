# SPDX-License-Identifier: Apache-2.0
"""The two models that the course's tests build."""

import numpy as np

import needle as ndl
import needle.nn as nn

np.random.seed(0)


def _conv_bn(a, b, k, s, device, dtype):
    return nn.Sequential(
        nn.Conv(a, b, k, stride=s, device=device, dtype=dtype),
        nn.BatchNorm2d(b, device=device, dtype=dtype),
        nn.ReLU(),
    )


class ResNet9(nn.Module):
    def __init__(self, device=None, dtype="float32"):
        super().__init__()
        block = lambda a, b, k, s: _conv_bn(a, b, k, s, device, dtype)  # noqa: E731
        self.model = nn.Sequential(
            block(3, 16, 7, 4),
            block(16, 32, 3, 2),
            nn.Residual(nn.Sequential(block(32, 32, 3, 1), block(32, 32, 3, 1))),
            block(32, 64, 3, 2),
            block(64, 128, 3, 2),
            nn.Residual(nn.Sequential(block(128, 128, 3, 1), block(128, 128, 3, 1))),
            nn.Flatten(),
            nn.Linear(128, 128, device=device, dtype=dtype),
            nn.ReLU(),
            nn.Linear(128, 10, device=device, dtype=dtype),
        )

    def forward(self, x):
        return self.model(x)


class LanguageModel(nn.Module):
    def __init__(
        self,
        embedding_size,
        output_size,
        hidden_size,
        num_layers=1,
        seq_model="rnn",
        seq_len=40,
        device=None,
        dtype="float32",
    ):
        super().__init__()
        self.output_size, self.hidden_size = output_size, hidden_size
        self.embedding = nn.Embedding(output_size, embedding_size, device=device, dtype=dtype)
        kind = {"rnn": nn.RNN, "lstm": nn.LSTM}[seq_model]
        self.seq_model = kind(embedding_size, hidden_size, num_layers, device=device, dtype=dtype)
        self.linear = nn.Linear(hidden_size, output_size, device=device, dtype=dtype)

    def forward(self, x, h=None):
        t, n = x.shape
        out, h = self.seq_model(self.embedding(x), h)
        return self.linear(out.reshape((t * n, self.hidden_size))), h


_ = ndl
