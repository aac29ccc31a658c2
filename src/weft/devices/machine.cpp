// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/machine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "weft/array/ops.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/target/rules.h"

namespace weft {

bool MachineFacts::computes(Elem e) const {
  const auto& types = info.dtypes;
  return !known || types.empty() ||
         std::find(types.begin(), types.end(), dtype_of(e)) != types.end();
}

bool MachineFacts::packs(Elem e) const {
  const MemoryInfo* global = info.memory("global");
  return global && (is_integer(e) || e == Elem::boolean) &&
         elem_bytes(e) < global->min_transfer_bytes;
}

bool MachineFacts::transfers() const {
  const MemoryInfo* global = info.memory("global");
  return global && global->access == "dma";
}

bool MachineFacts::has_nan() const { return info.limit(limits::kNan, 1) != 0; }

Elem MachineFacts::wide(Elem e) {
  return is_integer(e) && elem_bytes(e) < elem_bytes(Elem::int32) ? Elem::int32 : e;
}

const MachineFacts& machine_of(const Ref<Device>& device) {
  static ForkSafeMutex mutex;
  static auto& all = *new std::map<std::string, MachineFacts>;
  const std::string& name = device->info().name;
  std::lock_guard lock(mutex);
  if (auto it = all.find(name); it != all.end()) return it->second;
  static const TargetInfo none{};
  const TargetInfo* table = target_info_of(*device);
  return all.emplace(name, MachineFacts{table ? *table : none, table != nullptr}).first->second;
}

void refuse_remote(const Ref<Device>& device, std::string_view operation) {
  throw Error(ErrorKind::device, "array.device.remote",
              cat(operation, " is not computed on ", device->info().name,
                  ": arrays there are arguments of uploaded modules"))
      .help("upload a module that computes it, or bring the array here with to(\"cpu\")");
}

namespace {

std::string bytes_of(const NDArray& x) {
  std::string out(x.handle()->bytes(), '\0');
  x.device()->download(out.data(), *x.handle(), 0, out.size());
  return out;
}

std::int32_t read_integer(const char* at, Elem e) {
  switch (e) {
    case Elem::int8: return static_cast<std::int8_t>(*at);
    case Elem::int16: {
      std::int16_t v = 0;
      std::memcpy(&v, at, sizeof v);
      return v;
    }
    case Elem::uint16: {
      std::uint16_t v = 0;
      std::memcpy(&v, at, sizeof v);
      return v;
    }
    case Elem::int32: {
      std::int32_t v = 0;
      std::memcpy(&v, at, sizeof v);
      return v;
    }
    default: return static_cast<unsigned char>(*at);  // bool, uint8
  }
}

}  // namespace

void move_elements(const NDArray& dst, const NDArray& src_in) {
  if (dst.size() == 0) return;
  const NDArray src = src_in.broadcast_to(dst.shape());
  std::string to = bytes_of(dst);
  const std::string from = bytes_of(src);
  const auto wide = static_cast<std::size_t>(elem_bytes(src.elem())),
             width = static_cast<std::size_t>(elem_bytes(dst.elem()));
  const bool equal = src.elem() == dst.elem();
  Dims at(dst.ndim(), 0);
  std::int64_t s = src.offset(), d = dst.offset();
  for (std::int64_t n = dst.size(); n > 0; --n) {
    const char* element = &from[static_cast<std::size_t>(s) * wide];
    char* place = &to[static_cast<std::size_t>(d) * width];
    if (equal) {
      std::memcpy(place, element, width);
    } else {
      const std::int32_t v = read_integer(element, src.elem());
      std::memcpy(place, &v, width);  // the low bytes
    }
    for (int i = dst.ndim(); i-- > 0;) {
      s += src.strides()[i], d += dst.strides()[i];
      if (++at[i] < dst.shape()[i]) break;
      s -= at[i] * src.strides()[i], d -= at[i] * dst.strides()[i];
      at[i] = 0;
    }
  }
  dst.device()->upload(*dst.handle(), 0, to.data(), to.size());
}

NDArray widened(const NDArray& x) {
  const auto n = static_cast<std::int64_t>(x.handle()->bytes()) / elem_bytes(x.elem());
  const NDArray all = NDArray::empty(x.device(), Elem::int32, Dims{n});
  move_elements(all, NDArray::make(x.handle(), x.elem(), Dims{n}));
  const Dims strides = x.strides();
  return NDArray::make(all.handle(), Elem::int32, x.shape(), &strides, x.offset());
}

NDArray words_of(const NDArray& x) {
  Dims shape = x.shape(), strides = x.strides();
  for (int i = 0; i < strides.size(); ++i) strides[i] *= 2;
  shape.push_back(2), strides.push_back(1);
  return NDArray::make(x.handle(), Elem::int32, shape, &strides, 2 * x.offset());
}

std::optional<NDArray> low_words(const NDArray& x) {
  const NDArray words = words_of(x);
  const NDArray low = words.select(x.ndim(), 0).copy(), high = words.select(x.ndim(), 1);
  const NDArray sign = apply(Op::bitwise_right_shift, low, Scalar(31));
  NDArray same = apply(Op::equal, high, sign);
  if (x.elem() == Elem::uint64)  // neither word is negative
    same = apply(Op::equal, apply(Op::bitwise_or, high, sign), Scalar(0));
  bool fits = true;
  if (x.size()) reduce(ReduceOp::all, same).read_element(0, &fits);
  if (!fits) return std::nullopt;
  return low;
}

NDArray as_positions(const NDArray& x) {
  const Elem to = machine_of(x.device()).positions();
  if (x.elem() == to) return x;
  if (x.on_host() || elem_bytes(x.elem()) < elem_bytes(Elem::int64) || to == Elem::int64)
    return x.astype(to);
  std::optional<NDArray> low = low_words(x);
  if (!low) {
    throw Error(ErrorKind::index, "array.index.range",
                cat("an index of ", describe(x), " does not fit 32 bits"))
        .note(cat(x.device()->info().name, " computes positions with 32 bits"));
  }
  return *low;
}

}  // namespace weft
