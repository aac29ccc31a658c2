// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread of a simulated group: a function on a stack of its own that can stop in the middle and
// be taken up again. Not an operating system thread; exactly one runs at a time. Used by the
// interpreter for barriers.

#include <cstddef>
#include <exception>
#include <memory>

namespace weft::ir {

class Fiber {
 public:
  using Function = void (*)(void* argument, Fiber& self);
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares to run function(argument, *this) at the next resume; the fiber must be idle.
  void start(Function function, void* argument);
  /// Runs until the next yield or the end. True while there is more to run.
  bool resume();
  /// Called inside the fiber: back to whoever resumed it.
  void yield();
  bool done() const;
  /// What the function threw, or null.
  std::exception_ptr error() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace weft::ir
