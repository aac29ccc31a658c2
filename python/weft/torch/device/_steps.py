# SPDX-License-Identifier: Apache-2.0
"""An optimizer's step over all parameters as one operator (fused=True), and the checks of GradScaler."""

from __future__ import annotations

import torch


def _adam(decoupled):
    """torch.optim.Adam's step in place, or AdamW's."""

    def step(params, grads, averages, squares, most, steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale=None, found_inf=None):  # fmt: skip
        if _skipped(found_inf):
            return
        lr = _number(lr)
        for i, (p, m, v, t) in enumerate(zip(params, averages, squares, steps)):
            g = _gradient(grads[i], grad_scale, maximize)
            if decoupled:
                p.mul_(1 - lr * weight_decay)
            elif weight_decay:
                g = g.add(p, alpha=weight_decay)
            m.lerp_(g, 1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            count = _number(t)
            size = torch.maximum(most[i], v) if amsgrad else v
            if amsgrad:
                most[i].copy_(size)
            below = (size.sqrt() / (1 - beta2**count) ** 0.5).add(eps)
            p.addcdiv_(m, below, value=-lr / (1 - beta1**count))

    return step


def _sgd(params, grads, momenta, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale=None, found_inf=None):  # fmt: skip
    if _skipped(found_inf):
        return
    for i, p in enumerate(params):
        g = _gradient(grads[i], grad_scale, maximize)
        if weight_decay:
            g = g.add(p, alpha=weight_decay)
        if momentum:
            kept = momenta[i]
            if is_first_step:
                kept.copy_(g)
            else:
                kept.mul_(momentum).add_(g, alpha=1 - dampening)
            g = g.add(kept, alpha=momentum) if nesterov else kept
        p.sub_(g, alpha=_number(lr))


def _adagrad(params, grads, sums, steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale=None, found_inf=None):  # fmt: skip
    if _skipped(found_inf):
        return
    for p, g, kept, t in zip(params, grads, sums, steps):
        g = _gradient(g, grad_scale, maximize)
        if weight_decay:
            g = g.add(p, alpha=weight_decay)
        kept.addcmul_(g, g)
        p.addcdiv_(g, kept.sqrt().add(eps), value=-_number(lr) / (1 + (_number(t) - 1) * lr_decay))


def _number(x):
    return x.item() if isinstance(x, torch.Tensor) else x


def _skipped(found_inf):
    return found_inf is not None and bool(_number(found_inf))


def _gradient(g, scale, maximize):
    """The gradient without the scale, which torch takes out of the tensor itself, too."""
    if scale is not None:
        g.div_(_number(scale))
    return -g if maximize else g


def _unscale(grads, found_inf, factor):
    """Gradients times a factor; found_inf becomes 1 where one of them is not finite."""
    by, odd = _number(factor), False
    for g in grads:
        odd = odd or not bool(torch.isfinite(g).all())
        g.mul_(by)
    if odd:
        found_inf.fill_(1.0)


def _update_scale(scale, tracker, found_inf, growth, backoff, interval):
    """GradScaler's next scale: smaller after infinite gradients, larger after `interval` steps without."""
    if _number(found_inf):
        scale.mul_(backoff)
        tracker.zero_()
    elif _number(tracker) + 1 == interval:
        grown = scale * growth
        if bool(torch.isfinite(grown)):
            scale.copy_(grown)
        tracker.zero_()
    else:
        tracker.add_(1)
    return scale


def table():
    """{operator: kernel}."""
    found = {
        "_amp_foreach_non_finite_check_and_unscale_": _unscale,
        "_amp_update_scale_": _update_scale,
        "_fused_sgd_": _sgd,
        "_fused_sgd_.tensor_lr": _sgd,
        "_fused_adagrad_": _adagrad,
        "_fused_adagrad_.tensor_lr": _adagrad,
    }
    for name, decoupled in (("_fused_adam_", False), ("_fused_adamw_", True)):
        found[name] = found[f"{name}.tensor_lr"] = _adam(decoupled)
    return {n: f for n, f in found.items() if _exists(n)}


def _exists(name):
    """Whether this torch has the operator."""
    packet, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, packet, None)
    return packet is not None and (overload or "default") in packet.overloads()
