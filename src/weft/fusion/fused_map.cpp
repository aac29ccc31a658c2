// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fused_map.h"

#include <atomic>

#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/fuse.h"

namespace weft {

FusedMap::FusedMap(std::vector<Lazy> outputs, int inputs)
    : outputs_(std::move(outputs)), chunks_(ChunkedMap::make(outputs_, inputs, false)) {
  static std::atomic<std::uint32_t> last{0};
  serial_ = ++last;
  for (const Lazy& x : topological(outputs_)) {
    if (x->kind != LazyKind::input) continue;
    reads_.push_back(x->index);
    leaves_.push_back(x.node());
  }
  WEFT_CHECK(chunks_, "a fused map has an operation without a kernel");
}

bool FusedMap::suits(const NDArray& x) {
  return is_real_float(x.elem()) && (x.on_host() || device::grid_of(x.device()).present());
}

void FusedMap::operator()(std::span<const NDArray> out, std::span<const NDArray> in) const {
  if (out[0].size() == 0) return;
  if (out[0].on_host()) {
    std::vector<NDArray> given(in.size());
    for (int k : reads_) given[static_cast<std::size_t>(k)] = in[static_cast<std::size_t>(k)];
    return chunks_->run_into(out, std::move(given));
  }
  std::vector<const NDArray*> given;
  for (int k : reads_) given.push_back(&in[static_cast<std::size_t>(k)]);
  device::Map map;
  map.family = "fused map";
  map.key = serial_;
  map.arrays = given;
  map.compute = outputs_[0].elem();
  device::grid_map(out, map, [&](const std::vector<ir::Expr>& loads, const std::vector<ir::Expr>&) {
    std::vector<ir::Expr> values;
    for (const ir::Expr& x : loads) values.push_back(convert_value(x, map.compute));
    return lazy_values(outputs_, leaves_, values);
  });
}

}  // namespace weft
