// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/build.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/eval.h"
#include "weft/ir/intrinsics.h"

namespace weft::ir {

namespace {

[[noreturn]] void bad_types(std::string_view what, DType a, DType b) {
  throw Error(ErrorKind::dtype, "ir.build.types",
              cat("\"", what, "\" cannot join ", to_string(a), " and ", to_string(b)))
      .help("insert T.Cast on one side");
}

std::string_view op_name(ExprKind kind) {
  static constexpr std::string_view names[] = {"+",  "-",   "*",   "/",   "%",  "//",
                                               "%",  "min", "max", "==",  "!=", "<",
                                               "<=", ">",   ">=",  "and", "or"};
  return names[static_cast<int>(kind) - static_cast<int>(ExprKind::add)];
}

bool fold_float(ExprKind kind, DType t, double x, double y, double* out) {
  if (is_compare(kind)) *out = eval_float_compare(kind, x, y);
  else if (kind == ExprKind::add || kind == ExprKind::sub || kind == ExprKind::mul ||
           kind == ExprKind::div)
    *out = eval_float_binary(kind, t, x, y);
  else return false;  // min, max stay: NaN rules are the machine's
  return true;
}

/// Brings two operands to one type, or throws.
void match(ExprKind kind, Expr& a, Expr& b) {
  if (a->dtype == b->dtype) return;
  if (a->dtype.lanes != b->dtype.lanes) {
    if (a->dtype.lanes == 1) a = broadcast(a, b->dtype.lanes);
    else if (b->dtype.lanes == 1) b = broadcast(b, a->dtype.lanes);
    else bad_types(op_name(kind), a->dtype, b->dtype);
  }
  DType x = a->dtype.element(), y = b->dtype.element();
  if (x == y) return;
  if (x.is_int() && y.is_int()) {  // index types widen
    if (x.bits < y.bits) a = cast(b->dtype, a);
    else b = cast(a->dtype, b);
    return;
  }
  // A constant adapts to the other side when its value survives.
  auto adapt = [](Expr& constant, DType to) {
    const auto* i = as<IntImmNode>(constant);
    if (!i || i->dtype.is_bool()) return false;
    if (to.is_float() || wrap_int(i->value, to) == i->value) {
      constant =
          to.is_float() ? make_float(static_cast<double>(i->value), to) : make_int(i->value, to);
      return true;
    }
    return false;
  };
  if (a->dtype.lanes == 1 && (adapt(a, y) || adapt(b, x))) return;
  bad_types(op_name(kind), a->dtype, b->dtype);
}

}  // namespace

std::uint64_t fresh_block_id() {
  static std::atomic<std::uint64_t> next{1};
  return next++;
}

void refuse_depth(DType type) {
  throw Error(ErrorKind::value, "ir.build.depth",
              cat("an expression of type ", to_string(type), " is nested deeper than ",
                  kMaxExprDepth, " levels"))
      .help("store an inner part in a buffer, compute it as a tensor of its own, or loop");
}

Var make_var(std::string name, DType type) {
  return make_ref<const VarNode>(std::move(name), type);
}

Expr make_int(std::int64_t value, DType type) {
  if (type.lanes != 1) return broadcast(make_int(value, type.element()), type.lanes);
  return make_ref<const IntImmNode>(type, wrap_int(value, type));
}

Expr make_float(double value, DType type) {
  if (type.lanes != 1) return broadcast(make_float(value, type.element()), type.lanes);
  return make_ref<const FloatImmNode>(type, round_float(value, type));
}

Expr make_bool(bool value) { return make_ref<const IntImmNode>(dtypes::boolean, value); }
Expr make_string(std::string value) { return make_ref<const StringImmNode>(std::move(value)); }

Expr make_const(double value, DType type) {
  return type.is_float() ? make_float(value, type)
                         : make_int(static_cast<std::int64_t>(value), type);
}

Expr make_zero(DType type) { return make_const(0, type); }

Expr min_value(DType type) {
  if (type.is_float()) return make_float(-std::numeric_limits<double>::infinity(), type);
  if (type.is_uint() || type.is_bool()) return make_int(0, type);
  return make_int(
      type.bits == 64 ? std::numeric_limits<std::int64_t>::min() : -(1ll << (type.bits - 1)), type);
}

Expr max_value(DType type) {
  if (type.is_float()) return make_float(std::numeric_limits<double>::infinity(), type);
  if (type.is_bool()) return make_bool(true);
  if (type.is_uint())
    return make_int(type.bits == 64 ? -1 : static_cast<std::int64_t>((1ull << type.bits) - 1),
                    type);
  return make_int(
      type.bits == 64 ? std::numeric_limits<std::int64_t>::max() : (1ll << (type.bits - 1)) - 1,
      type);
}

Expr make_binary(ExprKind kind, Expr a, Expr b) {
  WEFT_CHECK(is_binary(kind) && a && b, "make_binary needs two operands");
  match(kind, a, b);
  DType t = a->dtype;
  DType result = kind >= ExprKind::eq ? dtypes::boolean.with_lanes(t.lanes) : t;
  if ((kind == ExprKind::and_ || kind == ExprKind::or_) && !t.is_bool())
    bad_types(op_name(kind), t, b->dtype);
  if ((kind == ExprKind::floordiv || kind == ExprKind::floormod || kind == ExprKind::mod) &&
      t.is_float()) {
    throw Error(ErrorKind::dtype, "ir.build.types",
                cat("\"", op_name(kind), "\" is for integers, not ", to_string(t)))
        .help(kind == ExprKind::floordiv ? "use T.floor(a / b)" : "use T.fmod(a, b)");
  }
  if (t.is_handle()) bad_types(op_name(kind), t, b->dtype);

  const auto* ia = as<IntImmNode>(a);
  const auto* ib = as<IntImmNode>(b);
  if (ia && ib) {
    std::int64_t v;
    if (eval_int_binary(kind, t, ia->value, ib->value, &v)) return make_int(v, result);
  }
  const auto* fa = as<FloatImmNode>(a);
  const auto* fb = as<FloatImmNode>(b);
  if (fa && fb) {
    double v;
    if (fold_float(kind, t, fa->value, fb->value, &v))
      return is_compare(kind) ? make_bool(v != 0) : make_float(v, result);
  }
  if (t.is_scalar() &&
      (t.is_integral() || t.is_bool())) {  // neutral and absorbing elements, integers only
    auto is = [](const IntImmNode* i, std::int64_t v) { return i && i->value == v; };
    switch (kind) {
      case ExprKind::add:
        if (is(ia, 0)) return b;
        if (is(ib, 0)) return a;
        break;
      case ExprKind::sub:
        if (is(ib, 0)) return a;
        break;
      case ExprKind::mul:
        if (is(ia, 1)) return b;
        if (is(ib, 1)) return a;
        if (is(ia, 0) && is_pure(b)) return a;
        if (is(ib, 0) && is_pure(a)) return b;
        break;
      case ExprKind::div:
      case ExprKind::floordiv:
        if (is(ib, 1)) return a;
        if (is(ia, 0)) return a;
        break;
      case ExprKind::mod:
      case ExprKind::floormod:
        if (is(ib, 1)) return make_int(0, t);
        if (is(ia, 0)) return a;
        break;
      case ExprKind::and_:
        if (is(ia, 1)) return b;
        if (is(ib, 1)) return a;
        if (is(ia, 0)) return a;
        if (is(ib, 0) && is_pure(a)) return b;
        break;
      case ExprKind::or_:
        if (is(ia, 0)) return b;
        if (is(ib, 0)) return a;
        if (is(ia, 1)) return a;
        if (is(ib, 1) && is_pure(a)) return b;
        break;
      case ExprKind::min:
      case ExprKind::max:
        if (a == b) return a;
        break;
      default: break;
    }
  }
  return make_ref<const BinaryNode>(kind, result, std::move(a), std::move(b));
}

Expr cast(DType type, Expr value) {
  if (type.lanes != value->dtype.lanes) {
    if (value->dtype.lanes == 1) return broadcast(cast(type.element(), value), type.lanes);
    bad_types("cast", value->dtype, type);
  }
  if (value->dtype == type) return value;
  if (value->dtype.is_handle() || type.is_handle())
    throw Error(ErrorKind::dtype, "ir.build.types",
                cat("cannot cast ", to_string(value->dtype), " to ", to_string(type)))
        .help("handles are parameters only: read an element of the buffer that matches it");
  if (const auto* i = as<IntImmNode>(value)) {
    if (type.is_float()) {
      double v = i->dtype.is_uint() ? static_cast<double>(static_cast<std::uint64_t>(i->value))
                                    : static_cast<double>(i->value);
      return make_float(v, type);
    }
    if (type.is_integral() || type.is_bool()) return make_int(i->value, type);
  }
  if (const auto* f = as<FloatImmNode>(value)) {
    if (type.is_float()) return make_float(f->value, type);
    if (type.is_bool()) return make_bool(f->value != 0);
    if (type.is_integral() && std::abs(f->value) < 9.2e18)
      return make_int(static_cast<std::int64_t>(f->value), type);
  }
  if (const auto* b = as<BroadcastNode>(value))
    return broadcast(cast(type.element(), b->value), type.lanes);
  return make_ref<const CastNode>(type, std::move(value));
}

Expr logical_not(Expr a) {
  if (!a->dtype.is_bool())
    throw Error(ErrorKind::dtype, "ir.build.types",
                cat("\"not\" needs a bool, not ", to_string(a->dtype)));
  if (const auto* i = as<IntImmNode>(a)) return make_bool(!i->value);
  if (const auto* n = as<NotNode>(a)) return n->a;
  return make_ref<const NotNode>(std::move(a));
}

Expr select(Expr condition, Expr a, Expr b) {
  match(ExprKind::add, a, b);
  if (!condition->dtype.is_bool()) bad_types("select", condition->dtype, a->dtype);
  if (const auto* i = as<IntImmNode>(condition)) return i->value ? a : b;
  int lanes = condition->dtype.lanes;
  if (lanes > 1 && a->dtype.lanes == 1) {
    a = broadcast(a, lanes);
    b = broadcast(b, lanes);
  }
  if (lanes > 1 && a->dtype.lanes != lanes) bad_types("select", condition->dtype, a->dtype);
  return make_ref<const SelectNode>(std::move(condition), std::move(a), std::move(b));
}

Expr if_then_else(Expr condition, Expr a, Expr b) {
  match(ExprKind::add, a, b);
  if (!condition->dtype.is_bool()) bad_types("if_then_else", condition->dtype, a->dtype);
  if (const auto* i = as<IntImmNode>(condition)) return i->value ? a : b;
  DType t = a->dtype;
  return call_typed(t, "if_then_else", {std::move(condition), std::move(a), std::move(b)});
}

Expr call_typed(DType type, std::string op, Exprs args) {
  return make_ref<const CallNode>(type, std::move(op), std::move(args));
}

Expr call(const std::string& op, Exprs args) {
  const Intrinsic* row = find_intrinsic(op);
  if (!row) {
    std::vector<std::string> known;
    for (const Intrinsic& r : intrinsics()) known.emplace_back(r.name);
    throw Error(ErrorKind::value, "ir.call.unknown", cat("\"", op, "\" is no intrinsic"))
        .help(did_you_mean(op, known));
  }
  if (row->arity >= 0 && static_cast<int>(args.size()) != row->arity) {
    throw Error(ErrorKind::value, "ir.call.arity",
                cat("\"", op, "\" takes ", row->arity, " arguments, not ", args.size()));
  }
  auto need = [&](bool good, std::string_view what) {
    if (!good)
      throw Error(ErrorKind::dtype, "ir.call.types",
                  cat("\"", op, "\" needs ", what, ", not ", to_string(args[0]->dtype)));
  };
  // The type comes by value, so it is read before the arguments move away.
  auto result = [&](DType type) { return call_typed(type, op, std::move(args)); };
  switch (row->type) {
    case IntrinsicType::float_unary:
      need(args[0]->dtype.is_float(), "a float");
      return result(args[0]->dtype);
    case IntrinsicType::float_binary:
      match(ExprKind::add, args[0], args[1]);
      need(args[0]->dtype.is_float(), "floats");
      return result(args[0]->dtype);
    case IntrinsicType::number_unary: {
      need(!args[0]->dtype.is_handle(), "a number");
      return result(args[0]->dtype);
    }
    case IntrinsicType::int_binary:
      match(ExprKind::add, args[0], args[1]);
      need(args[0]->dtype.is_integral() || args[0]->dtype.is_bool(), "integers");
      return result(args[0]->dtype);
    case IntrinsicType::int_unary:
      need(args[0]->dtype.is_integral() || args[0]->dtype.is_bool(), "an integer");
      return result(args[0]->dtype);
    case IntrinsicType::predicate:
      need(args[0]->dtype.is_float(), "a float");
      return result(dtypes::boolean.with_lanes(args[0]->dtype.lanes));
    case IntrinsicType::special: break;
  }
  if (op == "if_then_else") return if_then_else(args[0], args[1], args[2]);
  if (op == "likely") return result(args[0]->dtype);
  if (op == "fma") {
    match(ExprKind::add, args[0], args[1]);
    match(ExprKind::add, args[0], args[2]);
    match(ExprKind::add, args[1], args[2]);
    need(args[0]->dtype.is_float(), "floats");
    return result(args[0]->dtype);
  }
  if (is_atomic(op)) {
    throw Error(ErrorKind::value, "ir.call.atomic",
                cat("\"", op, "\" is a statement, not a part of an expression"))
        .help(cat("ir::", op, "(buffer, indices, value) builds it"));
  }
  if (op == "vector_extract" || op.starts_with("vector_reduce"))
    return result(args[0]->dtype.element());
  if (op == "dot") {
    need(is_dot(*args[0], *args[1], *args[2]), "sums and loads of numbers that they are made of");
    return result(args[0]->dtype);
  }
  if (op == "vector_concat" || op == "vector_interleave") {
    int lanes = 0;
    for (const Expr& e : args) lanes += e->dtype.lanes;
    need(!args.empty(), "at least one vector");
    return result(args[0]->dtype.with_lanes(lanes));
  }
  if (op == "masked_load") {
    const auto* at = as<LoadNode>(args[0]);
    need(at != nullptr, "a load as first argument");
    return result(args[0]->dtype);
  }
  if (op == "address_of" || op == "tensor_map")
    return call_typed(dtypes::handle, op, std::move(args));
  if (op == "reinterpret") {
    throw Error(ErrorKind::value, "ir.call.reinterpret", cat("\"", op, "\" has no type of its own"))
        .help("use call_typed(type, \"reinterpret\", {x})");
  }
  return call_typed(dtypes::int32, op,
                    std::move(args));  // sync, prefetch, call_extern, instruction
}

Expr load(Buffer buffer, Exprs indices) {
  if (indices.size() != buffer->ndim()) {
    throw Error(ErrorKind::shape, "ir.load.rank",
                cat("\"", buffer->name, "\" has ", buffer->ndim(), " dimensions, but ",
                    indices.size(), " indices are given"));
  }
  int lanes = indices.empty() ? 1 : indices.back()->dtype.lanes;
  DType t = buffer->dtype.with_lanes(buffer->dtype.lanes * lanes);
  return make_ref<const LoadNode>(t, std::move(buffer), std::move(indices));
}

Expr ramp(Expr base, Expr stride, int lanes) {
  match(ExprKind::add, base, stride);
  return lanes == 1 ? base
                    : Expr(make_ref<const RampNode>(std::move(base), std::move(stride), lanes));
}

Expr broadcast(Expr value, int lanes) {
  if (lanes == 1) return value;
  if (value->dtype.lanes != 1) bad_types("broadcast", value->dtype, value->dtype.with_lanes(lanes));
  return make_ref<const BroadcastNode>(std::move(value), lanes);
}

Expr let(Var var, Expr value, Expr body) {
  return make_ref<const LetNode>(std::move(var), std::move(value), std::move(body));
}

Buffer make_buffer(std::string name, DType type, Exprs shape, std::string scope) {
  auto b = make_ref<BufferNode>();
  b->name = std::move(name);
  b->dtype = type;
  b->shape = std::move(shape);
  b->scope = std::move(scope);
  return b;
}

Exprs strides_of(const Buffer& buffer) {
  if (!buffer->strides.empty()) return buffer->strides;
  Exprs out(buffer->ndim());
  Expr step = make_int(1);
  for (std::size_t i = buffer->ndim(); i-- > 0;) {
    out[i] = step;
    step = step * buffer->shape[i];
  }
  return out;
}

BufferRegion full_region(const Buffer& buffer) {
  BufferRegion out{buffer, {}};
  for (const Expr& extent : buffer->shape)
    out.region.push_back({make_int(0, extent->dtype), extent});
  return out;
}

BufferRegion point_region(const Buffer& buffer, const Exprs& indices) {
  BufferRegion out{buffer, {}};
  for (const Expr& i : indices) out.region.push_back({i, make_int(1, i->dtype.element())});
  return out;
}

Stmt store(Buffer buffer, Expr value, Exprs indices) {
  if (indices.size() != buffer->ndim()) {
    throw Error(ErrorKind::shape, "ir.store.rank",
                cat("\"", buffer->name, "\" has ", buffer->ndim(), " dimensions, but ",
                    indices.size(), " indices are given"));
  }
  int lanes = indices.empty() ? 1 : indices.back()->dtype.lanes;
  DType t = buffer->dtype.with_lanes(buffer->dtype.lanes * lanes);
  if (value->dtype != t) {
    bool constant = value->kind == ExprKind::int_imm || value->kind == ExprKind::float_imm;
    if (value->dtype.lanes == 1 && (constant || value->dtype == t.element()))
      value = cast(t, value);
    else
      throw Error(ErrorKind::dtype, "ir.store.types",
                  cat("\"", buffer->name, "\" holds ", to_string(t), ", but ",
                      to_string(value->dtype), " is stored"))
          .help("insert T.Cast");
  }
  return make_ref<const StoreNode>(std::move(buffer), std::move(value), std::move(indices));
}

Stmt seq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (const auto* inner = as<SeqNode>(s))
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    else flat.push_back(std::move(s));
  }
  if (flat.size() == 1) return flat[0];
  return make_ref<const SeqNode>(std::move(flat));
}

