# SPDX-License-Identifier: Apache-2.0
"""Least squares on the device: torch has one operator of four results, two of which only some of its drivers give."""

from __future__ import annotations

import torch

import weft

from ..._core import shown as _shown
from ..._errors import error as _error
from ..rules.common import DTYPES
from . import _memory, _names

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _tensor(x, dtype, index):
    fake = torch.empty(tuple(x.shape), dtype=dtype, device="meta")
    return _memory.tensor_of(x.copy(), fake, index)


def lstsq(a, b, rcond=None, *, driver=None):
    """(solution, sums of squares, rank, singular values); as torch's drivers, of which each gives some of them empty."""
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise _error(
            "value",
            "torch.device.lstsq",
            f"lstsq with driver {_shown(driver)}",
            [f"legal: {', '.join(map(repr, _DRIVERS))}"],
            help="leave driver out",
        )
    index, real = a.device.index, a.real.dtype if a.is_complex() else a.dtype
    nothing = lambda dtype: torch.empty(0, dtype=dtype, device=a.device)  # noqa: E731
    with weft.use(_names.device_at(index)):
        x, sums, rank, values = weft.linalg.lstsq(*map(_memory.array_of, (a, b)), rcond)
        rank = rank if hasattr(rank, "shape") else weft.asarray(rank, dtype="int64")
    solution = _tensor(x, a.dtype, index)
    with_sums = driver != "gelsy" and sums.size
    return (
        solution,
        _tensor(sums.astype(DTYPES[real]), real, index) if with_sums else nothing(real),
        _tensor(rank, torch.int64, index) if driver != "gels" else nothing(torch.int64),
        _tensor(values, real, index) if driver in ("gelsd", "gelss") else nothing(real),
    )


def table():
    """{operator: kernel}."""
    return {"linalg_lstsq": lstsq}
