# SPDX-License-Identifier: Apache-2.0
"""Programs of PyTorch, and what the back end made of them."""

import torch
from weft.torch import _backend


def run(program, compiled):
    """(the results of program(compiled), the programs that the back end made meanwhile); from one seed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    made = []
    before = _backend.watch(made)
    try:
        return program(compiled), made
    finally:
        _backend.watch(before)
