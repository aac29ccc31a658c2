// SPDX-License-Identifier: Apache-2.0
#pragma once
// The client's end of a stream. Every wait has an end, and asks now and then whether it is to be
// given up (poll_interrupt), so that Ctrl-C ends a call whose server works for long.

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "weft/base/interrupt.h"
#include "weft/runtime/rpc/wire.h"

namespace weft::rpc {

class ClientStream {
 public:
  ClientStream(Weft::Stub& stub, std::chrono::milliseconds limit) {
    arm(limit);
    stream_ = stub.AsyncSession(&context_, &queue_, this);
    next(false);
  }
  ~ClientStream() {
    context_.TryCancel();
    finish();
    queue_.Shutdown();
    for (bool good = false; queue_.Next(&tag_, &good);) {
    }
  }
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  /// From now on a wait that takes longer ends the call.
  void arm(std::chrono::milliseconds limit) { until_ = Clock::now() + limit; }
  /// False: the call has ended. Throws what stops the wait; then the call has ended, too.
  bool write(const Frame& frame) {
    stream_->Write(frame, this);
    return next();
  }
  bool read(Frame& frame) {
    stream_->Read(&frame, this);
    return next();
  }
  /// As write(), without an end from outside: for releases.
  bool tell(const Frame& frame) {
    stream_->Write(frame, this);
    return next(false);
  }
  /// Why the call has ended, which a failed read or write says.
  const grpc::Status& finish() {
    if (std::exchange(finished_, true)) return status_;
    arm(std::chrono::seconds(1));
    stream_->Finish(&status_, this);
    next(false);
    return status_;
  }
  bool late() const { return late_; }
  bool interrupted() const { return interrupted_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kAsk{50};

  /// Waits for the operation that was begun: there is one at a time.
  bool next(bool ask = true) {
    bool good = false;
    while (!late_ && !interrupted_) {
      const Clock::duration left = until_ - Clock::now();
      const auto step = std::max(std::min<Clock::duration>(left, kAsk), Clock::duration::zero());
      const auto when = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(step);
      if (queue_.AsyncNext(&tag_, &good, when) != grpc::CompletionQueue::TIMEOUT) return good;
      late_ = Clock::now() >= until_;
      if (late_ || !ask) continue;
      try {
        poll_interrupt();
      } catch (...) {
        interrupted_ = true;
        give_up();
        throw;
      }
    }
    give_up();
    return false;
  }
  void give_up() {
    context_.TryCancel();
    bool good = false;
    queue_.Next(&tag_, &good);
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Frame, Frame>> stream_;
  grpc::Status status_;
  void* tag_ = nullptr;
  Clock::time_point until_;
  bool late_ = false, interrupted_ = false, finished_ = false;
};

}  // namespace weft::rpc
