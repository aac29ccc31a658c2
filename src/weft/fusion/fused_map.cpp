// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fused_map.h"

#include <atomic>

#include "weft/devices/many_maps.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/lazy_value.h"

namespace weft {

FusedMap::FusedMap(std::vector<Lazy> outputs, int inputs, int numbers)
    : outputs_(std::move(outputs)),
      arrays_(inputs - numbers),
      chunks_(ChunkedMap::make(outputs_, inputs, false)) {
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

std::optional<Elem> FusedMap::step_elem(std::span<const NDArray* const> in) {
  const NDArray& first = *in[0];
  if (first.on_host() || !suits(first)) return std::nullopt;
  Elem widest = Elem::float32;
  for (const NDArray* a : in) {
    if (!is_real_float(a->elem()) || a->device().get() != first.device().get() ||
        (a->ndim() > 0 && a->shape() != first.shape()))
      return std::nullopt;
    if (a->elem() == Elem::float64) widest = Elem::float64;
  }
  return widest;
}

void FusedMap::operator()(std::span<const NDArray> out, std::span<const NDArray> in) const {
  if (out[0].size() == 0) return;
  if (!out[0].on_host()) return on_grid(out, in, {});
  std::vector<NDArray> given(in.size());
  for (int k : reads_) given[static_cast<std::size_t>(k)] = in[static_cast<std::size_t>(k)];
  chunks_->run_into(out, std::move(given));
}

device::Map FusedMap::map(std::span<const NDArray* const> read,
                          std::span<const Scalar> numbers) const {
  device::Map map;
  map.family = "fused map";
  map.key = serial_;
  map.arrays = read;
  map.numbers = numbers;
  map.compute = outputs_[0].elem();
  return map;
}

device::MapValues FusedMap::values(Elem compute) const {
  return [this, compute](const std::vector<ir::Expr>& loads, const std::vector<ir::Expr>& n) {
    std::vector<ir::Expr> values;
    std::size_t array = 0;
    for (int k : reads_) {
      values.push_back(k < arrays_ ? convert_value(loads[array++], compute)
                                   : n[static_cast<std::size_t>(k - arrays_)]);
    }
    return lazy_values(outputs_, leaves_, values);
  };
}

void FusedMap::on_grid(std::span<const NDArray> out, std::span<const NDArray> in,
                       std::span<const Scalar> numbers) const {
  std::vector<const NDArray*> read;
  for (int k : reads_)
    if (k < arrays_) read.push_back(&in[static_cast<std::size_t>(k)]);
  const device::Map one = map(read, numbers);
  device::grid_map(out, one, values(one.compute));
}

std::vector<NDArray> FusedMap::results(std::span<const NDArray> arrays, bool in_place) const {
  std::vector<NDArray> out;
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const Lazy& value = outputs_[k];
    WEFT_CHECK(!in_place || value->kind != LazyKind::input || value->index == static_cast<int>(k),
               "a result in place is another array");
    out.push_back(in_place
                      ? arrays[k]
                      : NDArray::empty(arrays[k].device(), arrays[k].elem(), arrays[k].shape()));
  }
  return out;
}

std::vector<NDArray> FusedMap::step(std::span<const NDArray> arrays,
                                    std::span<const Scalar> numbers, bool in_place) const {
  std::vector<NDArray> out = results(arrays, in_place);
  on_grid(out, arrays, numbers);
  return out;
}

std::vector<std::vector<NDArray>> FusedMap::steps(std::span<const std::vector<NDArray>> lists,
                                                  std::span<const Scalar> numbers,
                                                  bool in_place) const {
  std::vector<std::vector<NDArray>> out;
  std::vector<device::MapOfMany> small;
  for (const std::vector<NDArray>& arrays : lists) {
    out.push_back(results(arrays, in_place));
    bool joins = arrays[0].size() > 0 && arrays[0].ndim() > 0;  // none: an operand of all
    for (const NDArray& x : arrays) joins = joins && x.is_contiguous();
    if (!joins || lists.size() == 1) {
      on_grid(out.back(), arrays, numbers);
      continue;
    }
    device::MapOfMany one{out.back(), {}};
    for (int k : reads_)
      if (k < arrays_) one.arrays.push_back(&arrays[static_cast<std::size_t>(k)]);
    small.push_back(std::move(one));
  }
  if (small.empty()) return out;
  const device::Map all = map({}, numbers);
  device::grid_maps(small, all, values(all.compute));
  return out;
}

}  // namespace weft
