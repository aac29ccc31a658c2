// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/backlog.h"

#include <exception>
#include <utility>

namespace weft::runtime {

void Backlog::add(std::function<bool()> ready, std::function<void()> run) {
  std::lock_guard lock(mutex_);
  work_.push_back({std::move(ready), std::move(run)});
  waits_.store(true, std::memory_order_release);
  while (work_.size() > kMost) run_front();
}

void Backlog::run_front() {
  Work work = std::move(work_.front());
  work_.pop_front();
  try {
    work.run();
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
}

void Backlog::advance() {
  std::lock_guard lock(mutex_);
  while (!work_.empty() && work_.front().ready()) run_front();
  if (work_.empty() && !error_) waits_.store(false, std::memory_order_release);
}

void Backlog::settle() {
  if (!waits()) return;
  std::lock_guard lock(mutex_);
  while (!work_.empty()) run_front();
  waits_.store(false, std::memory_order_release);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

namespace {
thread_local OwnBacklog* own_backlog = nullptr;
}  // namespace

OwnBacklog::OwnBacklog(const Device* device)
    : device_(device), before_(std::exchange(own_backlog, this)) {}

OwnBacklog::~OwnBacklog() {
  own_backlog = before_;
  try {
    backlog_.settle();
  } catch (...) {  // whoever wants it calls settle()
    return;
  }
}

Backlog* OwnBacklog::of(const Device* device) {
  return own_backlog && own_backlog->device_ == device ? &own_backlog->backlog_ : nullptr;
}

}  // namespace weft::runtime
