// SPDX-License-Identifier: Apache-2.0
// The QPU's state as translated code sees it: words that a block keeps in registers of the host,
// calls of helpers around which they are in memory, and the words that one thread writes down for
// the other.

#include <cstddef>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

namespace {
constexpr std::size_t kAheadOfRecord = 768;  // bytes

std::size_t place_of(std::size_t word) {
  switch (word) {
    case kTime: return offsetof(Qpu, time);
    case kHead0: return offsetof(Qpu, fifo) + offsetof(TmuFifo, head);
    case kCount0: return offsetof(Qpu, fifo) + offsetof(TmuFifo, count);
    case kHead1: return offsetof(Qpu, fifo) + sizeof(TmuFifo) + offsetof(TmuFifo, head);
    case kCount1: return offsetof(Qpu, fifo) + sizeof(TmuFifo) + offsetof(TmuFifo, count);
    default:
      return offsetof(Qpu, fifo) + offsetof(TmuFifo, ready) +
             (word < kReady1 ? 8 * (word - kReady0) : sizeof(TmuFifo) + 8 * (word - kReady1));
  }
}
}  // namespace

std::string Emitter::where(std::uint32_t at) const {
  return cat("ptr %m, ptr %q, i32 ", at, ", i32 ", at - start_);
}

const std::string& Emitter::kept(Kept word) {
  KeptWord& k = kept_[word];
  if (k.value.empty()) k.value = t_.def("load i64, ptr ", address(place_of(word)));
  return k.value;
}

void Emitter::keep(Kept word, std::string value) { kept_[word] = {std::move(value), true}; }

void Emitter::save() {
  for (std::size_t w = 0; w < kKeptWords; ++w)
    if (kept_[w].dirty) t_.line("store i64 ", kept_[w].value, ", ptr ", address(place_of(w)));
}

void Emitter::drop() {
  save();
  kept_ = {};
}

void Emitter::helper(std::string_view name, std::uint32_t at, std::string_view extra, bool rare) {
  drop();  // it may wait
  std::string status =
      t_.def(rare ? "call preserve_allcc i32 @weft_qpu_rare_" : "call i32 @weft_qpu_", name, "(",
             where(at), extra.empty() ? "" : ", ", extra, ")");
  // A rare helper puts back all 32 bytes of the vector registers. Here nobody wants the upper
  // halves; left in use, they delay every change between this code and a helper's own.
  if (rare && role_ == Role::clocks) t_.line("call void @llvm.x86.avx.vzeroupper()");
  std::string good = t_.def("icmp eq i32 ", status, ", 0");
  unsigned id = t_.fresh();
  label_ = cat("k", id);
  t_.usually(good, label_, "out");
  t_.label(label_);
}

Emitter::Aside Emitter::aside(std::string_view name, std::uint32_t at, std::string_view extra,
                              const KeptState& before) {
  KeptState kept = std::exchange(kept_, before);
  helper(name, at, extra, true);
  Aside out;
  for (std::size_t w = 0; w < kKeptWords; ++w)
    if (!before[w].value.empty()) out.value[w] = t_.def("load i64, ptr ", address(place_of(w)));
  out.from = label_;
  kept_ = std::move(kept);
  return out;
}

void Emitter::join(const Aside& aside, const std::string& from) {
  for (std::size_t w = 0; w < kKeptWords; ++w) {
    KeptWord& k = kept_[w];
    if (aside.value[w].empty()) {
      WEFT_CHECK(k.value.empty(), "a word is kept on one of two paths only");
      continue;
    }
    k.value = t_.def("phi i64 [ ", k.value, ", %", from, " ], [ ", aside.value[w], ", %",
                     aside.from, " ]");
  }
}

std::string Emitter::entry() {
  if (record_.empty()) record_ = t_.def("load ptr, ptr ", address(offsetof(Qpu, record)));
  std::string place = t_.def("getelementptr i8, ptr ", record_, ", i64 ", record_bytes_);
  record_bytes_ += 4;
  return place;
}

void Emitter::close_record() {
  if (record_bytes_ == 0) return;
  record_ = t_.def("getelementptr i8, ptr ", record_, ", i64 ", record_bytes_);
  record_bytes_ = 0;
  // The lines come from the other thread's cache, or go there.
  t_.line("call void @llvm.prefetch.p0(ptr ", field(record_, kAheadOfRecord), ", i32 ",
          role_ == Role::values ? 1 : 0, ", i32 3, i32 1)");
  if (!loop_) t_.line("store ptr ", record_, ", ptr ", address(offsetof(Qpu, record)));
}

void Emitter::noted(std::string_view name, std::uint32_t at, std::string_view extra) {
  if (role_ == Role::alone) return helper(name, at, extra);
  std::string place = entry();
  auto written = [&] {
    std::string p = t_.def("load ptr, ptr ", address(offsetof(Qpu, events)));
    return t_.def("ptrtoint ptr ", p, " to i64");
  };
  std::string before = written();
  helper(name, at, extra);
  std::string bytes = t_.def("sub i64 ", written(), ", ", before);
  t_.line("store i32 ", t_.def("trunc i64 ", bytes, " to i32"), ", ptr ", place);
}

}  // namespace weft::qpu::hw
