# SPDX-License-Identifier: Apache-2.0
"""``pip install .`` or ``python setup.py build_ext --inplace``, on any machine with a C++20 compiler."""

import weft.qpu
from setuptools import setup

setup(name="dot_cpp", version="1.0", ext_modules=[weft.qpu.extension("dot_cpp", ["dot.cpp"])])
