# SPDX-License-Identifier: Apache-2.0
from needle import init, ops
from needle.autograd import Tensor

__all__ = [
    "Parameter",
    "Module",
    "Identity",
    "Linear",
    "Flatten",
    "ReLU",
    "Sequential",
    "SoftmaxLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "LayerNorm1d",
    "Dropout",
    "Residual",
]


class Parameter(Tensor):
    """A tensor that training changes."""


def _collect(value, kind):
    if isinstance(value, kind):
        yield value
    if isinstance(value, Module):
        value = value.__dict__
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _collect(v, kind)


class Module:
    def __init__(self):
        self.training = True

    def parameters(self):
        return list(_collect(self.__dict__, Parameter))

    def _children(self):
        return list(_collect(self.__dict__, Module))

    def _mode(self, training):
        for m in (self, *self._children()):
            m.training = training

    def eval(self):
        self._mode(False)

    def train(self):
        self._mode(True)

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class Identity(Module):
    def forward(self, x):
        return x


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype="float32"):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            init.kaiming_uniform(in_features, out_features, device=device, dtype=dtype)
        )
        self.bias = None
        if bias:
            column = init.kaiming_uniform(out_features, 1, device=device, dtype=dtype)
            self.bias = Parameter(column.reshape((1, out_features)))

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias.broadcast_to(y.shape)


class Flatten(Module):
    def forward(self, x):
        n = 1
        for extent in x.shape[1:]:
            n *= extent
        return x.reshape((x.shape[0], n))


class ReLU(Module):
    def forward(self, x):
        return ops.relu(x)


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        self.modules = modules

    def forward(self, x):
        for m in self.modules:
            x = m(x)
        return x


class SoftmaxLoss(Module):
    def forward(self, logits, y):
        n, classes = logits.shape
        target = init.one_hot(classes, y, device=logits.device, dtype=logits.dtype)
        last = ops.summation(logits * target, axes=(1,))
        return ops.summation(ops.logsumexp(logits, axes=(1,)) - last) / n


class BatchNorm1d(Module):
    def __init__(self, dim, eps=1e-5, momentum=0.1, device=None, dtype="float32"):
        super().__init__()
        self.dim, self.eps, self.momentum = dim, eps, momentum
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        self.running_mean = init.zeros(dim, device=device, dtype=dtype)
        self.running_var = init.ones(dim, device=device, dtype=dtype)

    def forward(self, x):
        n = x.shape[0]
        row = lambda t: t.reshape((1, self.dim)).broadcast_to(x.shape)  # noqa: E731
        if self.training:
            mean = ops.summation(x, axes=(0,)) / n
            centred = x - row(mean)
            var = ops.summation(centred * centred, axes=(0,)) / n
            self.running_mean = (
                self.running_mean * (1 - self.momentum) + mean.detach() * self.momentum
            ).detach()
            self.running_var = (
                self.running_var * (1 - self.momentum) + var.detach() * self.momentum
            ).detach()
        else:
            centred, var = x - row(self.running_mean), self.running_var
        return row(self.weight) * (centred / row((var + self.eps) ** 0.5)) + row(self.bias)


class BatchNorm2d(BatchNorm1d):
    """Over (n, c, h, w), through (n * h * w, c)."""

    def forward(self, x):
        n, c, h, w = x.shape
        flat = x.transpose((1, 2)).transpose((2, 3)).reshape((n * h * w, c))
        y = super().forward(flat).reshape((n, h, w, c))
        return y.transpose((2, 3)).transpose((1, 2))


class LayerNorm1d(Module):
    def __init__(self, dim, eps=1e-5, device=None, dtype="float32"):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))

    def forward(self, x):
        n = x.shape[0]
        column = lambda t: t.reshape((n, 1)).broadcast_to(x.shape)  # noqa: E731
        row = lambda t: t.reshape((1, self.dim)).broadcast_to(x.shape)  # noqa: E731
        centred = x - column(ops.summation(x, axes=(1,)) / self.dim)
        var = ops.summation(centred * centred, axes=(1,)) / self.dim
        return row(self.weight) * (centred / column((var + self.eps) ** 0.5)) + row(self.bias)


class Dropout(Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        keep = init.randb(*x.shape, p=1 - self.p, device=x.device, dtype="float32")
        return x * keep / (1 - self.p)


class Residual(Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x
