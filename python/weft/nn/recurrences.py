# SPDX-License-Identifier: Apache-2.0
"""The steps of one direction of a recurrent layer as one node of the graph.

The inputs of all steps are multiplied by their weights before, in one product. Steps run on plain arrays; the gradient of the weights of the states is one
product over all steps at the end. Each class has one kind of cell: `step` gives the next state and what its gradient reads, `back` the gradients of both
summands and of the state before.
"""

from __future__ import annotations

import weft

from .. import _core
from .._core import Tensor
from ..autograd import Function
from .fused import fused


def _parts(x, count):
    n = x.shape[1] // count
    return [x[:, k * n : (k + 1) * n] for k in range(count)]


@fused(2)
def _tanh_of_sum(p, q):
    return weft.tanh(p + q)


@fused(2)
def _relu_of_sum(p, q):
    return weft.relu(p + q)


@fused(2)
def _tanh_back(g, h):
    return g * (1.0 - h * h)


@fused(2)
def _relu_back(g, h):
    return g * weft.sign(h)


class PlainSteps:
    """h' = f(p + q)."""

    def __init__(self, nonlinearity):
        tanh = nonlinearity == "tanh"
        self.forward = _tanh_of_sum if tanh else _relu_of_sum
        self.backward = _tanh_back if tanh else _relu_back

    def step(self, p, q, state):
        h = self.forward(p, q)
        return (h,), h

    def back(self, kept, before, grads):
        d = self.backward(grads[0], kept)
        return d, d, ()


@fused(4)
def _cell_of(i, f, g, c):
    return weft.sigmoid(f) * c + weft.sigmoid(i) * weft.tanh(g)


@fused(2)
def _shown(o, c):
    return weft.sigmoid(o) * weft.tanh(c)


@fused(3)
def _shown_by(g, o, c):
    s = weft.sigmoid(o)
    return g * weft.tanh(c) * s * (1.0 - s)


@fused(4)
def _into_cell(g, gc, o, c):
    t = weft.tanh(c)
    return gc + g * weft.sigmoid(o) * (1.0 - t * t)


@fused(3)
def _through_gate(g, gate, other):
    s = weft.sigmoid(gate)
    return g * other * s * (1.0 - s)


@fused(3)
def _through_input(g, i, x):
    s = weft.sigmoid(i)
    return g * weft.tanh(x) * s * (1.0 - s)


@fused(3)
def _through_new(g, i, x):
    t = weft.tanh(x)
    return g * weft.sigmoid(i) * (1.0 - t * t)


@fused(2)
def _gated(g, gate):
    return g * weft.sigmoid(gate)


class LongSteps:
    """Gates in the order input, forget, cell, output; the state is (h, c)."""

    def step(self, p, q, state):
        z = p + q
        i, f, g, o = _parts(z, 4)
        c = _cell_of(i, f, g, state[1])
        return (_shown(o, c), c), (z, c)

    def back(self, kept, before, grads):
        z, c = kept
        i, f, g, o = _parts(z, 4)
        into = _into_cell(grads[0], grads[1], o, c)
        d = weft.concat(
            [
                _through_input(into, i, g),
                _through_gate(into, f, before[1]),
                _through_new(into, i, g),
                _shown_by(grads[0], o, c),
            ],
            axis=1,
        )
        return d, d, (None, _gated(into, f))


@fused(7)
def _gated_step(pr, qr, pz, qz, pn, qn, h):
    new = weft.tanh(pn + weft.sigmoid(pr + qr) * qn)
    return (h - new) * weft.sigmoid(pz + qz) + new


@fused(5)
def _new_back(g, pz, qz, n, h):
    return g * (1.0 - weft.sigmoid(pz + qz)) * (1.0 - n * n)


@fused(5)
def _update_back(g, pz, qz, n, h):
    z = weft.sigmoid(pz + qz)
    return g * (h - n) * z * (1.0 - z)


@fused(4)
def _reset_back(g, pr, qr, qn):
    r = weft.sigmoid(pr + qr)
    return g * qn * r * (1.0 - r)


