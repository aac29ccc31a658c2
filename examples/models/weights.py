# SPDX-License-Identifier: Apache-2.0
"""Models from folders as Hugging Face writes them: config.json and *.safetensors."""

import importlib
import json
import pathlib
import re

import weft

TYPES = ("gpt2", "llama", "bert", "vit")


def architecture(model_type):
    """The module of this folder for a configuration's model_type."""
    if model_type not in TYPES:
        raise weft.ArgumentError(f"model_type {model_type!r}; there are: {', '.join(TYPES)}")
    return importlib.import_module(model_type)


def random_model(model_type, config=(), seed=0):
    """A model of this type with random weights."""
    weft.random.seed(seed)
    return architecture(model_type).Model(dict(config)).eval()


def renamed(state, module):
    """Weights by the model's own names, matrices as weft has them."""
    out = {}
    for name, value in state.items():
        for pattern, text in module.RENAMED:
            name = re.sub(pattern, text, name)
        if module.IGNORED and re.search(module.IGNORED, name):
            continue
        matrix = value.ndim == 2 and any(re.search(p, name) for p in module.TRANSPOSED)
        out[name] = value.T if matrix else value
    return out


def from_folder(path, device=None, dtype=None):
    """The model that config.json describes, with the weights of all *.safetensors beside it.

    Raises weft.ArgumentError for a type or a function of the configuration that is not known and for names that do not
    fit, weft.ShapeError for shapes, weft.IOError for a folder without these files.
    """
    path = pathlib.Path(path)
    files = sorted(path.glob("*.safetensors"))
    if not (path / "config.json").is_file() or not files:
        raise weft.IOError(f"{path} has no config.json or no *.safetensors")
    config = json.loads((path / "config.json").read_text())
    module = architecture(config.get("model_type"))
    state = {}
    for file in files:
        state |= weft.load_safetensors(str(file))
    model = module.Model(config)
    model.load_state_dict(renamed(state, module))
    return model.to(device, dtype).eval()
