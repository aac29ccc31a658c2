# SPDX-License-Identifier: Apache-2.0
"""Text models at work: a prompt's tokens, cached keys and values, sampling, tokens per second.

python3 generate.py --model gpt2 --tokens 64            a small model with random weights
python3 generate.py --folder PATH --prompt 15496,995    a model from a folder; token ids, not text
"""

import argparse
import sys
import time

import weights

import weft

SMALL = {
    "gpt2": {"n_embd": 128, "n_layer": 4, "n_head": 4, "vocab_size": 512, "n_positions": 512},
    "llama": {
        "hidden_size": 128,
        "intermediate_size": 352,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 512,
    },
}


def chosen(logits, temperature=1.0, top_k=None, top_p=None):
    """One token id for each row of logits (b, vocabulary): the likeliest at temperature 0, else drawn.

    Only the top_k likeliest are drawn from, and of these the fewest whose probabilities reach top_p.
    """
    if temperature == 0:
        return weft.argmax(logits, axis=-1)
    count = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
    values, ids = weft.topk(logits.astype("float32") / temperature, count, axis=-1)
    p = weft.exp(values - values[:, :1])
    p = p / weft.sum(p, axis=-1, keepdims=True)
    sums = weft.cumulative_sum(p, axis=-1)
    if top_p is not None:
        p = weft.where(sums - p < top_p, p, 0.0)  # the first always stays
        sums = weft.cumulative_sum(p, axis=-1)
    draw = weft.random.uniform((logits.shape[0], 1), device=logits.device) * sums[:, -1:]
    place = weft.clip(weft.sum((sums <= draw).astype("int64"), axis=-1), 0, count - 1)
    return weft.take_along_axis(ids, place[:, None], axis=-1)[:, 0]


def tokens(model, prompt, count, temperature=1.0, top_k=None, top_p=None, stop=None):
    """Yields arrays (b,) of int64: the tokens after a prompt (b, t), one position after another.

    Keys and values of earlier positions are kept, so a step costs one position. `stop` ends when all rows gave it.
    """
    ids = weft.asarray(prompt, dtype="int64")
    caches = model.caches(ids.shape[0], ids.shape[1] + count)
    ended = weft.zeros((ids.shape[0],), dtype="bool")
    for _ in range(count):
        with weft.no_grad():
            logits = model(ids, caches)[:, -1].data
        ids = chosen(logits, temperature, top_k, top_p)[:, None]
        yield ids[:, 0]
        if stop is not None:
            ended = ended | (ids[:, 0].to("cpu") == stop)
            if weft.all(ended):
                return


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--model", choices=sorted(SMALL), default="gpt2", help="a small random model"
    )
    parser.add_argument("--folder", help="config.json and *.safetensors of a model")
    parser.add_argument("--device", default="cpu", help="where it runs")
    parser.add_argument("--dtype", default=None, help="element type of the weights")
    parser.add_argument("--prompt", default="1,2,3", help="token ids with commas between")
    parser.add_argument("--tokens", type=int, default=32, help="how many to make")
    parser.add_argument("--temperature", type=float, default=1.0, help="0: always the likeliest")
    parser.add_argument("--top-k", type=int, default=None)
    parser.add_argument("--top-p", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args(arguments)
    if a.folder:
        model = weights.from_folder(a.folder, a.device, a.dtype)
    else:
        model = weights.random_model(a.model, SMALL[a.model], a.seed).to(a.device, a.dtype)
    weft.random.seed(a.seed)
    with weft.use(a.device):
        prompt = weft.asarray([[int(t) for t in a.prompt.split(",")]], dtype="int64")
        made, times = [], [time.perf_counter()]
        for token in tokens(model, prompt, a.tokens, a.temperature, a.top_k, a.top_p):
            made.append(int(token.item()))
            times.append(time.perf_counter())
    print("tokens:", ",".join(map(str, made)))
    steps = sorted(b - a for a, b in zip(times[1:], times[2:])) or [times[-1] - times[0]]
    middle = steps[len(steps) // 2]
    print(f"first token {1e3 * (times[1] - times[0]):.1f} ms, then {1 / middle:.0f} tokens/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
