// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffers as a block sees them through indices that are not linear in its iterators, as those of a
// reshape: one element per point of the iterators, of which the indices make an element of the
// buffer. The memory beside the wafer holds such views; they are filled before the stage that reads
// them and emptied after the one that writes them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/ir/node.h"

namespace weft::wse {

/// An index of the variables as JSON: a number, {"i": k} for variable k, or [op, operands ...].
/// Returns null where the index depends on more than the variables; `why` then says on what.
Json index_to_json(const ir::Expr& index, const std::vector<ir::Var>& vars, std::string* why);

/// Such an index, ready for evaluation.
class ViewIndex {
 public:
  explicit ViewIndex(const Json& index);
  /// The index at a point; a division by zero gives -1, which lies in no buffer.
  std::int64_t at(std::span<const std::int64_t> point) const;

 private:
  struct Step {  // postfix
    int op;      // of the table in view.cpp; -1: number, -2: variable
    std::int64_t value;
  };
  void add(const Json& index);
  std::vector<Step> steps_;
  mutable std::vector<std::int64_t> stack_;
};

/// Calls f(element of the view, element of the buffer) for each point whose indices lie in the
/// buffer, in row-major order of the view.
template <typename F>
void for_each_viewed(const std::vector<std::int64_t>& view, const std::vector<std::int64_t>& buffer,
                     const std::vector<ViewIndex>& indices, F&& f) {
  std::int64_t points = 1;
  for (std::int64_t e : view) points *= e;
  std::vector<std::int64_t> point(view.size());
  for (std::int64_t k = 0; k < points; ++k) {
    std::int64_t element = 0;
    bool inside = true;
    for (std::size_t d = 0; d < buffer.size(); ++d) {
      std::int64_t p = indices[d].at(point);
      inside = inside && p >= 0 && p < buffer[d];
      element = element * buffer[d] + p;
    }
    if (inside) f(k, element);
    for (std::size_t d = view.size(); d-- > 0;) {
      if (++point[d] < view[d]) break;
      point[d] = 0;
    }
  }
}

}  // namespace weft::wse
