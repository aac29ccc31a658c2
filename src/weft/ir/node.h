// SPDX-License-Identifier: Apache-2.0
#pragma once
// The language: immutable, reference-counted nodes. Grammar on one page:
//
//   PrimFunc := name, params (Var | Buffer)*, attrs, body: Stmt (a root BlockRealize until lowered)
//   Block    := name, iter vars (S|R|scan|opaque), reads, writes, init?, body, alloc buffers, match
//   buffers Stmt     := Store | Seq | For | If | While | Let | Assert | Evaluate | Allocate |
//   BlockRealize
//             | Launch | Async | Wait | Collective
//   Expr     := Var | imm | Cast | binary | Not | Select | Call | Load | Ramp | Broadcast | Let |
//   Reduce(te)
//
// Meaning. Index arithmetic is int64 unless narrowed with proof. floordiv/floormod round toward
// -inf; `div` is C division on integers and true division on floats; `mod` is the C remainder.
// Signed overflow wraps in the interpreter and must not be relied upon. `select` evaluates both
// arms, the intrinsic `if_then_else` only one. Loops run extent times from min (extent <= 0: not at
// all). A Block sees the outside only through its iter bindings and its regions. `init` runs for a
// point when all R iters are at their minimum. `predicate` false skips the instance. Identity: a
// Var is its node; a Block keeps its `id` across rewrites; a loop is known by its variable.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/dtype.h"
#include "weft/base/json.h"
#include "weft/base/ref.h"

namespace weft::ir {

enum class ExprKind : std::uint8_t {
  var,
  int_imm,
  float_imm,
  string_imm,
  cast,
  add,
  sub,
  mul,
  div,
  mod,
  floordiv,
  floormod,
  min,
  max,  // Binary, arithmetic
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  and_,
  or_,  // Binary, result bool
  not_,
  select,
  call,
  load,
  ramp,
  broadcast,
  let,
  reduce,
};
enum class StmtKind : std::uint8_t {
  store,
  seq,
  for_,
  if_,
  while_,
  let,
  assert_,
  evaluate,
  allocate,
  block_realize,
  launch,
  async,
  wait,
  collective,
};

/// Levels of an expression: what walks one, and what frees one, calls itself once a level.
inline constexpr int kMaxExprDepth = 4000;
/// Error(value, "ir.build.depth").
[[noreturn]] void refuse_depth(DType type);

struct ExprNode : RefCounted {
  const ExprKind kind;
  const DType dtype;
  const std::uint16_t depth;  // levels, this one included

 protected:
  ExprNode(ExprKind k, DType t, int below = 0)
      : kind(k), dtype(t), depth(static_cast<std::uint16_t>(below + 1)) {
    if (below >= kMaxExprDepth) refuse_depth(t);
  }
};
using Expr = Ref<const ExprNode>;
using Exprs = std::vector<Expr>;

/// Levels of the deepest of some expressions; null counts nothing.
inline int depth_of(const Expr& e) { return e ? e->depth : 0; }
inline int depth_of(const Expr& a, const Expr& b) {
  const int x = depth_of(a), y = depth_of(b);
  return x < y ? y : x;
}
inline int depth_of(const Exprs& list) {
  int out = 0;
  for (const Expr& e : list) {
    if (e && e->depth > out) out = e->depth;
  }
  return out;
}

struct StmtNode : RefCounted {
  const StmtKind kind;
  mutable std::int32_t line = 0;  // in the source text, 0: none; no part of the meaning

