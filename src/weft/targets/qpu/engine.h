// SPDX-License-Identifier: Apache-2.0
#pragma once
// Engines that run clean programs (no rule can be broken on any path, no register branches) fast.
// They share all peripherals with the oracle through Machine and yield at the same points, so
// results, faults and cycles are the same.

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/targets/qpu/machine.h"

namespace weft::qpu::hw {

class DividedProgram;

/// A program made ready for a fast engine.
class FastProgram {
 public:
  virtual ~FastProgram() = default;
  /// Puts the processor's float arithmetic into the mode that run wants on this thread; leave puts
  /// back what it was.
  virtual unsigned enter() = 0;
  virtual void leave(unsigned before) = 0;
  /// Runs q until its time reaches `limit` (checked at taken branches), it waits, or it finishes.
  virtual void run(Machine& m, Qpu& q, std::int64_t limit) = 0;
  /// For launches on two threads; null: it has no such form.
  virtual DividedProgram* divided() { return nullptr; }
  /// Executions per instruction when counting was asked for.
  virtual const std::vector<std::int64_t>& counts() const = 0;
  virtual void clear_counts() = 0;
};

/// A program whose registers and memory one thread has and whose clocks another
/// (engine/decoupled_timing.h).
class DividedProgram : public FastProgram {
 public:
  DividedProgram* divided() final { return this; }
  virtual void prepare() = 0;
  /// Runs q and writes down what concerns others, until there is no more room, it waits, or ends.
  virtual void lead(Machine& m, Qpu& q) = 0;
  /// Gives t the clocks that follow, up to a branch at or after `limit`, a semaphore, the end, or
  /// (true) where nothing more is written down.
  virtual bool settle(Machine& m, Qpu& t, std::int64_t limit) = 0;

  bool synchronises = false;  // it has semaphores that order accesses
  // What one thread does before others join it can be put back: all its stores save pages.
  bool may_be_joined = false;
  // QPUs that the launch's own thread should have led last, by what both threads worked; -1: no
  // idea.
  int own_share = -1;
};

/// Between enter and leave. Of no program: nothing.
class Turns {
 public:
  explicit Turns(FastProgram* program)
      : program_(program), before_(program ? program->enter() : 0) {}
  ~Turns() {
    if (program_) program_->leave(before_);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

 private:
  FastProgram* program_;
  unsigned before_;
};

/// Picks the variant for the processor. `count`: executions per instruction (statistics); `keep`:
/// registers that nobody reads any more keep their last values (tests).
std::unique_ptr<FastProgram> make_fast(const Program& program, bool count, bool keep);
std::unique_ptr<FastProgram> make_fast_base(const Program& program, bool count, bool keep);
#if defined(__x86_64__)
std::unique_ptr<FastProgram> make_fast_avx2(const Program& program, bool count, bool keep);
#endif
/// One instruction by the oracle's code, in the middle of a block of another engine: q.now says
/// when, q.time keeps its stalls only. False: it must wait.
bool literal_instruction(Machine& m, Qpu& q);
[[noreturn]] void ran_off(Machine& m, Qpu& q);
/// "avx2" or "base".
const char* fast_variant();

}  // namespace weft::qpu::hw
