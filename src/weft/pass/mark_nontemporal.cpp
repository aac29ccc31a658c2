// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/mark_nontemporal.h"

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr const char* kKey = "nontemporal";

class Mark final : public Rewriter {
 public:
  explicit Mark(const TargetInfo& machine) : machine_(machine) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    const Json* asked = find_annotation(t->annotations, kKey);
    if (!asked) return Rewriter::rewrite_for(s);
    if (!asked->is_bool() && !asked->is_int()) {
      throw Error(ErrorKind::lower, "lower.nontemporal.value",
                  cat("loop \"", t->var->name, "\" is annotated \"", kKey, "\" with ",
                      asked->dump(), ", which is neither True nor False"));
    }
    const bool on = asked->is_bool() ? asked->as_bool() : asked->as_int() != 0;
    const bool before = std::exchange(on_, on);
    const int stores = stores_;
    Stmt body = rewrite(t->body);
    on_ = before;
    if (on && stores == stores_) {
      throw Error(ErrorKind::lower, "lower.nontemporal.nothing",
                  cat("loop \"", t->var->name, "\" is annotated \"", kKey,
                      "\" but nothing under it is stored to global memory"))
          .help("annotate a loop around the block that writes the result");
    }
    return make_for(t->var, t->min, t->extent, body, t->for_kind, t->axis,
                    with_annotation(t->annotations, kKey, nullptr));
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    const MemoryInfo* row = machine_.memory(t->buffer->scope);
    if (!on_ || !row || !row->private_to.empty() || t->buffer->scope != "global" ||
        t->value->dtype.is_bool() || as_atomic(t))
      return s;
    ++stores_;
    return store(t->buffer, call(kKey, {t->value}), t->indices);
  }

 private:
  const TargetInfo& machine_;
  bool on_ = false;
  int stores_ = 0;
};

}  // namespace

PrimFunc mark_nontemporal(const PrimFunc& f, const TargetInfo& machine) {
  bool asked = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* t = as<ForNode>(s);
    asked = asked || (t && find_annotation(t->annotations, kKey));
  });
  if (!asked) return f;
  auto out = edit(f);
  out->body = Mark(machine).rewrite(f->body);
  return out;
}

}  // namespace weft::pass
