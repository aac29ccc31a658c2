# SPDX-License-Identifier: Apache-2.0
"""Compiles torch.device("weft") for the torch that is installed: python -m weft.torch.build [--verbose]."""

from __future__ import annotations

import argparse
import sys

import weft

from ._version import need_device


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m weft.torch.build", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="show the compiler's commands")
    given = parser.parse_args(arguments)
    try:
        need_device()
        from .device import _build

        print(_build.build(given.verbose))
    except weft.Error as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
