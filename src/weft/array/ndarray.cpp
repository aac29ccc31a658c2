// SPDX-License-Identifier: Apache-2.0
#include "weft/array/ndarray.h"
#include "weft/array/on_device.h"
#include "weft/runtime/backlog.h"

#include <algorithm>
#include <vector>

namespace weft {

__extension__ typedef __int128 Wide;

std::string to_string(const Dims& dims) {
  std::string out;
  out += "(";
  for (int i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + (dims.size() == 1 ? ",)" : ")");
}

std::string describe(const NDArray& array) {
  std::string out = std::string(name_of(array.elem())) + "[";
  for (int i = 0; i < array.ndim(); ++i) out += (i ? ", " : "") + std::to_string(array.shape()[i]);
  return out + "]";
}

std::int64_t checked_size(const Dims& shape, int bytes) {
  if (shape.size() > kMaxDims) {
    throw Error(ErrorKind::value, "array.ndim.limit",
                cat("an array of ", shape.size(), " dimensions was asked for; at most ", kMaxDims,
                    " are kept"));
  }
  std::int64_t size = 1;
  bool zero = false, overflow = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw Error(ErrorKind::value, "array.shape.negative",
                  cat("negative extent ", extent, " in shape ", to_string(shape)));
    }
    zero |= extent == 0;
    if (__builtin_mul_overflow(size, std::max<std::int64_t>(extent, 1), &size)) overflow = true;
  }
  std::int64_t total;
  if (overflow || __builtin_mul_overflow(size, static_cast<std::int64_t>(bytes), &total)) {
    throw Error(
        ErrorKind::value, "array.size.overflow",
        cat("shape ", to_string(shape), " has more elements than 64 bits can count bytes of"));
  }
  return zero ? 0 : size;
}

