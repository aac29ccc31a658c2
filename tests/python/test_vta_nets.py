# SPDX-License-Identifier: Apache-2.0
"""Whole quantised networks: every layer equals NumPy exactly, on VTA wherever it can do it."""

import numpy as np
import pytest

import weft

pytestmark = pytest.mark.targets("vta")


def check(net, elsewhere):
    image = net.image(3)
    _, report = net.run(image)
    net.reference(image)
    for layer in net.layers:
        mine, theirs = net.values[layer.name], net.expected[layer.name]
        if layer.dtype == "float32":
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)
            continue
        if net.env.BATCH > 1 and mine.ndim == 6:  # the padding lanes of the batch hold anything
            mine, theirs = mine[:, :, :, :, :1], theirs[:, :, :, :, :1]
        np.testing.assert_array_equal(mine, theirs, err_msg=layer.name)
    # What runs on the host is reported with the refusal.
    hosts = {name: reason for name, target, reason, _ in report if target == "cpu"}
    assert set(hosts) == set(elsewhere), hosts
    assert all("." in reason.split(":")[0] for reason in hosts.values())
    sums = {layer.name for layer in net.layers if layer.macs}
    assert len(sums) > 10 and all(cycles > 0 for name, *_, cycles in report if name in sums)


@pytest.mark.parametrize("config", ["sim", "4x8x8", "1x32x32"])
def test_yolov3_tiny(config):
    net = weft.vta.net.yolov3_tiny(weft.vta.env(config), size=32)
    names = [layer.name for layer in net.layers]
    assert {"coarse", "fine", "joined"} <= set(names)
    check(net, YOLO_ELSEWHERE)


YOLO_ELSEWHERE = ["joined"]  # upsampling and concatenation choose between two arrays


@pytest.mark.parametrize(
    "depth,version,config",
    [
        (18, 2, "sim"),
        (18, 2, "4x8x8"),
        (18, 2, "1x32x32"),
        (34, 1, "sim"),
        (34, 2, "1x32x32"),
        (50, 2, "sim"),
        (101, 2, "4x8x8"),
    ],
)
def test_resnets(depth, version, config):
    env = weft.vta.env(config)
    check(weft.vta.net.resnet(env, depth, version, size=32, classes=10), ["probabilities"])


def test_what_is_no_network():
    env = weft.vta.env()
    with pytest.raises(ValueError, match="depth is 19"):
        weft.vta.net.resnet(env, 19)
    with pytest.raises(ValueError, match="no multiple of 32"):
        weft.vta.net.yolov3_tiny(env, size=100)
