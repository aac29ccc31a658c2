# SPDX-License-Identifier: Apache-2.0
"""`cerebras.sdk.debug.debug_util`, where appliance scripts look for it."""

from cerebras.sdk.debug.debug_util import debug_util

__all__ = ["debug_util"]
