# SPDX-License-Identifier: Apache-2.0
from .ndarray import *  # noqa: F401,F403
