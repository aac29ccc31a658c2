# SPDX-License-Identifier: Apache-2.0
"""Kernels of the device that are not rules of torch.compile's back end, and their registration with torch's dispatcher."""

from __future__ import annotations

import torch

import weft

from ..._errors import error as _error
from .. import rules
from ..layers import attention, encoder_layer
from . import _cells, _least_squares, _memory, _run, _sets, _steps

_libraries = []  # must live as long as the device

#: Torch makes these of others (empty memory and copies, views), or they choose a device themselves.
_TORCHS_OWN = (
    "_to_copy clone copy lift_fresh_copy empty_like full_like ones_like zeros_like fill detach alias expand view "
    "_unsafe_view reshape permute transpose t select slice split split_with_sizes squeeze unsqueeze unbind rand_like uniform "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward "
    "_conj real imag new_empty_strided"
).split()

aten = torch.ops.aten


def fill(x, value):
    value = value.item() if isinstance(value, torch.Tensor) else value
    if x.numel():
        try:
            _memory.array_of(x).fill(value)
        except (
            weft.Error
        ):  # a copy that the machine has no program for goes through the host's memory
            _memory.bring(x, torch.tensor(value).to(x.dtype))
    return x


def item(x):
    return _memory.to_host(x).item()


def batch_norm(x, weight, bias, mean, variance, training, momentum, eps):
    if not training:
        return aten._native_batch_norm_legit_no_training(
            x, weight, bias, mean, variance, momentum, eps
        )
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, True, momentum, eps)
    target = aten._native_batch_norm_legit_functional.default
    found = _run.run(target, x, weight, bias, mean, variance, True, momentum, eps)
    mean.copy_(found[3])
    variance.copy_(found[4])
    return found[:3]


def legit_batch_norm(x, weight, bias, mean, variance, training, momentum, eps):
    return batch_norm(x, weight, bias, mean, variance, training, momentum, eps)


def copy_from_and_resize(source, target):
    return _memory.copy_from(source, target.resize_(source.shape))


def nonzero(x):
    found = weft.nonzero(_memory.array_of(x))
    columns = [torch.from_dlpack(a.to("cpu").copy()).to(torch.int64) for a in found]
    return torch.stack(columns, 1).to(x.device)


def index(x, indices):
    """x[indices]; masks become positions, whose number only the data decides."""
    positions = []
    for i in indices:
        i = (
            i if i is None or i.device == x.device else i.to(x.device)
        )  # torch takes the host's, too
        mask = i is not None and i.dtype in (torch.bool, torch.uint8)
        positions += i.nonzero().unbind(1) if mask else [i]
    return _run.run(aten.index.Tensor, x, positions)


def index_put(x, indices, values, accumulate=False, unsafe=False):
    """x[indices] = values in place; positions and a single value may be on the host."""
    indices = [i if i is None else i.to(x.device) for i in indices]
    values = values.to(x.device) if values.numel() == 1 else values
    return x.copy_(_run.run(aten.index_put.default, x, indices, values, accumulate))


def masked_select(x, mask):
    x, mask = torch.broadcast_tensors(x, mask)
    return x.contiguous().view(-1).index_select(0, mask.contiguous().view(-1).nonzero().view(-1))


def _drawn(generator, index):
    """A generator of the host in the state of the device's, and the device's."""
    mine = generator if generator is not None else _default_generator(index)
    host = torch.Generator()
    host.set_state(mine.get_state())
    return host, mine


_generators = {}


def _default_generator(index):
    if index not in _generators:
        _generators[index] = torch.Generator(device=f"weft:{index}")
        _generators[index].seed()  # other numbers in each process, as on the host
    return _generators[index]


def random(target):
    """A kernel that fills its first argument with numbers drawn as torch draws them on the host."""

    def kernel(x, *args, generator=None, **kwargs):
        host, mine = _drawn(generator, x.device.index)
        drawn = torch.empty(x.shape, dtype=x.dtype)
        target(drawn, *args, generator=host, **kwargs)
        mine.set_state(host.get_state())
        return x.copy_(drawn)

    return kernel


