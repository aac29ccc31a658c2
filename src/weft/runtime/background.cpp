// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/background.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include <unistd.h>

#include "weft/base/wait.h"

namespace weft::runtime {

namespace {

struct Workers {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  unsigned running = 0, most = std::max(1u, std::thread::hardware_concurrency());
  pid_t process = getpid();

  void work() {
    std::unique_lock lock(mutex);
    while (!tasks.empty()) {
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
    --running;
    changed.notify_all();
  }
};

Workers& workers() {
  static auto& all = *new Workers;  // threads may outlive static objects
  return all;
}

/// False where the host grants no thread. The caller holds the lock, so the worker finds its task.
bool start_worker(Workers& all) {
  try {
    std::thread([&all] { all.work(); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  ++all.running;
  return true;
}

}  // namespace

void run_beside(std::function<void()> task) {
  Workers& all = workers();
  if (getpid() != all.process) return task();
  // What a task runs, a compiler's library, must not be unloaded under it.
  static const int registered = std::atexit([] {
    Workers& at_end = workers();
    if (getpid() != at_end.process) return;
    std::unique_lock lock(at_end.mutex);
    at_end.tasks.clear();
    wait(at_end.changed, lock, [&] { return at_end.running == 0; });
  });
  static_cast<void>(registered);
  {
    std::lock_guard lock(all.mutex);
    if (all.running == all.most || start_worker(all)) {
      all.tasks.push_back(std::move(task));
      return;
    }
  }
  task();
}

}  // namespace weft::runtime