 protected:
  explicit StmtNode(StmtKind k) : kind(k) {}
};
using Stmt = Ref<const StmtNode>;

/// String keys to values; insertion-ordered object.
using Annotations = Json::Object;

// ---- expressions

struct VarNode final : ExprNode {
  std::string name;
  VarNode(std::string n, DType t) : ExprNode(ExprKind::var, t), name(std::move(n)) {}
};
using Var = Ref<const VarNode>;

struct IntImmNode final : ExprNode {  // also bool (0, 1) and unsigned (bit pattern)
  std::int64_t value;
  IntImmNode(DType t, std::int64_t v) : ExprNode(ExprKind::int_imm, t), value(v) {}
};

struct FloatImmNode final : ExprNode {
  double value;
  FloatImmNode(DType t, double v) : ExprNode(ExprKind::float_imm, t), value(v) {}
};

struct StringImmNode final : ExprNode {
  std::string value;
  explicit StringImmNode(std::string v)
      : ExprNode(ExprKind::string_imm, dtypes::handle), value(std::move(v)) {}
};

struct CastNode final : ExprNode {
  Expr value;
  CastNode(DType t, Expr v) : ExprNode(ExprKind::cast, t, depth_of(v)), value(std::move(v)) {}
};

struct BinaryNode final : ExprNode {
  Expr a, b;
  BinaryNode(ExprKind k, DType t, Expr x, Expr y)
      : ExprNode(k, t, depth_of(x, y)), a(std::move(x)), b(std::move(y)) {}
};

struct NotNode final : ExprNode {
  Expr a;
  explicit NotNode(Expr x) : ExprNode(ExprKind::not_, x->dtype, depth_of(x)), a(std::move(x)) {}
};

struct SelectNode final : ExprNode {
  Expr condition, a, b;
  SelectNode(Expr c, Expr x, Expr y)
      : ExprNode(ExprKind::select, x->dtype, std::max(depth_of(c), depth_of(x, y))),
        condition(std::move(c)),
        a(std::move(x)),
        b(std::move(y)) {}
};

struct CallNode final : ExprNode {
  std::string op;  // a name of intrinsics.def or of a function of the module
  Exprs args;
  CallNode(DType t, std::string o, Exprs a)
      : ExprNode(ExprKind::call, t, depth_of(a)), op(std::move(o)), args(std::move(a)) {}
};

struct BufferNode;
using Buffer = Ref<const BufferNode>;

struct LoadNode final : ExprNode {
  Buffer buffer;
  Exprs indices;  // only the last may be a vector
  LoadNode(DType t, Buffer b, Exprs i)
      : ExprNode(ExprKind::load, t, depth_of(i)), buffer(std::move(b)), indices(std::move(i)) {}
};

struct RampNode final : ExprNode {  // base, base + stride, ...
  Expr base, stride;
  RampNode(Expr b, Expr s, int lanes)
      : ExprNode(ExprKind::ramp, b->dtype.with_lanes(lanes), depth_of(b, s)),
        base(std::move(b)),
        stride(std::move(s)) {}
};

struct BroadcastNode final : ExprNode {
  Expr value;
  BroadcastNode(Expr v, int lanes)
      : ExprNode(ExprKind::broadcast, v->dtype.with_lanes(lanes), depth_of(v)),
        value(std::move(v)) {}
};

struct LetNode final : ExprNode {
  Var var;
  Expr value, body;
  LetNode(Var x, Expr v, Expr b)
      : ExprNode(ExprKind::let, b->dtype, depth_of(v, b)),
        var(std::move(x)),
        value(std::move(v)),
        body(std::move(b)) {}
};

// ---- buffers and regions

/// A symbolic tensor. Never real storage. Identity is the node.
struct BufferNode : RefCounted {  // the te front end derives from it
  std::string name;
  DType dtype;
  Exprs shape;
  Exprs strides;                 // in elements; empty: compact row-major
  Expr elem_offset;              // null: 0
  std::string scope = "global";  // a memory row of the target
  int align = 64;                // bytes that the data pointer is aligned to
  /// Distributed buffers: how an index of `shape` maps to (axes..., local index); empty names: not
  /// distributed. vars are the logical indices, exprs one per axis name plus the local ones.
  std::vector<std::string> spatial_axes;
  std::vector<Var> layout_vars;
  Exprs layout_exprs;
  std::size_t ndim() const { return shape.size(); }
};

struct Range {
  Expr min, extent;
};

struct BufferRegion {
  Buffer buffer;
  std::vector<Range> region;
};

// ---- te reductions (never in a PrimFunc's lowered form)

enum class IterKind : std::uint8_t { spatial, reduce, scan, opaque };  // printed S R C O

struct IterVar {
  Var var;
  Range dom;
  IterKind kind = IterKind::spatial;
};

/// result = combine(lhs, rhs), component-wise over tuples; identity per component.
struct ReducerNode final : RefCounted {
  std::string name;  // "sum", "max", ... or ""
  std::vector<Var> lhs, rhs;
  Exprs result, identity;
};
using Reducer = Ref<const ReducerNode>;

struct ReduceNode final : ExprNode {
  Reducer reducer;
  Exprs source;
  std::vector<IterVar> axes;
  Expr condition;     // null: always
  int component = 0;  // which of the tuple this expression is
  ReduceNode(Reducer r, Exprs s, std::vector<IterVar> a, Expr c, int i)
      : ExprNode(ExprKind::reduce, s[static_cast<std::size_t>(i)]->dtype,
                 std::max(depth_of(s), depth_of(c))),
        reducer(std::move(r)),
        source(std::move(s)),
        axes(std::move(a)),
        condition(std::move(c)),
        component(i) {}
};

// ---- statements

struct StoreNode final : StmtNode {
  Buffer buffer;
  Expr value;
  Exprs indices;
  StoreNode(Buffer b, Expr v, Exprs i)
      : StmtNode(StmtKind::store),
        buffer(std::move(b)),
        value(std::move(v)),
        indices(std::move(i)) {}
};

struct SeqNode final : StmtNode {
  std::vector<Stmt> stmts;
  explicit SeqNode(std::vector<Stmt> s) : StmtNode(StmtKind::seq), stmts(std::move(s)) {}
};

enum class ForKind : std::uint8_t { serial, parallel, vectorized, unrolled, bound };

struct ForNode final : StmtNode {
  Var var;
  Expr min, extent;
  ForKind for_kind;
  std::string axis;  // ForKind::bound: "blockIdx.x", "threadIdx.x", "vthread", "qpu", "pe.x" ...
  Annotations annotations;
  Stmt body;
  ForNode(Var v, Expr m, Expr e, ForKind k, std::string a, Annotations n, Stmt b)
      : StmtNode(StmtKind::for_),
        var(std::move(v)),
        min(std::move(m)),
        extent(std::move(e)),
        for_kind(k),
        axis(std::move(a)),
        annotations(std::move(n)),
        body(std::move(b)) {}
};

struct IfNode final : StmtNode {
  Expr condition;
  Stmt then_case, else_case;  // else_case may be null
  IfNode(Expr c, Stmt t, Stmt e)
      : StmtNode(StmtKind::if_),
        condition(std::move(c)),
        then_case(std::move(t)),
        else_case(std::move(e)) {}
};

struct WhileNode final : StmtNode {
  Expr condition;
  Stmt body;
  WhileNode(Expr c, Stmt b)
      : StmtNode(StmtKind::while_), condition(std::move(c)), body(std::move(b)) {}
};

struct LetStmtNode final : StmtNode {
  Var var;
  Expr value;
  Stmt body;
  LetStmtNode(Var x, Expr v, Stmt b)
      : StmtNode(StmtKind::let), var(std::move(x)), value(std::move(v)), body(std::move(b)) {}
};

struct AssertNode final : StmtNode {
  Expr condition;
  std::string message;
  AssertNode(Expr c, std::string m)
      : StmtNode(StmtKind::assert_), condition(std::move(c)), message(std::move(m)) {}
};

struct EvaluateNode final : StmtNode {
  Expr value;
  explicit EvaluateNode(Expr v) : StmtNode(StmtKind::evaluate), value(std::move(v)) {}
};

/// Storage for `buffer` during `body` (lowered form; blocks say alloc_buffers instead).
struct AllocateNode final : StmtNode {
  Buffer buffer;
  Annotations annotations;
  Stmt body;
  AllocateNode(Buffer b, Annotations a, Stmt s)
      : StmtNode(StmtKind::allocate),
        buffer(std::move(b)),
        annotations(std::move(a)),
        body(std::move(s)) {}
};

struct MatchBuffer {
  Buffer buffer;
  BufferRegion source;
};

/// Which part of an axis executes a block: [begin, end) of `axis`. Empty axis: all.
struct Execution {
  std::string axis;
  std::int64_t begin = 0, end = 0;
};

struct BlockNode final : RefCounted {
  std::uint64_t id = 0;  // kept by rewrites; fresh_block_id() for new blocks
  std::string name;
  std::vector<IterVar> iters;
  std::vector<BufferRegion> reads, writes;
  std::vector<Buffer> alloc_buffers;
  std::vector<MatchBuffer> match_buffers;
  Annotations annotations;
  Execution execution;
  Stmt init;  // may be null
  Stmt body;
};
using Block = Ref<const BlockNode>;
std::uint64_t fresh_block_id();

struct BlockRealizeNode final : StmtNode {
  Exprs iter_values;
  Expr predicate;  // never null; bool
  Block block;
  BlockRealizeNode(Exprs v, Expr p, Block b)
      : StmtNode(StmtKind::block_realize),
        iter_values(std::move(v)),
        predicate(std::move(p)),
        block(std::move(b)) {}
};

struct LaunchAxis {
  std::string axis;
  Var var;
  Expr extent;
};

/// A device kernel: every point of the axes runs `body`. Made by unify_thread_binding.
struct LaunchNode final : StmtNode {
  std::string name;
  std::vector<LaunchAxis> axes;
  Stmt body;
  LaunchNode(std::string n, std::vector<LaunchAxis> a, Stmt b)
      : StmtNode(StmtKind::launch), name(std::move(n)), axes(std::move(a)), body(std::move(b)) {}
};

/// Starts `body` on a queue of the target; its completion signals `token` once more.
struct AsyncNode final : StmtNode {
  std::string queue;
  Var token;  // int64 counter
  Stmt body;
  AsyncNode(std::string q, Var t, Stmt b)
      : StmtNode(StmtKind::async), queue(std::move(q)), token(std::move(t)), body(std::move(b)) {}
};

/// Waits until at most `outstanding` signals of `token` are missing. `consumer` names the waiting
/// queue
/// ("" = the thread itself).
struct WaitNode final : StmtNode {
  Var token;
  Expr outstanding;
  std::string consumer;
  WaitNode(Var t, Expr n, std::string c)
      : StmtNode(StmtKind::wait),
        token(std::move(t)),
        outstanding(std::move(n)),
        consumer(std::move(c)) {}
};

enum class CollectiveKind : std::uint8_t { broadcast, reduce, all_reduce, shift, scatter, gather };

/// One communication among the points of `axis`: cross-thread reduction, lane rotation and chains
/// of processing elements alike. `dst` and `src` are regions as each participant sees them; `root`
/// is the owner (broadcast, reduce, scatter, gather) or the distance (shift).
struct CollectiveNode final : StmtNode {
  CollectiveKind collective;
  std::vector<std::string> axes;
  BufferRegion dst, src;
  Reducer reducer;  // null unless reducing
  Expr root;
  CollectiveNode(CollectiveKind k, std::vector<std::string> a, BufferRegion d, BufferRegion s,
                 Reducer r, Expr o)
      : StmtNode(StmtKind::collective),
        collective(k),
        axes(std::move(a)),
        dst(std::move(d)),
        src(std::move(s)),
        reducer(std::move(r)),
        root(std::move(o)) {}
};

// ---- functions and modules

/// A tensor parameter has a buffer (and `var` is its handle); a scalar parameter only a var.
struct Param {
  Var var;
  Buffer buffer;
};

struct PrimFuncNode final : RefCounted {
  std::string name = "main";
  std::vector<Param> params;
  Stmt body;
  Annotations attrs;  // "global_symbol", "noalias" ...
};
using PrimFunc = Ref<const PrimFuncNode>;

struct IRModuleNode final : RefCounted {
  std::vector<std::pair<std::string, PrimFunc>> functions;
  /// Null when absent.
  PrimFunc find(const std::string& name) const {
    for (const auto& [key, f] : functions) {
      if (key == name) return f;
    }
    return nullptr;
  }
};
using IRModule = Ref<const IRModuleNode>;

// ---- access by kind

inline bool is_binary(ExprKind k) { return k >= ExprKind::add && k <= ExprKind::or_; }
inline bool is_compare(ExprKind k) { return k >= ExprKind::eq && k <= ExprKind::ge; }

template <typename T>
struct kind_of;
template <>
struct kind_of<VarNode> {
  static constexpr auto value = ExprKind::var;
};
template <>
struct kind_of<IntImmNode> {
  static constexpr auto value = ExprKind::int_imm;
};
template <>
struct kind_of<FloatImmNode> {
  static constexpr auto value = ExprKind::float_imm;
};
template <>
struct kind_of<StringImmNode> {
  static constexpr auto value = ExprKind::string_imm;
};
template <>
struct kind_of<CastNode> {
  static constexpr auto value = ExprKind::cast;
};
template <>
struct kind_of<NotNode> {
  static constexpr auto value = ExprKind::not_;
};
template <>
struct kind_of<SelectNode> {
  static constexpr auto value = ExprKind::select;
};
template <>
struct kind_of<CallNode> {
  static constexpr auto value = ExprKind::call;
};
template <>
struct kind_of<LoadNode> {
  static constexpr auto value = ExprKind::load;
};
template <>
struct kind_of<RampNode> {
  static constexpr auto value = ExprKind::ramp;
};
template <>
struct kind_of<BroadcastNode> {
  static constexpr auto value = ExprKind::broadcast;
};
template <>
struct kind_of<LetNode> {
  static constexpr auto value = ExprKind::let;
};
template <>
struct kind_of<ReduceNode> {
  static constexpr auto value = ExprKind::reduce;
};
template <>
struct kind_of<StoreNode> {
  static constexpr auto value = StmtKind::store;
};
template <>
struct kind_of<SeqNode> {
  static constexpr auto value = StmtKind::seq;
};
template <>
struct kind_of<ForNode> {
  static constexpr auto value = StmtKind::for_;
};
template <>
struct kind_of<IfNode> {
  static constexpr auto value = StmtKind::if_;
};
template <>
struct kind_of<WhileNode> {
  static constexpr auto value = StmtKind::while_;
};
template <>
struct kind_of<LetStmtNode> {
  static constexpr auto value = StmtKind::let;
};
template <>
struct kind_of<AssertNode> {
  static constexpr auto value = StmtKind::assert_;
};
template <>
struct kind_of<EvaluateNode> {
  static constexpr auto value = StmtKind::evaluate;
};
template <>
struct kind_of<AllocateNode> {
  static constexpr auto value = StmtKind::allocate;
};
template <>
struct kind_of<BlockRealizeNode> {
  static constexpr auto value = StmtKind::block_realize;
};
template <>
struct kind_of<LaunchNode> {
  static constexpr auto value = StmtKind::launch;
};
template <>
struct kind_of<AsyncNode> {
  static constexpr auto value = StmtKind::async;
};
template <>
struct kind_of<WaitNode> {
  static constexpr auto value = StmtKind::wait;
};
template <>
struct kind_of<CollectiveNode> {
  static constexpr auto value = StmtKind::collective;
};

/// Checked downcast: null when the node is of another kind.
template <typename T>
const T* as(const Expr& e) {
  if constexpr (std::is_same_v<T, BinaryNode>) {
    return e && is_binary(e->kind) ? static_cast<const T*>(e.get()) : nullptr;
  } else {
    return e && e->kind == kind_of<T>::value ? static_cast<const T*>(e.get()) : nullptr;
  }
}
template <typename T>
const T* as(const Stmt& s) {
  return s && s->kind == kind_of<T>::value ? static_cast<const T*>(s.get()) : nullptr;
}

/// Value of an integer constant; null pointer semantics through `out`.
inline bool is_const_int(const Expr& e, std::int64_t* out = nullptr) {
  const auto* imm = as<IntImmNode>(e);
  if (imm && out) *out = imm->value;
  return imm != nullptr;
}
inline bool is_const_int_value(const Expr& e, std::int64_t v) {
  const auto* imm = as<IntImmNode>(e);
  return imm && imm->value == v;
}

}  // namespace weft::ir
