# SPDX-License-Identifier: Apache-2.0
"""Seeds are fixed and printed: a failure is reproduced by the same command."""

import os
import sys

import numpy as np
import pytest

_package = os.path.join(os.path.dirname(__file__), "..", "..", "python")
if os.environ.get("WEFT_TEST_INSTALLED") != "1":
    sys.path.insert(0, os.path.abspath(_package))
sys.path.append(os.path.abspath(os.path.join(_package, "..", "compat", "needle")))

SEED = int(os.environ.get("WEFT_TEST_SEED", "20261121"))


def pytest_report_header(config):
    return f"weft seed: {SEED} (WEFT_TEST_SEED)"


@pytest.fixture
def rng(request):
    return np.random.default_rng([SEED, sum(map(ord, request.node.name))])
