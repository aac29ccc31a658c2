// SPDX-License-Identifier: Apache-2.0
#pragma once
// One kernel over (qpu, lane) as a program of the kernel language: every IR value becomes a vector
// of 16 lanes, every condition that differs between lanes a mask. Private to this folder.
//
// Masks. `lanes` is a variable of ones and zeros; null means all lanes. `prefix`: the active lanes
// are 0 .. n - 1 with n the smallest of `counts` (read from lane 0); then stores are one exact DMA,
// and the lane's number is at most n - 1, so that the other lanes compute what lane n - 1 does.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/node.h"
#include "weft/stages/conditions.h"
#include "weft/stages/linear.h"
#include "weft/targets/qpu/language/language.h"

namespace weft::qpu::tensor {

using Value = const ast::Expr*;

struct Mask {
  Value lanes = nullptr;
  int depth = 0;
  bool prefix = true;
  std::vector<Value> counts;
};

class Lowerer {
 public:
  explicit Lowerer(const ir::PrimFunc& kernel);
  std::unique_ptr<ast::Program> run();

 private:
  // ---- values (express.cpp)
  Value eval(const ir::Expr& e);
  Value binary(const ir::BinaryNode* e);
  Value call(const ir::CallNode* e);
  Value convert(const ir::Expr& from, DType to);
  Value integer_quotient(const ir::BinaryNode* e, Value x, Value y);
  Value reduce_lanes(const std::string& how, DType type, Value x);
  const ast::Bool* condition(const ir::Expr& e);
  /// Whether lanes may see different values.
  bool varying(const ir::Expr& e) const;
  /// Whether lanes see different values only because their numbers differ.
  bool varies_by_lane_alone(const ir::Expr& e) const;
  [[noreturn]] void refuse(std::string_view rule, std::string what) const;

  // ---- memory (access.cpp)
  struct Load {
    const ir::LoadNode* node;
    Value address;
    std::uint32_t var;
    Mask mask;
  };
  /// What a register holds since a read, for reads of the same word later in straight code.
  struct Known {
    ir::Buffer buffer;
    ir::Expr index;
    Value lanes = nullptr;  // that took part; null: all
    Value value = nullptr;
  };
  /// Forgets what is read from here on, when it ends: reads under a condition, or of a loop's step.
  class Scope {
   public:
    explicit Scope(Lowerer& l) : known_(l.known_), size_(l.known_.size()) {}
    ~Scope() { known_.resize(std::min(size_, known_.size())); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::vector<Known>& known_;
    std::size_t size_;
  };
  /// Asks early for what the next statements of a list read.
  void read_ahead(const std::vector<ir::Stmt>& list, std::size_t from);
  /// Brings every memory read of `e` into a register.
  void fetch(const ir::Expr& e);
  void collect(const ir::Expr& e, const Mask& mask);
  void collect_where(const ir::Expr& e, const ast::Bool* when, const Mask& mask);
  bool reads_inside(const ir::Expr& e);
  void request(const ir::LoadNode* node, const Mask& mask);
  void receive_all();
  Value coherent(const ir::LoadNode* node, const Mask& mask);
  Value address(const ir::Buffer& buffer, const ir::Expr& index);
  Value safe(Value address, const ir::Expr& index, const Mask& mask);
  void write(const ir::StoreNode* s, Value address);
  void scatter(Value value, Value address);
  void put(Value value, Value address, Value count);
  std::uint32_t local(const ir::Buffer& buffer, const ir::Exprs& indices);

  // ---- statements (lower.cpp)
  void statement(const ir::Stmt& s);
  void store(const ir::StoreNode* s);
  void branch(const ir::IfNode* s);
  void loop(const ir::ForNode* s);
  void masked_loop(const ir::ForNode* s);
  void while_loop(const ir::WhileNode* s);
  void allocate(const ir::AllocateNode* s);
  /// `certain`: some lane takes part whatever the values are.
  void with_mask(Mask mask, const ir::Stmt& body, bool certain = false);
  /// How many lanes take part under a mask of the first ones; null: all of them.
  Value count_of(const Mask& mask);
  /// The lane's number, at most the last lane's of such a mask.
  Value clamped_lane(const Mask& mask);
  bool must_unroll(const ir::ForNode* s) const;

