# SPDX-License-Identifier: Apache-2.0
"""Seeds are fixed and printed: a failure is reproduced by the same command."""

import os
import pathlib
import sys

import numpy as np
import pytest

_package = os.path.join(os.path.dirname(__file__), "..", "..", "python")
if os.environ.get("WEFT_TEST_INSTALLED") != "1":
    sys.path.insert(0, os.path.abspath(_package))
sys.path.append(os.path.abspath(os.path.join(_package, "..", "compat", "needle")))

# What somebody tuned on this machine is no part of a test.
os.environ["WEFT_TUNE_DB"] = os.path.join(os.path.dirname(__file__), "no folder", "tune.db")

SEED = int(os.environ.get("WEFT_TEST_SEED", "20261121"))


def pytest_report_header(config):
    return f"weft seed: {SEED} (WEFT_TEST_SEED)"


def pytest_configure(config):
    config.addinivalue_line("markers", "targets(*names): skipped where one of them was not built")


def pytest_collection_modifyitems(items):
    """A build may leave targets out (WEFT_TARGETS): what names one of those, as a parameter or by
    the mark `targets`, is skipped. Names that no build knows are left to the tests."""
    from weft import _core

    listed = pathlib.Path(__file__).parents[2] / "src/weft/targets/targets.list"
    lines = listed.read_text().splitlines()
    absent = {line for line in lines if line and not line.startswith("#")} - set(_core.targets())
    for item in items:
        named = [name for mark in item.iter_markers("targets") for name in mark.args]
        if hasattr(item, "callspec"):
            named += [v for v in item.callspec.params.values() if isinstance(v, str)]
        missing = sorted({n.split(":")[0] for n in named} & absent)
        if missing:
            reason = f"built without the target {', '.join(missing)}"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def rng(request):
    return np.random.default_rng([SEED, sum(map(ord, request.node.name))])
