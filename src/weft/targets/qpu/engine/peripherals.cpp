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

void Emitter::expect(const std::string& condition, std::string_view otherwise) {
  unsigned id = t_.fresh();
  t_.usually(condition, cat("x", id), otherwise);
  label_ = cat("x", id);
  t_.label(label_);
}

/// Machine::vpm_write of a row of one's own that no transfer is reading.
void Emitter::write_vpm(std::uint32_t at, bool file_b, std::int32_t value) {
  const Halves words = ints(value);
  const KeptState before = kept_;
  const std::size_t access = offsetof(Qpu, vpm_write);
  unsigned id = t_.fresh();
  const std::string slow = cat("s", id);
  std::string rows = t_.def("load i8, ptr ", address(access + offsetof(VpmAccess, rows)));
  expect(t_.def("icmp ne i8 ", rows, ", 0"), slow);
  std::string row_at = address(access + offsetof(VpmAccess, addr));
  std::string row = t_.def("load i32, ptr ", row_at);
  std::string row64 = t_.def("zext i32 ", row, " to i64");
  std::string bit = t_.def("shl i64 1, ", row64);
  std::string storing = t_.def("load i64, ptr ", address(offsetof(Qpu, store_rows)));
  expect(t_.def("icmp eq i64 ", t_.def("and i64 ", storing, ", ", bit), ", 0"), slow);
  if (role_ == Role::alone) own_row(row64, slow);
  else touch_row(bit);
  std::string to = t_.def("getelementptr i8, ptr %vpm, i64 ", t_.def("shl i64 ", row64, ", 6"));
  t_.line("store ", kInt8, " ", words.lo, ", ptr ", to, ", align 32");
  t_.line("store ", kInt8, " ", words.hi, ", ptr ", field(to, 32), ", align 32");
  bump("%q", offsetof(Qpu, counts.vpm_writes), 1);
  std::string stride = t_.def("load i32, ptr ", address(access + offsetof(VpmAccess, stride)));
  std::string next = t_.def("and i32 ", t_.def("add i32 ", row, ", ", stride), ", 63");
  t_.line("store i32 ", next, ", ptr ", row_at);
  const std::string done = label_;
  t_.line("br label %j", id);
  label_ = slow;
  t_.label(label_);
  store(kInt8, words, offsetof(Qpu, slot) + 64ull * kSlotOutAdd);
  Aside rare = aside("write", at, cat("i32 ", file_b ? 1 : 0, ", i32 ", unsigned{kWVpm}), before);
  t_.line("br label %j", id);
  label_ = cat("j", id);
  t_.label(label_);
  join(rare, done);
}

/// Goes on where the QPU alone has written the row, and has released nothing: its summary, which
/// then has the QPU as a reader too.
std::string Emitter::own_row(const std::string& row, std::string_view otherwise) {
  std::string summary_at =
      t_.def("getelementptr i8, ptr %rows, i64 ", t_.def("shl i64 ", row, ", 2"));
  std::string summary = t_.def("or i32 ", t_.def("load i32, ptr ", summary_at), ", %bit");
  std::string bits = t_.def("load i32, ptr ", address(offsetof(Qpu, own_row_bits)));
  std::string own = t_.def("load i32, ptr ", address(offsetof(Qpu, own_row)));
  expect(t_.def("icmp eq i32 ", t_.def("and i32 ", summary, ", ", bits), ", ", own), otherwise);
  return summary;
}

void Emitter::touch_row(const std::string& bit) {
  std::string at = address(offsetof(Qpu, vpm_rows));
  t_.line("store i64 ", t_.def("or i64 ", t_.def("load i64, ptr ", at), ", ", bit), ", ptr ", at);
}

