# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from typing import Any

def __getattr__(name: str) -> Any: ...
