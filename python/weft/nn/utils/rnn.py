# SPDX-License-Identifier: Apache-2.0
"""Sequences of different lengths for recurrent layers, by PyTorch's names (torch.nn.utils.rnn)."""

from __future__ import annotations

from collections import namedtuple

import weft

from ..._boundary import publish as _publish
from ..._errors import error as _error

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
]


class PackedSequence(
    namedtuple("PackedSequence", "data batch_sizes sorted_indices unsorted_indices")
):
    """The entries of several sequences, longest first, step after step: what pack_padded_sequence gives and recurrent layers take."""

    __slots__ = ()

    def lengths(self):
        """The lengths of the sequences, longest first."""
        sizes = self.batch_sizes
        return [sum(b > k for b in sizes) for k in range(sizes[0] if sizes else 0)]


def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    """Sequences (length, ...) as one value (longest, count, ...), or (count, longest, ...): the shorter ones end in padding_value."""
    sequences = list(sequences)
    longest = max(x.shape[0] for x in sequences)
    rows = [
        weft.pad(x, [(0, longest - x.shape[0])] + [(0, 0)] * (x.ndim - 1), value=padding_value)
        for x in sequences
    ]
    return weft.stack(rows, axis=0 if batch_first else 1)


def unpad_sequence(padded, lengths, batch_first=False):
    """The sequences of what pad_sequence gave."""
    lengths = _numbers(lengths)
    axis = 0 if batch_first else 1
    return [weft.take(padded, weft.asarray([k]), axis=axis).squeeze(axis)[:n] for k, n in enumerate(lengths)]  # fmt: skip


def _numbers(lengths):
    return [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """The entries of padded sequences without the padding, longest first. Raises ArgumentError for other lengths than the value has room
    for, and with enforce_sorted for sequences that are not in that order."""
    x = input.permute(1, 0, *range(2, input.ndim)) if batch_first else input
    lengths = _numbers(lengths)
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    wrong = len(lengths) != x.shape[1] or any(not 0 < n <= x.shape[0] for n in lengths)
    if wrong or enforce_sorted and order != list(range(len(lengths))):
        raise _error(
            weft.ArgumentError,
            "nn.pack.lengths",
            f"lengths {lengths} of {x.shape[1]} sequences with {x.shape[0]} steps",
            ["rule: a number from 1 to the steps for each sequence, longest first with enforce_sorted"],
            help="enforce_sorted=False takes them in any order",
        )  # fmt: skip
    sizes = [sum(n > t for n in lengths) for t in range(max(lengths))]
    index = weft.asarray([t * x.shape[1] + order[k] for t, b in enumerate(sizes) for k in range(b)])
    rows = x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
    back = sorted(range(len(order)), key=order.__getitem__)
    return PackedSequence(weft.take(rows, index, axis=0), sizes, order, back)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(the padded sequences in their first order, their lengths as int64)."""
    lengths = sequence.lengths()
    starts = [sum(sequence.batch_sizes[:t]) for t in range(len(sequence.batch_sizes))]
    rows = [weft.take(sequence.data, weft.asarray([starts[t] + k for t in range(n)]), axis=0) for k, n in enumerate(lengths)]  # fmt: skip
    rows = [rows[k] for k in sequence.unsorted_indices]
    out = pad_sequence(rows, batch_first, padding_value)
    more = 0 if total_length is None else total_length - max(lengths)
    if more:
        time = 1 if batch_first else 0
        out = weft.pad(out, [(0, more if a == time else 0) for a in range(out.ndim)], value=padding_value)  # fmt: skip
    return out, weft.asarray([lengths[k] for k in sequence.unsorted_indices])


def pack_sequence(sequences, enforce_sorted=True):
    """pack_padded_sequence of a list of sequences."""
    sequences = list(sequences)
    lengths = [x.shape[0] for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, False, enforce_sorted)


def run_packed(layer, packed, state):
    """A recurrent layer over packed sequences: those of one length together. (packed outputs, final states)."""
    x, lengths = pad_packed_sequence(packed)
    lengths = lengths.tolist()
    outs, finals = [None] * len(lengths), [None] * len(lengths)
    pick = lambda v, at, axis: weft.take(v, weft.asarray(at), axis=axis)  # noqa: E731
    for n in sorted(set(lengths)):
        at = [k for k, m in enumerate(lengths) if m == n]
        own = None if state is None else _mapped(state, lambda s: pick(s, at, 1))  # noqa: B023
        y, last = layer.steps_first(pick(x, at, 1)[:n], own)
        for j, k in enumerate(at):
            outs[k] = pick(y, [j], 1).squeeze(1)
            finals[k] = _mapped(last, lambda s: pick(s, [j], 1))  # noqa: B023
    joined = (
        tuple(weft.concat([f[i] for f in finals], axis=1) for i in range(len(finals[0])))
        if isinstance(finals[0], tuple)
        else weft.concat(finals, axis=1)
    )
    return pack_sequence(outs, enforce_sorted=False), joined


def _mapped(state, f):
    return tuple(map(f, state)) if isinstance(state, (tuple, list)) else f(state)


_publish(__name__, skip=("run_packed",))
