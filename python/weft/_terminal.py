# SPDX-License-Identifier: Apache-2.0
"""One line of progress on a terminal that can be written over; nothing in a pipe or on TERM=dumb."""

import os
import sys


def live():
    """Whether standard error is a terminal that understands control sequences."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def show(text=""):
    """Writes over the line; without text, leaves it empty."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
