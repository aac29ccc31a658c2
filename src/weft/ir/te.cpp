// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/te.h"

#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/reducers.h"
#include "weft/ir/regions.h"
#include "weft/ir/share.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::te {

using ir::as;

namespace {

/// A buffer that knows which computation it is the result of.
struct ResultBuffer final : ir::BufferNode {
  Operation op;
  int index = 0;
};

const ResultBuffer* result_of(const ir::BufferNode* b) {
  return dynamic_cast<const ResultBuffer*>(b);
}

Tensor make_tensor(const Operation& op, int index, DType type, std::string name) {
  auto b = make_ref<ResultBuffer>();
  b->name = std::move(name);
  b->dtype = type;
  b->shape = op->shape;
  b->op = op;
  b->index = index;
  return Tensor(ir::Buffer(b));
}

std::string result_name(const OperationNode& op, std::size_t i) {
  return op.body.size() == 1 ? op.name : cat(op.name, "_v", i);
}

[[noreturn]] void refuse(std::string_view slug, std::string message, std::string help = "") {
  Error e(ErrorKind::value, slug, std::move(message));
  if (!help.empty()) e.help(std::move(help));
  throw e;
}

void check_shape(const Exprs& shape, const std::string& name) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t v;
    if (!shape[i] || !shape[i]->dtype.is_integral() || !shape[i]->dtype.is_scalar())
      refuse("te.shape", cat("dimension ", i, " of \"", name, "\" is no integer"));
    if (is_const_int(shape[i], &v) && v < 0)
      refuse("te.shape", cat("dimension ", i, " of \"", name, "\" is ", v));
  }
}

/// Every walk over expressions recurses: far deeper ones would end the process for want of stack.
/// The text form, in which some targets keep their programs, ends here too.
constexpr std::size_t kMaxDepth = 1000;
/// Places of a body: the passes walk each, compilers take about a minute for as many.
constexpr std::int64_t kMaxPlaces = 200000;

/// Visits the children of one node only: they are kept for later, not walked.
class Children final : public ir::Visitor {
 public:
  using ir::Visitor::visit;
  std::vector<Expr> of(const Expr& e) {
    found_.clear();
    ir::Visitor::visit(e);
    return std::move(found_);
  }
  void visit(const Expr& e) override { found_.push_back(e); }

 private:
  std::vector<Expr> found_;
};

void check_depth(const Expr& body, const std::string& name) {
  Children children;
  std::unordered_map<const ir::ExprNode*, std::size_t> deepest;
  std::vector<std::pair<Expr, std::size_t>> open{{body, 1}};
  while (!open.empty()) {
    auto [e, depth] = std::move(open.back());
    open.pop_back();
    std::size_t& known = deepest[e.get()];
    if (known >= depth) continue;
    known = depth;
    if (depth > kMaxDepth)
      refuse("te.compute.depth",
             cat("the body of \"", name, "\" is nested deeper than ", kMaxDepth, " expressions"),
             "compute an inner part as a tensor of its own, or loop with te.reduce_axis");
    for (Expr& child : children.of(e)) open.emplace_back(std::move(child), depth + 1);
  }
}

/// Reductions stand only at the top of a body.
void check_body(const Expr& e, const std::string& name) {
  check_depth(e, name);
  auto inner = [&](const Expr& part) {
    ir::for_each_distinct_expr(part, [&](const Expr& x) {
      if (x->kind == ir::ExprKind::reduce)
        refuse("te.compute.reduce",
               cat("the body of \"", name, "\" uses a reduction inside an expression: ", print(x)),
               "compute the reduction first, as a tensor of its own");
    });
  };
  if (const auto* r = as<ir::ReduceNode>(e)) {
    for (const Expr& s : r->source) inner(s);
    if (r->condition) inner(r->condition);
  } else {
    inner(e);
  }
}

}  // namespace

Operation Tensor::op() const {
  const auto* r = result_of(buffer_.get());
  return r ? r->op : nullptr;
}

