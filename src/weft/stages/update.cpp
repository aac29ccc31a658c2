// SPDX-License-Identifier: Apache-2.0
#include "weft/stages/update.h"

#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/visit.h"

namespace weft::stages {

using namespace ir;

namespace {

Combine combine_of(ExprKind kind) {
  switch (kind) {
    case ExprKind::add: return Combine::add;
    case ExprKind::mul: return Combine::mul;
    case ExprKind::min: return Combine::min;
    case ExprKind::max: return Combine::max;
    default: return Combine::none;
  }
}

const StoreNode* store_of(const Block& block, Expr* condition) {
  const auto* branch = as<IfNode>(block->body);
  if (!branch || branch->else_case) return as<StoreNode>(block->body);
  *condition = branch->condition;
  return as<StoreNode>(branch->then_case);
}

/// The init is null or a store to the buffer of `store`.
Update update_of(const Block& block, const StoreNode* store, const StoreNode* init,
                 Expr condition) {
  Update out;
  out.store = store;
  out.init = init;
  out.condition = std::move(condition);
  out.value = store->value;
  out.reduces = std::any_of(block->iters.begin(), block->iters.end(),
                            [](const IterVar& i) { return i.kind == IterKind::reduce; });
  if (const auto* b = as<BinaryNode>(store->value); b && (out.reduces || init)) {
    const Combine c = combine_of(b->kind);
    const bool left = c != Combine::none && reads_element(*store, b->a);
    if (left || (c != Combine::none && reads_element(*store, b->b))) {
      out.combine = c;
      out.value = left ? b->b : b->a;
    }
  }
  for_each_expr(out.value, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    out.reads_own |= l && l->buffer.get() == store->buffer.get();
  });
  return out;
}

}  // namespace

bool reads_element(const StoreNode& store, const Expr& e) {
  const auto* l = as<LoadNode>(e);
  if (!l || l->buffer.get() != store.buffer.get()) return false;
  arith::Analyzer analyzer;
  for (std::size_t d = 0; d < store.indices.size(); ++d) {
    if (!analyzer.prove_equal(l->indices[d], store.indices[d])) return false;
  }
  return true;
}

std::optional<Update> find_update(const Block& block) {
  Expr condition;
  const StoreNode* store = store_of(block, &condition);
  const auto* init = as<StoreNode>(block->init);
  if (!store || (block->init && !init) || (init && init->buffer.get() != store->buffer.get()))
    return std::nullopt;
  return update_of(block, store, init, std::move(condition));
}

Update read_update(const Block& block) {
  if (std::optional<Update> out = find_update(block)) return *std::move(out);
  Expr condition;
  const StoreNode* store = store_of(block, &condition);
  if (!store)
    throw Error(ErrorKind::lower, "stages.body",
                cat("the body of block ", block->name, " is not one store"))
        .help("give each store a block of its own");
  throw Error(ErrorKind::lower, "stages.init",
              cat("the init of block ", block->name, " is not a store to ", store->buffer->name))
      .help("let the init store into the buffer that the block writes");
}

}  // namespace weft::stages
