# SPDX-License-Identifier: Apache-2.0
"""Integer points and rectangles."""

from weft.wse import IntRectangle, IntVector

__all__ = ["IntRectangle", "IntVector"]
