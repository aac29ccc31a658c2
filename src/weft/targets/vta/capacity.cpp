// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/capacity.h"

#include <algorithm>
#include <cstdlib>

#include "weft/ir/visit.h"

namespace weft::vta {

using namespace ir;

namespace {

class Filling final : public Visitor {
 public:
  Filling(const AllocateNode& a, const Environment& env) : a_(a), env_(env) { visit(a.body); }

  std::string name;
  std::int64_t extent = 0, stride = 0;  // in numbers

 protected:
  void visit_for(const ForNode* s) override {
    const std::optional<std::int64_t> min = constant(s->min, env_), n = constant(s->extent, env_);
    if (min && n) loops_.push_back({s->var.get(), *min, *n});
    Visitor::visit_for(s);
    if (min && n) loops_.pop_back();
  }
  void visit_store(const StoreNode* s) override {
    if (s->buffer.get() != a_.buffer.get() || s->indices.size() != 1) return;
    const std::optional<Affine> at = affine(s->indices[0], loops_, env_);
    if (!at) return;
    for (std::size_t l = 0; l < loops_.size(); ++l) {
      const std::int64_t step = std::abs(at->coeff[l]);
      if (loops_[l].extent < 2 || step <= stride) continue;
      stride = step, extent = loops_[l].extent, name = loops_[l].var->name;
    }
  }

 private:
  const AllocateNode& a_;
  const Environment& env_;
  std::vector<NestLoop> loops_;
};

}  // namespace

std::optional<FillingLoop> filling_loop(const AllocateNode& a, const Environment& env,
                                        std::int64_t lanes, std::int64_t room) {
  const Filling found(a, env);
  if (found.stride == 0) return std::nullopt;
  const std::int64_t fits = std::min(room * lanes / found.stride, found.extent - 1);
  if (fits < 1) return std::nullopt;
  return FillingLoop{found.name, found.extent, fits};
}

}  // namespace weft::vta
