// SPDX-License-Identifier: Apache-2.0
#pragma once
// Part of check_races: points that run one program side by side, with concrete indices. The points
// are those of one group, which barriers order, or one of each of many groups (iterations of a
// parallel loop), which nothing orders. Uses of memory that a group shares are compared between
// barriers (Cell); uses of memory that everybody shares are also compared between groups
// (Crossings), over all runs of a kernel.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"
#include "weft/pass/check_races.h"
#include "weft/pass/point_values.h"

namespace weft::pass::races {

struct Exhausted {};  // the budget is spent; private to check_races

using Buffers = std::unordered_set<const ir::BufferNode*>;

/// Values of a variable around those at which conditions of a statement turn, as far as constants
/// that are compared with it tell: a few.
std::vector<std::int64_t> turning_points(const ir::Stmt& s, const ir::VarNode* var);

/// What runs: one coordinate per axis and point; groups tell which points barriers can order.
struct Setup {
  std::string name;  // of the kernel, for messages
  ir::Stmt body;
  std::vector<std::string> axes;
  std::vector<ir::Var> vars;
  std::vector<std::vector<std::int64_t>> at;  // [axis][point]
  std::vector<std::int64_t> group;            // [point]
  bool together = false;  // one group: its barriers and its own memory are judged as well
  bool brief = false;     // loops that decide places run their first and last iterations only
  std::int64_t budget = 0;
  std::int64_t points() const { return static_cast<std::int64_t>(group.size()); }
};

/// A use by a point, for messages.
struct Use {
  const ir::StmtNode* statement = nullptr;
  std::int64_t place = -1;  // of Crossings::places
};

/// A use of watched memory by a statement, in the arms of the lazy choices around it.
struct Access {
  ir::Buffer buffer;
  ir::Expr index, stored;  // stored null: read
  const ir::StmtNode* statement = nullptr;
  std::string_view atomic;  // the intrinsic of an update in one step
  bool adds = false;        // what is stored is made of what the element held
  bool local = false;       // what is stored comes from memory that each group has for itself
  std::vector<std::pair<ir::Expr, bool>> under;
};

/// Who used the elements of memory that all groups share, since the kernel began.
class Crossings {
 public:
  Crossings(std::string kernel, Buffers watched, RaceReport& report)
      : kernel_(std::move(kernel)), watched_(std::move(watched)), report_(report) {}
  bool watches(const ir::BufferNode* b) const { return watched_.count(b) > 0; }
  bool any() const { return !watched_.empty(); }

  /// Registers the points of a run; gives the place of point 0.
  std::int64_t add_points(const Setup& setup);
  void read(const Access& a, std::int64_t element, std::int64_t group, const Use& use);
  void write(const Access& a, std::int64_t element, std::int64_t group, std::uint64_t value,
             const Use& use);
  /// An element that data chooses, to which several points store.
  void blind(const Access& a, const Use& first, const Use& second);
  void race(const ir::BufferNode* buffer, std::int64_t element, const Use& first, const Use& second,
            std::string what);
  /// A run that leaves out iterations does not know all that a group has written.
  bool partial = false;

 private:
  struct Cell {
    std::uint64_t value = 0;
    std::int64_t writer = -1, reader = -1;  // groups
    Use write, read, other_read;            // the last two groups that read
    bool readers = false;                   // more than one group
    std::string_view atomic;
  };
  bool wrote(const ir::BufferNode* b, std::int64_t element, std::int64_t group,
             const Cell& cell) const;
  std::string kernel_;
  Buffers watched_;
  RaceReport& report_;
  std::unordered_map<const ir::BufferNode*, std::unordered_map<std::int64_t, Cell>> cells_;
  /// Groups that wrote the value another had written: (buffer, element, group).
  std::set<std::tuple<const ir::BufferNode*, std::int64_t, std::int64_t>> also_;
  std::set<std::pair<const ir::BufferNode*, std::int64_t>> writers_;  // buffer, group
  std::pair<const ir::BufferNode*, std::int64_t> last_writer_{nullptr, -1};
  std::unordered_map<std::int64_t, Cell>* at_ = nullptr;  // the cells of at_buffer_
  const ir::BufferNode* at_buffer_ = nullptr;
  Cell& cell(const ir::BufferNode* b, std::int64_t element);
  std::vector<std::string> axes_;
  std::vector<std::vector<std::int64_t>> places_;
  std::string text(const Use& use) const;
};

class Run {
 public:
  Run(const Setup& setup, const TargetInfo& machine, Crossings& crossings, RaceReport& report,
      const std::unordered_map<const ir::VarNode*, std::int64_t>& symbols);
  void run();

