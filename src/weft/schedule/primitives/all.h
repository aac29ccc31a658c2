// SPDX-License-Identifier: Apache-2.0
#pragma once
// All primitives; the rows of primitives.def name what is declared here.

#include "weft/schedule/primitives/annotate.h"
#include "weft/schedule/primitives/block_iters.h"
#include "weft/schedule/primitives/buffer_access.h"
#include "weft/schedule/primitives/cache.h"
#include "weft/schedule/primitives/cache_places.h"
#include "weft/schedule/primitives/compute_at.h"
#include "weft/schedule/primitives/epilogue.h"
#include "weft/schedule/primitives/for_kind.h"
#include "weft/schedule/primitives/inline.h"
#include "weft/schedule/primitives/lookup.h"
#include "weft/schedule/primitives/loops.h"
#include "weft/schedule/primitives/padding.h"
#include "weft/schedule/primitives/partition.h"
#include "weft/schedule/primitives/reduction.h"
#include "weft/schedule/primitives/reindex.h"
#include "weft/schedule/primitives/rolling_buffer.h"
#include "weft/schedule/primitives/sample.h"
#include "weft/schedule/primitives/specialize_warps.h"
#include "weft/schedule/primitives/tensorize.h"
#include "weft/schedule/primitives/transform_layout.h"
