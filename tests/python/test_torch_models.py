# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") of torchvision's and transformers' models: results, gradients, how much weft takes.

In float64, so that fifty layers of random weights do not turn roundings into differences; T5, whose norms compute in
float32 whatever comes in, and Mixtral, whose products of experts take no other type, in float32.
"""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

WHY = "not installed: tools/test_torch2 installs it and runs this file"
vision = pytest.importorskip("torchvision", reason=f"torchvision is {WHY}").models
hf = pytest.importorskip("transformers", reason=f"transformers is {WHY}")

import weft.torch as wt  # noqa: E402

WORDS = dict(vocab_size=50)


def images():
    return (torch.randn(2, 3, 64, 64, dtype=torch.float64),), {}


def ids():
    return (torch.randint(0, 50, (2, 9)),), {}


def pair():
    (x,), _ = ids()
    return (x,), {"decoder_input_ids": x}


MODELS = {
    "resnet18": (vision.resnet18, images),
    "resnet50": (vision.resnet50, images),
    "mobilenet_v3": (vision.mobilenet_v3_small, images),
    "vit": (lambda: vision.VisionTransformer(64, 16, 2, 2, 32, 64), images),
    "gpt2": (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**WORDS, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)), ids),
    "bert": (lambda: hf.BertForSequenceClassification(hf.BertConfig(**WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)), ids),
    "llama": (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)), ids),
    "mixtral": (lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, bos_token_id=0, eos_token_id=1)), ids),
    "t5": (lambda: hf.T5ForConditionalGeneration(hf.T5Config(**WORDS, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)), pair),
}  # fmt: skip


def first(out):
    return out if isinstance(out, torch.Tensor) else out.logits


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_model(name, training):
    make, draw = MODELS[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, (args, kwargs) = make().train(training), draw()
    model = model if name in ("t5", "mixtral") else model.double()
    if (
        name == "vit"
    ):  # torchvision starts its head with zeros, which would hide everything before it
        torch.nn.init.normal_(model.heads.head.weight)
    weights = {k: v.clone() for k, v in model.state_dict().items()}

    def step(f):
        torch.manual_seed(1)  # dropout draws torch's numbers on both sides
        model.load_state_dict(weights)
        model.zero_grad()
        if not training:
            with torch.no_grad():
                return [first(f(*args, **kwargs))]
        out = first(f(*args, **kwargs))
        out.square().mean().backward()
        grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return [out.detach(), *grads, *(b.clone() for b in model.buffers())]

    want = step(model)
    compiled = torch.compile(model, backend="weft", options={"prefer": "weft"})
    for _ in range(2):
        for g, w in zip(step(compiled), want, strict=True):
            torch.testing.assert_close(g, w, equal_nan=True, check_stride=True)
    if training:
        report = wt.explain(model, *args, options={"prefer": "weft"}, **kwargs)
    else:
        with torch.no_grad():
            report = wt.explain(model, *args, options={"prefer": "weft"}, **kwargs)
    random = sum(
        n for (_, why), n in report.reasons().items() if why == "random numbers are torch's"
    )
    assert report.able + random == report.nodes, str(report)
    assert report.share >= 0.98, str(report)


@pytest.mark.parametrize("ends", [[3, 3, 7, 11], [0, 0, 0, 11], [2, 5, 11, 11], [1, 2, 3, 4]])
def test_products_of_experts(ends):
    from transformers.integrations import moe  # noqa: F401  (its operators)

    def f(x, weight, ends):
        return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)

    torch.manual_seed(0)
    torch._dynamo.reset()
    x, weight = torch.randn(11, 5), torch.randn(4, 5, 3)
    found = []
    compiled = torch.compile(f, backend="weft", options={"prefer": "weft"})
    for g in (f, compiled, compiled):
        a, b = x.clone().requires_grad_(), weight.clone().requires_grad_()
        out = g(a, b, torch.tensor(ends, dtype=torch.int32))
        out.square().sum().backward()
        found.append((out.detach(), a.grad, b.grad))
    for got in found[1:]:
        for g, w in zip(got, found[0]):
            torch.testing.assert_close(g, w)
    report = wt.explain(f, a, b, torch.tensor(ends, dtype=torch.int32), options={"prefer": "weft"})
    assert report.able == report.nodes == 2, str(report)
