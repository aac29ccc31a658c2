# SPDX-License-Identifier: Apache-2.0
"""Devices that a machine may lack."""

import pytest

import weft


def present(name):
    """The device of that name. Where it is absent the test, or the whole module, is skipped with the device's own
    reason; a device that is there and fails is a failure."""
    found = weft.device(name)
    if not found.available:
        pytest.skip(f"{name}: {found.reason}", allow_module_level=True)
    return found


def wafer():
    """weft.wse; the module is skipped where the build has no such target. A library that does not open fails."""
    if "wse" not in weft._core.targets():
        pytest.skip("built without the wse target", allow_module_level=True)
    from weft import wse

    wse.library.get()
    return wse
