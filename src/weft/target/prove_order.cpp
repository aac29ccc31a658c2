// SPDX-License-Identifier: Apache-2.0
#include "weft/target/prove_order.h"

#include "weft/base/error.h"
#include "weft/ir/interpret.h"
#include "weft/ir/roles.h"

namespace weft {

void prove_order(const ir::PrimFunc& lowered, const std::string& target, Json& notes) {
  constexpr std::int64_t kBudget = 3'000'000;  // statements, a fraction of a second
  if (!ir::uses_tokens(lowered->body)) return;
  ir::cluster_blocks(lowered->body);  // throws where clusters disagree
  auto unchecked = [&](const std::string& why) {
    notes.push_back(cat("order of tokens, unchecked: ", lowered->name, ": ", why));
  };
  for (const ir::Param& p : lowered->params) {
    if (!p.buffer && !p.var->dtype.is_handle())
      return unchecked(cat("\"", p.var->name, "\" is known only at run time"));
  }
  try {
    ir::interpret_order(lowered, kBudget);
  } catch (const Error& e) {
    if (e.code() == "interpret.steps") return unchecked("it runs longer than the budget");
    if (e.kind() != ErrorKind::fault) return unchecked(e.message());
    throw Error(
        ErrorKind::verify, "verify.token",
        cat("the roles of ", lowered->name, " for ", target, " are out of step: ", e.message()))
        .note(e.what())
        .help("docs/design/roles.md says what each call waits for and what it promises");
  }
}

}  // namespace weft
