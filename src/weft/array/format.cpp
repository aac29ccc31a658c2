// SPDX-License-Identifier: Apache-2.0
// The readable text of an array. Only the elements that are shown are fetched from the device.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

#include "weft/array/ndarray.h"
#include "weft/base/text.h"

namespace weft {

namespace {

constexpr std::int64_t kThreshold = 1000;  // more elements than this are shortened
constexpr std::int64_t kEdge = 3;          // entries kept at either end of an axis

std::string number(double value, bool narrow) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  double magnitude = std::fabs(value);
  if (value == std::trunc(value) && magnitude < 1e8)
    return std::to_string(static_cast<std::int64_t>(value)) + ".";
  char text[40];
  if (magnitude >= 1e8 || magnitude < 1e-4) {
    std::snprintf(text, sizeof text, "%.*e", 7, value);
    std::string s = text;
    std::size_t e = s.find('e'), last = s.find_last_not_of('0', e - 1);
    return s.substr(0, last + 1) + s.substr(e);
  }
  std::string s = narrow ? shortest(static_cast<float>(value)) : shortest(value);
  std::size_t point = s.find('.');
  if (point != std::string::npos && s.size() - point > 9) {
    std::snprintf(text, sizeof text, "%.8f", value);
    s = text;
    s.erase(s.find_last_not_of('0') + 1);
  }
  return s;
}

template <typename T>
T read(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

std::string element(const char* p, Elem e) {
  auto cx = [](std::complex<double> z) {
    std::string im = number(z.imag(), false);
    return number(z.real(), false) + (im[0] == '-' ? "" : "+") + im + "j";
  };
  switch (e) {
    case Elem::boolean: return *p ? "True" : "False";
    case Elem::int8: return std::to_string(read<std::int8_t>(p));
    case Elem::int16: return std::to_string(read<std::int16_t>(p));
    case Elem::int32: return std::to_string(read<std::int32_t>(p));
    case Elem::int64: return std::to_string(read<std::int64_t>(p));
    case Elem::uint8: return std::to_string(read<std::uint8_t>(p));
    case Elem::uint16: return std::to_string(read<std::uint16_t>(p));
    case Elem::uint32: return std::to_string(read<std::uint32_t>(p));
    case Elem::uint64: return std::to_string(read<std::uint64_t>(p));
    case Elem::float8_e4m3fn:
    case Elem::float8_e5m2:
      return number(float8_to_float(dtype_of(e), read<std::uint8_t>(p)), true);
    case Elem::float16: return number(half_to_float(read<std::uint16_t>(p)), true);
    case Elem::bfloat16: return number(bfloat_to_float(read<std::uint16_t>(p)), true);
    case Elem::float32: return number(read<float>(p), true);
    case Elem::float64: return number(read<double>(p), false);
    case Elem::complex64: return cx(std::complex<double>(read<std::complex<float>>(p)));
    case Elem::complex128: return cx(read<std::complex<double>>(p));
  }
  return "?";
}

struct Printer {
  const NDArray& array;
  bool shorten;
  std::vector<std::string> cells;
  std::size_t width = 0, next = 0;

  template <typename F>
  void each(std::int64_t n, F f) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (shorten && n > 2 * kEdge && i == kEdge) {
        f(-1);
        i = n - kEdge;
      }
      f(i);
    }
  }
  void collect(int axis, std::int64_t linear) {
    if (axis == array.ndim()) {
      alignas(16) char raw[16];
      array.read_element(linear, raw);
      cells.push_back(element(raw, array.elem()));
      width = std::max(width, cells.back().size());
      return;
    }
    std::int64_t step = 1;
    for (int i = axis + 1; i < array.ndim(); ++i) step *= array.shape()[i];
    each(array.shape()[axis], [&](std::int64_t i) {
      if (i >= 0) collect(axis + 1, linear + i * step);
    });
  }
  void print(int axis, std::string& out) {
    if (axis == array.ndim()) {
      const std::string& cell = cells[next++];
      out.append(width - cell.size(), ' ');
      out += cell;
      return;
    }
    out += '[';
    bool first = true, last_axis = axis == array.ndim() - 1;
    each(array.shape()[axis], [&](std::int64_t i) {
      if (!first) {
        if (last_axis) {
          std::size_t line =
              out.size() - (out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n'));
          if (line + width + 2 > 84)
            out += ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
          else out += ", ";
        } else {
          out += "," + std::string(static_cast<std::size_t>(array.ndim() - axis - 1), '\n') +
                 std::string(static_cast<std::size_t>(axis) + 1, ' ');
        }
      }
      first = false;
      if (i < 0) out += "...";
      else print(axis + 1, out);
    });
    out += ']';
  }
};

}  // namespace

std::string format(const NDArray& array) {
  Printer printer{array, array.size() > kThreshold, {}, 0, 0};
  if (array.size() > 0) printer.collect(0, 0);
  std::string out;
  if (array.size() == 0) return "[]";
  printer.print(0, out);
  return out;
}

}  // namespace weft
