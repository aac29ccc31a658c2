# SPDX-License-Identifier: Apache-2.0
"""Operators whose results have a size that only the data decides, and comparisons that give a number of the host."""

from __future__ import annotations

import torch

import weft

from ..._errors import error as _error


def _boundaries(row):
    """True where a sorted or consecutive run of elements begins."""
    first = torch.ones(1, dtype=torch.bool, device=row.device)
    return torch.cat([first, row[1:] != row[:-1]])


def _runs(begins, count):
    """(the number of the run that each element is in, the length of each run)."""
    at = begins.nonzero().view(-1)
    ends = torch.cat([at[1:], torch.full((1,), count, dtype=at.dtype, device=at.device)])
    return begins.to(torch.int64).cumsum(0) - 1, ends - at


def _nothing(x):
    return torch.empty(0, dtype=torch.int64, device=x.device)


def unique(x, sorted=True, return_inverse=False, return_counts=False):
    """torch.unique of all elements: (elements, where each is in them, how often each came)."""
    row = x.contiguous().view(-1)
    if not row.numel():
        return row, torch.empty(x.shape, dtype=torch.int64, device=x.device), _nothing(x)
    order = row.to(torch.uint8) if x.dtype == torch.bool else row
    ordered, places = order.sort()
    begins = _boundaries(ordered)
    number, lengths = _runs(begins, row.numel())
    inverse = torch.empty_like(number).scatter_(0, places, number).view(x.shape)
    elements = ordered[begins].to(x.dtype)
    return elements, inverse if return_inverse else _nothing(x), lengths if return_counts else _nothing(x)  # fmt: skip


def unique_without_counts(x, sorted=True, return_inverse=False):
    return unique(x, sorted, return_inverse)[:2]


def unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    rows = x.contiguous().view(-1, 1) if dim is None else x.movedim(dim, 0).flatten(1)
    return _of_rows(x, rows, dim, return_inverse, return_counts)


def _of_rows(x, rows, dim, return_inverse, return_counts):
    """Runs of equal neighbours among the rows."""
    begins = torch.ones(rows.shape[0], dtype=torch.bool, device=x.device)
    if rows.shape[0] > 1:
        begins[1:] = (rows[1:] != rows[:-1]).any(1)
    number, lengths = _runs(begins, rows.shape[0]) if rows.shape[0] else (_nothing(x), _nothing(x))
    kept = begins.nonzero().view(-1)
    out = x.contiguous().view(-1)[kept] if dim is None else x.index_select(dim, kept)
    if return_inverse and dim is None:
        number = number.view(x.shape)
    return out, number if return_inverse else _nothing(x), lengths if return_counts else _nothing(x)  # fmt: skip


def bincount(x, weights=None, minlength=0):
    """How often each number comes; sums of weights with them."""
    if x.dim() != 1 or x.numel() and int(x.amin()) < 0:
        raise _error(
            weft.Error,
            "torch.device.bincount",
            f"bincount of {x.dim()} axes{', least element ' + str(int(x.amin())) if x.dim() == 1 else ''}",
            ["legal: one axis of integers that are not negative"],
            help="x.view(-1) - x.min()",
        )
    n = max(minlength, int(x.amax()) + 1 if x.numel() else 0)
    if weights is None:
        weights = torch.ones_like(x, dtype=torch.int64)
    elif not weights.is_floating_point():
        weights = weights.double()
    out = torch.zeros(n, dtype=weights.dtype, device=x.device)
    return out.index_add_(0, x.to(torch.int64), weights) if x.numel() else out


def repeat_interleave(repeats, output_size=None):
    """Number i, repeats[i] times."""
    ends = repeats.to(torch.int64).cumsum(0)
    n = output_size if output_size is not None else int(ends[-1]) if ends.numel() else 0
    at = torch.arange(n, device=repeats.device)
    found = torch.searchsorted(ends, at, right=True) if n else at
    return found.to(repeats.dtype)


def equal(a, b):
    """torch.equal: a truth value of the host."""
    return a.shape == b.shape and bool((a == b).all())


def histc(x, bins=100, min=0, max=0):
    """Elements in each of the parts of a range, that of the data where the range is empty."""
    if min == max:
        low, high = (float(x.amin()), float(x.amax())) if x.numel() else (0.0, 0.0)
        low, high = (low - 1, high + 1) if low == high else (low, high)
    else:
        low, high = min, max
    inside = (x >= low) & (x <= high)
    at = ((x - low) * (bins / (high - low))).floor().clamp(0, bins - 1).to(torch.int64)
    out = torch.zeros(bins, dtype=x.dtype, device=x.device)
    return out.index_add_(0, at.reshape(-1), inside.to(x.dtype).reshape(-1)) if x.numel() else out


def nonzero_static(x, *, size, fill_value=-1):
    """The first positions of elements that are not 0, in a result of a given length."""
    found = x.nonzero()[:size]
    out = torch.full((size, x.dim()), fill_value, dtype=torch.int64, device=x.device)
    out[: len(found)] = found
    return out


def table():
    """{operator: kernel}."""
    return {
        "_unique2": unique,
        "_unique": unique_without_counts,
        "unique_consecutive": unique_consecutive,
        "bincount": bincount,
        "repeat_interleave.Tensor": repeat_interleave,
        "equal": equal,
        "histc": histc,
        "nonzero_static": nonzero_static,
    }
