# SPDX-License-Identifier: Apache-2.0
"""The types of what norms save for their gradients.

With images or activations of 16 bits and float32 weights (autocast makes such), torch's kernels of the host save means and deviations in
float32, and their gradients ask for that. torch's fake tensors say 16 bits; here they are given the type of the kernels.
"""

from __future__ import annotations

import torch

from .graph import Value, _empty

_HALVES = (torch.float16, torch.bfloat16)
# Operators, and where x and the parameters are among their arguments.
_FORWARD = {
    "aten.native_layer_norm.default": (0, (2, 3)),
    "aten.native_group_norm.default": (0, (1, 2)),
    "aten.native_batch_norm.default": (0, (1, 2, 3, 4)),
    "aten._native_batch_norm_legit.default": (0, (1, 2, 3, 4)),
    "aten._native_batch_norm_legit.no_stats": (0, (1, 2)),
    "aten._native_batch_norm_legit_functional.default": (0, (1, 2, 3, 4)),
    "aten._native_batch_norm_legit_no_training.default": (0, (1, 2, 3, 4)),
}
# Those of gradients, and where the saved values are.
_BACKWARD = {
    "aten.native_layer_norm_backward.default": (1, (5, 6), (3, 4)),
    "aten.native_group_norm_backward.default": (1, (4,), (2, 3)),
    "aten.native_batch_norm_backward.default": (1, (2, 3, 4), (5, 6)),
}


def _is_mixed(op, x, parameters):
    given = [op.args[i] for i in parameters if i < len(op.args)]
    return op.args[x].fake.dtype in _HALVES and any(
        isinstance(v, Value) and v.fake.dtype is torch.float32 for v in given
    )


def correct_statistics(graph):
    """Gives what norms of mixed types save the type that it has."""
    for op in graph.ops:
        saved = ()
        if op.name in _FORWARD and _is_mixed(op, *_FORWARD[op.name]):
            saved = op.outputs[1:3]
        elif op.name in _BACKWARD:
            x, parameters, places = _BACKWARD[op.name]
            if _is_mixed(op, x, parameters):
                saved = [op.args[i] for i in places]
        for v in saved:
            if isinstance(v, Value) and v.fake.dtype in _HALVES and v.fake.device.type == "cpu":
                v.fake = v.fake.to(torch.float32)
                v.constant = None if v.constant is None else _empty(v.fake)  # of inference
