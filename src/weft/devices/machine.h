// SPDX-License-Identifier: Apache-2.0
#pragma once
// What programs of array operations need to know of a device that the host cannot address.

#include <optional>

#include "weft/array/ndarray.h"
#include "weft/target/target.h"

namespace weft {

/// The facts of an array's device, read from its target's table.
struct MachineFacts {
  const TargetInfo& info;
  bool known = false;  // false: the device is served by another process
  /// Elements of `e` are operands of instructions.
  bool computes(Elem e) const;
  /// Elements of `e` are narrower than what the machine's memory moves: reads take words apart and
  /// results are packed, by programs or, where memory is reached by transfers alone, by these.
  bool packs(Elem e) const;
  /// Only transfers reach the memory of arrays: elements that are moved and not computed are moved
  /// by them.
  bool transfers() const;
  bool has_nan() const;
  /// What integers of `e` are computed in: 32 bits for narrower ones; sums of truth values, too.
  static Elem wide(Elem e);
  /// What positions along an axis are computed in: int64, else int32.
  Elem positions() const { return computes(Elem::int64) ? Elem::int64 : Elem::int32; }
};
const MachineFacts& machine_of(const Ref<Device>& device);
/// Throws Error(device, "array.device.remote"): another process serves the device.
[[noreturn]] void refuse_remote(const Ref<Device>& device, std::string_view operation);

/// Integers as positions that x's device computes with. Throws Error(index, "array.index.range")
/// when one needs more bits.
NDArray as_positions(const NDArray& x);
/// The low words of 64-bit integers on such a device; nothing when some value needs more bits.
std::optional<NDArray> low_words(const NDArray& x);
/// dst = src by transfers, element for element; src broadcasts. Equal types; or one is int32 and
/// the other narrower, which is widened or cut.
void move_elements(const NDArray& dst, const NDArray& src);
/// The same view over int32 elements of the same values.
NDArray widened(const NDArray& x);
/// 32-bit words of an array of 64-bit integers: a further axis of two, the low word first.
NDArray words_of(const NDArray& x);

}  // namespace weft
