# SPDX-License-Identifier: Apache-2.0
"""torch's entry point for back ends: `import torch` loads torch.device("weft") where its extension was built."""

from __future__ import annotations

import os
import pathlib


def autoload():
    """Loads the device where some extension was built; costs one look at a folder elsewhere."""
    base = os.environ.get("WEFT_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "weft"
    )
    if os.path.isdir(os.path.join(base, "torch")):
        from .torch import device

        device.autoload()
