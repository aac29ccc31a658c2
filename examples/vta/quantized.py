# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 and MobileNet of PyTorch, quantised from samples and run on VTA, beside the float32 model.

    python examples/vta/quantized.py [resnet18 | mobilenet] [SIZE] [WIDTH] [IMAGES]

The images are synthetic: each of ten classes is a pattern, shifted, with noise; so the right answers are known. The model is
trained on others of them first.
"""

import sys

import numpy as np
import torch
import weft
from torch import nn


class Block(nn.Module):
    """Two convolutions and a shortcut (He et al. 2015)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        shortcut = self.shortcut(x)
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + shortcut)


def resnet18(width=64, classes=10):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = width
    for stage in range(4):
        for block in range(2):
            layers.append(Block(inputs, width << stage, 2 if stage and not block else 1))
            inputs = width << stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers)


def mobilenet(width=32, classes=10):
    """Depthwise and pointwise convolutions in turn (Howard et al. 2017)."""

    def separable(inputs, outputs, stride):
        return [
            nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
            nn.BatchNorm2d(inputs),
            nn.ReLU6(),
            nn.Conv2d(inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU6(),
        ]

    layers = [nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6()]
    inputs = width
    for factor, stride in [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1)]:  # fmt: skip
        layers += separable(inputs, width * factor, stride)
        inputs = width * factor
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers)


def images(count, size, seed, classes=10):
    """(images, labels): a smooth pattern for each class, shifted a little, with noise."""
    patterns = np.random.default_rng(1).standard_normal((classes, 3, size // 4, size // 4))
    patterns = patterns.repeat(4, axis=2).repeat(4, axis=3).astype(np.float32)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    moved = [np.roll(patterns[k], rng.integers(-1, 2, 2), axis=(1, 2)) for k in labels]
    return np.stack(moved) + 0.5 * rng.standard_normal((count, 3, size, size), np.float32), labels


def fitted(model, size, steps=40, batch=32):
    """The model after some steps of training in PyTorch."""
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    model.train()
    for step in range(steps):
        x, labels = images(batch, size, seed=100 + step)
        loss = nn.functional.cross_entropy(model(torch.as_tensor(x)), torch.as_tensor(labels))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def compare(kind="resnet18", size=32, width=16, count=40, env=None, steps=None):
    """What the quantised model does beside the float32 one, on images that neither has seen."""
    make = {"resnet18": resnet18, "mobilenet": mobilenet}[kind]
    torch.manual_seed(0)
    model = fitted(make(width), size, steps or {"resnet18": 40, "mobilenet": 150}[kind])
    samples, _ = images(32, size, seed=3)
    net = weft.vta.quantize(model, samples, env or weft.vta.env())
    x, labels = images(count, size, seed=4)
    with torch.no_grad():
        wanted = model(torch.as_tensor(x)).numpy()
    got = net(x)
    return {
        "net": net,
        "images": x,
        "scores": got,
        "float32": float((wanted.argmax(1) == labels).mean()),
        "int8": float((got.argmax(1) == labels).mean()),
        "agree": float((got.argmax(1) == wanted.argmax(1)).mean()),
        "error": float(np.abs(got - wanted).mean() / np.abs(wanted).mean()),
        "cycles": net.cycles / count,
    }


def main(kind="resnet18", size="32", width="16", count="40"):
    found = compare(kind, int(size), int(width), int(count))
    print(f"{kind} of width {width}, {size} x {size}: {count} new images")
    print(f"right answers: float32 {found['float32']:.1%}, int8 on VTA {found['int8']:.1%}")
    print(f"equal answers {found['agree']:.1%}, mean error of scores {found['error']:.1%}")
    print(f"{found['cycles']:,.0f} cycles an image")
    for place in found["net"].places:
        if place.reason:
            print(f"on {place.target}: {place.layer} ({place.reason})")


if __name__ == "__main__":
    main(*sys.argv[1:])