Stmt make_for(Var var, Expr min, Expr extent, Stmt body, ForKind kind, std::string axis,
              Annotations annotations) {
  return make_ref<const ForNode>(std::move(var), std::move(min), std::move(extent), kind,
                                 std::move(axis), std::move(annotations), std::move(body));
}

Stmt if_then(Expr condition, Stmt then_case, Stmt else_case) {
  return make_ref<const IfNode>(std::move(condition), std::move(then_case), std::move(else_case));
}
Stmt while_loop(Expr condition, Stmt body) {
  return make_ref<const WhileNode>(std::move(condition), std::move(body));
}
Stmt let_stmt(Var var, Expr value, Stmt body) {
  return make_ref<const LetStmtNode>(std::move(var), std::move(value), std::move(body));
}
Stmt assert_stmt(Expr condition, std::string message) {
  return make_ref<const AssertNode>(std::move(condition), std::move(message));
}
Stmt evaluate(Expr value) { return make_ref<const EvaluateNode>(std::move(value)); }
Stmt allocate(Buffer buffer, Stmt body, Annotations annotations) {
  return make_ref<const AllocateNode>(std::move(buffer), std::move(annotations), std::move(body));
}

Stmt block_realize(Exprs iter_values, Expr predicate, Block block) {
  WEFT_CHECK(iter_values.size() == block->iters.size(), "block ", block->name, " has ",
             block->iters.size(), " iterators");
  return make_ref<const BlockRealizeNode>(
      std::move(iter_values), predicate ? std::move(predicate) : make_bool(true), std::move(block));
}

