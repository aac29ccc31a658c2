// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/interpret.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/interpret_internal.h"
#include "weft/ir/text.h"

namespace weft::ir {

namespace interp {

namespace {
/// The statement's first line.
std::string first_line(const StmtNode* s) {
  if (!s) return "";
  std::string text = print(Stmt(s));
  return text.substr(0, text.find('\n'));
}
}  // namespace

void fault(const Frame& fr, std::string_view slug, std::string message) {
  Error e(ErrorKind::fault, cat("interpret.", slug), std::move(message));
  if (fr.current) e.at("in", first_line(fr.current), fr.current->line);
  if (fr.group) e.note(cat("thread ", fr.thread, " of its group"));
  throw e;
}

void Machine::exhausted(const StmtNode* at) {
  Error e(ErrorKind::fault, "interpret.steps",
          cat("the limit of steps is reached in: ", first_line(at)));
  throw e;
}

std::unique_ptr<Function> Compiler::function(const PrimFunc& f) {
  auto out = std::make_unique<Function>();
  out->name = f->name;
  for (const ir::Param& p : f->params) {
    Param q;
    q.type = p.var->dtype;
    q.name = p.buffer ? p.buffer->name : p.var->name;
    if (!p.buffer) q.slot = slot(p.var.get());
    out->params.push_back(std::move(q));
  }
  for (std::size_t k = 0; k < f->params.size(); ++k) {
    const Buffer& b = f->params[k].buffer;
    Param& q = out->params[k];
    if (!b) continue;
    q.view = view(b.get());
    q.buffer = b.get();
    auto bind = [&](const Expr& e, std::vector<int>& slots) {
      const auto* v = as<VarNode>(e);
      bool fresh = v && !slot_of_.count(v);
      slots.push_back(fresh ? slot(v) : -1);
    };
    for (const Expr& e : b->shape) bind(e, q.shape_slots);
    for (const Expr& e : b->strides) bind(e, q.stride_slots);
    if (const auto* v = as<VarNode>(b->elem_offset); v && !slot_of_.count(v))
      q.offset_slot = slot(v);
  }
  // Expressions are compiled after every variable that an argument defines has its slot.
  for (Param& q : out->params) {
    if (!q.buffer) continue;
    for (const Expr& e : q.buffer->shape) q.shape.push_back(expr(e));
    for (const Expr& e : q.buffer->strides) q.strides.push_back(expr(e));
  }
  find_promise(f);
  out->body = stmt(f->body);
  out->slots = slots_, out->views = views_, out->sites = sites_;
  return out;
}

const Function& Machine::compiled(const PrimFunc& f) {
  auto& entry = functions_[f.get()];
  if (!entry) entry = Compiler(*this).function(f);
  return *entry;
}

namespace {

[[noreturn]] void refuse(const Function& f, const Param& p, ErrorKind kind, std::string_view slug,
                         std::string message) {
  throw Error(kind, cat("interpret.", slug),
              cat("argument \"", p.name, "\" of \"", f.name, "\" ", message));
}

/// Row-major strides; false when the view's are others (dimensions of extent 1 do not matter).
bool compact(const View& v, std::size_t rank) {
  std::int64_t step = 1;
  for (std::size_t d = rank; d-- > 0;) {
    if (v.shape[d] > 1 && v.strides[d] != step) return false;
    step *= v.shape[d];
  }
  return true;
}

std::int64_t elements(const View& v, std::size_t rank) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < rank; ++d) n *= v.shape[d];
  return n;
}

void set_compact(View& v, std::size_t rank) {
  std::int64_t step = 1;
  for (std::size_t d = rank; d-- > 0;) v.strides[d] = step, step *= v.shape[d];
}

/// Gives the parameter its view, defining the variables of its shape.
void bind_tensor(const Function& f, const Param& p, Frame& fr, const Actual& a) {
  std::size_t rank = p.buffer->ndim();
  if (!a.tensor) refuse(f, p, ErrorKind::value, "argument", "must be a tensor");
  if (a.inner && a.source->dtype != p.buffer->dtype) {
    refuse(
        f, p, ErrorKind::dtype, "dtype",
        cat("is ", to_string(p.buffer->dtype), ", but ", to_string(a.source->dtype), " is passed"));
  }
  bool whole = a.rank == rank && a.offset == 0;
  bool flat =
      !a.inner && !whole && rank == 1;  // a lowered function sees its tensors as one dimension
  View v = a.view;
  if (flat) {
    if (!compact(v, a.rank)) refuse(f, p, ErrorKind::shape, "strides", "must be compact");
    v.shape[0] = elements(v, a.rank), v.strides[0] = 1;
  } else if (!a.inner && !whole) {
    refuse(f, p, ErrorKind::shape, "rank",
           cat("has ", a.rank, " dimensions, but ", rank, " are expected"));
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (p.shape_slots[d] < 0) continue;
    if (!whole && !flat)
      refuse(f, p, ErrorKind::shape, "shape",
             "is a part of a buffer, which does not define its extents");
    fr.slots[static_cast<std::size_t>(p.shape_slots[d])].i = v.shape[d];
  }
  bool equal = whole || flat;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t want = p.shape[d]->i(fr);
    if (equal && v.shape[d] == want) continue;
    if (!a.inner)
      refuse(f, p, ErrorKind::shape, "shape",
             cat("has extent ", v.shape[d], " in dimension ", d, ", but ", want, " is expected"));
    equal = false;
  }
  if (!equal) {  // a part of the caller's buffer, seen with the parameter's own shape
    if (!compact(a.view, a.rank))
      refuse(f, p, ErrorKind::shape, "strides", "is a part of a buffer that is not compact");
    View part;
    for (std::size_t d = 0; d < rank; ++d) part.shape[d] = p.shape[d]->i(fr);
    set_compact(part, rank);
    std::int64_t there = elements(a.view, a.rank) - a.offset;
    if (elements(part, rank) > there)
      refuse(f, p, ErrorKind::fault, "bounds",
             cat("needs ", elements(part, rank), " elements, but only ", there, " follow"));
    part.data = a.view.data + a.offset * p.buffer->dtype.total_bytes();
    v = part;
  }
  if (p.strides.empty()) {
    if (!a.inner && !compact(v, rank)) refuse(f, p, ErrorKind::shape, "strides", "must be compact");
  }
  for (std::size_t d = 0; d < p.strides.size(); ++d) {
    if (p.stride_slots[d] >= 0)
      fr.slots[static_cast<std::size_t>(p.stride_slots[d])].i = v.strides[d];
  }
  for (std::size_t d = 0; d < p.strides.size(); ++d) {
    std::int64_t want = p.strides[d]->i(fr);
    if (v.shape[d] > 1 && v.strides[d] != want)
      refuse(f, p, ErrorKind::shape, "strides",
             cat("has stride ", v.strides[d], " in dimension ", d, ", but ", want, " is expected"));
  }
  if (p.offset_slot >= 0)
    fr.slots[static_cast<std::size_t>(p.offset_slot)].i = 0;  // data points at the first element
  if (!v.data && elements(v, rank) > 0) refuse(f, p, ErrorKind::value, "argument", "has no data");
  fr.views[static_cast<std::size_t>(p.view)] = v;
}

}  // namespace

