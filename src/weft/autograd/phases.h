// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plane with its border is cut by the stride into planes of phases, in which all taps of a window
// are distances. With rows of one length for these planes and the result, a tap is one multiple of
// a long run added to another, borders and ends of rows included; what lands between the rows of
// the result is left out.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "weft/autograd/convolution.h"

namespace weft {

/// Extents and steps of windows over planes of h rows and w columns.
struct Places {
  std::int64_t h, w, kh, kw, oh, ow;
  Pair stride, padding, dilation;
};

struct Phases {
  using I = std::int64_t;
  /// Taps of one row of the window that lie in one phase of columns, at equal distances.
  struct Taps {
    I phase_row, phase_column, row, column, step;  // of the first: phases, places in the phase
    I first, stride, count;  // columns of the window: first, first + stride, ...
    I window_row;
  };

  const Places s;
  I rows, width, run, before;  // of a phase: rows, elements of a row; of the result with its gaps
  std::vector<Taps> taps;
  std::vector<bool> used;  // phases that a tap reads
  struct Inside {
    I from, to, first;
  };
  std::vector<Inside> inside;  // of each phase of columns: what the image has, its first column

  explicit Phases(const Places& shape) : s(shape) {
    const I reach_rows = (s.oh - 1) * s.stride[0] + (s.kh - 1) * s.dilation[0] + 1;
    const I reach = (s.ow - 1) * s.stride[1] + (s.kw - 1) * s.dilation[1] + 1;
    rows = (reach_rows + s.stride[0] - 1) / s.stride[0];
    width = (reach + s.stride[1] - 1) / s.stride[1];
    run = (s.oh - 1) * width + s.ow;
    for (I b = 0; b < s.stride[1]; ++b) {
      const I shift = b - s.padding[1];
      const I from = shift >= 0 ? 0 : (-shift + s.stride[1] - 1) / s.stride[1];
      const I to = s.w - 1 < shift ? 0 : (s.w - 1 - shift) / s.stride[1] + 1;
      inside.push_back({from, std::min(width, to), from * s.stride[1] + shift});
    }
    before = 0;
    used.resize(static_cast<std::size_t>(count()));
    // Columns whose distances differ by a multiple of the stride share a phase.
    const I period = s.stride[1] / std::gcd(s.stride[1], s.dilation[1]);
    for (I i = 0; i < s.kh; ++i) {
      for (I j = 0; j < std::min(period, s.kw); ++j) {
        const I at_row = i * s.dilation[0], at = j * s.dilation[1];
        taps.push_back({at_row % s.stride[0], at % s.stride[1], at_row / s.stride[0],
                        at / s.stride[1], period * s.dilation[1] / s.stride[1], j, period,
                        (s.kw - j + period - 1) / period, i});
        used[static_cast<std::size_t>(phase(taps.back()))] = true;
        before = std::max(before, offset(taps.back()) + (taps.back().count - 1) * taps.back().step);
      }
    }
  }
  I offset(const Taps& t) const { return t.row * width + t.column; }
  I count() const { return s.stride[0] * s.stride[1]; }
  I size() const { return rows * width; }
  I phase(const Taps& t) const { return t.phase_row * s.stride[1] + t.phase_column; }
  /// The weights of the taps, in their order or from the last to the first.
  template <typename T>
  void weights(const Taps& t, const T* weight, bool turned, T* out) const {
    for (I p = 0; p < t.count; ++p)
      out[turned ? t.count - 1 - p : p] = weight[t.window_row * s.kw + t.first + p * t.stride];
  }

  /// fn(an image's row, its phase's row, from, to, first): columns of the image that phase column
  /// `from` to `to` stand for, the first at `first`, each a stride from the next.
  template <typename F>
  void each_row(const F& fn) const {
    for (I a = 0; a < s.stride[0]; ++a) {
      for (I y = 0; y < rows; ++y) {
        const I at = y * s.stride[0] + a - s.padding[0];
        if (at < 0 || at >= s.h) continue;
        for (I b = 0; b < s.stride[1]; ++b) {
          const auto [from, to, first] = inside[static_cast<std::size_t>(b)];
          const I phase = a * s.stride[1] + b;
          if (from < to && used[static_cast<std::size_t>(phase)])
            fn(at, phase * size() + y * width, from, to, first);
        }
      }
    }
  }
  template <typename T>
  void cut(const T* plane, T* out) const {
    std::memset(out, 0, static_cast<std::size_t>(count() * size()) * sizeof(T));
    each_row([&](I at, I row, I from, I to, I first) {
      const T* in = plane + at * s.w + first;
      if (s.stride[1] == 1) std::copy_n(in, to - from, out + row + from);
      else
        for (I x = from; x < to; ++x) out[row + x] = in[(x - from) * s.stride[1]];
    });
  }
  template <typename T>
  void join(const T* phases, T* plane) const {
    std::memset(plane, 0, static_cast<std::size_t>(s.h * s.w) * sizeof(T));
    each_row([&](I at, I row, I from, I to, I first) {
      T* out = plane + at * s.w + first;
      if (s.stride[1] == 1) std::copy_n(phases + row + from, to - from, out);
      else
        for (I x = from; x < to; ++x) out[(x - from) * s.stride[1]] = phases[row + x];
    });
  }
  /// The gradient of a result's plane with rows as long as a phase's.
  template <typename T>
  void spread(const T* g, T* out) const {
    for (I y = 0; y < s.oh; ++y) {
      std::memcpy(out + y * width, g + y * s.ow, static_cast<std::size_t>(s.ow) * sizeof(T));
      if (y + 1 < s.oh) std::fill(out + y * width + s.ow, out + (y + 1) * width, T(0));
    }
  }
};

}  // namespace weft
