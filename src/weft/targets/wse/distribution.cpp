// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/distribution.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/targets/wse/check_plan.h"

namespace weft::wse {

std::vector<std::int64_t> numbers(const Json& list) {
  std::vector<std::int64_t> out;
  for (const Json& n : list.as_array()) out.push_back(n.as_int());
  return out;
}

PlanIter::PlanIter(const Json& j)
    : extent(j.at("extent").as_int()),
      chunk(j.at("chunk").as_int()),
      reduce(j.at("reduce").as_bool()),
      travels(j.at("travels").as_bool()),
      spread(static_cast<int>(j.at("spread").as_int())) {}

PlanArray::PlanArray(const Json& j)
    : name(j.at("name").as_string()),
      buffer(static_cast<std::size_t>(j.at("buffer").as_int())),
      base(numbers(j.at("base"))),
      extent(numbers(j.at("extent"))),
      strides(numbers(j.at("strides"))),
      kept(j.at("kept").as_bool()) {
  for (const Json& c : j.at("coef").as_array()) coef.push_back(numbers(c));
  for (std::int64_t e : extent) size *= e;
}

std::int64_t PlanArray::origin(std::size_t d, const std::vector<std::int64_t>& low) const {
  std::int64_t at = base[d];
  for (std::size_t k = 0; k < low.size(); ++k) at += coef[d][k] * low[k];
  return at;
}

std::vector<std::int64_t> Distribution::starts(std::int64_t x, std::int64_t y) const {
  std::vector<std::int64_t> out;
  for (const PlanIter& i : iters)
    out.push_back(i.chunk * (i.spread == 1   ? x
                             : i.spread == 2 ? y
                             : i.spread == 3 ? y * width + x
                                             : 0));
  return out;
}

template <typename F>
void Distribution::for_each_in_boxes(const std::vector<std::int64_t>& shape, F&& f) const {
  const PlanArray& a = array;
  std::vector<std::int64_t> at(a.extent.size());
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      std::vector<std::int64_t> low = starts(x, y), origin;
      for (std::size_t d = 0; d < a.extent.size(); ++d) origin.push_back(a.origin(d, low));
      std::fill(at.begin(), at.end(), 0);
      for (std::int64_t k = 0; k < a.size; ++k) {
        std::int64_t linear = 0, w = (y * width + x) * a.size;
        bool inside = true;
        for (std::size_t d = 0; d < at.size(); ++d) {
          std::int64_t p = origin[d] + at[d];
          inside = inside && p >= 0 && p < shape[d];
          linear = linear * shape[d] + p;
          w += at[d] * a.strides[d];
        }
        if (inside) f(static_cast<std::size_t>(w), linear);
        for (std::size_t d = at.size(); d-- > 0;) {
          if (++at[d] < a.extent[d]) break;
          at[d] = 0;
        }
      }
    }
  }
}

std::vector<std::uint32_t> Distribution::words_of(const PlanBuffer& from) const {
  std::vector<std::uint32_t> out(static_cast<std::size_t>(words()));
  for_each_in_boxes(from.shape, [&](std::size_t word, std::int64_t element) {
    std::memcpy(&out[word], from.at + element * from.bytes, static_cast<std::size_t>(from.bytes));
  });
  return out;
}

void Distribution::put_boxes_back(const std::vector<std::uint32_t>& words,
                                  const PlanBuffer& to) const {
  for_each_in_boxes(to.shape, [&](std::size_t word, std::int64_t element) {
    std::memcpy(to.at + element * to.bytes, &words[word], static_cast<std::size_t>(to.bytes));
  });
}

std::vector<Distribution::Place> Distribution::places(const std::vector<std::int64_t>& shape,
                                                      bool boxes) const {
  std::vector<Place> out;
  const auto keep = [&](std::size_t word, std::int64_t element) {
    out.push_back({static_cast<std::int64_t>(word) / array.size, element, word});
  };
  if (boxes) for_each_in_boxes(shape, keep);
  else for_each_result(shape, keep);
  std::sort(out.begin(), out.end());
  return out;
}

template <typename F>
void Distribution::for_each_result(const std::vector<std::int64_t>& shape, F&& f) const {
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      std::vector<std::int64_t> low = starts(x, y), point(iters.size());
      bool owner = true, any = true;
      std::vector<std::int64_t> count;
      bool x_used = false, y_used = false;
      for (std::size_t k = 0; k < iters.size(); ++k) {
        const PlanIter& i = iters[k];
        if (i.travels) {
          count.push_back(1);
          continue;
        }
        if (i.reduce && i.spread == 1) owner = owner && x == 0;
        if (i.reduce && i.spread == 3) owner = owner && x == 0 && y == 0;
        x_used |= i.spread == 1 || i.spread == 3;
        y_used |= i.spread == 2 || i.spread == 3;
        count.push_back(i.reduce ? 1 : std::min(i.chunk, i.extent - low[k]));
        any = any && count.back() > 0;
      }
      if ((!x_used && x > 0) || (!y_used && y > 0))
        owner = false;  // all PEs of an unused axis have the same
      if (!owner || !any) continue;
      while (true) {
        std::int64_t local = 0, linear = 0;
        for (std::size_t d = 0; d < array.extent.size(); ++d) {
          std::int64_t l = 0;
          for (std::size_t k = 0; k < iters.size(); ++k) {
            if (iters[k].reduce) continue;
            l += array.coef[d][k] * point[k];
            if (array.coef[d][k] < 0) l -= array.coef[d][k] * (iters[k].chunk - 1);
          }
          const std::int64_t p = array.origin(d, low) + l;
          if (l < 0 || l >= array.extent[d] || p < 0 || p >= shape[d])
            damaged_plan(cat("array \"", array.name, "\" writes element ", p, " of ", shape[d],
                             " in dimension ", d));
          local = local * array.extent[d] + l;
          linear = linear * shape[d] + p;
        }
        f(static_cast<std::size_t>((y * width + x) * array.size + local), linear);
        std::size_t k = iters.size();
        while (k-- > 0) {
          if (++point[k] < count[k]) break;
          point[k] = 0;
        }
        if (k == ~std::size_t{0}) break;
      }
    }
  }
}

void Distribution::put_back(const std::vector<std::uint32_t>& words, const PlanBuffer& to) const {
  for_each_result(to.shape, [&](std::size_t word, std::int64_t element) {
    std::memcpy(to.at + element * to.bytes, &words[word], static_cast<std::size_t>(to.bytes));
  });
}

void Distribution::check(const std::vector<std::int64_t>& shape) const {
  for_each_result(shape, [](std::size_t, std::int64_t) {});
}

}  // namespace weft::wse
