# SPDX-License-Identifier: Apache-2.0
"""How many derivatives a thread is inside of; known below the transforms, because names of PyTorch's mean other things there."""

from __future__ import annotations

import threading


class _State(threading.local):
    depth = 0  # an attribute that is absent costs more than a small operation


_state = _State()


def differentiating():
    """How many derivatives this thread is inside of."""
    return _state.depth


def deeper(by):
    """Enters that many derivatives; a negative number leaves them."""
    _state.depth += by
