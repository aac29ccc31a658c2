# SPDX-License-Identifier: Apache-2.0
"""What programs of PyTorch ask about NVIDIA's cards: torch.cuda's questions, answered of the devices "cuda:0", "cuda:1", ..."""

from __future__ import annotations

import weft

from . import amp
from ._boundary import publish as _publish

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def _cards():
    return [d for d in weft.devices() if d.name.startswith("cuda") and d.available]


def is_available():
    """Is there a card?"""
    return bool(_cards())


def device_count():
    """How many cards there are."""
    return len(_cards())


def _card(device=None):
    name = getattr(device, "name", device)
    name = f"cuda:{0 if name is None else name}" if name is None or isinstance(name, int) else name
    numbered = not isinstance(name, str) or ":" in name  # what is no name is refused as it is
    return weft.device(name if numbered else f"{name}:0")


def current_device():
    """The number of the default device where that is a card, else 0."""
    now = weft.get_default_device()
    return now.index or 0


def get_device_name(device=None):
    """The default card's name, or that of a number or a device."""
    return _card(device).name


def synchronize(device=None):
    """Waits for everything that was begun on a card."""
    _card(device).synchronize()


def empty_cache():
    """Nothing: memory that is free is given to the next array."""


def is_bf16_supported():
    """Do cards compute in bfloat16? Where there is one, yes."""
    return is_available()


def manual_seed(seed):
    """weft.random.seed: one generator serves all devices."""
    weft.random.seed(seed)


def manual_seed_all(seed):
    """As manual_seed."""
    weft.random.seed(seed)


_publish(__name__)
