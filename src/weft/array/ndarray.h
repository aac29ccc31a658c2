// SPDX-License-Identifier: Apache-2.0
#pragma once
// NDArray: a strided view (shape, strides in elements, offset, element type) over storage on a
// device. Copying an NDArray shares the storage; views allocate nothing. Invariant: every element
// that the view can name lies inside the storage; `make` and `as_strided` are where that is
// checked.

#include <complex>
#include <functional>
#include <span>
#include <string>

#include "weft/array/dims.h"
#include "weft/elements/elem.h"
#include "weft/runtime/device.h"

namespace weft {

using runtime::Device;
using runtime::Storage;

class NDArray {
 public:
  NDArray() = default;
  /// Assembles a view that is known to be inside; use `make` for anything a user says.
  NDArray(Ref<Storage> storage, Elem elem, Dims shape, Dims strides, std::int64_t offset);

  /// New compact storage, unset. Throws Error(value, "array.size.overflow"), Error(memory, ...).
  static NDArray empty(const Ref<Device>& device, Elem elem, Dims shape);
  /// A checked view over `handle`; empty strides with ndim > 0 means compact row-major. Throws
  /// Error(index, "array.make.outside") when the view reaches outside the handle.
  static NDArray make(Ref<Storage> handle, Elem elem, Dims shape, const Dims* strides = nullptr,
                      std::int64_t offset = 0);

  bool defined() const { return static_cast<bool>(storage_); }
  /// The same shape and type over nothing.
  NDArray outline() const {
    NDArray out = *this;
    out.storage_ = nullptr;
    out.host_ = false;
    return out;
  }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  std::int64_t offset() const { return offset_; }
  Elem elem() const { return elem_; }
  DType dtype() const { return dtype_of(elem_); }
  int ndim() const { return shape_.size(); }
  std::int64_t size() const { return size_; }
  std::int64_t nbytes() const { return size_ * elem_bytes(elem_); }
  const Ref<Storage>& handle() const { return storage_; }
  const Ref<Device>& device() const { return storage_->device(); }
  bool on_host() const { return host_; }
  /// The first element. Throws Error(device, "array.host.access") unless on_host().
  char* host() const {
    if (!host_) not_on_host();
    return static_cast<char*>(storage_->host()) + offset_ * elem_bytes(elem_);
  }

  /// Elements follow one another in row-major order (any offset).
  bool is_contiguous() const;
  /// needle's notion: contiguous and covering the whole handle.
  bool is_compact() const;
  /// Itself when contiguous, else a copy.
  NDArray contiguous() const;
  NDArray copy() const;
  NDArray astype(Elem elem) const;              // always a copy
  NDArray to(const Ref<Device>& device) const;  // itself when already there
  static Dims compact_strides(const Dims& shape);

  // ---- views. All throw Error(shape|index, "array.<name>.*").
  NDArray as_strided(Dims shape, Dims strides, std::int64_t offset) const;
  NDArray permute(std::span<const int> axes) const;
  NDArray transpose(int a, int b) const;
  NDArray broadcast_to(const Dims& shape) const;
  /// One extent may be -1. A view where the layout allows it, else a copy.
  NDArray reshape(Dims shape) const;
  /// As reshape, but refuses to copy: empty result when a copy would be needed.
  bool reshape_view(const Dims& shape, NDArray& out) const;
  NDArray expand_dims(int axis) const;
  NDArray squeeze(std::span<const int> axes) const;
  NDArray flip(std::span<const int> axes) const;
  /// One axis restricted to start, start + step, ... (count entries); all already normalised and
  /// checked.
  NDArray slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const;
  /// One index of one axis; the axis disappears.
  NDArray select(int axis, std::int64_t index) const;

  /// The bytes of element `linear` (row-major position) brought to the host.
  void read_element(std::int64_t linear, void* out) const;
  /// Brings data to `out`, compact row-major, of this array's type.
  void read(void* out) const;

 private:
  [[noreturn]] void not_on_host() const;
  Ref<Storage> storage_;
  std::int64_t offset_ = 0;
  std::int64_t size_ = 0;
  Elem elem_ = Elem::float32;
  bool host_ = false;
  Dims shape_, strides_;
};

/// Product of extents; throws Error(value, "array.size.overflow").
std::int64_t checked_size(const Dims& shape, int bytes = 1);
/// Axis in [-ndim, ndim) to [0, ndim). Throws Error(index, "array.<operation>.axis").
int normalize_axis(int axis, int ndim, std::string_view operation);
/// Common shape; throws Error(shape, "array.<operation>.broadcast") with all shapes.
Dims broadcast_shapes(std::span<const Dims* const> shapes, std::string_view operation);
/// A view of the elements whose indices on two axes differ by `offset`, second less first: the two
/// axes disappear, that of the diagonal comes last.
NDArray diagonal(const NDArray& x, int first, int second, std::int64_t offset);
/// dst[...] = src, cast and broadcast; correct when they overlap.
void assign(const NDArray& dst, const NDArray& src);
/// Both on the same device, or Error(device, "array.<operation>.device").
void check_same_device(const NDArray& a, const NDArray& b, std::string_view operation);
/// Conservative: may the two name a common byte?
bool may_overlap(const NDArray& a, const NDArray& b);
/// Wraps memory owned by someone else; `release` runs when the last view goes.
NDArray from_external(const Ref<Device>& device, void* data, std::int64_t bytes, Elem elem,
                      Dims shape, Dims strides, std::function<void()> release);

/// The truncating text: nested brackets, as `repr` shows it, without the frame.
std::string format(const NDArray& array);
std::string describe(const NDArray& array);  // "float32[2, 3]"

/// The same memory as real numbers: an axis of (re, im) behind the others.
NDArray as_reals(const NDArray& z);
/// The reverse. The last axis has two adjacent elements, and everything else steps over pairs.
NDArray as_complex(const NDArray& reals);

}  // namespace weft
