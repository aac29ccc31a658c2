// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/lower_collectives.h"

#include <algorithm>
#include <functional>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::string_view kNames[] = {"broadcast", "reduce",  "all_reduce",
                                       "shift",     "scatter", "gather"};

std::string_view name_of(const CollectiveNode* c) {
  return kNames[static_cast<std::size_t>(c->collective)];
}

class Lower final : public Rewriter {
 public:
  Lower(const LaunchNode* launch, const TargetInfo& machine) : launch_(launch), machine_(machine) {}

 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* c = as<CollectiveNode>(s);
    return c ? lower(c) : Rewriter::rewrite_default(s);
  }

 private:
  [[noreturn]] void refuse(std::string_view reason, const CollectiveNode* c,
                           std::string why) const {
    throw Error(ErrorKind::lower, cat("lower.collective.", reason),
                cat("a ", name_of(c), " to \"", c->dst.buffer->name, "\" among ", join(c->axes),
                    " cannot be lowered for ", machine_.name, ": ", why));
  }

  const LaunchAxis& axis(const CollectiveNode* c, const std::string& name) const {
    for (const LaunchAxis& a : launch_->axes) {
      if (a.axis == name) return a;
    }
    std::vector<std::string> known;
    for (const LaunchAxis& a : launch_->axes) known.push_back(a.axis);
    refuse("axis", c,
           cat("kernel ", launch_->name, " has no axis ", name, "; it has ",
               known.empty() ? "none" : join(known)));
  }

  /// On-chip memory that all participants see.
  std::string exchange_scope(const CollectiveNode* c) const {
    for (const std::string& name : c->axes) {
      const AxisInfo* row = machine_.axis(name);
      if (!row || !row->barrier) refuse("barrier", c, cat("points of ", name, " cannot meet"));
    }
    for (const MemoryInfo& row : machine_.memories) {
      bool shared = !row.private_to.empty();
      for (const std::string& name : c->axes) shared = shared && !row.is_private_to(name);
      if (shared) return row.scope;
    }
    refuse("memory", c, "its points share no on-chip memory");
  }

  std::int64_t constant(const CollectiveNode* c, const Expr& e, std::string_view what) const {
    std::int64_t n = 0;
    if (!is_const_int(e, &n)) refuse("extent", c, cat(what, " is known only at run time"));
    return n;
  }

  std::int64_t elements(const CollectiveNode* c, const BufferRegion& r) const {
    std::int64_t n = 1;
    for (const Range& d : r.region)
      n *= constant(c, d.extent, cat("the size of its part of \"", r.buffer->name, "\""));
    return n;
  }

  /// body(indices into the buffer, number of the element) for each element of the region.
  static Stmt each(const BufferRegion& r,
                   const std::function<Stmt(const Exprs&, const Expr&)>& body) {
    std::vector<Var> vars;
    Exprs at;
    Expr number = make_int(0);
    for (std::size_t i = 0; i < r.region.size(); ++i) {
      vars.push_back(make_var(cat("e", i)));
      at.push_back(r.region[i].min + Expr(vars[i]));
      number = number * r.region[i].extent + Expr(vars[i]);
    }
    Stmt out = body(at, number);
    for (std::size_t i = vars.size(); i-- > 0;)
      out = make_for(vars[i], make_int(0), r.region[i].extent, out);
    return out;
  }

  Stmt lower(const CollectiveNode* c) {
    const std::string scope = exchange_scope(c);
    std::int64_t count = 1;
    Expr rank = make_int(0);
    for (const std::string& name : c->axes) {
      const LaunchAxis& a = axis(c, name);
      std::int64_t n = constant(c, a.extent, cat("the extent of ", name));
      rank = rank * n + Expr(a.var);
      count *= n;
    }
    // Participants of other rows of the group exchange elsewhere.
    Exprs shape, mine;
    for (const LaunchAxis& a : launch_->axes) {
      const AxisInfo* row = machine_.axis(a.axis);
      const bool among = std::find(c->axes.begin(), c->axes.end(), a.axis) != c->axes.end();
      if (among || !row || !row->barrier) continue;
      shape.push_back(a.extent);
      mine.push_back(a.var);
    }
    const std::int64_t sent = elements(c, c->src), wanted = elements(c, c->dst);
    const bool spread = c->collective == CollectiveKind::scatter,
               collect = c->collective == CollectiveKind::gather;
    if (wanted > (spread ? sent / count : collect ? sent * count : sent))
      refuse("size", c,
             cat("each participant brings ", sent, " elements and ", wanted, " are wanted"));
    shape.push_back(make_int(count));
    shape.push_back(make_int(sent));
    const DType type = c->src.buffer->dtype;
    Buffer table = make_buffer(c->dst.buffer->name + "_exchange", type, shape, scope);
    auto cell = [&](const Expr& who, const Expr& element) {
      Exprs out = mine;
      out.push_back(who);
      out.push_back(element);
      return out;
    };
    Stmt send = each(c->src, [&](const Exprs& at, const Expr& number) {
      return store(table, load(c->src.buffer, at), cell(rank, number));
    });
    const Expr root = c->root ? c->root : make_int(0);
    Stmt receive = each(c->dst, [&](const Exprs& at, const Expr& number) {
      auto put = [&](const Expr& who, const Expr& element) {
        return store(c->dst.buffer, load(table, cell(who, element)), at);
      };
      switch (c->collective) {
        case CollectiveKind::broadcast: return put(root, number);
        case CollectiveKind::shift: return put(floormod(rank - root, make_int(count)), number);
        case CollectiveKind::scatter: return put(root, rank * wanted + number);
        case CollectiveKind::gather:
          return put(floordiv(number, make_int(sent)), floormod(number, make_int(sent)));
        case CollectiveKind::reduce:
        case CollectiveKind::all_reduce: break;
      }
      if (c->reducer->lhs.size() != 1)
        refuse("reducer", c, cat("it joins ", c->reducer->lhs.size(), " values at once"));
      Buffer total = make_buffer(c->dst.buffer->name + "_total", type, {make_int(1)}, "local");
      Var p = make_var("p");
      Expr joined = substitute(c->reducer->result[0],
                               {{c->reducer->lhs[0].get(), load(total, {make_int(0)})},
                                {c->reducer->rhs[0].get(), load(table, cell(p, number))}});
      return allocate(
          total,
          seq({store(total, load(table, cell(make_int(0), number)), {make_int(0)}),
               make_for(p, make_int(1), make_int(count - 1), store(total, joined, {make_int(0)})),
               store(c->dst.buffer, load(total, {make_int(0)}), at)}));
    });
    if (c->collective == CollectiveKind::reduce || collect)
      receive = if_then(eq(rank, root), receive);
    return allocate(table, seq({send, receive}));
  }

  const LaunchNode* launch_;
  const TargetInfo& machine_;
};

class Launches final : public Rewriter {
 public:
  explicit Launches(const TargetInfo& machine) : machine_(machine) {}

 protected:
  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* c = as<CollectiveNode>(s)) {
      throw Error(
          ErrorKind::lower, "lower.collective.outside",
          cat("a ", name_of(c), " to \"", c->dst.buffer->name,
              "\" stands outside of every kernel: it has no participants on ", machine_.name))
          .help(cat("put it under a loop bound to ", join(c->axes)));
    }
    const auto* launch = as<LaunchNode>(s);
    if (!launch) return Rewriter::rewrite_default(s);
    Stmt body = Lower(launch, machine_).rewrite(launch->body);
    return body == launch->body ? s : make_ref<const LaunchNode>(launch->name, launch->axes, body);
  }

 private:
  const TargetInfo& machine_;
};

}  // namespace

PrimFunc lower_collectives(const PrimFunc& f, const TargetInfo& machine) {
  Stmt body = Launches(machine).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
