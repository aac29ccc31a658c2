// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statements of a function that are scheduled apart. Steps on one nest depend on the nest, on those
// that use what it writes, and on nothing else of the function: so the same steps on the same nests
// lead to the same nests, whatever became of the others, and need not be checked again.

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "weft/schedule/schedule.h"

namespace weft::schedule {

/// What statements read and write; remembers each, and keeps it.
class Accesses {
 public:
  struct Of {
    ir::Stmt stmt;
    std::vector<const ir::BufferNode*> reads, writes;
  };
  const Of& of(const ir::Stmt& s);

 private:
  std::unordered_map<const ir::StmtNode*, Of> known_;
};

/// The statement of the root block that holds `block`, the statements that use what it writes, and
/// those between them that no statement may cross. Marks stand for what lies between.
class Part {
 public:
  /// Nodes that what becomes of the part depends on.
  using Key = std::vector<const void*>;

  Part(const Schedule& whole, BlockRef block, Accesses& accesses);
  const Key& key() const { return key_; }
  /// The part alone, without a step so far.
  Schedule begin(const Schedule& whole) const;
  /// Takes the steps of `made`, which began as a part with this key.
  void join(Schedule& whole, const Schedule& made) const;

 private:
  std::vector<ir::Stmt> stmts_;                 // of the part, with marks
  std::vector<ir::Buffer> buffers_;             // that it uses, with marks
  std::vector<std::vector<ir::Stmt>> between_;  // by mark
  std::vector<std::vector<ir::Buffer>> apart_;
  Key key_;
};

}  // namespace weft::schedule
