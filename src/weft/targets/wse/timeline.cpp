// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/timeline.h"

#include <algorithm>

namespace weft::wse {

namespace {
constexpr std::size_t kMostSamples = 192;
constexpr std::int32_t kMostCells = 96;  // to a side
}  // namespace

Timeline::Timeline(std::int32_t width, std::int32_t height) : width_(width), height_(height) {
  while (std::max(width, height) > kMostCells * step_) ++step_;
  columns_ = (width + step_ - 1) / step_;
  rows_ = (height + step_ - 1) / step_;
  samples_.emplace_back();
  samples_.back().cells.resize(static_cast<std::size_t>(columns_) *
                               static_cast<std::size_t>(rows_));
}

void Timeline::begin(Cycle now) {
  samples_.emplace_back();
  samples_.back().at = now;
  samples_.back().cells.resize(samples_.front().cells.size());
}

void Timeline::add(std::int32_t x, std::int32_t y, const PeCounters& count) {
  auto& cell = samples_.back().cells[static_cast<std::size_t>(y / step_ * columns_ + x / step_)];
  cell[0] += count.busy;
  cell[1] += count.stall;
  for (int p = 0; p < kRamp; ++p) cell[2] += count.sent[static_cast<std::size_t>(p)];
}

void Timeline::end() {
  const Cycle now = samples_.back().at;
  if (samples_.size() > kMostSamples) {
    interval_ *= 2;
    for (std::size_t k = 2; 2 * k < samples_.size(); ++k)
      std::swap(samples_[k - 1], samples_[2 * k - 2]);
    const std::size_t kept = (samples_.size() + 1) / 2;
    std::swap(samples_[kept - 1], samples_.back());  // the latest stays
    samples_.resize(kept);
  }
  due_ = (now / interval_ + 1) * interval_;
}

Json Timeline::to_json() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  Json out = Json::object(), cycles = Json::array();
  std::string rows[3];
  for (std::size_t k = 0; k < samples_.size(); ++k) {
    const Sample& s = samples_[k];
    cycles.push_back(s.at);
    if (k == 0) continue;
    const Cycle length = std::max<Cycle>(1, s.at - samples_[k - 1].at);
    for (std::size_t c = 0; c < s.cells.size(); ++c) {
      const auto x = static_cast<std::int32_t>(c) % columns_,
                 y = static_cast<std::int32_t>(c) / columns_;
      const std::int64_t pes =
          std::int64_t{std::min(step_, width_ - x * step_)} * std::min(step_, height_ - y * step_);
      for (std::size_t what = 0; what < 3; ++what) {
        const std::int64_t delta = s.cells[c][what] - samples_[k - 1].cells[c][what];
        const std::int64_t level = std::clamp<std::int64_t>(
            (delta * 255 + length * pes / 2) / (length * pes), delta > 0, 255);
        rows[what] += kDigits[level >> 4];
        rows[what] += kDigits[level & 15];
      }
    }
  }
  out["width"] = width_;
  out["height"] = height_;
  out["step"] = step_;
  out["columns"] = columns_;
  out["rows"] = rows_;
  out["cycles"] = cycles;
  out["busy"] = rows[0];
  out["stall"] = rows[1];
  out["sent"] = rows[2];
  return out;
}

}  // namespace weft::wse
