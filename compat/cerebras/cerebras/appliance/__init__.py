# SPDX-License-Identifier: Apache-2.0
"""What appliance scripts import beside `cerebras.sdk.client`."""

import logging

logger = logging.getLogger("cerebras.appliance")

__all__ = ["logger"]