Dims NDArray::compact_strides(const Dims& shape) {
  Dims strides(shape.size());
  std::int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

NDArray::NDArray(Ref<Storage> storage, Elem elem, Dims shape, Dims strides, std::int64_t offset)
    : storage_(std::move(storage)),
      offset_(offset),
      elem_(elem),
      shape_(std::move(shape)),
      strides_(std::move(strides)) {
  size_ = 1;
  for (std::int64_t extent : shape_) size_ *= extent;
  host_ = storage_->device()->info().host_accessible;
}

NDArray NDArray::empty(const Ref<Device>& device, Elem elem, Dims shape) {
  std::int64_t size = checked_size(shape, elem_bytes(elem));
  Dims strides = compact_strides(shape);
  auto bytes = static_cast<runtime::Bytes>(size * elem_bytes(elem));
  if (!device->info().host_accessible && on_device().packs(device, elem))
    bytes = (bytes + 3) / 4 * 4;  // programs write whole words
  return NDArray(device->allocate(bytes), elem, std::move(shape), std::move(strides), 0);
}

NDArray NDArray::make(Ref<Storage> handle, Elem elem, Dims shape, const Dims* strides,
                      std::int64_t offset) {
  std::int64_t size = checked_size(shape, elem_bytes(elem));
  Dims steps = strides ? *strides : compact_strides(shape);
  if (steps.size() != shape.size()) {
    throw Error(
        ErrorKind::shape, "array.make.rank",
        cat("shape ", to_string(shape), " and strides ", to_string(steps), " differ in length"));
  }
  Wide low = offset, high = offset;
  for (int i = 0; i < shape.size(); ++i) {
    Wide reach = static_cast<Wide>(shape[i] - 1) * steps[i];
    (reach < 0 ? low : high) += reach;
  }
  std::int64_t held = static_cast<std::int64_t>(handle->bytes()) / elem_bytes(elem);
  if (offset < 0 || (size > 0 && (low < 0 || high >= held))) {  // of none, none lies outside
    auto clip = [](Wide v) {
      return static_cast<std::int64_t>(std::clamp<Wide>(v, INT64_MIN, INT64_MAX));
    };
    throw Error(ErrorKind::index, "array.make.outside",
                cat("a view of shape ", to_string(shape), ", strides ", to_string(steps),
                    ", offset ", offset, " touches elements ", clip(low), " to ", clip(high),
                    " of a handle that holds ", held))
        .note("every element of a view must lie inside its handle");
  }
  return NDArray(std::move(handle), elem, std::move(shape), std::move(steps), offset);
}

void NDArray::not_on_host() const {
  throw Error(ErrorKind::device, "array.host.access",
              cat("the host cannot address memory of ", device()->info().name))
      .help("move the array first, with to(...) or numpy()");
}

bool NDArray::is_contiguous() const {
  std::int64_t step = 1;
  for (int i = ndim() - 1; i >= 0; --i) {
    if (shape_[i] == 0) return true;
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

bool NDArray::is_compact() const {
  return is_contiguous() &&
         static_cast<std::int64_t>(storage_->bytes()) / elem_bytes(elem_) == size_ && offset_ == 0;
}

NDArray NDArray::contiguous() const { return is_contiguous() ? *this : copy(); }

NDArray NDArray::copy() const {
  NDArray out = empty(device(), elem_, shape_);
  assign(out, *this);
  return out;
}

NDArray NDArray::astype(Elem elem) const {
  NDArray out = empty(device(), elem, shape_);
  assign(out, *this);
  return out;
}

NDArray NDArray::to(const Ref<Device>& device) const {
  if (device == this->device()) return *this;
  NDArray source = contiguous();
  NDArray out = empty(device, elem_, shape_);
  std::int64_t from = source.offset() * elem_bytes(elem_);
  auto bytes = static_cast<runtime::Bytes>(nbytes());
  if (bytes == 0) return out;
  if (source.on_host()) {
    device->upload(*out.storage_, 0, source.host(), bytes);
  } else if (out.on_host()) {
    this->device()->download(out.host(), *source.storage_, static_cast<runtime::Bytes>(from),
                             bytes);
    on_device().settle(this->device());
  } else {
    std::string through(bytes, '\0');
    this->device()->download(through.data(), *source.storage_, static_cast<runtime::Bytes>(from),
                             bytes);
    on_device().settle(this->device());
    device->upload(*out.storage_, 0, through.data(), bytes);
  }
  return out;
}

NDArray NDArray::as_strided(Dims shape, Dims strides, std::int64_t offset) const {
  return make(storage_, elem_, std::move(shape), &strides, offset);
}

int normalize_axis(int axis, int ndim, std::string_view operation) {
  if (axis < -ndim || axis >= ndim) {
    throw Error(
        ErrorKind::index, cat("array.", operation, ".axis"),
        cat("axis ", axis, " of ", operation, " is outside an array of ", ndim, " dimensions"))
        .note(ndim ? cat("legal: ", -ndim, " to ", ndim - 1)
                   : std::string("a 0-d array has no axes"));
  }
  return axis < 0 ? axis + ndim : axis;
}

NDArray NDArray::permute(std::span<const int> axes) const {
  if (static_cast<int>(axes.size()) != ndim()) {
    throw Error(ErrorKind::shape, "array.permute.rank",
                cat("permute of ", describe(*this), " got ", axes.size(), " axes, needs ", ndim()));
  }
  std::uint64_t seen = 0;
  NDArray out = *this;
  for (int i = 0; i < ndim(); ++i) {
    int axis = normalize_axis(axes[static_cast<std::size_t>(i)], ndim(), "permute");
    if (seen >> axis & 1) {
      throw Error(ErrorKind::value, "array.permute.repeated",
                  cat("permute names axis ", axis, " twice"));
    }
    seen |= std::uint64_t{1} << axis;
    out.shape_[i] = shape_[axis];
    out.strides_[i] = strides_[axis];
  }
  return out;
}

NDArray NDArray::transpose(int a, int b) const {
  a = normalize_axis(a, ndim(), "transpose");
  b = normalize_axis(b, ndim(), "transpose");
  NDArray out = *this;
  std::swap(out.shape_[a], out.shape_[b]);
  std::swap(out.strides_[a], out.strides_[b]);
  return out;
}

NDArray NDArray::broadcast_to(const Dims& shape) const {
  int shift = shape.size() - ndim();
  Dims strides(shape.size(), 0);
  bool legal = shift >= 0;
  for (int i = 0; legal && i < ndim(); ++i) {
    if (shape_[i] == shape[i + shift]) {
      strides[i + shift] = shape_[i] == 1 ? 0 : strides_[i];
    } else {
      legal = shape_[i] == 1;
    }
  }
  if (!legal) {
    throw Error(ErrorKind::shape, "array.broadcast_to.shape",
                cat("shape ", to_string(shape_), " does not broadcast to ", to_string(shape)))
        .note("rule: aligned at the last axis, each extent equals the target's or is 1");
  }
  checked_size(shape, elem_bytes(elem_));
  return NDArray(storage_, elem_, shape, std::move(strides), offset_);
}

bool NDArray::reshape_view(const Dims& shape, NDArray& out) const {
  Dims strides(shape.size());
  if (is_contiguous()) {
    strides = compact_strides(shape);
  } else {
    // Greedy matching of runs of old axes with runs of new axes of equal product.
    int o = 0, n = 0;
    while (o < ndim() || n < shape.size()) {
      std::int64_t have = o < ndim() ? shape_[o] : 1, want = n < shape.size() ? shape[n] : 1;
      int o_end = std::min(o + 1, ndim()), n_end = std::min(n + 1, shape.size());
      while (have != want) {
        if (have < want) {
          if (o_end >= ndim()) return false;
          have *= shape_[o_end++];
        } else {
          if (n_end >= shape.size()) return false;
          want *= shape[n_end++];
        }
      }
      int inner = -1;
      std::int64_t expected = 0;
      for (int i = o_end - 1; i >= o; --i) {
        if (shape_[i] == 1) continue;
        if (inner >= 0 && strides_[i] != expected) return false;
        if (inner < 0) inner = i;
        expected = strides_[i] * shape_[i];
      }
      std::int64_t step = inner >= 0 ? strides_[inner] : 1;
      for (int i = n_end - 1; i >= n; --i) {
        strides[i] = step;
        step *= shape[i];
      }
      o = o_end;
      n = n_end;
    }
  }
  out = NDArray(storage_, elem_, shape, std::move(strides), offset_);
  return true;
}

NDArray NDArray::reshape(Dims shape) const {
  int unknown = -1;
  std::int64_t known = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else if (shape[i] < 0) {
      throw Error(ErrorKind::shape, "array.reshape.extent",
                  cat("reshape to ", to_string(shape), ": extent ", shape[i], " is negative"))
          .note("one extent may be -1: it is computed from the others");
    } else if (__builtin_mul_overflow(known, shape[i], &known)) {
      known = -1;
      break;
    }
  }
  bool fits = known >= 0;
  if (unknown >= 0) {
    fits = known > 0 && size_ % known == 0;
    if (fits) shape[unknown] = size_ / known;
  } else {
    fits = fits && known == size_;
  }
  if (!fits) {
    throw Error(
        ErrorKind::shape, "array.reshape.size",
        cat("cannot reshape ", describe(*this), " of ", size_, " elements to ", to_string(shape)));
  }
  if (is_contiguous()) {  // the common case, without a second copy of the extents
    Dims strides = compact_strides(shape);
    return NDArray(storage_, elem_, std::move(shape), std::move(strides), offset_);
  }
  NDArray out;
  if (reshape_view(shape, out)) return out;
  copy().reshape_view(shape, out);
  return out;
}

NDArray NDArray::expand_dims(int axis) const {
  axis = normalize_axis(axis, ndim() + 1, "expand_dims");
  Dims shape(ndim() + 1), strides(ndim() + 1);
  for (int i = 0, j = 0; i <= ndim(); ++i) {
    bool fresh = i == axis;
    shape[i] = fresh ? 1 : shape_[j];
    strides[i] = fresh ? 0 : strides_[j];
    j += !fresh;
  }
  return NDArray(storage_, elem_, std::move(shape), std::move(strides), offset_);
}

NDArray NDArray::squeeze(std::span<const int> axes) const {
  std::uint64_t drop = 0;
  for (int axis : axes) {
    int a = normalize_axis(axis, ndim(), "squeeze");
    if (shape_[a] != 1) {
      throw Error(ErrorKind::shape, "array.squeeze.extent",
                  cat("squeeze of axis ", a, " of ", describe(*this), ": its extent is ", shape_[a],
                      ", not 1"));
    }
    drop |= std::uint64_t{1} << a;
  }
  Dims shape, strides;
  for (int i = 0; i < ndim(); ++i) {
    if (drop >> i & 1) continue;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return NDArray(storage_, elem_, std::move(shape), std::move(strides), offset_);
}

NDArray NDArray::flip(std::span<const int> axes) const {
  NDArray out = *this;
  for (int axis : axes) {
    int a = normalize_axis(axis, ndim(), "flip");
    if (shape_[a] == 0) continue;
    out.offset_ += (shape_[a] - 1) * out.strides_[a];
    out.strides_[a] = -out.strides_[a];
  }
  return out;
}

NDArray NDArray::slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const {
  NDArray out = *this;
  if (count > 0) out.offset_ += start * strides_[axis];
  out.strides_[axis] = strides_[axis] * step;
  out.shape_[axis] = count;
  out.size_ = 1;
  for (std::int64_t extent : out.shape_) out.size_ *= extent;
  return out;
}

NDArray NDArray::select(int axis, std::int64_t index) const {
  Dims shape, strides;
  for (int i = 0; i < ndim(); ++i) {
    if (i == axis) continue;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return NDArray(storage_, elem_, std::move(shape), std::move(strides),
                 offset_ + index * strides_[axis]);
}

void NDArray::read_element(std::int64_t linear, void* out) const {
  std::int64_t at = offset_;
  for (int i = ndim() - 1; i >= 0; --i) {
    at += linear % shape_[i] * strides_[i];
    linear /= shape_[i];
  }
  auto bytes = static_cast<runtime::Bytes>(elem_bytes(elem_));
  device()->download(out, *storage_, static_cast<runtime::Bytes>(at) * bytes, bytes);
  if (!on_host()) on_device().settle(device());
}

void NDArray::read(void* out) const {
  NDArray source = contiguous();
  if (source.size() == 0) return;
  auto bytes = static_cast<runtime::Bytes>(elem_bytes(elem_));
  device()->download(out, *source.handle(), static_cast<runtime::Bytes>(source.offset()) * bytes,
                     static_cast<runtime::Bytes>(nbytes()));
  if (!on_host()) on_device().settle(device());
}

Dims broadcast_shapes(std::span<const Dims* const> shapes, std::string_view operation) {
  int ndim = 0;
  for (const Dims* shape : shapes) ndim = std::max(ndim, shape->size());
  Dims out(ndim, 1);
  for (const Dims* shape : shapes) {
    int shift = ndim - shape->size();
    for (int i = 0; i < shape->size(); ++i) {
      std::int64_t extent = (*shape)[i];
      std::int64_t& common = out[i + shift];
      if (extent == common || extent == 1) continue;
      if (common != 1) {
        std::vector<std::string> all;
        for (const Dims* each : shapes) all.push_back(to_string(*each));
        throw Error(
            ErrorKind::shape, cat("array.", operation, ".broadcast"),
            cat(operation, " needs shapes that broadcast, but they are ", join(all, " and ")))
            .note(cat("axis ", i + shift - ndim, ": ", common, " and ", extent))
            .note("rule: aligned at the last axis, extents are equal or one of them is 1");
      }
      common = extent;
    }
  }
  return out;
}

void check_same_device(const NDArray& a, const NDArray& b, std::string_view operation) {
  if (a.device() == b.device()) return;
  throw Error(ErrorKind::device, cat("array.", operation, ".device"),
              cat(operation, " got arrays on two devices: ", describe(a), " on ",
                  a.device()->info().name, " and ", describe(b), " on ", b.device()->info().name))
      .help("move one of them with to(...)");
}

bool may_overlap(const NDArray& a, const NDArray& b) {
  if (a.handle() != b.handle() || a.size() == 0 || b.size() == 0) return false;
  auto reach = [](const NDArray& x, std::int64_t& low, std::int64_t& high) {
    low = high = x.offset();
    for (int i = 0; i < x.ndim(); ++i) {
      std::int64_t r = (x.shape()[i] - 1) * x.strides()[i];
      (r < 0 ? low : high) += r;
    }
    low *= elem_bytes(x.elem());
    high = (high + 1) * elem_bytes(x.elem());
  };
  std::int64_t al, ah, bl, bh;
  reach(a, al, ah);
  reach(b, bl, bh);
  return al < bh && bl < ah;
}

NDArray from_external(const Ref<Device>& device, void* data, std::int64_t bytes, Elem elem,
                      Dims shape, Dims strides, std::function<void()> release) {
  // Views with negative strides start inside the block: the storage begins at the lowest byte.
  std::int64_t low = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (strides[i] < 0 && shape[i] > 0) low += (shape[i] - 1) * strides[i];
  }
  runtime::share_memory(*device);
  auto address =
      reinterpret_cast<std::uint64_t>(data) + static_cast<std::uint64_t>(low * elem_bytes(elem));
  auto storage = make_ref<Storage>(device, address, static_cast<runtime::Bytes>(bytes), "global",
                                   std::move(release));
  return NDArray(std::move(storage), elem, std::move(shape), std::move(strides), -low);
}

NDArray diagonal(const NDArray& x, int first, int second, std::int64_t offset) {
  first = normalize_axis(first, x.ndim(), "diagonal");
  second = normalize_axis(second, x.ndim(), "diagonal");
  if (first == second) {
    throw Error(ErrorKind::index, "array.diagonal.axes",
                cat("a diagonal of ", describe(x), " needs two axes, got axis ", first, " twice"));
  }
  const std::int64_t rows = x.shape()[first], columns = x.shape()[second];
  // Beside the matrix there is nothing; the offset may be any number.
  const bool inside = offset > -rows && offset < columns;
  const std::int64_t down = inside ? std::max<std::int64_t>(0, -offset) : 0;
  const std::int64_t right = inside ? std::max<std::int64_t>(0, offset) : 0;
  const std::int64_t count = inside ? std::min(rows - down, columns - right) : 0;
  Dims shape, strides;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == first || i == second) continue;
    shape.push_back(x.shape()[i]);
    strides.push_back(x.strides()[i]);
  }
  shape.push_back(count);
  strides.push_back(x.strides()[first] + x.strides()[second]);
  return NDArray(x.handle(), x.elem(), shape, strides,
                 x.offset() + down * x.strides()[first] + right * x.strides()[second]);
}

NDArray as_reals(const NDArray& z) {
  Dims shape = z.shape(), strides = z.strides();
  for (int i = 0; i < strides.size(); ++i) strides[i] *= 2;
  shape.push_back(2), strides.push_back(1);
  return NDArray(z.handle(), real_of(z.elem()), shape, strides, 2 * z.offset());
}

NDArray as_complex(const NDArray& reals) {
  const int last = reals.ndim() - 1;
  Dims shape(reals.shape().data(), last), strides(reals.strides().data(), last);
  bool fits = reals.shape()[last] == 2 && reals.strides()[last] == 1 && reals.offset() % 2 == 0;
  for (int i = 0; i < last; ++i) {
    fits = fits && (strides[i] % 2 == 0 || shape[i] == 1);
    strides[i] /= 2;
  }
  WEFT_CHECK(fits, "no pairs: ", describe(reals));
  return NDArray(reals.handle(), complex_of(reals.elem()), shape, strides, reals.offset() / 2);
}

}  // namespace weft
