// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of whole products for sm_90a, as one text. It is no schedule of the IR because its
// threads have two roles (one warp that only starts copies of the bulk copy engine, groups that
// only multiply, with registers moved between them), which meet at barriers in shared memory that
// count bytes; measured against what a schedule with cp.async reaches: docs/targets/cuda.md.

#include <string>

#include "weft/target/target.h"
#include "weft/target/whole_product.h"

namespace weft::cuda {

std::string product_text(const WholeProduct& product);

}  // namespace weft::cuda