int Tensor::value_index() const {
  const auto* r = result_of(buffer_.get());
  return r ? r->index : 0;
}

Expr Tensor::at(Exprs indices) const {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]->dtype.is_integral())
      refuse("te.index",
             cat("index ", i, " of \"", name(), "\" is ", ir::print(indices[i]), ", no integer"));
  }
  return ir::load(buffer_, std::move(indices));
}

Var var(std::string name, DType type) { return ir::make_var(std::move(name), type); }

Tensor placeholder(Exprs shape, DType type, std::string name) {
  check_shape(shape, name);
  auto op = make_ref<OperationNode>();
  op->name = name;
  op->shape = std::move(shape);
  return make_tensor(op, 0, type, std::move(name));
}

std::vector<Tensor> compute_many(Exprs shape, const ComputeMany& body, std::string name,
                                 Annotations attrs, const std::vector<std::string>& axis_names) {
  check_shape(shape, name);
  auto op = make_ref<OperationNode>();
  op->name = name;
  op->attrs = std::move(attrs);
  std::vector<Var> vars;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::string axis = i < axis_names.size() ? axis_names[i] : cat("i", i);
    Var v = ir::make_var(axis, shape[i]->dtype);
    vars.push_back(v);
    op->axes.push_back({v, {ir::make_int(0, shape[i]->dtype), shape[i]}, ir::IterKind::spatial});
  }
  op->shape = std::move(shape);
  op->body = body(vars);
  if (op->body.empty()) refuse("te.compute.body", cat("the body of \"", name, "\" gives no value"));
  const ir::ReduceNode* first = nullptr;
  for (std::size_t i = 0; i < op->body.size(); ++i) {
    const Expr& e = op->body[i];
    if (!e || e->dtype.is_handle() || !e->dtype.is_scalar())
      refuse("te.compute.body", cat("value ", i, " of \"", name, "\" is no number"));
    check_body(e, name);
    const auto* r = as<ir::ReduceNode>(e);
    if (i == 0) first = r;
    bool same = r ? first && r->reducer == first->reducer && r->component == static_cast<int>(i) &&
                        r->source == first->source
                  : !first;
    if (!same)
      refuse("te.compute.body",
             cat("value ", i, " of \"", name, "\" is not component ", i,
                 " of the same reduction as the others"),
             "give all components of one reduction, in order");
  }
  if (first && first->source.size() != op->body.size()) {
    refuse("te.compute.body",
           cat("\"", name, "\" takes ", op->body.size(), " of the ", first->source.size(),
               " results of its reduction"),
           "use compute_many and give all of them");
  }
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < op->body.size(); ++i) {
    out.push_back(make_tensor(op, static_cast<int>(i), op->body[i]->dtype, result_name(*op, i)));
  }
  return out;
}

Tensor compute(Exprs shape, const Compute& body, std::string name, Annotations attrs,
               const std::vector<std::string>& axis_names) {
  return compute_many(
      std::move(shape), [&](const std::vector<Var>& v) { return Exprs{body(v)}; }, std::move(name),
      std::move(attrs), axis_names)[0];
}

IterVar reduce_axis(Expr min, Expr extent, std::string name) {
  if (min->dtype != extent->dtype) {
    DType t = min->dtype.bits > extent->dtype.bits ? min->dtype : extent->dtype;
    min = ir::cast(t, min), extent = ir::cast(t, extent);
  }
  Var v = ir::make_var(std::move(name), extent->dtype);
  return {v, {std::move(min), std::move(extent)}, ir::IterKind::reduce};
}

IterVar reduce_axis(std::int64_t extent, std::string name) {
  return reduce_axis(ir::make_int(0), ir::make_int(extent), std::move(name));
}

