// SPDX-License-Identifier: Apache-2.0
// The pool on oneTBB: its workers steal chunks and sleep soon after the last one. Built where the
// library is installed; pool_std.cpp takes its place elsewhere (WEFT_POOL says which).
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/runtime/pool.h"
#include "weft/runtime/pool_threads.h"
#include "weft/runtime/processors.h"

namespace weft::runtime {

namespace {
thread_local bool t_inside = false;  // a body runs on this thread: nested calls stay serial

struct Inside {
  Inside() { t_inside = true; }
  ~Inside() { t_inside = false; }
};

thread_local bool t_calls = false;  // this thread waits for its own job

struct Calls {
  Calls() { t_calls = true; }
  ~Calls() { t_calls = false; }
};
}  // namespace

namespace {
/// Whether the host grants so many threads, asked before oneTBB starts its own: its failure leaves
/// tasks of a call behind.
void check_threads(int count) {
  std::vector<std::jthread> asked;
  try {
    for (int i = 0; i < count; ++i) asked.emplace_back([] {});
  } catch (const std::system_error& error) {
    throw no_threads(count, error.what());
  }
}
}  // namespace

struct Pool::State {
  explicit State(int threads) : threads(threads), limit(threads) {}
  const int threads;
  const pid_t owner = getpid();  // a forked child has no workers
  std::atomic<int> limit;
  std::mutex mutex;  // guards the arena's making
  int made_for = 0;
  std::shared_ptr<tbb::task_arena> arena;  // shared: a job keeps its own when the limit changes

  std::shared_ptr<tbb::task_arena> arena_now() {
    std::lock_guard lock(mutex);
    int wanted = limit.load(std::memory_order_relaxed);
    if (made_for != wanted) {
      check_threads(wanted - 1);
      arena = std::make_shared<tbb::task_arena>(wanted);
      made_for = wanted;
    }
    return arena;
  }
};

std::string_view Pool::kind() { return "oneTBB"; }

Pool& Pool::shared() {
  static Pool pool(processors());
  return pool;
}

Pool::Pool(int threads) : state_(std::make_unique<State>(std::max(1, threads))) {}

Pool::~Pool() = default;

int Pool::threads() const { return state_->limit.load(std::memory_order_relaxed); }

void Pool::limit(int threads) { state_->limit = std::clamp(threads, 1, state_->threads); }

void Pool::run(std::int64_t n, std::int64_t grain, Call call, void* context) {
  if (t_inside || getpid() != state_->owner) {
    call(context, 0, n);
    return;
  }
  const std::int64_t chunk = chunk_of(n, grain, threads());
  const std::int64_t chunks = (n + chunk - 1) / chunk;
  std::shared_ptr<tbb::task_arena> arena = state_->arena_now();
  WorkerAffinity::shared().calls();
  Calls calls;
  arena->execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, chunks, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          Inside inside;
          if (!t_calls) WorkerAffinity::shared().works();
          for (std::int64_t i = range.begin(); i < range.end(); ++i)
            call(context, i * chunk, std::min(n, (i + 1) * chunk));
        },
        tbb::simple_partitioner{});
  });
}

}  // namespace weft::runtime