 private:
  /// Who touched an element since the barrier that `epoch` counts.
  struct Cell {
    std::uint64_t value = 0;
    const ir::StmtNode *wrote = nullptr, *read = nullptr;
    std::int32_t writer = -1, reader = -1, other_reader = -1;
    std::uint32_t epoch = 0;
    bool writers = false, readers = false;  // more than one point
    std::string_view atomic;
  };
  /// The cells of a buffer: those of its size in a row, and any others.
  struct Cells {
    std::vector<Cell> row;
    std::unordered_map<std::int64_t, Cell> others;
  };
  /// A write of Async work that no wait has finished yet.
  struct Started {
    const ir::BufferNode* buffer;
    std::int64_t element;
    std::uint64_t value;
    const ir::StmtNode* statement;
  };
  using Under = std::vector<std::pair<ir::Expr, bool>>;

  // ---- race_run.cpp: statements
  void find_buffers();
  bool shared_by_group(const ir::BufferNode* b) const;
  bool watched(const ir::BufferNode* b) const;
  bool matters(const ir::Stmt& s);
  /// What a loop's variable decides of the uses of watched memory inside.
  enum class Decides : std::uint8_t { nothing, whether, where };
  Decides decides(const ir::ForNode* loop);
  bool in_group_memory(const ir::Stmt& s);
  void exec(const ir::Stmt& s, const Points& active);
  void wait(const ir::WaitNode* t, const Points& active);
  void branch(const ir::Stmt& s, const Points& active);
  void loop(const ir::Stmt& s, const Points& active);
  void iterations(const ir::ForNode* t, const Points& active, const Numbers& low,
                  const Numbers& count);

  // ---- race_access.cpp: memory
  void find_reads(const ir::Expr& e, const ir::StmtNode* s, const Under& under,
                  std::vector<Access>& out) const;
  const std::vector<Access>& accesses_of(const ir::Stmt& s);
  bool is_local(const ir::Expr& e) const;
  void touch_all(const ir::Stmt& s, const Points& active);
  void touch(const Access& a, const Points& active);
  void touch_cell(const Access& a, std::int64_t element, std::int32_t p, std::uint64_t value);
  Cell& cell_of(Cells& cells, std::int64_t element);
  void check_flying(const Access& a, std::int64_t element, std::int32_t p);
  void write(const Access& a, Cell& cell, std::int64_t element, std::int32_t p,
             std::uint64_t value);
  void unchecked(std::string what);
  Use use(const ir::StmtNode* s, std::int64_t point) const;
  void race(const ir::BufferNode* b, std::int64_t element, const ir::StmtNode* first,
            std::int64_t first_point, const ir::StmtNode* second, std::int64_t second_point,
            std::string what);

  const Setup& setup_;
  const TargetInfo& machine_;
  Crossings& crossings_;
  RaceReport& report_;
  std::int64_t place_ = 0, accesses_left_ = 0;
  bool certain_ = true;  // the statement at hand happens: no condition on data around it

  PointValues values_;
  Buffers own_, inside_;
  std::unordered_set<const ir::VarNode*> local_;  // variables whose values come from such memory
  std::unordered_map<const ir::StmtNode*, bool> matters_, grouped_;
  std::unordered_map<const ir::ForNode*, Decides> decides_;
  std::unordered_map<const ir::StmtNode*, std::vector<Access>> accesses_;
  std::unordered_map<const ir::BufferNode*, Cells> cells_;
  std::uint32_t epoch_ = 1;             // counts barriers
  const ir::VarNode* token_ = nullptr;  // of the Async around the statement that runs
  std::map<std::pair<std::int64_t, const ir::VarNode*>, std::deque<std::vector<Started>>> started_;
  std::unordered_map<const ir::BufferNode*,
                     std::unordered_map<std::int64_t, std::pair<std::int64_t, const ir::StmtNode*>>>
      in_flight_;
};

/// Whether s is a barrier.
bool is_sync(const ir::Stmt& s);

}  // namespace weft::pass::races
