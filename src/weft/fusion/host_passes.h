// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel of the host computes in which pass over a row: a reduction's result is known only
// when its pass is over, so what reads it waits for the next one.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/fusion/fuse_host.h"

namespace weft::fuse {

struct HostPass {
  std::vector<std::size_t> reductions;  // of the kernel's values: joined in this pass
  std::vector<std::size_t> elements;    // element-wise results that this pass writes
  std::vector<Lazy> held;               // values that later passes read from memory of the row
  std::vector<Lazy> numbers;            // of the row, that the pass reads: known before it
  std::vector<std::size_t> leaves;      // read at each position
};

class HostPasses {
 public:
  /// `may_hold`: how many bytes of a row's values can be held.
  HostPasses(const HostKernel& kernel, std::int64_t may_hold);

  const std::vector<HostPass>& passes() const { return passes_; }
  /// Whether the value differs from position to position of a row.
  bool moves(const Lazy& x) const;
  /// Values in memory before a pass: held ones and written ones.
  const std::unordered_map<const LazyNode*, std::size_t>& stored() const { return stored_; }
  /// Results with one element for each row, written after the last pass.
  const std::vector<std::size_t>& of_rows() const { return of_rows_; }

 private:
  bool is_leaf(const Lazy& x) const { return leaf_moves_.count(x.node()) > 0; }
  bool is_row_result(const Lazy& x) const;
  std::size_t level(const Lazy& x) const;
  double cost(const Lazy& x) const;
  std::vector<Lazy> roots(std::size_t pass) const;
  /// Marks what the pass computes below x, and what it would compute again as held.
  void compute(const Lazy& x, std::size_t pass);
  void read(const Lazy& x, std::size_t pass, std::unordered_set<const LazyNode*>& seen);

  const HostKernel& kernel_;
  std::int64_t room_, row_ = 1;
  std::unordered_map<const LazyNode*, bool> leaf_moves_;
  std::unordered_map<const LazyNode*, std::size_t> leaf_number_;
  std::unordered_set<const LazyNode*> reduced_;
  mutable std::unordered_map<const LazyNode*, bool> moves_;
  mutable std::unordered_map<const LazyNode*, std::size_t> levels_;
  mutable std::unordered_map<const LazyNode*, double> costs_;
  std::unordered_map<const LazyNode*, std::size_t> computed_;  // the first pass that does
  std::unordered_map<const LazyNode*, std::size_t> stored_;    // the pass that stores it
  std::vector<HostPass> passes_;
  std::vector<std::size_t> of_rows_;
};

}  // namespace weft::fuse
