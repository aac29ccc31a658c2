// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decisions of array operations that no program without a schedule holds, such as the tile of a
// product on tensor cores: which one a tuner found, and who sees what there is to decide.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/array/ndarray.h"

namespace weft {

using Decision = std::vector<std::int64_t>;

struct DecisionRequest {
  std::string_view operation;  // "product.tensor_core"
  Ref<Device> device;
  std::span<const std::int64_t> facts;  // what it depends on
  std::uint64_t extents = 0;  // bits of facts that are sizes: what others of their order are given
                              // serves where nothing is known of these
};

/// What was found for these facts, if it is one of the legal `options`; null: the rule decides.
/// `options` begins with what the rule takes. Asked once for each set of facts in each thread,
/// until programs are forgotten; the decision is valid until the thread asks again.
const Decision* tuned_decision(const DecisionRequest& request,
                               const std::function<std::vector<Decision>()>& options);
/// All of them are looked up again.
void forget_decisions();

using DecisionRecorder =
    std::function<void(const DecisionRequest&, const std::vector<Decision>& options)>;
/// Sees each decision of all threads; null: none.
void record_decisions(DecisionRecorder recorder);

}  // namespace weft
