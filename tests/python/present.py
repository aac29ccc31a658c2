# SPDX-License-Identifier: Apache-2.0
"""Devices that a machine may lack."""

import importlib.util

import pytest

import weft


def present(name):
    """The device of that name. Where it is absent the test, or the whole module, is skipped with the device's own
    reason; a device that is there and fails is a failure."""
    found = weft.device(name)
    if not found.available:
        pytest.skip(f"{name}: {found.reason}", allow_module_level=True)
    return found


def remote_devices():
    """weft.rpc; the module is skipped where the build has none. The check is the library's own, so that a gRPC that is there and
    does not load fails."""
    if importlib.util.find_spec("weft._rpc") is None:
        pytest.skip("built without gRPC", allow_module_level=True)
    from weft import rpc

    return rpc


def built(target):
    """The test, or the whole module, is skipped where the build has no such target."""
    if target not in weft._core.targets():
        pytest.skip(f"built without the target {target}", allow_module_level=True)


def wafer():
    """weft.wse; the module is skipped where the build has no such target. A library that does not open fails."""
    built("wse")
    from weft import wse

    wse.library.get()
    return wse


def torch_device():
    """weft.torch.device, loaded; the module is skipped where torch is older than 2.6 or the extension is not built. One that does not load fails."""
    import torch
    from weft.torch import _version

    if not _version.DEVICES:
        pytest.skip(
            f"a device of torch's own needs torch 2.6, this is {torch.__version__}: tools/test_torch2 runs this file",
            allow_module_level=True,
        )
    import weft.torch.device as wd

    if not wd.is_built():
        pytest.skip(
            "the extension is not built: tools/test_torch2 builds it and runs this file",
            allow_module_level=True,
        )
    wd.load()
    return wd
