# SPDX-License-Identifier: Apache-2.0
"""Random switches, modes of popping and filters along a row of PEs beside a model that follows each wavelet."""

import numpy as np
import pytest
from csl_machine import CHOICES, Machine, both
from generate import csl_routes


@both
@pytest.mark.parametrize("seed", range(12))
def test_routers_on_the_way_of_one_sender(arch, seed, tmp_path):
    files, width, want = csl_routes.program(seed)
    m = Machine(tmp_path, arch, files, width)
    for choice in CHOICES[:3]:
        m.start(**choice)
        m.launch("go")
        got = m.get("got", 64, np.uint32)[0]
        count = m.get("count", 1, np.uint32)[0, :, 0]
        assert [g[:n].tolist() for g, n in zip(got, count)][1:] == want[1:]
        m.stop()
    assert any(want[1:])
