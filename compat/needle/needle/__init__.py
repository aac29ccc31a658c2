# SPDX-License-Identifier: Apache-2.0
"""needle's names over weft: arrays, autograd, layers, optimizers and data of the course's library."""

from .ops import *  # noqa: F401,F403
from .autograd import Tensor, TensorTuple, cpu, all_devices
from . import autograd, init, ops
from .init import ones, ones_like, zeros, zeros_like
from . import backend_ndarray, data, nn, optim
from .backend_selection import BACKEND, Device, NDArray, array_api, cpu_numpy, cuda, default_device
