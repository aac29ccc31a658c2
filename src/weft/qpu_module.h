// SPDX-License-Identifier: Apache-2.0
#pragma once
// Your own QPU kernels as Python functions and torch.ops entries: one .cpp with <weft/qpu.h> and
// WEFT_QPU_MODULE, built by setup.py or CMake (docs/targets/qpu.md). Needs Python's headers, not
// libtorch.

#include "weft/targets/qpu/extension/module.h"
