# SPDX-License-Identifier: Apache-2.0
"""Cells of LSTM and GRU: torch has one operator for each on devices other than the host, and one for its gradient."""

from __future__ import annotations

import torch


def _lstm(inputs, hidden, c, bias_1=None, bias_2=None):
    """(h, c, workspace) of gates that were multiplied by the weights already."""
    gates = _sum(inputs, hidden, bias_1, bias_2)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new = f * c + i * g
    return o * new.tanh(), new, torch.cat([i, f, g, o], 1)


def _lstm_backward(grad_h, grad_c, c, new, workspace, has_bias):
    """(of the gates, of c, of a bias)."""
    if grad_h is None and grad_c is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, 1)
    t = new.tanh()
    inner = torch.zeros_like(new) if grad_c is None else grad_c
    if grad_h is not None:
        inner = inner + grad_h * o * (1 - t * t)
    of_o = torch.zeros_like(o) if grad_h is None else grad_h * t * o * (1 - o)
    of_gates = torch.cat(
        [inner * g * i * (1 - i), inner * c * f * (1 - f), inner * i * (1 - g * g), of_o], 1
    )
    return of_gates, inner * f, of_gates.sum(0) if has_bias else None


def _gru(inputs, hidden, h, bias_1=None, bias_2=None):
    """(h, workspace)."""
    if bias_1 is not None:
        inputs, hidden = inputs + bias_1, hidden + bias_2
    (ir, iz, i_n), (hr, hz, hn) = inputs.chunk(3, 1), hidden.chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (i_n + r * hn).tanh()
    return n + z * (h - n), torch.cat([r, z, n, h, hn], 1)


def _gru_backward(grad_h, workspace, has_bias):
    """(of the input gates, of the hidden gates, of h, of the biases)."""
    r, z, n, h, hn = workspace.chunk(5, 1)
    of_n = grad_h * (1 - z) * (1 - n * n)
    of_z = grad_h * (h - n) * z * (1 - z)
    of_r = of_n * hn * r * (1 - r)
    of_inputs, of_hidden = torch.cat([of_r, of_z, of_n], 1), torch.cat([of_r, of_z, of_n * r], 1)
    biases = (of_inputs.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_inputs, of_hidden, grad_h * z, *biases


def _sum(*given):
    given = [x for x in given if x is not None]
    return sum(given[1:], given[0])


def table():
    """{operator: kernel}."""
    return {
        "_thnn_fused_lstm_cell": _lstm,
        "_thnn_fused_lstm_cell_backward_impl": _lstm_backward,
        "_thnn_fused_gru_cell": _gru,
        "_thnn_fused_gru_cell_backward": _gru_backward,
    }
