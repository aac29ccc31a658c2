# SPDX-License-Identifier: Apache-2.0
"""Parameter by the path that programs of PyTorch import it from."""

from .module import Parameter

__all__ = ["Parameter"]
