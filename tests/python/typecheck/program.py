# SPDX-License-Identifier: Apache-2.0
"""What a type checker must accept, with the types that it must infer. Never run."""

from typing import assert_type

import weft
from weft import nn, optim
from weft.data import DataLoader, synthetic_images

x: weft.NDArray = weft.asarray([[1.0, 2.0], [3.0, 4.0]])
assert_type(x + 1, weft.NDArray)
assert_type(2.0 * x, weft.NDArray)
assert_type(weft.exp(x), weft.NDArray)
assert_type(weft.sum(x, axis=(0, 1), keepdims=True), weft.NDArray)
assert_type(x.shape, tuple[int, ...])
assert_type(weft.unique_counts(x).counts, weft.NDArray)
assert_type(weft.finfo("float32").eps, float)
assert_type(weft.linalg.svd(x).S, weft.NDArray)
assert_type(weft.fft.fft(x, n=4), weft.NDArray)
assert_type(weft.random.normal((2, 3), key=weft.random.Key(1)), weft.NDArray)
assert_type(weft.nonzero(x), tuple[weft.NDArray, ...])

t = weft.Tensor(x, requires_grad=True)
assert_type(t @ t, weft.Tensor)
assert_type(t + x, weft.Tensor)
assert_type(1.0 - t, weft.Tensor)
assert_type(weft.tanh(t), weft.Tensor)
assert_type(weft.maximum(t, 0.0), weft.Tensor)
assert_type(weft.where(x == 1, t, 0.0), weft.Tensor)
assert_type(weft.concat([t, t], axis=1), weft.Tensor)
assert_type(weft.concat([x, x]), weft.NDArray)
(t * t).sum().backward()
gradient: weft.Tensor | None = t.grad

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.ConvTranspose2d(8, 3, 2, stride=2))
assert_type(model(t), weft.Tensor)
assert_type(model.to("cpu").parameters(), list[nn.Parameter])
optimizer = optim.AdamW(model.parameters(), lr=0.1)
for images, labels in DataLoader(synthetic_images(8), batch_size=4, shuffle=True):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
try:
    with weft.use("cpu"):
        weft.zeros((2, 3), dtype=weft.float64, device=weft.device("cpu"))
except weft.ShapeError as error:
    assert_type(error.code, str)
