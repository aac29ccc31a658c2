// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/roles.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::ir {

int role_addresses(std::string_view op) {
  if (op == "bulk_load" || op == "bulk_load_each" || op == "tile_multiply") return 3;
  if (op == "bulk_store" || op.starts_with("tile_store") || op == "tile_round" ||
      op == "tile_rows" || op == "tile_add" || op == "bulk_add")
    return 2;
  return op.starts_with("token_") ? 1 : 0;
}

std::size_t bulk_numbers(std::string_view op) {
  return op == "bulk_load_each" ? 4 : op == "bulk_load" ? 3 : 2;
}

bool uses_tokens(const Stmt& s) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    const auto* e = as<EvaluateNode>(t);
    const auto* c = e ? as<CallNode>(e->value) : nullptr;
    found = found || (c && c->op.starts_with("token_"));
  });
  return found;
}

std::int64_t cluster_blocks(const Stmt& s) {
  std::int64_t blocks = 0;
  for_each_stmt(s, [&](const Stmt& t) {
    const auto* e = as<EvaluateNode>(t);
    const auto* c = e ? as<CallNode>(e->value) : nullptr;
    if (!c || c->op != "cluster_meet") return;
    std::int64_t n = 0;
    if (!is_const_int(c->args[0], &n) || n < 1 || n > 8 || (blocks && n != blocks))
      throw Error(ErrorKind::verify, "ir.cluster.size",
                  cat("a cluster of ", print(c->args[0]), " blocks",
                      blocks ? cat(" beside one of ", blocks) : ""))
          .note("legal: a constant from 1 to 8, the same in all barriers of a kernel")
          .at("", print(t));
    blocks = n;
  });
  return blocks ? blocks : 1;
}

BulkBox bulk_box(const CallNode* call, std::size_t first, std::size_t rank) {
  BulkBox out;
  const std::size_t given = call->args.size() - first;
  bool good = given == rank || given == 2 * rank;
  for (std::size_t i = 0; i < given; ++i) {
    std::int64_t n = 0;
    good = good && is_const_int(call->args[first + i], &n) && n >= 1;
    (i < rank ? out.extents : out.steps).push_back(n);
  }
  if (!good)
    throw Error(ErrorKind::verify, "ir.bulk.box",
                cat("\"", call->op, "\" of an array of ", rank, " axes has ", given,
                    " numbers behind its addresses"))
        .note("legal: the constant extents of the box, axis by axis, then perhaps as many steps")
        .at("", print(evaluate(Expr(call))));
  if (out.steps.empty()) out.steps.assign(rank, 1);
  return out;
}

}  // namespace weft::ir
