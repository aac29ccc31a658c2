# SPDX-License-Identifier: Apache-2.0
"""The tutorial's program as the example runs it, over RPC to another process, and the picture of the stages."""

import importlib.util
import pathlib
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from weft.vta import op

import weft
from present import built, remote_devices

built("vta")
remote_devices()
_path = pathlib.Path(__file__).resolve().parents[2] / "examples/vta/matmul.py"
_spec = importlib.util.spec_from_file_location("vta_matmul", _path)
matmul = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(matmul)


def test_the_tutorial_cell_by_cell():
    shown = []
    cycles = matmul.main(1, 4, 4, show=lambda text: shown.append(str(text)))
    text = "\n".join(shown)
    assert 500 < cycles < 5000
    for part in (
        "Weights are 16 by 16, of type int8",
        "Weight buffer requires 2048 bits per cycle of read xput",
        "the default schedule",
        'scope="vta.wgt"',
        "dma_copy",
        "---- tensorized",
        "gemm reset",
        "load inp",
        "store out",
        "push=",
        "Successful matrix multiply test!",
    ):
        assert part in text, part


def test_the_picture_shows_what_was_recorded():
    device = weft.device("vta")
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
    module = weft.build(op.matmul(64, 64, 64, shift=6), target="vta")
    A, B, C = (weft.asarray(x, device=device) for x in (a, b, np.zeros((64, 64), np.int8)))
    before = device.stats()["cycles"]
    with weft.vta.picture.record(device) as recorded:
        module["main"](A, B, C)
    cycles = device.stats()["cycles"] - before
    assert {stage for stage, *_ in recorded.spans} and len(recorded.spans) > 5
    assert max(first + n for _, _, first, n in recorded.spans) - before <= cycles
    root = ET.fromstring(recorded.svg("64 x 64"))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"load", "compute", "store", "gemm"} <= set(texts)
    with pytest.raises(ValueError, match="nothing was recorded"):
        weft.vta.picture.timeline([], "empty")
