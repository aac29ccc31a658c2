# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision and transformers at tiny sizes on torch.device("weft:...") of simulated machines, beside eager torch."""

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
from weft.torch import _version  # noqa: E402

WHERE = "tools/test_torch2 runs this file"
if not _version.DEVICES:
    pytest.skip(f"a device of torch's own needs torch 2.6, this is {torch.__version__}: {WHERE}", allow_module_level=True)  # fmt: skip

import weft.torch.device as wd  # noqa: E402

if not wd.is_built():
    pytest.skip(f"the torch extension is not built: {WHERE}", allow_module_level=True)
WHY = f"not installed beside torch: {WHERE}"
vision = pytest.importorskip("torchvision", reason=f"torchvision is {WHY}").models
hf = pytest.importorskip("transformers", reason=f"transformers is {WHY}")

wd.load()

WORDS = dict(vocab_size=24)


def image():
    return (torch.randn(1, 3, 32, 32),), {}


def words():
    return (torch.randint(0, 24, (1, 5)),), {}


def two_texts():
    (x,), _ = words()
    return (x,), {"decoder_input_ids": x}


def vit():
    model = vision.VisionTransformer(32, 16, 1, 2, 16, 32, num_classes=5)
    torch.nn.init.normal_(model.heads.head.weight)
    return model


MODELS = {
    "resnet18": (lambda: vision.resnet18(num_classes=5), image),
    "resnet50": (lambda: vision.ResNet(vision.resnet.Bottleneck, [1, 1, 1, 1], num_classes=5), image),
    "mobilenet_v3": (lambda: vision.mobilenet_v3_small(num_classes=5), image),
    "vit": (vit, image),
    "gpt2": (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**WORDS, n_positions=8, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)), words),
    "bert": (lambda: hf.BertForSequenceClassification(hf.BertConfig(**WORDS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16)), words),
    "llama": (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**WORDS, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2)), words),
    "t5": (lambda: hf.T5ForConditionalGeneration(hf.T5Config(**WORDS, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)), two_texts),
}  # fmt: skip

# What a machine refuses: vta computes with integers alone.
REFUSED = {(name, "vta"): "target.dtype" for name in MODELS}


def first(out):
    return out if isinstance(out, torch.Tensor) else out.logits


def run(model, args, kwargs, device):
    move = lambda t: t.to(device)  # noqa: E731
    with torch.no_grad():
        return first(model.to(device)(*map(move, args), **{k: move(v) for k, v in kwargs.items()}))


CASES = [(m, d) for d in ("qpu", "wse:8x8") for m in MODELS]


@pytest.mark.parametrize("name, machine", [*CASES, ("gpt2", "vta"), ("vit", "vta")])
def test_model(name, machine):
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    model, (args, kwargs) = make().eval(), inputs()
    want = run(model, args, kwargs, "cpu")
    code = REFUSED.get((name, machine))
    if code:
        with pytest.raises(weft.Error) as refusal:
            run(model, args, kwargs, wd.device(machine))
        assert refusal.value.code == code
        return
    got = run(model, args, kwargs, wd.device(machine))
    assert got.device == wd.device(machine)
    scale = float(want.abs().max())
    torch.testing.assert_close(got.cpu() / scale, want / scale, rtol=1e-4, atol=1e-5)
