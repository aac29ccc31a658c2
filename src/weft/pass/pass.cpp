// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/pass.h"

#include <chrono>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/ir/verify.h"

namespace weft::pass {

ir::PrimFunc run_pipeline(const Pipeline& pipeline, ir::PrimFunc f, const PassObserver& observer) {
  for (const Pass& pass : pipeline) {
    poll_interrupt();
    auto start = std::chrono::steady_clock::now();
    try {
      f = pass.run(f);
      if (observer.verify) {
        if (Verdict bad = ir::verify(f)) throw Error(ErrorKind::verify, std::move(*bad));
      }
    } catch (Error& e) {
      throw e.context(cat("while running pass ", pass.name, " on function ", f->name));
    }
    if (observer.after) {
      observer.after(
          pass, f, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  return f;
}

}  // namespace weft::pass
