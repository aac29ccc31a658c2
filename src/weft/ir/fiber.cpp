// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>

#include "weft/base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define WEFT_FIBER_ASAN 1
#endif

// On x86-64 a switch is six registers; elsewhere ucontext, which asks the kernel for the signal
// mask.
#if defined(__x86_64__) && !defined(__CET__)
#define WEFT_FIBER_ASM 1
extern "C" void weft_ir_fiber_switch(void** save_stack, void* load_stack);
extern "C" void weft_ir_fiber_begin();
asm(R"(
  .text
  .p2align 4
  .globl weft_ir_fiber_switch
  .hidden weft_ir_fiber_switch
  .type weft_ir_fiber_switch, @function
weft_ir_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size weft_ir_fiber_switch, .-weft_ir_fiber_switch
  .p2align 4
  .globl weft_ir_fiber_begin
  .hidden weft_ir_fiber_begin
  .type weft_ir_fiber_begin, @function
weft_ir_fiber_begin:
  .cfi_startproc
  .cfi_undefined rip
  movq %rbx, %rdi
  call *%r12
  ud2
  .cfi_endproc
  .size weft_ir_fiber_begin, .-weft_ir_fiber_begin
)");
#endif

namespace weft::ir {

namespace {
constexpr std::size_t kStackBytes = 1024 * 1024;  // reserved; pages are touched on demand
constexpr std::size_t kGuardBytes = 4096;
}  // namespace

struct Fiber::State {
  Fiber* self = nullptr;
  Function function = nullptr;
  void* argument = nullptr;
  bool running = false;  // started and not at its end
  std::exception_ptr error;
  void* memory = nullptr;
#ifdef WEFT_FIBER_ASM
  void* own = nullptr;
  void* caller = nullptr;
#else
  ucontext_t own, caller;
#endif
  const void* caller_stack = nullptr;  // for the address sanitizer
  std::size_t caller_stack_bytes = 0;

  void* stack() const { return static_cast<char*>(memory) + kGuardBytes; }

  void enter() {
#ifdef WEFT_FIBER_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack(), kStackBytes);
#endif
#ifdef WEFT_FIBER_ASM
    weft_ir_fiber_switch(&caller, own);
#else
    swapcontext(&caller, &own);
#endif
#ifdef WEFT_FIBER_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }

  void leave(bool forever) {
    (void)forever;
#ifdef WEFT_FIBER_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(forever ? nullptr : &fake, caller_stack, caller_stack_bytes);
#endif
#ifdef WEFT_FIBER_ASM
    weft_ir_fiber_switch(&own, caller);
#else
    swapcontext(&own, &caller);
#endif
#ifdef WEFT_FIBER_ASAN
    __sanitizer_finish_switch_fiber(fake, &caller_stack, &caller_stack_bytes);
#endif
  }

  static void main(State* s) {
#ifdef WEFT_FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &s->caller_stack, &s->caller_stack_bytes);
#endif
    try {
      s->function(s->argument, *s->self);
    } catch (...) {
      s->error = std::current_exception();
    }
    s->running = false;
    s->leave(true);
  }

#ifndef WEFT_FIBER_ASM
  static void split_main(unsigned high, unsigned low) {
    main(reinterpret_cast<State*>((static_cast<std::uintptr_t>(high) << 32) | low));
  }
#endif
};

Fiber::Fiber() : state_(std::make_unique<State>()) {
  state_->self = this;
  void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::memory, "interpret.stack",
                cat("no memory for a stack of ", kStackBytes, " bytes"));
  mprotect(memory, kGuardBytes, PROT_NONE);
  state_->memory = memory;
}

Fiber::~Fiber() {
  if (state_->memory) munmap(state_->memory, kStackBytes + kGuardBytes);
}

void Fiber::start(Function function, void* argument) {
  WEFT_CHECK(!state_->running, "a fiber is started while it runs");
  state_->function = function;
  state_->argument = argument;
  state_->error = nullptr;
  state_->running = true;
#ifdef WEFT_FIBER_ASM
  // What weft_ir_fiber_switch pops: r15 r14 r13 r12 rbx rbp, then the address it returns to.
  auto* top = reinterpret_cast<std::uint64_t*>(static_cast<char*>(state_->stack()) + kStackBytes);
  top -= 2;  // keeps the stack aligned to 16 bytes at the call in weft_ir_fiber_begin
  *--top = reinterpret_cast<std::uint64_t>(&weft_ir_fiber_begin);
  *--top = 0;                                              // rbp
  *--top = reinterpret_cast<std::uint64_t>(state_.get());  // rbx
  *--top = reinterpret_cast<std::uint64_t>(&State::main);  // r12
  *--top = 0, *--top = 0, *--top = 0;                      // r13 r14 r15
  state_->own = top;
#else
  getcontext(&state_->own);
  state_->own.uc_stack.ss_sp = state_->stack();
  state_->own.uc_stack.ss_size = kStackBytes;
  state_->own.uc_link = nullptr;
  auto p = reinterpret_cast<std::uintptr_t>(state_.get());
  makecontext(&state_->own, reinterpret_cast<void (*)()>(&State::split_main), 2,
              static_cast<unsigned>(static_cast<std::uint64_t>(p) >> 32), static_cast<unsigned>(p));
#endif
}

bool Fiber::resume() {
  if (state_->running) state_->enter();
  return state_->running;
}

void Fiber::yield() { state_->leave(false); }
bool Fiber::done() const { return !state_->running; }
std::exception_ptr Fiber::error() const { return state_->error; }

}  // namespace weft::ir
