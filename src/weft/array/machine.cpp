// SPDX-License-Identifier: Apache-2.0
#include "weft/array/machine.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "weft/array/ops.h"
#include "weft/target/backend.h"

namespace weft {

bool MachineFacts::computes(Elem e) const {
  const auto& types = info.dtypes;
  return !known || types.empty() || std::find(types.begin(), types.end(), dtype_of(e)) != types.end();
}

bool MachineFacts::packs(Elem e) const {
  const MemoryInfo* global = info.memory("global");
  return global && !computes(e) && (is_integer(e) || e == Elem::boolean) &&
         elem_bytes(e) < global->min_transfer_bytes;
}

Elem MachineFacts::wide(Elem e) {
  return is_integer(e) && elem_bytes(e) < elem_bytes(Elem::int32) ? Elem::int32 : e;
}

const MachineFacts& machine_of(const Ref<Device>& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, MachineFacts>;
  const std::string& name = device->info().name;
  std::lock_guard lock(mutex);
  if (auto it = all.find(name); it != all.end()) return it->second;
  MachineFacts facts;
  const Target target = Target::parse(name);
  for (const Backend* backend : backends()) {
    if (backend->name() != target.name) continue;
    facts.info = backend->info(target);
    facts.known = true;
  }
  return all.emplace(name, std::move(facts)).first->second;
}

NDArray words_of(const NDArray& x) {
  Dims shape = x.shape(), strides = x.strides();
  for (int i = 0; i < strides.size(); ++i) strides[i] *= 2;
  shape.push_back(2), strides.push_back(1);
  return NDArray::make(x.handle(), Elem::int32, shape, &strides, 2 * x.offset());
}

NDArray as_positions(const NDArray& x) {
  const Elem to = machine_of(x.device()).positions();
  if (x.elem() == to) return x;
  if (x.on_host() || elem_bytes(x.elem()) < elem_bytes(Elem::int64) || to == Elem::int64)
    return x.astype(to);
  const NDArray words = words_of(x);
  const NDArray low = words.select(x.ndim(), 0).copy(), high = words.select(x.ndim(), 1);
  const NDArray same = apply(Op::equal, high, apply(Op::bitwise_right_shift, low, Scalar(31)));
  bool fits = true;
  if (x.size()) reduce(ReduceOp::all, same).read_element(0, &fits);
  if (!fits) {
    throw Error(ErrorKind::index, "array.index.range",
                cat("an index of ", describe(x), " does not fit 32 bits"))
        .note(cat(x.device()->info().name, " computes positions with 32 bits"));
  }
  return low;
}

}  // namespace weft
