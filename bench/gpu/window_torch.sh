#!/usr/bin/env bash
# What a card should be asked about captured work and torch.compile, most important first: bench/gpu/window_torch.sh (about five minutes)
cd "$(dirname "$0")/../.." || exit 1
export PYTHONPATH=$PWD/python:$PWD/bench/gpu:$PWD/bench/torch
run() { local limit=$1; shift; echo "== $*"; timeout "$limit" python3 -u "$@" 2>&1 | tail -60; }
run 60 -m pytest -q -x -p no:cacheprovider tests/python/test_capture.py tests/python/test_batch_norm_cards.py -k cuda
run 60 bench/torch/where.py bert vit
run 40 bench/gpu/captured.py
run 50 bench/torch/decode.py
run 60 bench/torch/models.py bert gpt2 --mode reduce-overhead --only train --device cuda --large --dtype bfloat16 --rounds 7
run 60 bench/torch/models.py resnet18 bert gpt2 --only train --device cuda --large --dtype bfloat16 --rounds 7
run 60 bench/torch/where.py resnet50 gpt2
run 60 bench/training.py --device cuda gpt
