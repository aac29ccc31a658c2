# SPDX-License-Identifier: Apache-2.0
"""Looking into a program that has stopped: symbols and <debug> traces."""

from __future__ import annotations

import os

import numpy as np

from weft import wse
from weft._core import shown as _shown
from weft._boundary import publish_own_classes as _publish_own_classes


class debug_util:  # the SDK's spelling
    """Reads the memory of the last program that ran from `bindir` in this process and has stopped."""

    def __init__(self, bindir, cmaddr=None, **_):
        if cmaddr:
            raise wse.WseDeviceError(
                "wse.runtime.hardware",
                f"there is no hardware behind cmaddr {_shown(cmaddr)}",
                f"error[wse.runtime.hardware]: there is no hardware behind cmaddr {_shown(cmaddr)}",
                "device",
            )
        found = wse._finished.get(os.path.realpath(os.fspath(getattr(bindir, "directory", bindir))))
        if found is None:
            text = (
                f"no program from {_shown(os.fspath(bindir))} has run and stopped in this process"
            )
            raise wse.WseValueError(
                "wse.debug.core", text, f"error[wse.debug.core]: {text}", "value"
            )
        self._runtime = found

    def get_symbol(self, col, row, symbol, dtype):
        return self._runtime.read_symbol(col, row, symbol, dtype)

    def get_symbol_rect(self, rectangle, symbol, dtype):
        """An array [width][height][...] over ((x, y), (width, height))."""
        (x, y), (w, h) = rectangle
        return np.array(
            [[self.get_symbol(x + i, y + j, symbol, dtype) for j in range(h)] for i in range(w)]
        )

    def read_trace(self, px, py, name):
        """The records of a <debug> trace buffer, in the order in which they were written."""
        from weft.wse_trace import decode

        return decode(self._runtime, px, py, name)


_publish_own_classes(__name__)
