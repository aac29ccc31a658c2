// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interpreter's inside: a function is compiled once into a tree of small objects with virtual
// `run`, `i`, `f`, `v`; variables are slots, buffers are views. A Frame is one thread's state.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/ir/eval.h"
#include "weft/ir/fiber.h"
#include "weft/ir/interpret.h"

namespace weft::ir::interp {

inline constexpr int kMaxRank = 16;

/// A buffer's storage as a thread sees it now.
struct View {
  char* data = nullptr;
  std::int64_t shape[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};  // in elements
};

class Machine;
struct Group;
struct Code;
struct Token;
struct Tokens;

/// Bytes of shared memory.
struct Reach {
  const char *begin = nullptr, *end = nullptr;
  const BufferNode* buffer = nullptr;
  bool meets(const Reach& o) const { return begin < o.end && o.begin < end; }
};

/// Work under Async that nobody has waited for, with its starter's variables as they were.
struct Started {
  int token = 0;  // slot
  const Code* body = nullptr;
  std::vector<Lane> slots;
  std::vector<View> views;
  std::vector<Reach> reads;  // tiles, until it is done
};

struct Frame {
  Machine* machine = nullptr;
  Group* group = nullptr;              // inside a launch whose threads wait for each other
  std::size_t thread = 0;              // which of the group
  const StmtNode* current = nullptr;   // the statement being run
  const std::uint8_t* mask = nullptr;  // active lanes of a guarded vector expression; null: all
  std::vector<Lane> slots;
  std::vector<View> views;
  std::vector<std::vector<char>> storage;            // per allocation site
  std::vector<std::vector<char>>* shared = nullptr;  // of the group, per site
  std::vector<std::vector<char>>* global = nullptr;  // of the launch, per site
  std::vector<Started> started;
  Token* waited = nullptr;  // where the thread stands: a token and the parity it waits for,
  std::int64_t parity = 0, meeting = 0, expected = 0;  // or a barrier of so many
  std::int64_t met = 0;  // Group::clock when the thread last met threads of other warp groups
  /// Does started work of one token, oldest first, until so much is left.
  void finish(int token, std::size_t left);
};

/// The threads of one group of a launch that wait for each other.
struct Group {
  std::vector<Frame> frames;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<const Code*> waiting;   // where each thread stands
  std::vector<std::int64_t> extents;  // of the group's axes, outermost first
  std::vector<std::string> axes;
  std::shared_ptr<Tokens> tokens;  // null: the kernel has none
  bool cancelled = false;
  std::int64_t clock = 0;  // counts tiles that were stored
  std::size_t blocks = 1;  // of a cluster, one after another in `frames`
  std::size_t block_of(std::size_t thread) const { return thread / (frames.size() / blocks); }
  /// The thread at the same place in another block of the cluster; faults where that has ended.
  Frame& beside(Frame& fr, std::int64_t block);
  /// Called by a thread: stops until all have come here.
  void arrive(Frame& fr, const Code* where);
};
struct Cancelled {};  // thrown inside the threads of a group of which one has failed

/// Small buffer of lanes on the stack, large on the heap.
class Lanes {
 public:
  explicit Lanes(int n) {
    if (n > kSmall) heap_.resize(static_cast<std::size_t>(n));
  }
  operator Lane*() { return heap_.empty() ? small_ : heap_.data(); }

 private:
  static constexpr int kSmall = 32;
  Lane small_[kSmall];
  std::vector<Lane> heap_;
};

/// A compiled expression. Scalars answer i (integers, bools) or f (floats); vectors answer v.
struct Exp {
  DType type;
  int slot = -1;  // a plain variable
  virtual ~Exp() = default;
  virtual std::int64_t i(Frame&) const { return 0; }
  virtual double f(Frame&) const { return 0; }
  virtual void v(Frame& fr, Lane* out) const { *out = scalar(fr); }
  Lane scalar(Frame& fr) const {
    Lane l;
    if (type.is_float()) l.f = f(fr);
    else l.i = i(fr);
    return l;
  }
};
using ExpPtr = std::unique_ptr<Exp>;

/// A compiled statement.
struct Code {
  virtual ~Code() = default;
  virtual void run(Frame&) const = 0;
  /// When all threads of a group have arrived here.
  virtual void meet(Group&) const {}
  /// Tiles of shared memory that the statement would read now.
  virtual void reads(Frame&, std::vector<Reach>&) const {}
  /// Of a thread that stands here: whether it may go on by itself.
  virtual bool ready(Group&, std::size_t) const { return false; }
  /// Whether all threads of a group come here, or some of them: then which barrier it is.
  virtual bool together() const { return true; }
  virtual std::int64_t meeting(const Frame&) const { return -1; }
};
using CodePtr = std::unique_ptr<Code>;

/// An access of one buffer: view and indices.
struct Access {
  int view = 0;
  BufferNode const* buffer = nullptr;
  std::vector<ExpPtr> index;
  bool vector = false;

