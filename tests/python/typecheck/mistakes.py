# SPDX-License-Identifier: Apache-2.0
"""What a type checker must refuse: each marked line, and no other. Never run."""

import weft
from weft import nn

x = weft.asarray([1.0])
x.shap  # refused
weft.exp(x, x)  # refused
weft.sum(x, axes=0)  # refused
n: int = weft.exp(x)  # refused
weft.exp(weft.Tensor(x)).fill(1)  # refused
nn.Linear("four", 8)  # refused
weft.no_such_function(x)  # refused
weft.reshape(x, shape="ab" + 1)  # refused
