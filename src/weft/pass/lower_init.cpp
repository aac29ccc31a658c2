// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/lower_init.h"

#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

class LowerInit final : public Rewriter {
 public:
  Block rewrite_block(const Block& old) override {
    Block block = Rewriter::rewrite_block(old);
    if (!block->init) return block;
    Expr first = make_bool(true);
    for (const IterVar& iter : block->iters) {
      if (iter.kind == IterKind::reduce) first = logical_and(first, eq(iter.var, iter.dom.min));
    }
    auto copy = edit(block);
    copy->init = nullptr;
    bool always = is_const_int_value(first, 1);
    copy->body = seq({always ? block->init : if_then(first, block->init), block->body});
    // The body reads what it updates; while `init` existed that read was implied.
    for (const BufferRegion& w : block->writes) {
      bool listed = false;
      for (const BufferRegion& r : block->reads) listed |= r.buffer == w.buffer;
      if (!listed) copy->reads.push_back(w);
    }
    return copy;
  }
};

}  // namespace

PrimFunc lower_init(const PrimFunc& f) {
  LowerInit rewriter;
  Stmt body = rewriter.rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