  /// Element offset of scalar indices; throws out of bounds.
  std::int64_t offset(Frame& fr) const;
  [[noreturn]] void out_of_bounds(Frame& fr, std::size_t dim, std::int64_t value) const;
};

/// Writes the active lanes of a vector access.
void store_lanes(Frame& fr, const Access& access, const Lane* values);
/// Reads and writes one element of a type.
Lane read_element(const char* at, DType t);
void write_element(char* at, DType t, Lane v);

/// One actual argument, from outside or from a calling function.
struct Actual {
  Lane scalar{};
  bool tensor = false;
  bool inner = false;  // from a caller: a part of `view`, whose owner has `rank` dimensions
  View view;
  std::size_t rank = 0;
  std::int64_t offset = 0;  // elements into the view
  const BufferNode* source = nullptr;
};

struct Param {
  DType type;
  int slot = -1;  // a scalar
  int view = -1;  // a tensor
  BufferNode const* buffer = nullptr;
  std::vector<int> shape_slots,
      stride_slots;  // plain variables that the argument defines, -1: an expression
  int offset_slot = -1;
  std::vector<ExpPtr> shape, strides;
  std::string name;
};

struct Function {
  std::string name;
  std::vector<Param> params;
  CodePtr body;
  std::size_t slots = 0, views = 0, sites = 0;
};

/// One run: the module's compiled functions and the budget of steps.
class Machine {
 public:
  Machine(const IRModuleNode* module, std::int64_t step_limit)
      : module_(module), steps(step_limit < 0 ? INT64_MAX : step_limit) {}
  const Function& compiled(const PrimFunc& f);
  /// Null when the module has no such function.
  PrimFunc find(const std::string& name) const { return module_ ? module_->find(name) : nullptr; }
  void call(const PrimFunc& f, std::span<const InterpretArg> args);
  void call(const PrimFunc& f, std::vector<Actual>& args);
  void tick(const StmtNode* at) {
    if (--steps < 0) exhausted(at);
    if ((steps & 0xfff) == 0) poll_interrupt();
  }
  [[noreturn]] static void exhausted(const StmtNode* at);

 private:
  const IRModuleNode* module_;
  std::unordered_map<const PrimFuncNode*, std::unique_ptr<Function>> functions_;

 public:
  std::int64_t steps;
  int depth = 0;
  bool order_only = false;  // interpret_order
  /// Which thread goes on where several may. first: whoever waits for a token goes on at once.
  enum class Turns : std::uint8_t { scattered, lowest_first, highest_first };
  Turns turns = Turns::scattered;
  /// Of the loop of points that runs, in functions with kDistinctElements: who stored an element
  /// first, and what.
  std::unordered_map<const char*, std::pair<std::vector<std::int64_t>, std::uint64_t>> stored;
  std::vector<std::shared_ptr<const void>> maps;  // tensor maps that variables point to
};

/// A fault at the frame's statement.
[[noreturn]] void fault(const Frame& fr, std::string_view slug, std::string message);

// ---- compiling

class Compiler {
 public:
  explicit Compiler(Machine& machine) : machine_(machine) {}
  std::unique_ptr<Function> function(const PrimFunc& f);

 private:
  // interpret_expr.cpp
  ExpPtr expr(const Expr& e);
  ExpPtr scalar_binary(const BinaryNode* e);
  ExpPtr vector(const Expr& e);
  ExpPtr call(const CallNode* e);
  ExpPtr load(const LoadNode* e);
  Access access(const Buffer& b, const Exprs& indices);
  // interpret_stmt.cpp
  CodePtr stmt(const Stmt& s);
  CodePtr store(const StoreNode* s);
  CodePtr block(const BlockRealizeNode* s);
  CodePtr launch(const LaunchNode* s);
  CodePtr collective(const CollectiveNode* s);
  CodePtr allocation(const Buffer& b, CodePtr body);
  CodePtr evaluate(const EvaluateNode* s);
  // interpret_distinct.cpp
  void find_promise(const PrimFunc& f);
  CodePtr checked_store(const StoreNode* s);
  CodePtr point_loop(const Stmt& s, const std::function<CodePtr()>& compile);
  CodePtr any_stmt(const Stmt& s);
  // interpret_roles.cpp
  Access role_access(const Expr& e);
  ExpPtr tensor_map(const CallNode* e);
  CodePtr role(const EvaluateNode* s, const CallNode* c);

  int slot(const VarNode* v);
  int fresh_slot() { return static_cast<int>(slots_++); }
  int view(const BufferNode* b);

  Machine& machine_;
  std::unordered_map<const VarNode*, int> slot_of_;
  std::unordered_map<const BufferNode*, int> view_of_;
  std::unordered_map<const VarNode*, Range> ranges_;
  std::size_t slots_ = 0, views_ = 0, sites_ = 0;
  bool in_launch_ = false, in_bound_ = false;
  std::vector<const ForNode*> bound_loops_;    // around, outermost first
  bool checks_distinct_ = false;               // the function has kDistinctElements
  std::vector<const VarNode*> points_;         // of the loops of points around, outermost first
  std::unordered_set<const BufferNode*> own_;  // allocated inside loops of points
};

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

template <typename T>
std::unique_ptr<T> make(const StmtNode* node) {
  auto p = std::make_unique<T>();
  p->node = static_cast<decltype(p->node)>(node);
  return p;
}

std::shared_ptr<Tokens> make_tokens();

/// Whether an axis counts the groups of a launch.
bool is_grid_axis(const std::string& axis);

/// True when `s` holds a barrier or a collective: its threads must wait for each other.
bool waits(const Stmt& s);

}  // namespace weft::ir::interp