Exprs reduce(const Reducer& reducer, Exprs source, std::vector<IterVar> axes, Expr where) {
  if (!reducer || reducer->lhs.size() != source.size()) {
    refuse("te.reduce.arity", cat("a reducer of ", reducer ? reducer->lhs.size() : 0,
                                  " values is given ", source.size()));
  }
  if (axes.empty())
    refuse("te.reduce.axes", cat("the reduction \"", reducer->name, "\" has no axis"),
           "make one with te.reduce_axis");
  for (const IterVar& axis : axes) {
    if (axis.kind != ir::IterKind::reduce)
      refuse("te.reduce.axes", cat("\"", axis.var->name, "\" is no reduction axis"),
             "make one with te.reduce_axis");
  }
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i]->dtype != reducer->lhs[i]->dtype)
      refuse("te.reduce.types",
             cat("value ", i, " of the reduction is ", to_string(source[i]->dtype),
                 ", its reducer takes ", to_string(reducer->lhs[i]->dtype)));
  }
  if (where && where->dtype != dtypes::boolean)
    refuse("te.reduce.types", cat("the condition of a reduction is ", to_string(where->dtype)));
  Exprs out;
  for (std::size_t i = 0; i < source.size(); ++i)
    out.push_back(
        make_ref<const ir::ReduceNode>(reducer, source, axes, where, static_cast<int>(i)));
  return out;
}

namespace {
Exprs standard(std::string_view name, Exprs source, std::vector<IterVar> axes, Expr where) {
  std::vector<DType> types;
  for (const Expr& e : source) types.push_back(e->dtype);
  Reducer r = ir::standard_reducer(name, types);
  if (!r) refuse("te.reduce.types", cat("\"", name, "\" does not reduce ", to_string(types[0])));
  return reduce(r, std::move(source), std::move(axes), std::move(where));
}
}  // namespace

Expr sum(Expr s, std::vector<IterVar> axes, Expr where) {
  return standard("sum", {std::move(s)}, std::move(axes), std::move(where))[0];
}
Expr prod(Expr s, std::vector<IterVar> axes, Expr where) {
  return standard("prod", {std::move(s)}, std::move(axes), std::move(where))[0];
}
Expr min(Expr s, std::vector<IterVar> axes, Expr where) {
  return standard("min", {std::move(s)}, std::move(axes), std::move(where))[0];
}
Expr max(Expr s, std::vector<IterVar> axes, Expr where) {
  return standard("max", {std::move(s)}, std::move(axes), std::move(where))[0];
}
Exprs argmin(Expr i, Expr v, std::vector<IterVar> axes, Expr where) {
  return standard("argmin", {std::move(i), std::move(v)}, std::move(axes), std::move(where));
}
Exprs argmax(Expr i, Expr v, std::vector<IterVar> axes, Expr where) {
  return standard("argmax", {std::move(i), std::move(v)}, std::move(axes), std::move(where));
}

Exprs CommReducer::operator()(Exprs source, std::vector<IterVar> axes, Expr where) const {
  std::vector<DType> types;
  std::vector<Var> x, y;
  for (std::size_t i = 0; i < source.size(); ++i) {
    types.push_back(source[i]->dtype);
    x.push_back(ir::make_var(cat("x", i), types.back()));
    y.push_back(ir::make_var(cat("y", i), types.back()));
  }
  Exprs result = combine(x, y), start = identity(types);
  if (result.size() != source.size() || start.size() != source.size()) {
    refuse("te.reduce.arity",
           cat("the reducer \"", name, "\" combines to ", result.size(), " values and has ",
               start.size(), " identities for ", source.size(), " sources"));
  }
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (result[i]->dtype != types[i] || start[i]->dtype != types[i]) {
      refuse("te.reduce.types",
             cat("value ", i, " of the reducer \"", name, "\" is ", to_string(result[i]->dtype),
                 " with an identity of ", to_string(start[i]->dtype), ", its source ",
                 to_string(types[i])));
    }
  }
  return te::reduce(ir::make_reducer(name, x, y, std::move(result), std::move(start)),
                    std::move(source), std::move(axes), std::move(where));
}

