# SPDX-License-Identifier: Apache-2.0
"""The commands `cslc` and `cs_python`, with the Cerebras SDK's options, from Python."""

from weft_wse.compiler import cslc_main
from weft_wse.script import add_sdk_modules, cs_python_main

__all__ = ["add_sdk_modules", "cs_python_main", "cslc_main"]
