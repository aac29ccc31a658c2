# SPDX-License-Identifier: Apache-2.0
"""The models of examples/models: kept keys and values change nothing, sampling keeps to its limits, files are read, and
results are those of transformers where that is installed."""

import json
import pathlib
import sys

import numpy as np
import pytest

import weft

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "models"
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61, "n_positions": 160}
LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
}
BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 61,
    "max_position_embeddings": 20,
}
VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 12,
    "patch_size": 4,
    "num_labels": 5,
}
SMALL = {"gpt2": GPT2, "llama": LLAMA, "llama, tied": {**LLAMA, "tie_word_embeddings": True}}


@pytest.fixture
def models(monkeypatch):
    """The modules of the folder, which is no package: programs that a reader copies."""
    names = ("generate", "weights", "attention", "gpt2", "llama", "bert", "vit")
    others = {n: sys.modules.pop(n) for n in names if n in sys.modules}  # the tests' own package
    monkeypatch.syspath_prepend(str(FOLDER))
    import generate
    import weights

    yield weights, generate
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def randomised(model, rng):
    """The model with every parameter random, biases and scales too."""
    for p in model.parameters():
        p.data = weft.asarray(0.2 * rng.standard_normal(p.shape).astype("float32"))
    return model


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("parts", [[7], [1] * 7, [3, 1, 2, 1], [70, 1, 1, 64, 2]])
def test_kept_keys_and_values_change_nothing(models, name, parts, rng):
    weights, _ = models
    model = randomised(weights.random_model(name.split(",")[0], SMALL[name]), rng)
    n = sum(parts)
    ids = weft.asarray(rng.integers(0, 61, (2, n)))
    caches, got, at = model.caches(2, n), [], 0
    with weft.no_grad():
        expected = model(ids).numpy()
        for part in parts:
            got.append(model(ids[:, at : at + part], caches).numpy())
            at += part
    np.testing.assert_allclose(np.concatenate(got, axis=1), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", SMALL)
def test_the_likeliest_tokens_are_those_without_a_cache(models, name, rng):
    weights, generate = models
    model = randomised(weights.random_model(name.split(",")[0], SMALL[name]), rng)
    prompt = rng.integers(0, 61, (2, 5))
    made = np.stack([t.numpy() for t in generate.tokens(model, prompt, 6, temperature=0)], axis=1)
    ids = prompt
    for _ in range(6):
        with weft.no_grad():
            logits = model(weft.asarray(ids)).numpy()[:, -1]
        ids = np.concatenate([ids, logits.argmax(-1)[:, None]], axis=1)
    np.testing.assert_array_equal(made, ids[:, 5:])


def test_a_prompt_longer_than_the_model_is_refused(models):
    weights, generate = models
    model = weights.random_model("gpt2", GPT2)
    with pytest.raises(weft.ShapeError):
        next(generate.tokens(model, [[1] * 150], 20))


def test_sampling_keeps_to_its_limits(models):
    _, generate = models
    weft.random.seed(3)
    p = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    logits = weft.asarray(np.tile(np.log(p[[2, 0, 4, 1, 3]]), (4000, 1)).astype("float32"))
    share = lambda **limits: (  # noqa: E731
        np.bincount(generate.chosen(logits, **limits).numpy(), minlength=5) / 4000
    )[[1, 3, 0, 4, 2]]
    np.testing.assert_allclose(share(), p, atol=0.03)
    np.testing.assert_allclose(share(top_k=2), [4 / 7, 3 / 7, 0, 0, 0], atol=0.03)
    # 0.4 + 0.3 reach 0.69; 0.71 needs a third
    np.testing.assert_allclose(share(top_p=0.69), [4 / 7, 3 / 7, 0, 0, 0], atol=0.03)
    np.testing.assert_allclose(
        share(top_p=0.71), p[:3].tolist() / p[:3].sum() @ np.eye(3, 5), atol=0.03
    )
    hot = p**0.5 / (p**0.5).sum()
    np.testing.assert_allclose(share(temperature=2.0), hot, atol=0.03)
    assert share(temperature=0)[0] == 1 and share(top_p=1e-6)[0] == 1


def test_generation_ends_where_every_row_stopped(models, rng):
    weights, generate = models
    model = randomised(weights.random_model("gpt2", GPT2), rng)
    first = int(next(generate.tokens(model, [[1, 2]], 1, temperature=0)).item())
    assert len(list(generate.tokens(model, [[1, 2]], 9, temperature=0, stop=first))) == 1
    assert len(list(generate.tokens(model, [[1, 2]], 9, temperature=0, stop=61))) == 9


def test_the_program_runs(models, capsys):
    _, generate = models
    assert generate.main(["--model", "llama", "--tokens", "5", "--top-k", "3"]) == 0
    out = capsys.readouterr().out
    assert len(out.split("\n")[0].removeprefix("tokens: ").split(",")) == 5 and "tokens/s" in out


def test_folders_are_read_and_refused(models, tmp_path, rng):
    weights, _ = models
    model = randomised(weights.random_model("gpt2", GPT2), rng)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", **GPT2}))
    with pytest.raises(weft.IOError):
        weights.from_folder(tmp_path)
    state = model.state_dict()
    half = dict(list(state.items())[::2]), dict(list(state.items())[1::2])
    for k, part in enumerate(half):  # in two files, as large models are
        weft.save_safetensors(str(tmp_path / f"model-{k}.safetensors"), part)
    ids = weft.asarray([[1, 2, 3]])
    np.testing.assert_array_equal(weights.from_folder(tmp_path)(ids).numpy(), model(ids).numpy())
    short = weights.from_folder(tmp_path, dtype="bfloat16")(ids)
    assert short.dtype == weft.bfloat16
    np.testing.assert_allclose(
        short.astype("float32").numpy(), model(ids).numpy(), rtol=0.1, atol=0.1
    )
    for wrong in ({"model_type": "t5"}, {"model_type": "gpt2", "activation_function": "swish9"}):
        (tmp_path / "config.json").write_text(json.dumps({**GPT2, **wrong}))
        with pytest.raises(weft.ArgumentError):
            weights.from_folder(tmp_path)
    with pytest.raises(weft.ArgumentError):
        weights.random_model("llama", {**LLAMA, "rope_scaling": {"rope_type": "llama3"}})


@pytest.mark.parametrize("name", ["gpt2", "llama", "llama, tied", "bert", "vit"])
def test_results_of_transformers(models, name, tmp_path, rng):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch")
    weights, _ = models
    kinds = {
        "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2),
        "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA),
        "llama, tied": ("LlamaForCausalLM", "LlamaConfig", SMALL["llama, tied"]),
        "bert": ("BertModel", "BertConfig", BERT),
        "vit": ("ViTForImageClassification", "ViTConfig", VIT),
    }
    model, config, sizes = kinds[name]
    theirs = getattr(transformers, model)(getattr(transformers, config)(**sizes)).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.normal_(0, 0.2)
    theirs.save_pretrained(tmp_path)
    ours = weights.from_folder(tmp_path)
    if name == "vit":
        x = rng.standard_normal((2, 3, 12, 12)).astype("float32")
        pairs = [(ours(weft.Tensor(x)), theirs(torch.tensor(x)).logits)]
    elif name == "bert":
        ids, mask = rng.integers(0, 61, (2, 9)), np.ones((2, 9), "int64")
        mask[1, 6:] = 0
        types = rng.integers(0, 2, (2, 9))
        found = ours(weft.asarray(ids), weft.asarray(mask), weft.asarray(types))
        options = {"attention_mask": torch.tensor(mask), "token_type_ids": torch.tensor(types)}
        expected = theirs(torch.tensor(ids), **options)
        pairs = [
            (found[0][0], expected.last_hidden_state[0]),
            (found[0][1, :6], expected.last_hidden_state[1, :6]),
            (found[1], expected.pooler_output),
        ]
    else:
        ids = rng.integers(0, 61, (2, 9))
        pairs = [(ours(weft.asarray(ids)), theirs(torch.tensor(ids)).logits)]
    for got, expected in pairs:
        np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), rtol=1e-3, atol=1e-4)
