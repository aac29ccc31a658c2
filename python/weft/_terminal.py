# SPDX-License-Identifier: Apache-2.0
"""What the command line writes to terminals: lines cut at words, and one line of progress that is written over."""

import os
import shutil
import sys
import textwrap


def columns(stream=None):
    """How wide lines may be; None in a pipe, where one thing is one line however long it is."""
    if (stream or sys.stdout).isatty() or "COLUMNS" in os.environ:
        return max(shutil.get_terminal_size().columns, 60)
    return None


def filled(line, indent="", stream=None):
    """The line, cut at words where it is longer than the terminal is wide; what follows a cut is indented."""
    width = columns(stream)
    if width is None or len(line) <= width:
        return line
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def filled_error(text, stream=None):
    """The text of a weft.Error: sentences are cut at words, programs and pictures stay as they are."""
    return "\n".join(
        filled(line, "   ", stream) if line.startswith(("error[", " = ")) else line
        for line in text.split("\n")
    )


def live():
    """Whether standard error is a terminal that understands control sequences."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def show(text=""):
    """Writes over the line; without text, leaves it empty."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
