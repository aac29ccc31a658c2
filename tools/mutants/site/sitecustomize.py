# SPDX-License-Identifier: Apache-2.0
"""The switches of planted faults for Python (mark.cpp says which bytes): every process of the tests has them."""

import builtins
import mmap
import os

if path := os.environ.get("WEFT_MUTANTS"):
    with open(path, "r+b") as file:
        page = mmap.mmap(file.fileno(), 1 << 16)
else:
    page = bytearray(1 << 16)


def _weft_mutant(number):
    state = page[number]
    if not state & 1:
        page[number] = state | 1
    return bool(state & 2)


if not hasattr(builtins, "_weft_mutant"):
    _weft_mutant.page = page
    builtins._weft_mutant = _weft_mutant
