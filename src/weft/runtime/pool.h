// SPDX-License-Identifier: Apache-2.0
#pragma once
// The shared pool of host threads: oneTBB, or the standard library's threads where it is absent
// (CMake's WEFT_POOL). Workers sleep between jobs (no unbounded spinning); the caller works too.
// Nested calls, and calls in a forked child, run in the calling thread. Which thread runs a chunk
// never changes results.

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace weft::runtime {

class Pool {
 public:
  /// The process's pool; made at first use with one thread per allowed processor.
  static Pool& shared();
  /// Whose threads: "oneTBB" or "std::thread".
  static std::string_view kind();
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  int threads() const;
  /// At most this many threads work from now on (1: everything in the caller).
  void limit(int threads);

  /// body(begin, end) over chunks of [0, n), each at least `grain` long. Exceptions of a body are
  /// rethrown.
  template <typename F>
  void parallel_for(std::int64_t n, std::int64_t grain, F&& body) {
    if (n <= grain || threads() <= 1) {
      if (n > 0) body(std::int64_t{0}, n);
      return;
    }
    using Body = std::remove_reference_t<F>;
    run(
        n, grain,
        [](void* context, std::int64_t begin, std::int64_t end) {
          (*static_cast<Body*>(context))(begin, end);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, std::int64_t begin, std::int64_t end);
  void run(std::int64_t n, std::int64_t grain, Call call, void* context);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::runtime
