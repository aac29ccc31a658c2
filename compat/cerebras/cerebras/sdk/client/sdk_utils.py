# SPDX-License-Identifier: Apache-2.0
"""`cerebras.sdk.sdk_utils`, where appliance scripts look for it."""

from cerebras.sdk.sdk_utils import calculate_cycles, input_array_to_u32, memcpy_view

__all__ = ["calculate_cycles", "input_array_to_u32", "memcpy_view"]
