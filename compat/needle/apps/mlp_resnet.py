# SPDX-License-Identifier: Apache-2.0
import numpy as np

import needle as ndl
import needle.nn as nn

np.random.seed(0)


def ResidualBlock(dim, hidden_dim, norm=nn.BatchNorm1d, drop_prob=0.1):
    inner = nn.Sequential(
        nn.Linear(dim, hidden_dim),
        norm(hidden_dim),
        nn.ReLU(),
        nn.Dropout(drop_prob),
        nn.Linear(hidden_dim, dim),
        norm(dim),
    )
    return nn.Sequential(nn.Residual(inner), nn.ReLU())


def MLPResNet(
    dim, hidden_dim=100, num_blocks=3, num_classes=10, norm=nn.BatchNorm1d, drop_prob=0.1
):
    # Parameters are drawn from front to back: golden values depend on it.
    layers = [nn.Linear(dim, hidden_dim), nn.ReLU()]
    for _ in range(num_blocks):
        layers.append(ResidualBlock(hidden_dim, hidden_dim // 2, norm, drop_prob))
    return nn.Sequential(*layers, nn.Linear(hidden_dim, num_classes))


def epoch(dataloader, model, opt=None):
    """One pass: (error rate, mean loss)."""
    np.random.seed(4)
    model.train() if opt else model.eval()
    loss_fn, wrong, losses, count = nn.SoftmaxLoss(), 0, [], 0
    for x, y in dataloader:
        x = x.reshape((x.shape[0], x.numpy().size // x.shape[0]))
        logits = model(x)
        loss = loss_fn(logits, y)
        wrong += int((logits.numpy().argmax(axis=1) != y.numpy()).sum())
        losses.append(loss.numpy().item())
        count += y.shape[0]
        if opt:
            opt.reset_grad()
            loss.backward()
            opt.step()
    return wrong / count, np.mean(losses)


def train_mnist(
    batch_size=100,
    epochs=10,
    optimizer=ndl.optim.Adam,
    lr=0.001,
    weight_decay=0.001,
    hidden_dim=100,
    data_dir="data",
):
    """(train error, train loss, test error, test loss) after some passes over MNIST files."""
    np.random.seed(4)
    sets = [
        ndl.data.MNISTDataset(
            f"{data_dir}/{n}-images-idx3-ubyte.gz", f"{data_dir}/{n}-labels-idx1-ubyte.gz"
        )
        for n in ("train", "t10k")
    ]
    train = ndl.data.DataLoader(sets[0], batch_size, shuffle=True)
    test = ndl.data.DataLoader(sets[1], batch_size)
    model = MLPResNet(784, hidden_dim)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        first = epoch(train, model, opt)
    return (*first, *epoch(test, model))
