# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, _ArrayLike, _bool, _Device, _DType, _Number
from . import amp as amp

def current_device() -> int:
    """The number of the default device where that is a card, else 0."""
def device_count() -> int:
    """How many cards there are."""
def empty_cache() -> None:
    """Nothing: memory that is free is given to the next array."""
def get_device_name(device: _Device | None = None) -> str:
    """The default card's name, or that of a number or a device."""
def is_available() -> _bool:
    """Is there a card?"""
def is_bf16_supported() -> _bool:
    """Do cards compute in bfloat16? Where there is one, yes."""
def manual_seed(seed: int) -> None:
    """weft.random.seed: one generator serves all devices."""
def manual_seed_all(seed: int) -> None:
    """As manual_seed."""
def synchronize(device: _Device | None = None) -> None:
    """Waits for everything that was begun on a card."""
