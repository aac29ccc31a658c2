// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long launches of a program took on one thread and on two, which tells how the next one should
// run. Launches with the same number of QPUs and the same scalars do alike. What is decided here
// changes the time that the host takes, and nothing else.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/hash.h"
#include "weft/targets/qpu/shadow.h"

namespace weft::qpu::hw {

class PastLaunches {
 public:
  /// A way to run a launch: on one thread, or on two, of which the launch's own leads so many QPUs.
  static constexpr int kOneThread = -1;

  static std::uint64_t key(int qpus, std::span<const std::int64_t> scalars) {
    return hash_bytes(scalars.data(), scalars.size_bytes(), static_cast<std::uint64_t>(qpus));
  }
  bool knows(std::uint64_t key) const { return find(key) != past_.end(); }
  /// How to run the next launch with this key.
  int way(std::uint64_t key) const {
    if (past_.empty()) return kOneThread;
    const auto at = find(key);
    return (at == past_.end() ? past_.front() : *at).next();
  }
  /// A launch took so many nanoseconds: of time on two threads, of the processor on one, which
  /// other programs of the host do not disturb. `suggested`: of ways with two threads, the one that
  /// should be best as far as it shows; `most`: the last one there is.
  void note(std::uint64_t key, int way, std::int64_t took, int suggested = 0, int most = 0) {
    Past past{key};
    if (const auto at = find(key); at != past_.end()) past = *at, past_.erase(at);
    if (past_.size() == kMost) past_.pop_back();
    past.note(way, took, suggested, most);
    past_.insert(past_.begin(), past);
  }

 private:
  static constexpr std::size_t kMost = 16;
  // Nanoseconds on one thread: in less a second one never pays (it costs some 60 us), in more it
  // always has.
  static constexpr std::int64_t kShort = 100'000, kLong = 4'000'000;
  static constexpr int kTries = 3;     // of a way, before it is compared with others
  static constexpr int kForget = 256;  // launches after which all are tried again

  struct Tried {
    int times = 0;
    std::int64_t least = 0;
    bool known() const { return times >= kTries; }
  };
  struct Past {
    std::uint64_t key = 0;
    int launches = 0;
    int centre = kMaxQpus / 6, most = kMaxQpus - 1;  // ways with two threads: the best so far
    std::array<Tried, kMaxQpus + 1> tried{};         // by way + 1

    const Tried& of(int way) const { return tried[static_cast<std::size_t>(way + 1)]; }
    int next() const {
      const Tried &one = of(kOneThread), &two = of(centre);
      if (one.times && one.least < kShort) return kOneThread;
      const bool settled = one.times && one.least > kLong;
      if (!settled && !one.known() && one.times <= two.times) return kOneThread;
      for (int way : {centre, centre - 1, centre + 1})
        if (way >= 0 && way <= most && !of(way).known()) return way;
      return settled || two.least < one.least ? centre : kOneThread;
    }
    void note(int way, std::int64_t took, int suggested, int last) {
      if (++launches == kForget) *this = Past{key};
      if (way != kOneThread) {
        most = last;
        const bool first = std::all_of(tried.begin() + 1, tried.end(),
                                       [](const Tried& t) { return t.times == 0; });
        if (first) centre = std::min(suggested, most);
      }
      Tried& t = tried[static_cast<std::size_t>(way + 1)];
      t.least = t.times ? std::min(t.least, took) : took;
      t.times = std::min(t.times + 1, kTries);
      for (int other : {centre - 1, centre + 1})  // both are known before one is taken
        if (other >= 0 && other <= most && !of(other).known()) return;
      for (int other : {centre - 1, centre + 1})
        if (other >= 0 && other <= most && of(centre).known() && of(other).least < of(centre).least)
          centre = other;
    }
  };
  std::vector<Past>::const_iterator find(std::uint64_t key) const {
    return std::find_if(past_.begin(), past_.end(), [&](const Past& p) { return p.key == key; });
  }
  std::vector<Past> past_;  // the latest first
};

}  // namespace weft::qpu::hw
