# SPDX-License-Identifier: Apache-2.0
"""NEEDLE_BACKEND chooses: "nd" (needle's float32 arrays, the default) or "np" (NumPy's rules for types and
indices). Both compute with weft."""

import os

BACKEND = os.environ.get("NEEDLE_BACKEND", "nd")

if BACKEND == "nd":
    print("Using needle backend")
    from . import backend_ndarray as array_api
    from .backend_ndarray import (
        BackendDevice as Device,
        NDArray,
        all_devices,
        cpu,
        cpu_numpy,
        cuda,
        default_device,
    )
elif BACKEND == "np":
    print("Using numpy backend")
    from . import backend_numpy as array_api
    from .backend_numpy import Device, NDArray, all_devices, cpu, cpu_numpy, cuda, default_device
else:
    raise RuntimeError(f"Unknown needle array backend {BACKEND}: legal are nd and np")

__all__ = [
    "BACKEND",
    "array_api",
    "Device",
    "NDArray",
    "all_devices",
    "cpu",
    "cpu_numpy",
    "cuda",
    "default_device",
]