CommReducer comm_reducer(decltype(CommReducer::combine) combine,
                         decltype(CommReducer::identity) identity, std::string name) {
  return {std::move(name), std::move(combine), std::move(identity)};
}

// ---- to a PrimFunc

namespace {

class Builder {
 public:
  ir::PrimFunc run(const std::vector<Arg>& args, const std::string& name) {
    std::vector<ir::Param> params;
    for (const Arg& arg : args) {
      if (const auto* v = std::get_if<Var>(&arg)) {
        if (!*v || !scalars_.insert(v->get()).second)
          refuse("te.create_prim_func.args",
                 cat("the variable \"", *v ? (*v)->name : "", "\" appears twice"));
        params.push_back({*v, nullptr});
        continue;
      }
      const Tensor& t = std::get<Tensor>(arg);
      if (!t || !result_of(t.buffer().get()))
        refuse("te.create_prim_func.args", "an argument is no tensor of te");
      if (buffers_.count(t.buffer().get()))
        refuse("te.create_prim_func.args", cat("the tensor \"", t.name(), "\" appears twice"));
      buffers_[t.buffer().get()] = fresh_buffer(t.op().get(), t.value_index(), *t.buffer());
      params.push_back(ir::buffer_param(buffers_[t.buffer().get()]));
      for (const Expr& e : t.shape()) {
        if (const auto* v = as<ir::VarNode>(e)) scalars_.insert(v);
      }
    }
    for (const Arg& arg : args) {
      if (const auto* t = std::get_if<Tensor>(&arg)) visit(t->op());
    }
    std::vector<ir::Stmt> stmts;
    for (const Operation& op : order_) emit(op, stmts);
    return ir::make_func(name, std::move(params),
                         ir::root_block(ir::seq(std::move(stmts)), std::move(allocated_)),
                         {{"global_symbol", Json(name)}});
  }

 private:
  std::string unique(const std::string& hint, std::unordered_set<std::string>& used) {
    std::string name = hint;
    for (int i = 1; !used.insert(name).second; ++i) name = cat(hint, "_", i);
    return name;
  }

  ir::Buffer fresh_buffer(const OperationNode* op, int index, const ir::BufferNode& like) {
    ir::Buffer b = ir::make_buffer(unique(like.name, buffer_names_), like.dtype, like.shape);
    by_result_[op][index] = b;
    return b;
  }

  /// Producers first.
  void visit(const Operation& op) {
    if (!visited_.insert(op.get()).second) return;
    if (op->is_placeholder()) {
      if (!by_result_.count(op.get())) {
        refuse("te.create_prim_func.missing",
               cat("the placeholder \"", op->name, "\" is used but is no argument"),
               "add it to the list");
      }
      return;
    }
    auto follow = [&](const Expr& e) {
      ir::for_each_distinct_expr(e, [&](const Expr& x) {
        if (const auto* l = as<ir::LoadNode>(x)) {
          const auto* r = result_of(l->buffer.get());
          if (!r)
            refuse("te.create_prim_func.args", cat("\"", op->name, "\" reads \"", l->buffer->name,
                                                   "\", which is no tensor of te"));
          visit(r->op);
        }
      });
    };
    for (const Expr& e : op->body) follow(e);
    order_.push_back(op);
  }

  /// The function's buffer of a tensor; intermediates are allocated in the root block.
  ir::Buffer buffer_of(const ir::Buffer& tensor) {
    auto found = buffers_.find(tensor.get());
    if (found != buffers_.end()) return found->second;
    const auto* r = result_of(tensor.get());
    return buffers_[tensor.get()] = result_buffer(r->op, static_cast<std::size_t>(r->index));
  }

  using Lets = std::vector<std::pair<Var, Expr>>;

