// SPDX-License-Identifier: Apache-2.0
// The pool where oneTBB is not installed: threads of the standard library behind a condition
// variable.
#include "weft/runtime/pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/base/wait.h"
#include "weft/runtime/pool_threads.h"
#include "weft/runtime/processors.h"

namespace weft::runtime {

namespace {
thread_local bool t_inside = false;  // a body runs on this thread: nested calls stay serial
}  // namespace

struct Pool::State {
  std::mutex one_job;  // one parallel_for at a time; others run serially
  std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<std::thread> workers;
  std::uint64_t generation = 0;
  int active = 0;   // workers inside the current job
  int invited = 0;  // workers that may still join it
  bool stop = false;
  int threads = 1;
  const pid_t owner = getpid();  // a forked child has no workers
  std::atomic<int> limit{1};
  // the job
  Call call = nullptr;
  void* context = nullptr;
  std::int64_t n = 0, chunk = 1;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;

  void work() {
    t_inside = true;
    for (;;) {
      std::int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= n) break;
      try {
        call(context, begin, std::min(n, begin + chunk));
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(n);
      }
    }
    t_inside = false;
  }

  void loop() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wait(wake, lock, [&] { return stop || (generation != seen && invited > 0); });
      if (stop) return;
      seen = generation;
      --invited;
      ++active;
      lock.unlock();
      WorkerAffinity::shared().works();
      work();
      lock.lock();
      if (--active == 0) done.notify_one();
    }
  }
};

std::string_view Pool::kind() { return "std::thread"; }

Pool& Pool::shared() {
  static Pool pool(processors());
  return pool;
}

Pool::Pool(int threads) : state_(std::make_unique<State>()) {
  state_->threads = std::max(1, threads);
  state_->limit = state_->threads;
}

Pool::~Pool() {
  if (getpid() != state_->owner) {
    // The threads stayed with the parent: there is nothing to join, and the end of a condition
    // variable would wait for them.
    static_cast<void>(state_.release());
    return;
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int Pool::threads() const { return state_->limit.load(std::memory_order_relaxed); }

void Pool::limit(int threads) { state_->limit = std::clamp(threads, 1, state_->threads); }

void Pool::run(std::int64_t n, std::int64_t grain, Call call, void* context) {
  State& s = *state_;
  std::unique_lock job(s.one_job, std::defer_lock);
  if (t_inside || getpid() != s.owner || !job.try_lock()) {
    call(context, 0, n);
    return;
  }
  int threads = static_cast<int>(std::min<std::int64_t>(this->threads(), (n + grain - 1) / grain));
  {
    std::lock_guard lock(s.mutex);
    try {
      while (static_cast<int>(s.workers.size()) < threads - 1)
        s.workers.emplace_back([&s] { s.loop(); });
    } catch (const std::system_error& error) {
      throw no_threads(threads - 1, error.what());
    }
    s.call = call;
    s.context = context;
    s.n = n;
    s.chunk = chunk_of(n, grain, threads);
    s.next = 0;
    s.error = nullptr;
    s.invited = threads - 1;
    WorkerAffinity::shared().calls();
    ++s.generation;
  }
  s.wake.notify_all();
  s.work();
  std::exception_ptr error;
  {
    std::unique_lock lock(s.mutex);
    s.invited = 0;
    wait(s.done, lock, [&] { return s.active == 0; });
    error = s.error;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace weft::runtime
