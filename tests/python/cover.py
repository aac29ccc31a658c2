# SPDX-License-Identifier: Apache-2.0
"""Fewer cases than the product of two lists, where each case compiles kernels of its own."""

import os

import pytest


def cover(names, rows, other, values, times=2):
    """A mark like two of `pytest.mark.parametrize`: each row with the first value, and each other value with `times` rows, in
    turn, so that all rows and all values take part. With WEFT_TEST_WHOLE=1 every row has every value."""
    many = "," in names
    chosen = [(row, values[0]) for row in rows]
    if os.environ.get("WEFT_TEST_WHOLE") == "1":
        chosen = [(row, value) for row in rows for value in values]
    else:
        turns = [value for value in values[1:] for _ in range(min(times, len(rows)))]
        chosen += [(rows[i % len(rows)], value) for i, value in enumerate(turns)]
    cases = [(*row, value) if many else (row, value) for row, value in chosen]
    return pytest.mark.parametrize(f"{names}, {other}", cases)
