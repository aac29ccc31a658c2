// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a block touches, found from its body: the union box per buffer of every access, with the
// loops inside the block relaxed. Used when text leaves T.reads / T.writes out, and by schedule
// steps that rebuild blocks. Conservative: an index that cannot be bounded takes the whole
// dimension.

#include <vector>

#include "weft/ir/node.h"

namespace weft::ir {

struct AccessRegions {
  std::vector<BufferRegion> reads, writes;  // in order of first access
};

/// Accesses of a statement as functions of the variables free in it. A BlockRealize inside
/// contributes its declared regions (iterators replaced by bindings); buffers allocated inside are
/// left out.
AccessRegions detect_access_regions(const Stmt& s);

/// Regions for `block` from its init and body: buffers of its own alloc_buffers are left out,
/// accesses through its match_buffers count for their sources, and a block with init does not list
/// what it writes among its reads.
AccessRegions detect_block_regions(const BlockNode& block);

/// b - a as a sum of distinct terms; a constant when the terms cancel.
Expr linear_difference(const Expr& b, const Expr& a);

}  // namespace weft::ir
