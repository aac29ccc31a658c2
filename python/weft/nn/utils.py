# SPDX-License-Identifier: Apache-2.0
"""What training loops do with parameters between backward and step."""

from __future__ import annotations

import math

import weft

from .._errors import error as _error

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]


def _with_grad(parameters):
    parameters = [parameters] if isinstance(parameters, weft.Tensor) else parameters
    return [p for p in parameters if p.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scales the gradients so that their joint norm is at most max_norm; returns the norm before, a float."""
    parameters = _with_grad(parameters)
    if norm_type == math.inf:
        total = max((float(weft.max(weft.abs(p.grad.data))) for p in parameters), default=0.0)
    else:
        powers = (float(weft.sum(weft.abs(p.grad.data) ** norm_type)) for p in parameters)
        total = sum(powers) ** (1.0 / norm_type)
    if total > max_norm:
        for p in parameters:
            p.grad = p.grad.data * (max_norm / (total + 1e-6))
    return total


def clip_grad_value_(parameters, clip_value):
    """Brings every element of the gradients between -clip_value and clip_value."""
    for p in _with_grad(parameters):
        p.grad = weft.clip(p.grad.data, -clip_value, clip_value)


def parameters_to_vector(parameters):
    """All elements of the parameters in a row, as an array."""
    return weft.concat([p.data.reshape(-1) for p in parameters])


def vector_to_parameters(vector, parameters):
    """Writes the elements of a vector into the parameters, in order. Raises ShapeError for another length."""
    parameters = list(parameters)
    vector = weft.asarray(getattr(vector, "data", vector))
    count = sum(p.size for p in parameters)
    if vector.shape != (count,):
        raise _error(
            weft.ShapeError,
            "nn.utils.vector",
            f"{count} elements are needed, the vector has shape {vector.shape}",
            help="pass what parameters_to_vector returned for these parameters",
        )
    at = 0
    for p in parameters:
        p.data = vector[at : at + p.size].reshape(p.shape).astype(p.dtype).to(p.device)
        at += p.size
