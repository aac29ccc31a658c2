// SPDX-License-Identifier: Apache-2.0
#pragma once
// Concrete integers of all points of a group at once: what an index, a condition or a stored value
// is at each of them. A value that is the same everywhere is computed once; one that depends on
// data is unknown.

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/ir/node.h"

namespace weft::pass {

/// One per active point, in their order.
struct Numbers {
  bool uniform = true;  // `value` and `known` hold for every point; the rest is empty
  std::int64_t value = 0;
  bool known = false;
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> ok;  // empty: all are known

  std::int64_t at(std::size_t i) const { return uniform ? value : values[i]; }
  bool known_at(std::size_t i) const { return uniform ? known : ok.empty() || ok[i] != 0; }
  bool all_known() const { return uniform ? known : ok.empty(); }
};

struct Hashes {
  bool uniform = true;
  std::uint64_t value = 0;
  std::vector<std::uint64_t> values;
  std::uint64_t at(std::size_t i) const { return uniform ? value : values[i]; }
};

using Points = std::vector<std::int64_t>;

class PointValues {
 public:
  explicit PointValues(std::int64_t points) : points_(static_cast<std::size_t>(points)) {}
  /// A variable of the active points; what others had of it is forgotten when it is uniform.
  void set(const ir::VarNode* v, const Points& active, Numbers numbers);
  /// A variable that stands for `value`, whether that is a known number or not.
  void bind(const ir::VarNode* v, const Points& active, const ir::Expr& value,
            const std::unordered_set<const ir::BufferNode*>& own);
  Numbers eval(const ir::Expr& e, const Points& active, int lane = 0) const;
  /// Equal where values are equal for certain: the same expression over the same elements of
  /// memory. Elements of buffers in `own` differ from point to point.
  Hashes signature(const ir::Expr& e, const Points& active, int lane,
                   const std::unordered_set<const ir::BufferNode*>& own) const;

 private:
  struct Slot {
    Numbers of_active;  // when uniform
    std::vector<std::int64_t> values;
    std::vector<std::uint8_t> ok;
    std::vector<std::uint64_t> hashes;  // by point, of a bound value that is not known everywhere
  };
  Numbers call(const ir::CallNode* c, const Points& active, int lane) const;
  std::size_t points_;
  std::unordered_map<const ir::VarNode*, Slot> slots_;
};

}  // namespace weft::pass
