# SPDX-License-Identifier: Apache-2.0
import numpy as np

import needle as ndl
import needle.nn as nn
from needle.data import get_batch, parse_mnist

device = ndl.cpu()


def softmax_loss(z, y_one_hot):
    """Mean softmax loss of logits against one-hot rows."""
    n = z.shape[0]
    return (
        ndl.summation(ndl.log(ndl.summation(ndl.exp(z), axes=(1,)))) - ndl.summation(z * y_one_hot)
    ) / n


def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):
    """One pass of SGD over relu(X W1) W2."""
    for at in range(0, X.shape[0], batch):
        x, t = X[at : at + batch], y[at : at + batch]
        one_hot = np.zeros((len(t), W2.shape[1]), dtype="float32")
        one_hot[np.arange(len(t)), t] = 1
        loss = softmax_loss(ndl.relu(ndl.Tensor(x) @ W1) @ W2, ndl.Tensor(one_hot))
        loss.backward()
        W1 = ndl.Tensor(W1.numpy() - lr * W1.grad.numpy())
        W2 = ndl.Tensor(W2.numpy() - lr * W2.grad.numpy())
    return W1, W2


def loss_err(h, y):
    """(loss, error rate)."""
    one_hot = np.zeros((y.shape[0], h.shape[-1]))
    one_hot[np.arange(y.size), y] = 1
    return softmax_loss(h, ndl.Tensor(one_hot)).numpy(), np.mean(h.numpy().argmax(axis=1) != y)


def _general(batches, model, loss_fn, opt, clip=None):
    np.random.seed(4)
    model.train() if opt else model.eval()
    hits, total, count = 0, 0.0, 0
    for logits_of, y in batches:
        if opt:
            opt.reset_grad()
        logits = logits_of()
        loss = loss_fn(logits, y)
        if opt:
            loss.backward()
            if clip:
                opt.clip_grad_norm(clip)
            opt.step()
        n = y.shape[0]
        hits += int((logits.numpy().argmax(axis=1) == y.numpy()).sum())
        total += loss.numpy().item() * n
        count += n
    return hits / count, total / count


def epoch_general_cifar10(dataloader, model, loss_fn=nn.SoftmaxLoss(), opt=None):
    move = lambda x, y: (lambda: model(ndl.Tensor(x, device=model.parameters()[0].device)), y)  # noqa: E731
    return _general((move(x, y) for x, y in dataloader), model, loss_fn, opt)


def train_cifar10(
    model,
    dataloader,
    n_epochs=1,
    optimizer=ndl.optim.Adam,
    lr=0.001,
    weight_decay=0.001,
    loss_fn=nn.SoftmaxLoss,
):
    np.random.seed(4)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(n_epochs):
        out = epoch_general_cifar10(dataloader, model, loss_fn(), opt)
    return out


def evaluate_cifar10(model, dataloader, loss_fn=nn.SoftmaxLoss):
    np.random.seed(4)
    return epoch_general_cifar10(dataloader, model, loss_fn())


def epoch_general_ptb(
    data,
    model,
    seq_len=40,
    loss_fn=nn.SoftmaxLoss(),
    opt=None,
    clip=None,
    device=None,
    dtype="float32",
):
    state = [None]

    def batches():
        for i in range(0, len(data) - 1, seq_len):
            x, y = get_batch(data, i, seq_len, device=device, dtype=dtype)

            def logits(x=x):
                out, h = model(x, state[0])
                state[0] = tuple(t.detach() for t in h) if isinstance(h, tuple) else h.detach()
                return out

            yield logits, y

    return _general(batches(), model, loss_fn, opt, clip)


def train_ptb(
    model,
    data,
    seq_len=40,
    n_epochs=1,
    optimizer=ndl.optim.SGD,
    lr=4.0,
    weight_decay=0.0,
    loss_fn=nn.SoftmaxLoss,
    clip=None,
    device=None,
    dtype="float32",
):
    np.random.seed(4)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(n_epochs):
        out = epoch_general_ptb(data, model, seq_len, loss_fn(), opt, clip, device, dtype)
    return out


def evaluate_ptb(model, data, seq_len=40, loss_fn=nn.SoftmaxLoss, device=None, dtype="float32"):
    np.random.seed(4)
    return epoch_general_ptb(data, model, seq_len, loss_fn(), device=device, dtype=dtype)


__all__ = [
    "parse_mnist",
    "softmax_loss",
    "nn_epoch",
    "loss_err",
    "epoch_general_cifar10",
    "train_cifar10",
    "evaluate_cifar10",
    "epoch_general_ptb",
    "train_ptb",
    "evaluate_ptb",
    "device",
    "np",
    "ndl",
    "nn",
]
