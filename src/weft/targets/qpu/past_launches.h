// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long launches of a program took on one thread and on two, which tells how the next one should
// run. Launches with the same number of QPUs and the same scalars do alike. What is decided here
// changes the time that the host takes, and nothing else.

#include <algorithm>
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
  /// should have been best; `most`: the last one there is.
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
  static constexpr int kTries = 4;  // of one thread and of two, before they are compared
  // Launches on one thread after which two are tried again, twice as many each time in vain; and
  // those after which all is forgotten. The host's processors change their speed and their places.
  static constexpr int kRest = 32, kMostRest = 256, kForget = 256;

  struct Tried {
    int times = 0;
    std::int64_t least = 0;
    bool known() const { return times >= kTries; }
    void note(std::int64_t took) {
      least = times ? std::min(least, took) : took;
      times = std::min(times + 1, kTries);
    }
  };
  struct Past {
    std::uint64_t key = 0;
    int launches = 0;
    int share = kMaxQpus / 6;  // with two threads
    int rest = 0, next_rest = kRest;
    bool begun = false;  // two threads have run it
    Tried one = {}, two = {};

    bool always() const { return one.times && one.least > kLong; }
    int next() const {
      if (one.times && one.least < kShort) return kOneThread;
      if (always()) return share;
      return rest > 0 || (!one.known() && one.times <= two.times) ? kOneThread : share;
    }
    void note(int way, std::int64_t took, int suggested, int most) {
      if (++launches == kForget) launches = 0, one = two = {};
      if (way == kOneThread) {
        one.note(took);
        rest = std::max(rest - 1, 0);
        return;
      }
      two.note(took);
      // The best share is followed, in steps of one because a launch may be disturbed.
      share = std::min(begun ? std::clamp(suggested, way - 1, way + 1) : suggested, most);
      begun = true;
      if (!two.known() || !one.known()) return;
      const bool pays = two.least < one.least;
      if (!pays) rest = next_rest;
      next_rest = pays ? kRest : std::min(2 * next_rest, kMostRest);
      two = {};
    }
  };
  std::vector<Past>::const_iterator find(std::uint64_t key) const {
    return std::find_if(past_.begin(), past_.end(), [&](const Past& p) { return p.key == key; });
  }
  std::vector<Past> past_;  // the latest first
};

}  // namespace weft::qpu::hw
