// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statements of the kernel language alone; see <weft/qpu.h>.

#include "weft/targets/qpu/language/macros.h"
