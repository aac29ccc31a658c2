// SPDX-License-Identifier: Apache-2.0
// Peripherals that kernels use in every step of a loop, without a call: the wait for a transfer and
// the set-up of a store.

#include <cstddef>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

/// Machine::read of address 50. Who has waited is past the end of the transfer, and who never began
/// one has 0 there: no test of whether one is pending.
void Emitter::wait_dma(std::uint32_t at, bool store) {
  const StallReason why = store ? kStallDmaStore : kStallDmaLoad;
  const std::size_t done = store ? offsetof(Qpu, store_done) : offsetof(Qpu, load_done);
  auto clear = [&] {
    std::size_t pending = store ? offsetof(Qpu, store_pending) : offsetof(Qpu, load_pending),
                rows = store ? offsetof(Qpu, store_rows) : offsetof(Qpu, load_rows);
    t_.line("store i8 0, ptr ", address(pending));
    t_.line("store i64 0, ptr ", address(rows));
  };
  if (role_ == Role::values) return clear();
  if (role_ == Role::clocks) {
    return wait_until(at, t_.def("load i64, ptr ", address(done)), why);
  }
  kept(kTime);
  const KeptState before = kept_;
  std::string traced = t_.def("load i8, ptr ", address(offsetof(Qpu, traced)));
  unsigned id = t_.fresh();
  t_.rarely(t_.def("icmp ne i8 ", traced, ", 0"), cat("s", id), cat("c", id));
  label_ = cat("c", id);
  t_.label(label_);
  clear();
  wait_until(at, t_.def("load i64, ptr ", address(done)), why);
  t_.line("br label %j", id);
  label_ = cat("s", id);
  t_.label(label_);
  Aside rare = aside("read", at, cat("i32 ", store ? 1 : 0, ", i32 50"), before);
  t_.line("br label %j", id);
  label_ = cat("j", id);
  t_.label(label_);
  join(rare, cat("c", id));
}

/// Machine::setup of a DMA store's rows; other words by the helper.
void Emitter::set_up_store(std::uint32_t at, const std::string& word) {
  const KeptState before = kept_;
  std::string kind = t_.def("lshr i32 ", word, ", 30");
  unsigned id = t_.fresh();
  t_.usually(t_.def("icmp eq i32 ", kind, ", 2"), cat("c", id), cat("s", id));
  label_ = cat("c", id);
  t_.label(label_);
  t_.line("store i32 ", word, ", ptr ", address(offsetof(Qpu, vdw_setup)));
  t_.line("store i8 1, ptr ", address(offsetof(Qpu, vdw_set)));
  t_.line("br label %j", id);
  label_ = cat("s", id);
  t_.label(label_);
  t_.line("store i32 ", word, ", ptr ", address(offsetof(Qpu, slot) + 64ull * kSlotOutAdd));
  Aside rare = aside("write", at, cat("i32 1, i32 ", unsigned{kWVpmSetup}), before);
  t_.line("br label %j", id);
  label_ = cat("j", id);
  t_.label(label_);
  join(rare, cat("c", id));
}

}  // namespace weft::qpu::hw