void Machine::call(const PrimFunc& f, std::vector<Actual>& args) {
  const Function& c = compiled(f);
  if (args.size() != c.params.size())
    throw Error(ErrorKind::value, "interpret.arity",
                cat("\"", f->name, "\" takes ", c.params.size(), " arguments, not ", args.size()));
  Frame fr;
  fr.machine = this;
  fr.slots.resize(c.slots);
  fr.views.resize(c.views);
  fr.storage.resize(c.sites);
  for (std::size_t k = 0; k < args.size(); ++k) {
    const Param& p = c.params[k];
    if (p.slot < 0) continue;
    if (args[k].tensor)
      refuse(c, p, ErrorKind::value, "argument", "must be a number, not a tensor");
    fr.slots[static_cast<std::size_t>(p.slot)] = args[k].scalar;
  }
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (c.params[k].view >= 0) bind_tensor(c, c.params[k], fr, args[k]);
  }
  c.body->run(fr);
}

void Machine::call(const PrimFunc& f, std::span<const InterpretArg> args) {
  if (args.size() != f->params.size())
    throw Error(ErrorKind::value, "interpret.arity",
                cat("\"", f->name, "\" takes ", f->params.size(), " arguments, not ", args.size()));
  std::vector<Actual> actual(args.size());
  for (std::size_t k = 0; k < args.size(); ++k) {
    const InterpretArg& a = args[k];
    DType t = f->params[k].var->dtype;
    if (!f->params[k].buffer) {
      if (t.is_float()) actual[k].scalar.f = round_float(a.float_value, t);
      else actual[k].scalar.i = wrap_int(a.int_value, t);
      continue;
    }
    const std::string& name = f->params[k].buffer->name;
    actual[k].tensor = true;
    actual[k].rank = a.shape.size();
    if (a.shape.size() > static_cast<std::size_t>(kMaxRank) ||
        (!a.strides.empty() && a.strides.size() != a.shape.size())) {
      throw Error(ErrorKind::shape, "interpret.rank",
                  cat("argument \"", name, "\" has ", a.shape.size(), " dimensions and ",
                      a.strides.size(), " strides"));
    }
    View& v = actual[k].view;
    v.data = static_cast<char*>(a.data);
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
      if (a.shape[d] < 0)
        throw Error(ErrorKind::shape, "interpret.shape",
                    cat("argument \"", name, "\" has extent ", a.shape[d], " in dimension ", d));
      v.shape[d] = a.shape[d];
      if (!a.strides.empty()) v.strides[d] = a.strides[d];
    }
    if (a.strides.empty()) set_compact(v, a.shape.size());
  }
  call(f, actual);
}

}  // namespace interp

void interpret(const PrimFunc& f, std::span<const InterpretArg> args, std::int64_t step_limit) {
  interp::Machine(nullptr, step_limit).call(f, args);
}

void interpret(const IRModule& m, const std::string& name, std::span<const InterpretArg> args,
               std::int64_t step_limit) {
  PrimFunc f = m->find(name);
  if (!f) {
    std::vector<std::string> known;
    for (const auto& [key, value] : m->functions) known.push_back(key);
    throw Error(ErrorKind::value, "interpret.function",
                cat("the module has no function \"", name, "\""))
        .note(cat("it has ", join(known)))
        .help(did_you_mean(name, known));
  }
  interp::Machine(m.get(), step_limit).call(f, args);
}

void interpret_order(const PrimFunc& f, std::int64_t step_limit) {
  std::int64_t nothing = 0;  // arrays have addresses, but no elements are touched
  std::vector<InterpretArg> args;
  for (const Param& p : f->params) {
    InterpretArg arg;
    if (p.buffer) {
      arg.data = &nothing;
      for (const Expr& e : p.buffer->shape) {
        std::int64_t n = 1;
        is_const_int(e, &n);
        arg.shape.push_back(n);
      }
    }
    args.push_back(std::move(arg));
  }
  using Turns = interp::Machine::Turns;
  for (Turns turns : {Turns::scattered, Turns::lowest_first, Turns::highest_first}) {
    interp::Machine machine(nullptr, step_limit);
    machine.order_only = true, machine.turns = turns;
    machine.call(f, args);
  }
}

}  // namespace weft::ir
