# SPDX-License-Identifier: Apache-2.0
"""weft.optim.lr_scheduler by its older path."""

from .optim.lr_scheduler import *  # noqa: F403
from .optim.lr_scheduler import __all__ as __all__
