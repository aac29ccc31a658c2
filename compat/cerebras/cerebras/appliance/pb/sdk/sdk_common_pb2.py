# SPDX-License-Identifier: Apache-2.0
"""The enumerations of copies, where appliance scripts look for them."""

from weft.wse import MemcpyDataType, MemcpyOrder

__all__ = ["MemcpyDataType", "MemcpyOrder"]
