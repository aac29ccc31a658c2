# SPDX-License-Identifier: Apache-2.0
"""The steps of one direction of a recurrent layer as one node of the graph.

The inputs of all steps are multiplied by their weights before, in one product. A cell is a function of the gates' sums p (of the inputs) and q (of the state)
and of the states before; it is traced once for a type and gives one pass over memory for each step, and another one for its gradient. The gradient of the
weights of the states is one product over all steps at the end.
"""

from __future__ import annotations

import functools

import weft

from .. import _core
from .._autocast import listed
from .._core import Tensor
from ..autograd import Function


class PlainSteps:
    """h' = f(p + q)."""

    gates, states = 1, 1

    def __init__(self, nonlinearity):
        self.function = weft.tanh if nonlinearity == "tanh" else weft.relu

    def cell(self, p, q, state):
        return (self.function(p[0] + q[0]),)


class LongSteps:
    """Gates in the order input, forget, cell, output; the state is (h, c)."""

    gates, states = 4, 2

    def cell(self, p, q, state):
        i, f, g, o = (a + b for a, b in zip(p, q))
        c = weft.sigmoid(f) * state[1] + weft.sigmoid(i) * weft.tanh(g)
        return weft.sigmoid(o) * weft.tanh(c), c


class GatedSteps:
    """Gates in the order reset, update, new."""

    gates, states = 3, 1

    def cell(self, p, q, state):
        new = weft.tanh(p[2] + weft.sigmoid(p[0] + q[0]) * q[2])
        return ((state[0] - new) * weft.sigmoid(p[1] + q[1]) + new,)


def composed(steps, reverse, p, weight, bias, *state):
    """The result of Recurrence by operations that keep a graph."""
    out = [None] * p.shape[0]
    parts = functools.partial(_parts, count=steps.gates)
    for t in range(p.shape[0] - 1, -1, -1) if reverse else range(p.shape[0]):
        q = state[0] @ weight
        state = steps.cell(parts(p[t]), parts(q if bias is None else q + bias), state)
        out[t] = state[0]
    others = list(state[1:])
    return weft.stack([*others, *out] if reverse else [*out, *others], axis=0)


def _parts(x, count):
    n = x.shape[1] // count
    return [x[:, k * n : (k + 1) * n] for k in range(count)]


@functools.lru_cache(maxsize=64)
def _fused(kind, function, dtype, bias):
    """The passes of a cell for a type."""
    from .._traced import Traced

    steps = kind.__new__(kind)
    steps.function = function
    count = (3 if bias else 2) * kind.gates + kind.states
    values = [Traced(_core._lazy_input(k, dtype, ())) for k in range(count)]
    groups = [values[k : k + kind.gates] for k in range(0, count - kind.states, kind.gates)]
    q = [a + b for a, b in zip(groups[1], groups[2])] if bias else groups[1]
    out = steps.cell(groups[0], q, values[count - kind.states :])
    return _core.RecurrentSteps([x._lazy for x in out], kind.gates, bias)


def _passes(steps, x, bias):
    wide = x.dtype if x.dtype in (weft.float32, weft.float64) else weft.float32
    return _fused(type(steps), getattr(steps, "function", None), wide, bias is not None)


class Recurrence(Function):
    """(steps + other states, batch, hidden): the outputs, the last of the other states behind them (before them if reversed)."""

    @staticmethod
    def forward(ctx, steps, reverse, p, weight, bias, *state):
        ctx.save_for_backward(p, weight, *(x for x in (bias, *state) if x is not None))
        ctx.steps, ctx.reverse, ctx.bias = steps, reverse, bias is not None
        given = (p, weight, bias, *state)
        keep = any(x is not None and x.requires_grad for x in given)
        p, weight, bias, *state = (None if x is None else x.data for x in given)
        passes = _passes(steps, p, bias)
        run = passes.forward(reverse, keep, p, weight, bias, state)
        ctx.run = run if keep else None
        return run.result

    @staticmethod
    def backward(ctx, g):
        p, weight, *others = ctx.saved_tensors
        bias, state = (others[0], others[1:]) if ctx.bias else (None, others)
        if _core.grad_enabled():  # a gradient of the gradient is asked for
            arguments = [p, weight, *others]

            def again(p, weight, *others):
                bias, state = (others[0], others[1:]) if ctx.bias else (None, others)
                return composed(ctx.steps, ctx.reverse, p, weight, bias, *state)

            found = list(weft.vjp(again, *arguments)[1](g))
            return None, None, *(found if ctx.bias else [*found[:2], None, *found[2:]])
        b = None if bias is None else bias.data
        passes = _passes(ctx.steps, p.data, bias)
        dp, dq, states = passes.backward(ctx.reverse, g.data, p.data, weight.data, b, ctx.run)
        rows, before = dq.reshape(-1, dq.shape[2]), ctx.run.before
        dw = before.reshape(-1, before.shape[2]).T @ rows
        return None, None, dp, dw, None if bias is None else rows.sum(0), *states


@listed("low")
def recur(steps, reverse, p, weight, bias, *state):
    """(outputs, last state) of a direction: p (steps, batch, gates), weight (hidden, gates), the state's parts (batch, hidden)."""
    given = [x for x in (p, weight, bias, *state) if x is not None]
    one = all(isinstance(x, Tensor) for x in given) and _suit([x.data for x in given])
    y = (Recurrence.apply if one else composed)(steps, reverse, p, weight, bias, *state)
    count, others = p.shape[0], len(state) - 1
    first = others if reverse else 0
    ends = 0 if reverse else count
    last = first if reverse else count - 1
    return y[first : first + count], (y[last], *(y[ends + k] for k in range(others)))


def _suit(arrays):
    """Of one type and device that have passes of several results."""
    first = arrays[0]
    return _core.RecurrentSteps.suits(first) and all(
        x.dtype == first.dtype and x.device == first.device for x in arrays
    )
