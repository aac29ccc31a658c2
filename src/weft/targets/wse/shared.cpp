// SPDX-License-Identifier: Apache-2.0
// libweft_wse is the whole of the target behind the C functions of api.h; it has no code of its
// own.
#include "weft/targets/wse/api.h"