@fused(4)
def _new_of(pr, qr, pn, qn):
    return weft.tanh(pn + weft.sigmoid(pr + qr) * qn)


@fused(3)
def _gated_sum(g, p, q):
    return g * weft.sigmoid(p + q)


class GatedSteps:
    """Gates in the order reset, update, new."""

    def step(self, p, q, state):
        (pr, pz, pn), (qr, qz, qn) = _parts(p, 3), _parts(q, 3)
        return (_gated_step(pr, qr, pz, qz, pn, qn, state[0]),), (p, q)

    def back(self, kept, before, grads):
        (pr, pz, pn), (qr, qz, qn) = (_parts(x, 3) for x in kept)
        g, h = grads[0], before[0]
        n = _new_of(pr, qr, pn, qn)
        new = _new_back(g, pz, qz, n, h)
        update, reset = _update_back(g, pz, qz, n, h), _reset_back(new, pr, qr, qn)
        p = weft.concat([reset, update, new], axis=1)
        return (
            p,
            weft.concat([reset, update, _gated_sum(new, pr, qr)], axis=1),
            (_gated_sum(g, pz, qz),),
        )


def composed(steps, reverse, p, weight, bias, *state):
    """The outputs, the last state's other parts behind them, by operations that keep a graph: (steps + others, batch, hidden)."""
    out = [None] * p.shape[0]
    for t in _order(p.shape[0], reverse):
        q = state[0] @ weight
        state, _ = steps.step(p[t], q if bias is None else q + bias, state)
        out[t] = state[0]
    return weft.stack([*out, *state[1:]], axis=0)


def _order(count, reverse):
    return range(count - 1, -1, -1) if reverse else range(count)


class Recurrence(Function):
    """composed(...) as one node."""

    @staticmethod
    def forward(ctx, steps, reverse, p, weight, bias, *state):
        ctx.save_for_backward(p, weight, *(x for x in (bias, *state) if x is not None))
        ctx.steps, ctx.reverse, ctx.bias = steps, reverse, bias is not None
        inputs, w = p.data, weight.data
        b = None if bias is None else bias.data
        state = tuple(s.data for s in state)
        out, ctx.kept, ctx.before = [None] * len(inputs), {}, {}
        for t in _order(len(inputs), reverse):
            q = state[0] @ w
            ctx.before[t] = state
            state, ctx.kept[t] = steps.step(inputs[t], q if b is None else q + b, state)
            out[t] = state[0]
        return weft.stack([*out, *state[1:]], axis=0)

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
        g, w = g.data, weight.data.mT
        count = p.shape[0]
        grads = [None, *(g[count + k] for k in range(len(state) - 1))]
        dp, dq = [None] * count, [None] * count
        carried = None
        for t in reversed(_order(count, ctx.reverse)):
            grads[0] = g[t] if carried is None else g[t] + carried
            dp[t], dq[t], direct = ctx.steps.back(ctx.kept[t], ctx.before[t], grads)
            carried = dq[t] @ w
            if direct and direct[0] is not None:
                carried = carried + direct[0]
            grads[1:] = direct[1:]
        same = dp[0] is dq[0]
        dp = weft.stack(dp, axis=0)
        dq = dp if same else weft.stack(dq, axis=0)
        before = weft.stack([ctx.before[t][0] for t in range(count)], axis=0)
        rows = dq.reshape(-1, dq.shape[2])
        dw = before.reshape(-1, before.shape[2]).T @ rows
        db = rows.sum(0) if ctx.bias else None
        return None, None, dp, dw, db, carried, *grads[1:]


def recur(steps, reverse, p, weight, bias, *state):
    """(outputs, last state) of a direction: p (steps, batch, gates), weight (hidden, gates), the state's parts (batch, hidden)."""
    run = Recurrence.apply if all(isinstance(x, Tensor) for x in (p, weight, *state)) else composed
    y = run(steps, reverse, p, weight, bias, *state)
    count = p.shape[0]
    last = 0 if reverse else count - 1
    return y[:count], (y[last], *(y[count + k] for k in range(len(state) - 1)))