  Expr translate(const Expr& e, const ir::VarMap& vars) {
    ir::BufferMap map;
    ir::for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = as<ir::LoadNode>(x)) map[l->buffer.get()] = buffer_of(l->buffer);
    });
    for (const ir::VarNode* v : ir::used_vars(e)) {
      if (!vars.count(v) && !scalars_.count(v)) check_var_ = v;
    }
    return ir::substitute(ir::replace_buffers(e, map), vars);
  }

  static void check_places(std::int64_t places, const std::string& name) {
    if (places <= kMaxPlaces) return;
    refuse("te.compute.size",
           cat("the body of \"", name, "\" is a tree of ",
               places < (std::int64_t{1} << 40) ? std::to_string(places) : "more than 10^12",
               " expressions, the limit is ", kMaxPlaces),
           "parts that an arm of if_then_else or an index repeats are not computed once: make them "
           "a tensor of their own, or take Select, which computes both arms");
  }

  /// A value of a block: parts that occur many times are named before it, in `lets`.
  Expr value(const Expr& e, const std::string& name, ir::VarMap& vars, Lets& lets) {
    ir::Shared parts = ir::bind_shared(e);
    std::int64_t places = ir::tree_size(parts.body);
    for (const auto& [var, part] : parts.lets) places += ir::tree_size(part);
    check_places(places, name);
    for (const auto& [var, part] : parts.lets) {
      lets.emplace_back(var, translate(part, vars));
      vars[var.get()] = var;
    }
    return translate(parts.body, vars);
  }

  static ir::Stmt with_lets(const Lets& lets, ir::Stmt body) {
    for (std::size_t i = lets.size(); i-- > 0;)
      body = ir::let_stmt(lets[i].first, lets[i].second, body);
    return body;
  }

  void emit(const Operation& op, std::vector<ir::Stmt>& out) {
    const auto* first = as<ir::ReduceNode>(op->body[0]);
    if (first) {
      out.push_back(block(op, 0, first));
      return;
    }
    for (std::size_t i = 0; i < op->body.size(); ++i) out.push_back(block(op, i, nullptr));
  }

  ir::Buffer result_buffer(const Operation& op, std::size_t i) {
    auto& of_op = by_result_[op.get()];
    auto found = of_op.find(static_cast<int>(i));
    if (found != of_op.end()) return found->second;
    ir::Buffer like = ir::make_buffer(result_name(*op, i), op->body[i]->dtype, op->shape);
    allocated_.push_back(fresh_buffer(op.get(), static_cast<int>(i), *like));
    return allocated_.back();
  }

  ir::Stmt block(const Operation& op, std::size_t index, const ir::ReduceNode* reduce) {
    auto b = make_ref<ir::BlockNode>();
    b->id = ir::fresh_block_id();
    b->name = unique(op->body.size() > 1 && !reduce ? cat(op->name, "_v", index) : op->name,
                     block_names_);
    b->annotations = op->attrs;
    ir::VarMap vars;
    std::vector<Var> loops;
    Exprs bindings, where;
    std::vector<IterVar> axes = op->axes;
    if (reduce) axes.insert(axes.end(), reduce->axes.begin(), reduce->axes.end());
    for (const IterVar& axis : axes) {
      Var loop = ir::make_var(axis.var->name, axis.var->dtype),
          iter = ir::make_var(cat("v_", axis.var->name), axis.var->dtype);
      if (vars.count(axis.var.get()))
        refuse("te.create_prim_func.axis",
               cat("\"", op->name, "\" reduces over \"", axis.var->name, "\" twice"));
      vars[axis.var.get()] = iter;
      loops.push_back(loop);
      bindings.push_back(loop);
      b->iters.push_back({iter, axis.dom, axis.kind});
      if (axis.kind == ir::IterKind::spatial) where.push_back(iter);
    }
    if (axes.empty()) {  // a single point still has an iterator, so that the block is no opaque one
      b->iters.push_back(
          {ir::make_var("vi"), {ir::make_int(0), ir::make_int(1)}, ir::IterKind::spatial});
      bindings.push_back(ir::make_int(0));
    }
    check_var_ = nullptr;
    if (reduce) {
      // A user's reducer promises that order does not matter; no later step could prove it.
      std::vector<DType> types;
      for (const Expr& e : reduce->source) types.push_back(e->dtype);
      if (!ir::same_reducer(reduce->reducer, ir::standard_reducer(reduce->reducer->name, types)))
        b->annotations = ir::with_annotation(b->annotations, "commutative_reducer", true);
      fill_reduction(op, reduce, vars, where, b);
    } else {
      Lets lets;
      Expr result = value(op->body[index], op->name, vars, lets);
      b->body = with_lets(lets, ir::store(result_buffer(op, index), result, where));
    }
    if (check_var_) {
      refuse("te.create_prim_func.var",
             cat("\"", op->name, "\" uses the variable \"", check_var_->name,
                 "\", which neither an argument nor an axis defines"),
             "add it to the arguments");
    }
    ir::AccessRegions regions = ir::detect_block_regions(*b);
    b->reads = std::move(regions.reads);
    b->writes = std::move(regions.writes);
    ir::Stmt s = ir::block_realize(std::move(bindings), nullptr, b);
    for (std::size_t i = axes.size(); i-- > 0;)
      s = ir::make_for(loops[i], axes[i].dom.min, axes[i].dom.extent, s);
    return s;
  }

  void fill_reduction(const Operation& op, const ir::ReduceNode* r, ir::VarMap& vars,
                      const Exprs& where, const Ref<ir::BlockNode>& b) {
    std::size_t n = r->source.size();
    ir::VarMap sides;
    Lets lets;
    std::vector<ir::Stmt> init;
    Expr condition = r->condition ? translate(r->condition, vars) : nullptr;
    for (std::size_t i = 0; i < n; ++i) {
      ir::Buffer out = result_buffer(op, i);
      init.push_back(ir::store(out, r->reducer->identity[i], where));
      // Under a condition nothing is computed early.
      if (condition) check_places(ir::tree_size(r->source[i]), op->name);
      Expr source =
          condition ? translate(r->source[i], vars) : value(r->source[i], op->name, vars, lets);
      if (condition) source = ir::if_then_else(condition, source, r->reducer->identity[i]);
      sides[r->reducer->lhs[i].get()] = ir::load(out, where);
      sides[r->reducer->rhs[i].get()] = source;
    }
    b->init = ir::seq(std::move(init));
    std::vector<ir::Stmt> stores;
    std::vector<Var> names;
    for (std::size_t i = 0; i < n; ++i) {  // several results: all are computed before any is stored
      Expr value = ir::substitute(r->reducer->result[i], sides);
      names.push_back(ir::make_var(cat("v_", op->name, "_", i), value->dtype));
      stores.push_back(ir::store(result_buffer(op, i), n == 1 ? value : Expr(names[i]), where));
    }
    ir::Stmt body = ir::seq(std::move(stores));
    for (std::size_t i = n; n > 1 && i-- > 0;)
      body = ir::let_stmt(names[i], ir::substitute(r->reducer->result[i], sides), body);
    b->body = with_lets(lets, body);
  }

  std::unordered_map<const ir::BufferNode*, ir::Buffer> buffers_;
  std::unordered_map<const OperationNode*, std::unordered_map<int, ir::Buffer>> by_result_;
  std::unordered_set<const OperationNode*> visited_;
  std::unordered_set<const ir::VarNode*> scalars_;
  std::unordered_set<std::string> buffer_names_, block_names_;
  std::vector<Operation> order_;
  std::vector<ir::Buffer> allocated_;
  const ir::VarNode* check_var_ = nullptr;
};

}  // namespace

ir::PrimFunc create_prim_func(const std::vector<Arg>& args, std::string name) {
  bool any = false;
  for (const Arg& arg : args) any = any || std::holds_alternative<Tensor>(arg);
  if (!any)
    refuse("te.create_prim_func.args",
           cat("the function \"", name, "\" has no tensor among ", args.size(), " arguments"));
  return Builder().run(args, name);
}

}  // namespace weft::te
