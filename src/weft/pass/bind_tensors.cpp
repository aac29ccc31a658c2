// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/bind_tensors.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

struct Bound {
  Buffer buffer;
  BulkBox box;
  Var var;
};

class Bind final : public Rewriter {
 public:
  explicit Bind(const PrimFunc& f) {
    for (const Param& p : f->params) {
      if (p.buffer) params_.push_back(p.buffer);
    }
  }

 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* launch = as<LaunchNode>(s);
    if (!launch) return Rewriter::rewrite_default(s);
    auto outer = std::exchange(bound_, {});
    Stmt out = Rewriter::rewrite_default(s);
    for (std::size_t i = bound_.size(); i-- > 0;) {
      const Bound& b = bound_[i];
      const std::size_t rank = b.buffer->ndim();
      const Exprs strides = strides_of(b.buffer);
      Exprs args{call("address_of", {load(b.buffer, Exprs(rank, make_int(0)))}),
                 make_int(static_cast<std::int64_t>(rank))};
      for (std::size_t d = rank; d-- > 0;) args.push_back(b.buffer->shape[d]);
      for (std::size_t d = rank - 1; d-- > 0;) args.push_back(strides[d]);
      for (const auto* list : {&b.box.extents, &b.box.steps})
        for (std::size_t d = rank; d-- > 0;) args.push_back(make_int((*list)[d]));
      out = let_stmt(b.var, call("tensor_map", std::move(args)), out);
    }
    bound_ = std::move(outer);
    return out;
  }

  Expr rewrite_call(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    const bool loads = c->op.starts_with("bulk_load");
    if (!loads && c->op != "bulk_store") return Rewriter::rewrite_call(e);
    const std::size_t far = loads ? 1 : 0, near = 1 - far, first = bulk_numbers(c->op);
    const auto* address = as<CallNode>(c->args[far]);
    if (!address) return e;
    const auto* l = as<LoadNode>(address->args[0]);
    const BulkBox box = bulk_box(c, first, l->indices.size());
    Exprs args = c->args;
    args.resize(first);
    args[far] = var_of(c, l->buffer, box);
    for (std::size_t d = l->indices.size(); d-- > 0;) args.push_back(l->indices[d]);
    check_row(c, as<LoadNode>(as<CallNode>(c->args[near])->args[0])->buffer, l->buffer, box);
    return call(c->op, std::move(args));
  }

 private:
  Var var_of(const CallNode* c, const Buffer& b, const BulkBox& box) {
    for (const Bound& x : bound_) {
      if (x.buffer == b && x.box.extents == box.extents && x.box.steps == box.steps) return x.var;
    }
    const Exprs strides = strides_of(b);
    const bool param = std::find(params_.begin(), params_.end(), b) != params_.end();
    if (!param || b->ndim() > 5 || !is_const_int_value(strides.back(), 1))
      throw Error(ErrorKind::lower, "lower.bulk.array",
                  cat("\"", c->op, "\" cannot copy of \"", b->name, "\", ",
                      !param          ? cat("which is no parameter of the function")
                      : b->ndim() > 5 ? cat("which has ", b->ndim(), " axes")
                                      : cat("whose last axis has stride ", print(strides.back()))))
          .note("legal: parameters of at most 5 axes whose last one has stride 1");
    bound_.push_back({b, box, make_var(cat(b->name, "_map"), dtypes::handle)});
    return bound_.back().var;
  }

  static void check_row(const CallNode* c, const Buffer& near, const Buffer& far,
                        const BulkBox& box) {
    const std::int64_t bytes = box.extents.back() * far->dtype.total_bytes();
    if (bytes == 128 && near->dtype == far->dtype) return;
    throw Error(
        ErrorKind::lower, "lower.bulk.row",
        cat("\"", c->op, "\" copies rows of ", bytes, " bytes of ", to_string(far->dtype), " \"",
            far->name, "\" beside ", to_string(near->dtype), " \"", near->name, "\""))
        .note("legal: rows of 128 bytes, of one type")
        .help(cat("let the box's last extent be ", 128 / far->dtype.total_bytes()));
  }

  std::vector<Buffer> params_;
  std::vector<Bound> bound_;
};

}  // namespace

PrimFunc bind_tensors(const PrimFunc& f) {
  Stmt body = Bind(f).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = std::move(body);
  return out;
}

}  // namespace weft::pass