/// Machine::dma_store_line, to an array that the instruction stored to before.
void Emitter::store_line(std::uint32_t at, const std::string& first) {
  const std::size_t known = offsetof(Qpu, site) + sizeof(RequestSite) * flow_.site[at];
  const bool alone = role_ == Role::alone;
  const std::string told = alone ? "" : entry();
  if (alone) kept(kTime);
  const KeptState before = kept_;
  unsigned id = t_.fresh();
  const std::string slow = cat("s", id);
  std::string begin = t_.def("load i32, ptr ", address(known + offsetof(RequestSite, begin)));
  std::string lines = t_.def("load i32, ptr ", address(known + offsetof(RequestSite, lines)));
  std::string from = t_.def("sub i32 ", first, ", ", begin);
  std::string place = t_.def("call i32 @llvm.fshr.i32(i32 ", from, ", i32 ", from, ", i32 6)");
  expect(t_.def("icmp ult i32 ", place, ", ", lines), slow);
  std::string word = t_.def("load i32, ptr ", address(offsetof(Qpu, vdw_setup)));
  std::string one_row = t_.def("and i32 ", word, ", ", std::uint32_t{VdwSetup::kOneRowBits});
  expect(t_.def("icmp eq i32 ", one_row, ", ", std::uint32_t{VdwSetup::kOneRow}), slow);
  std::string pending = t_.def("load i8, ptr ", address(offsetof(Qpu, store_pending)));
  expect(t_.def("icmp eq i8 ", pending, ", 0"), slow);
  // Nobody else has touched the line, nor this QPU otherwise than as a whole.
  std::string wide = t_.def("zext i32 ", place, " to i64");
  std::string summaries = t_.def("load ptr, ptr ", address(known + offsetof(RequestSite, summary)));
  std::string summary_at = t_.def("getelementptr i32, ptr ", summaries, ", i64 ", wide);
  std::string summary = t_.def("load i32, ptr ", summary_at);
  std::string differs = t_.def("xor i32 ", summary, ", %launch");
  std::string older =
      t_.def("icmp uge i32 ", differs, ", ", std::uint32_t{1} << Shadow::kLaunchShift);
  std::string touched = t_.def("select i1 ", older, ", i32 0, i32 ", differs);
  std::string others = t_.def("and i32 ", touched, ", ", t_.def("xor i32 %bit, -1"));
  std::string mine = t_.def("icmp eq i32 ", others, ", %writer");
  std::string none = t_.def("icmp eq i32 ", others, ", 0");
  expect(t_.def("or i1 ", none, ", ", mine), slow);
  std::string row =
      t_.def("zext i32 ", t_.def("and i32 ", t_.def("lshr i32 ", word, ", 7"), ", 63"), " to i64");
  std::string bit = t_.def("shl i64 1, ", row);
  if (alone) {
    std::string row_summary = own_row(row, slow);
    t_.line("store i32 ", row_summary, ", ptr ",
            t_.def("getelementptr i8, ptr %rows, i64 ", t_.def("shl i64 ", row, ", 2")));
  } else {
    // The page must have been saved (SavedPages).
    std::string stamps = t_.def("load ptr, ptr ", address(offsetof(Qpu, saved_stamps)));
    std::string page =
        t_.def("zext i32 ", t_.def("lshr i32 ", first, ", ", SavedPages::kShift), " to i64");
    std::string step = t_.def("mul i64 ", page, ", ", SavedPages::kStampStep);
    std::string stamp_at = t_.def("getelementptr i8, ptr ", stamps, ", i64 ", step);
    std::string stamp = t_.def("load atomic i32, ptr ", stamp_at, " acquire, align 4");
    std::string now = t_.def("load i32, ptr ", address(offsetof(Qpu, saved_stamp)));
    expect(t_.def("icmp eq i32 ", stamp, ", ", now), slow);
    touch_row(bit);
  }
  t_.line("store i32 ", t_.def("or i32 ", t_.def("or i32 ", touched, ", %launch"), ", %writer"),
          ", ptr ", summary_at);
  t_.line("store i64 ", bit, ", ptr ", address(offsetof(Qpu, store_rows)));
  t_.line("store i8 1, ptr ", address(offsetof(Qpu, store_pending)));
  std::string data = t_.def("load ptr, ptr ", address(known + offsetof(RequestSite, data)));
  std::string to =
      t_.def("getelementptr i8, ptr ", data, ", i64 ", t_.def("shl i64 ", wide, ", 6"));
  std::string source = t_.def("getelementptr i8, ptr %vpm, i64 ", t_.def("shl i64 ", row, ", 6"));
  t_.line("call void @llvm.prefetch.p0(ptr ", field(to, 4 * timing::kLine),
          ", i32 1, i32 3, i32 1)");
  for (std::size_t half : {0u, 32u}) {
    std::string words = t_.def("load ", kInt8, ", ptr ", field(source, half), ", align 4");
    t_.line("store ", kInt8, " ", words, ", ptr ", field(to, half), ", align 4");
  }
  if (alone) stored_line(at);
  else t_.line("store i32 ", std::uint32_t{Event::kLineStored}, ", ptr ", told);
  const std::string done = label_;
  t_.line("br label %j", id);
  label_ = slow;
  t_.label(label_);
  Aside rare =
      request_aside("store", at, cat("i32 ", first, ", ptr ", address(known)), before, told);
  t_.line("br label %j", id);
  label_ = cat("j", id);
  t_.label(label_);
  join(rare, done);
}

/// Machine::store_line_booked.
void Emitter::stored_line(std::uint32_t at) {
  std::string start =
      t_.def("add i64 ", kept(kTime), ", ", (at - start_) * timing::kIssue + timing::kDmaStart);
  const std::string engine = field("%shared", offsetof(Shared, vdw)),
                    bus = field("%shared", offsetof(Shared, sdram));
  std::string end = book(engine, start, timing::kLineStore, 0);
  std::string moved = book(bus, start, timing::kLineClocks, 0);
  t_.line("store i64 ", later(end, moved), ", ptr ", address(offsetof(Qpu, store_done)));
  bump(engine, Calendar::busy_place(), timing::kLineStore);
  bump(bus, Calendar::busy_place(), timing::kLineClocks);
  const std::size_t counters = offsetof(Shared, counters);
  bump("%shared", counters + offsetof(Counters, dma_stores), 1);
  bump("%shared", counters + offsetof(Counters, dma_bytes_written), timing::kLine);
}

}  // namespace weft::qpu::hw
