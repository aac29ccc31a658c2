# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification (Graves et al., 2006): the loss of all alignments of labels with steps, and its gradient.

Probabilities stay logarithms. `alpha[t, i, s]` sums what ends in state s at step t, `beta` what begins there; the states of a
sequence are its labels with blanks between them and at both ends.
"""

from __future__ import annotations

import math

import weft

from .common import HALVES, Unsupported, array, as_type

_NEVER = -math.inf


class _Labels:
    """Sequences as rows of states of one width, beside what is legal between them."""

    def __init__(self, log_probs, targets, lengths, counts, blank):
        self.lengths, self.counts = [int(n) for n in lengths], [int(n) for n in counts]
        self.width = 2 * max(self.counts, default=0) + 1
        rows = [[blank] * self.width for _ in self.counts]
        for row, labels, n in zip(rows, _rows_of(targets.tolist(), self.counts), self.counts):
            row[1 : 2 * n : 2] = labels[:n]
        self.states = weft.asarray(rows, dtype="int64", device=log_probs.device)
        # Two states back leads to a label that differs from the one before.
        apart = [[s > 1 and row[s] != row[s - 2] for s in range(self.width)] for row in rows]
        self.skips = weft.asarray(apart, dtype="bool", device=log_probs.device)
        self.device, self.dtype = log_probs.device, str(log_probs.dtype)

    def mask(self, rows):
        return weft.asarray(rows, dtype="bool", device=self.device)

    def never(self, columns):
        return weft.full((len(self.counts), columns), _NEVER, dtype=self.dtype, device=self.device)

    def begins(self):
        """The states that an alignment may begin with."""
        return self.mask([[s < min(2, 2 * n + 1) for s in range(self.width)] for n in self.counts])

    def ends(self):
        """The states that an alignment may end with."""
        return self.mask(
            [[max(2 * n - 1, 0) <= s <= 2 * n for s in range(self.width)] for n in self.counts]
        )

    def at_step(self, t, test):
        return self.mask([[test(t, n - 1)] for n in self.lengths])


def _rows_of(labels, counts):
    """Labels of each sequence, from rows or all in one row."""
    if not labels or isinstance(labels[0], list):
        return labels
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return [labels[end - n : end] for end, n in zip(ends, counts)]


def _log_of_sum(ways):
    """log(exp(a) + exp(b) + ...), -inf where all are."""
    top = ways[0]
    for w in ways[1:]:
        top = weft.maximum(top, w)
    top = weft.where(top == _NEVER, 0.0, top)
    total = weft.exp(ways[0] - top)
    for w in ways[1:]:
        total = total + weft.exp(w - top)
    return weft.log(total) + top


def _emitted(log_probs, labels):
    """log_probs[t, i, states[i, s]]."""
    steps, batch, _ = log_probs.shape
    at = labels.states.reshape((1, batch, labels.width)).broadcast_to((steps, batch, labels.width))
    return weft.take_along_axis(log_probs, at, axis=2)


def _forward(labels, emitted):
    """alpha of all steps, a list."""
    alpha = weft.where(labels.begins(), emitted[0], _NEVER)
    found = [alpha]
    for t in range(1, emitted.shape[0]):
        before = weft.concat([labels.never(2), alpha], axis=1)
        two = weft.where(labels.skips, before[:, : labels.width], _NEVER)
        alpha = _log_of_sum([alpha, before[:, 1 : labels.width + 1], two]) + emitted[t]
        found.append(alpha)
    return found


def _backward(labels, emitted):
    """beta of all steps, a list; -inf behind the end of a sequence."""
    width, steps = labels.width, emitted.shape[0]
    skips = weft.concat([labels.skips, labels.mask([[False, False]] * len(labels.counts))], axis=1)
    beta, found = labels.never(width), []
    for t in reversed(range(steps)):
        after = weft.concat([beta, labels.never(2)], axis=1)
        two = weft.where(skips[:, 2:], after[:, 2:], _NEVER)
        inside = _log_of_sum([beta, after[:, 1 : width + 1], two])
        last = weft.where(labels.ends(), 0.0, _NEVER)
        inside = weft.where(labels.at_step(t, int.__eq__), last, inside)
        beta = inside + emitted[t]
        found.append(beta)
    return found[::-1]


def _checked(c, log_probs, lengths, counts):
    steps, batch, _ = log_probs.shape
    if not log_probs.size or str(log_probs.dtype) in HALVES:
        raise Unsupported("alignments without elements, or of 16-bit floats")
    if any(not 0 <= int(n) <= steps for n in lengths) or {len(lengths), len(counts)} != {batch}:
        raise Unsupported("lengths that torch refuses")


@array("_ctc_loss.default")
def _ctc_loss(c, log_probs, targets, lengths, counts, blank=0, zero_infinity=False):
    _checked(c, log_probs, lengths, counts)
    labels = _Labels(log_probs, targets, lengths, counts, blank)
    alphas = _forward(labels, _emitted(log_probs, labels))
    losses, ends = [], labels.ends()
    for i, (n, count) in enumerate(zip(labels.lengths, labels.counts)):
        if n:
            last = weft.where(ends[i], alphas[n - 1][i], _NEVER)
            losses.append(-_log_of_sum([last[s : s + 1] for s in range(max(2 * count - 1, 0), 2 * count + 1)]))  # fmt: skip
        else:
            losses.append(weft.full((1,), math.inf if count else 0.0, dtype=labels.dtype, device=labels.device))  # fmt: skip
    # Steps behind the longest sequence count nowhere.
    steps = [a.reshape((a.shape[0], 1, a.shape[1])) for a in alphas]
    return weft.concat(losses), weft.concat(steps, axis=1).reshape(c.shapes[1])


@array("_ctc_loss_backward.default")
def _ctc_loss_backward(
    c, g, log_probs, targets, lengths, counts, losses, alphas, blank, zero_infinity=False
):
    """As torch has it: the gradient through the softmax whose logarithm was given."""
    _checked(c, log_probs, lengths, counts)
    labels = _Labels(log_probs, targets, lengths, counts, blank)
    emitted = _emitted(log_probs, labels)
    beta = _backward(labels, emitted)
    steps, batch, classes = log_probs.shape
    of_state = []
    for t in range(steps):
        line = alphas[:, t] + beta[t] - emitted[t] + losses.reshape((batch, 1))
        line = weft.where((alphas[:, t] == _NEVER) | (beta[t] == _NEVER), 0.0, weft.exp(line))
        of_state.append(line.reshape((batch, 1, labels.width)))
    # The share of each state, summed by its class.
    names = weft.arange(classes, dtype="int64", device=labels.device).reshape((1, 1, classes))
    one_hot = as_type(labels.states.reshape((batch, labels.width, 1)) == names, labels.dtype)
    shares = weft.concat(of_state, axis=1) @ one_hot
    found = (weft.exp(log_probs) - weft.permute_dims(shares, (1, 0, 2))) * g.reshape((1, batch, 1))
    inside = weft.asarray(
        [[[t < n] for n in labels.lengths] for t in range(steps)], device=labels.device
    )
    found = weft.where(inside, found, 0.0)
    impossible = inside & (losses == math.inf).reshape((1, batch, 1))
    found = weft.where(impossible, 0.0 if zero_infinity else math.nan, found)
    return as_type(found, c.dtype)