Stmt root_block(Stmt body, std::vector<Buffer> alloc_buffers) {
  auto b = make_ref<BlockNode>();
  b->id = fresh_block_id();
  b->name = "root";
  b->body = std::move(body);
  b->alloc_buffers = std::move(alloc_buffers);
  return block_realize({}, nullptr, b);
}

PrimFunc make_func(std::string name, std::vector<Param> params, Stmt body, Annotations attrs) {
  auto f = make_ref<PrimFuncNode>();
  f->name = std::move(name);
  f->params = std::move(params);
  f->body = std::move(body);
  f->attrs = std::move(attrs);
  return f;
}

Param buffer_param(const Buffer& buffer) {
  return {make_var(buffer->name, dtypes::handle), buffer};
}

IRModule make_module(std::vector<std::pair<std::string, PrimFunc>> functions) {
  auto m = make_ref<IRModuleNode>();
  m->functions = std::move(functions);
  return m;
}

IRModule make_module(const PrimFunc& f) { return make_module({{"main", f}}); }

const Json* find_annotation(const Annotations& annotations, std::string_view key) {
  for (const auto& [name, value] : annotations) {
    if (name == key) return &value;
  }
  return nullptr;
}

Annotations with_annotation(Annotations annotations, std::string_view key, Json value) {
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    if (annotations[i].first != key) continue;
    if (value.is_null()) annotations.erase(annotations.begin() + static_cast<std::ptrdiff_t>(i));
    else annotations[i].second = std::move(value);
    return annotations;
  }
  if (!value.is_null()) annotations.emplace_back(std::string(key), std::move(value));
  return annotations;
}

}  // namespace weft::ir
