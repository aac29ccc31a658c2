# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") beside eager torch and Inductor: bench/torch/models.py [NAME...] [--device cuda] [--large] [--mode reduce-overhead]

The eight models of torchvision and transformers with random weights, inference and training steps. Results are compared
with eager's first. Samples are interleaved; one thread count for both; figures are medians. On a host, --cpu-time takes the
processor's time instead of wall time (for machines with other work).
"""

import argparse
import pathlib
import statistics
import sys
import time

import torch
import torchvision
import transformers as hf

import weft
import weft.torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record, threads_in_words


def models(large):
    """(name, function that makes the model, arguments, keywords); sizes for a card where `large`."""
    width, layers, heads, length, batch, side = (
        (768, 12, 12, 512, 8, 224) if large else (192, 4, 4, 64, 2, 96)
    )
    words = 32000 if large else 1000
    ids = torch.randint(0, words, (batch, length))
    images = torch.randn(32 if large else 4, 3, side, side)
    vision = torchvision.models
    yield "resnet18", vision.resnet18, (images,), {}
    yield "resnet50", vision.resnet50, (images,), {}
    yield "mobilenet_v3", vision.mobilenet_v3_small, (images,), {}
    yield (
        "vit",
        lambda: vision.VisionTransformer(side, 16, layers, heads, width, 4 * width),
        (images,),
        {},
    )
    gpt = hf.GPT2Config(
        vocab_size=words, n_positions=length, n_embd=width, n_layer=layers, n_head=heads
    )
    bert = hf.BertConfig(vocab_size=words, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width)  # fmt: skip
    llama = hf.LlamaConfig(vocab_size=words, hidden_size=width, intermediate_size=8 * width // 3, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads // 2)  # fmt: skip
    t5 = hf.T5Config(vocab_size=words, d_model=width, d_kv=width // heads, d_ff=4 * width, num_layers=layers, num_heads=heads)  # fmt: skip
    yield "gpt2", lambda: hf.GPT2LMHeadModel(gpt), (ids,), {}
    yield "bert", lambda: hf.BertForSequenceClassification(bert), (ids,), {}
    yield "llama", lambda: hf.LlamaForCausalLM(llama), (ids,), {}
    yield "t5", lambda: hf.T5ForConditionalGeneration(t5), (ids,), {"decoder_input_ids": ids}


def first(out):
    return out if isinstance(out, torch.Tensor) else out.logits


class Bench:
    def __init__(self, given):
        self.given = given
        asked = {f"of {rival}, {how}": {"least": 1.0} if rival == "eager" else {"mean": 1.0} for rival in ("eager", "inductor") for how in ("inference", "training")}  # fmt: skip
        dtype = str(given.dtype).removeprefix("torch.")
        threads = "" if given.device == "cuda" else f", {threads_in_words(torch.get_num_threads())}"
        self.record = Record(f"models under torch.compile, {dtype}{threads}", given.device, asked)
        self.clock = time.process_time if given.cpu_time else time.perf_counter

    def sync(self):
        if self.given.device == "cuda":
            torch.cuda.synchronize()

    def once(self, model, f, args, kwargs):
        if self.given.mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        if model.training:
            first(f(*args, **kwargs)).float().square().mean().backward()
            for p in model.parameters():
                p.grad = None
        else:
            with torch.no_grad():
                f(*args, **kwargs)

    def sample(self, *what):
        self.sync()
        start = self.clock()
        self.once(*what)
        self.sync()
        return self.clock() - start

    def results(self, model, f, args, kwargs):
        """Logits, and in training all gradients, in float64 on the host; random numbers from one seed."""
        torch.manual_seed(7)
        if not model.training:
            with torch.no_grad():
                return [first(f(*args, **kwargs)).double().cpu()]
        out = first(f(*args, **kwargs))
        out.float().square().mean().backward()
        found = [out.detach().double().cpu()]
        for p in model.parameters():
            if p.grad is not None:
                found.append(p.grad.double().cpu())
            p.grad = None
        return found

    def check(self, model, f, args, kwargs):
        """(difference of the logits, of the gradients) from eager's, each as a norm over eager's norm: of the fourth call."""
        want = self.results(model, model, args, kwargs)
        for _ in range(4):
            if self.given.mode == "reduce-overhead":
                torch.compiler.cudagraph_mark_step_begin()
            got = self.results(model, f, args, kwargs)
        if len(want) != len(got):
            return float("inf"), float("inf")

        def apart(some):
            squares = [(float((got[i] - want[i]).square().sum()), float(want[i].square().sum())) for i in some]  # fmt: skip
            return (sum(a for a, _ in squares) / max(sum(b for _, b in squares), 1e-300)) ** 0.5

        return apart([0]), apart(range(1, len(want))) if len(want) > 1 else 0.0

    def row(self, name, make, args, kwargs, training):
        torch.manual_seed(0)
        move = lambda t: t.to(
            self.given.device, self.given.dtype if t.is_floating_point() else t.dtype
        )  # noqa: E731
        args, kwargs = tuple(map(move, args)), {k: move(v) for k, v in kwargs.items()}
        model = make().to(self.given.device, self.given.dtype).train(training)
        if name == "vit":  # torchvision starts its head with zeros
            torch.nn.init.normal_(model.heads.head.weight)
        rivals = {"eager": model, "weft": None}
        torch._dynamo.reset()
        rivals["weft"] = torch.compile(model, backend="weft", mode=self.given.mode)
        if self.given.inductor:
            rivals["inductor"] = torch.compile(model, mode=self.given.mode)
        compiling = {k: self.sample(model, f, args, kwargs) for k, f in rivals.items()}
        error = {k: self.check(model, f, args, kwargs) for k, f in rivals.items() if f is not model}
        times = {k: [] for k in rivals}
        for f in rivals.values():
            for _ in range(3):  # graphs are recorded in the third call
                self.sample(model, f, args, kwargs)
        for _ in range(self.given.rounds):
            for k, f in rivals.items():
                times[k].append(self.sample(model, f, args, kwargs))
        median = {k: 1e3 * statistics.median(v) for k, v in times.items()}
        ratios = "  ".join(
            f"{k}/weft {median[k] / median['weft']:.2f}" for k in rivals if k != "weft"
        )
        errors = "  ".join(f"{k}'s error {a:.1e} gradients {b:.1e}" for k, (a, b) in error.items())
        shown = "  ".join(f"{k} {v:9.3f} ms" for k, v in median.items())
        print(f"{name:13s} {'train' if training else 'infer'}  {shown}  {ratios}  first call {compiling['weft']:.1f} s  {errors}", flush=True)  # fmt: skip
        for k in rivals:
            if k != "weft":
                self.record.row(f"of {k}, {'training' if training else 'inference'}", name, median["weft"] / 1e3, {k: median[k] / 1e3})  # fmt: skip
        return {k: median[k] / median["weft"] for k in rivals if k != "weft"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--mode", default="default", choices=["default", "reduce-overhead"])
    parser.add_argument("--only", choices=["infer", "train"])
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    given.dtype = getattr(torch, given.dtype)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    weft.set_threads(torch.get_num_threads())
    bench, ratios = Bench(given), []
    for name, *model in models(given.large):
        if not given.names or name in given.names:
            kinds = {"infer": (False,), "train": (True,), None: (False, True)}[given.only]
            ratios += [bench.row(name, *model, training) for training in kinds]
    for rival in ratios[0] if ratios else ():
        found = [r[rival] for r in ratios]
        print(f"{rival}/weft: geometric mean {statistics.geometric_mean(found):.2f}, least {min(found):.2f}, {len(found)} rows")  # fmt: skip


if __name__ == "__main__":
    main()
