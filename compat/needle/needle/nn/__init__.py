# SPDX-License-Identifier: Apache-2.0
from .nn_basic import *  # noqa: F401,F403
from .nn_conv import *  # noqa: F401,F403
from .nn_sequence import *  # noqa: F401,F403