def drawn(target):
    """A kernel that draws on the host by the values of its arguments, as torch draws there."""

    def kernel(*args, generator=None, **kwargs):
        args = list(args)
        if isinstance(args[-1], torch.Generator):
            generator = args.pop()
        device = next(a.device for a in args if isinstance(a, torch.Tensor))
        host, mine = _drawn(generator, device.index)
        given = [_memory.to_host(a) if isinstance(a, torch.Tensor) else a for a in args]
        out = target(*given, generator=host, **kwargs)
        mine.set_state(host.get_state())
        return out.to(device)

    return kernel


def rrelu(x, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    """Slopes are drawn on the host for the elements that are not positive."""
    host, mine = _drawn(generator, x.device.index)
    drawn = torch.empty(x.shape, dtype=x.dtype)
    out = aten.rrelu_with_noise(_memory.to_host(x), drawn, lower, upper, training, host)
    mine.set_state(host.get_state())
    if training:
        noise.copy_(drawn)
    return out.to(x.device)


def running_extremum(target):
    """A kernel that writes values and places of running extrema."""

    def kernel(x, values, places, dim):
        for out, found in zip((values, places), _run.functional(target, (x, dim), {})):
            out.copy_(found)

    return kernel


def ctc_of_tensors(x, targets, lengths, counts, blank=0, zero_infinity=False):
    """The loss with lengths that are tensors, which the host reads."""
    return aten._ctc_loss(x, targets, lengths.tolist(), counts.tolist(), blank, zero_infinity)


def ctc_gradient_of_tensors(g, x, targets, lengths, counts, losses, alphas, blank, zero_infinity=False):  # fmt: skip
    known = lengths.tolist(), counts.tolist()
    return aten._ctc_loss_backward(g, x, targets, *known, losses, alphas, blank, zero_infinity)


def ctc_gradient_without_data(g, x, *rest):
    return torch.empty_like(x)


def bernoulli_out(x, *args, generator=None, out):
    return out.copy_(bernoulli(x, generator=generator))


def bernoulli(x, p=None, *, generator=None):
    host, mine = _drawn(generator, x.device.index)
    source = torch.empty(x.shape, dtype=x.dtype) if p is not None else _memory.to_host(x)
    drawn = (
        torch.bernoulli(source, p, generator=host)
        if p is not None
        else torch.bernoulli(source, generator=host)
    )
    mine.set_state(host.get_state())
    return drawn.to(x.device)


def made_on_host(target):
    """A kernel of an out= operator whose arguments are numbers alone, and perhaps a generator."""

    def kernel(*args, out, **kwargs):
        if "generator" in kwargs:
            kwargs["generator"], mine = _drawn(kwargs["generator"], out.device.index)
        found = target(*args, out=torch.empty(0, dtype=out.dtype), **kwargs)
        if "generator" in kwargs:
            mine.set_state(kwargs["generator"].get_state())
        return out.resize_(found.shape).copy_(found)

    return kernel


def where_stays(*_args, **_kwargs):
    return 0  # the choice among attention's kernels: torch's composition of products and softmax


def zeros_with_memory(size, dtype=None, layout=None, device=None, pin_memory=None):
    """Zeros, as forward derivatives ask for them: torch's own have no memory, which no rule can read."""
    return torch.zeros(size, dtype=dtype, device=device)


def _table():
    table = {
        "_copy_from": _memory.copy_from,
        "_copy_from_and_resize": copy_from_and_resize,
        "_local_scalar_dense": item,
        "fill_.Scalar": fill,
        "fill_.Tensor": fill,
        "zero_": lambda x: fill(x, 0),
        "_efficientzerotensor": zeros_with_memory,
        "native_batch_norm": batch_norm,
        "_native_batch_norm_legit": legit_batch_norm,
        "nonzero": nonzero,
        "index.Tensor": index,
        "index_put_": index_put,
        "_index_put_impl_": index_put,
        "masked_select": masked_select,
        "record_stream": lambda x, stream: None,  # one queue: memory is not used again too early
        "bernoulli": bernoulli,
        "bernoulli.p": bernoulli,
        "bernoulli.out": bernoulli_out,
        "_fused_sdp_choice": where_stays,
        "_native_multi_head_attention": attention,
        "_transformer_encoder_layer_fwd": encoder_layer,
        "rrelu_with_noise": rrelu,
        "_ctc_loss.Tensor": ctc_of_tensors,
        "_ctc_loss_backward.Tensor": ctc_gradient_of_tensors,
        "_cummax_helper": running_extremum(aten.cummax.default),
        "_cummin_helper": running_extremum(aten.cummin.default),
        **_steps.table(),
        **_cells.table(),
        **_sets.table(),
        **_least_squares.table(),
    }
    for name in "multinomial poisson normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor _standard_gamma _sample_dirichlet binomial".split():
        packet, _, overload = name.partition(".")
        table[name] = drawn(getattr(getattr(aten, packet), overload or "default"))
    for name in "normal_ uniform_ random_ random_.from random_.to exponential_ bernoulli_.float log_normal_ cauchy_ geometric_".split():
        packet, _, overload = name.partition(".")
        table[name] = random(getattr(getattr(aten, packet), overload or "default"))
    for name in "arange.start_out linspace.out logspace.out eye.out eye.m_out range.out randperm.out randperm.generator_out".split():
        packet, _, overload = name.partition(".")
        table[name] = made_on_host(getattr(getattr(aten, packet), overload))
    return table


def _ruled():
    """Operators with a rule that torch does not make of others."""
    rules.load()
    complex_ones = {name for name, rule in rules.COMPLEX.items() if rule is not None}
    for name in sorted({*rules.FUSED, *rules.ARRAYS, *complex_ones}):
        if not name.startswith("aten."):  # of other libraries, and steps of our own
            continue
        _, packet, overload = name.split(".")
        found = getattr(aten, packet, None)
        if found is None or overload not in found.overloads() or packet in _TORCHS_OWN:
            continue
        target = getattr(found, overload)
        if not torch._C._dispatch_has_kernel(target.name()):  # TorchScript's own overloads
            continue
        if torch._C._dispatch_has_kernel_for_dispatch_key(
            target.name(), "CompositeImplicitAutograd"
        ):
            continue
        yield target


def register():
    """Tells torch's dispatcher about the kernels; once in a process."""
    own = torch.library.Library("aten", "IMPL")
    rest = torch.library.Library("_", "IMPL")
    _libraries.extend((own, rest))
    table = _table()
    for name, kernel in table.items():
        own.impl(name, kernel, "PrivateUse1")
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::_ctc_loss_backward", "Meta"):
        own.impl("_ctc_loss_backward", ctc_gradient_without_data, "Meta")
    for layout in ("Sparse", "SparseCsr", "Quantized", "NestedTensor"):
        rest.fallback(_refusing(layout), f"{layout}PrivateUse1")
    for mark in ("Conjugate", "Negative"):  # torch would make a copy without the mark by this copy
        own.impl("_copy_from", torch.library.fallthrough_kernel, mark)
    for target in _ruled():
        name = target.name().removeprefix("aten::")
        if name not in table:
            own.impl(name, _bound(target), "PrivateUse1")
    rest.fallback(_run.run, "PrivateUse1")


_KINDS = {
    "Sparse": "sparse",
    "SparseCsr": "sparse",
    "Quantized": "quantized",
    "NestedTensor": "nested",
}


def _refusing(layout):
    """Every operator of tensors that are not dense, their making included."""

    def refuse(target, *args, **kwargs):
        raise _error(
            "value",
            "torch.device.layout",
            f"{target} of {_KINDS[layout]} tensors on a weft device",
            ["rule: tensors of a weft device are dense"],
            help="x.to_dense() (sparse), x.dequantize() (quantized) or x.to_padded_tensor(0) (nested) before it is moved",
        )

    return refuse


def _bound(target):
    return lambda *args, **kwargs: _run.run(target, *args, **kwargs)