  // ---- loops of straight code (pipeline.cpp)
  struct Stream {
    const ir::LoadNode* node = nullptr;
    const ir::StoreNode* store = nullptr;
    std::uint32_t pointer = 0, value = 0;
    Value step = nullptr;  // bytes; null: it stands still
  };
  struct Streams {
    std::vector<Stream> loads, stores;
    std::vector<const ir::LoadNode*> twins;  // read what another of `loads` reads
  };
  /// A last step of few lanes.
  struct Tail {
    struct Hop {
      std::int64_t step, lane;  // elements
      std::uint32_t now;
      Value last;
    };
    std::uint32_t hop(Lowerer& l, std::int64_t step, std::int64_t lane);
    Mask mask;
    Value lane = nullptr;
    std::uint32_t over = 0;  // places that a lane is behind the last one that takes part
    std::vector<Hop> hops;
  };
  /// A loop of straight code with its streams.
  struct Flow {
    const ir::ForNode* loop = nullptr;
    std::vector<ir::Stmt> body;
    ir::Expr left;  // lanes of the last step; null: all
    Streams streams;
    Tail tail;
    std::size_t moving = 0;  // loads, the first of the list
    std::uint32_t step = 0;
    Value begin = nullptr, end = nullptr, last = nullptr;
  };
  void start_tail(Flow& flow);
  void start_stream(Flow& flow, Stream& stream, const ir::Buffer& b, const ir::Expr& index);
  void start_streams(Flow& flow);
  void compute_step(Flow& flow);
  void compute_last(Flow& flow);
  void move_to(const Flow& flow, Value to);
  void advance(const Stream& t);
  void next_step(const Flow& flow);
  void run_far_ahead(Flow& flow, std::int64_t steps);
  void run_one_ahead(Flow& flow, bool once);
  ir::Expr last_lanes(const ir::ForNode* s, const ir::IfNode* guard);
  /// False: some statement is no store of streams.
  bool read_streams(const ir::ForNode* s, const std::vector<ir::Stmt>& body, bool tail,
                    Streams& out) const;
  /// False: the loop has another shape, and nothing was emitted.
  bool pipeline(const ir::ForNode* s);

  // ---- sums with a factor that is the same in all lanes (rounds.cpp)
  struct Round;
  /// False: the loop has another shape, and nothing was emitted.
  bool rounds(const ir::ForNode* s);
  bool read_round(const ir::ForNode* s, Round& round) const;
  void start_rounds(Round& round);
  void one_round(Round& round, std::uint32_t left);
  void provide(const Round& round, std::size_t step, std::size_t first);
  void short_round(Round& round, std::int64_t steps, bool follows);
  void ask_next(Round& round, bool stay);

  // ---- little helpers
  void ask(std::uint32_t pointer, bool second);  // a vector, of TMU 0 or 1
  void take(std::uint32_t to, bool second);
  std::uint32_t fresh(Value value);
  Value var(std::uint32_t v) { return b_.expr(ast::Op::var, nullptr, nullptr, v); }
  Value keep(Value value) { return var(fresh(value)); }
  Value settle(Value value);
  void assign(std::uint32_t v, Value value);
  void assign_masked(std::uint32_t v, Value value, const Mask& mask);
  Value constant(std::int64_t n) { return b_.constant(static_cast<std::uint32_t>(n)); }
  Value op(ast::Op o, Value x, Value y = nullptr) { return b_.expr(o, x, y); }
  const ast::Bool* compare(ast::Compare c, Value x, Value y, ast::Kind k = ast::Kind::integer);
  const ast::Bool* both(const ast::Bool* x, const ast::Bool* y);
  const ast::Bool* opposite(const ast::Bool* b);
  void open_if(const ast::Bool* c) { b_.open(ast::Stmt::Op::if_, c, false); }
  void open_while(const ast::Bool* c) { b_.open(ast::Stmt::Op::while_, c, false); }
  const ast::Bool* active(const Mask& mask) {
    return compare(ast::Compare::ne, mask.lanes, constant(0));
  }

  const ir::PrimFunc& kernel_;
  Builder b_;
  arith::Analyzer analyzer_;
  std::unordered_map<const ir::VarNode*, Value> vars_;
  std::unordered_set<const ir::VarNode*> varying_;
  std::unordered_map<const ir::BufferNode*, Value> pointers_;
  struct Registers {
    std::vector<std::uint32_t> vars;
    int depth = 0;
  };
  std::unordered_map<const ir::BufferNode*, Registers> locals_;
  std::unordered_set<const ir::BufferNode*> stored_;  // global buffers this kernel writes
  std::unordered_map<const void*, Value> loaded_;     // LoadNode -> register
  std::unordered_map<const void*, Value> streams_;    // StoreNode -> address in a pipelined loop
  std::vector<Load> pending_;
  std::vector<Known> known_;
  /// Loops made here: maps above know their nodes. What is being lowered stays where it is while
  /// loops inside it add theirs.
  std::deque<ir::Stmt> tails_;
  ir::Var lane_;
  std::int64_t lanes_ = 16;
  Mask mask_;
  ir::Stmt now_;  // for messages
};

// ---- mathematics on the SFU's approximations, refined (math.cpp)
/// Null when `name` has no form here.
Value math(const std::string& name, Value x, Value y);
bool has_math(const std::string& name);

/// Program of one kernel function whose body is a Launch over qpu and lane.
std::unique_ptr<ast::Program> lower_kernel(const ir::PrimFunc& kernel);

}  // namespace weft::qpu::tensor
