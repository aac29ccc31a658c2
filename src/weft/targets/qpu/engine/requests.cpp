// SPDX-License-Identifier: Apache-2.0
// Requests to the texture units and their results as LLVM text: what tmu.h does for a row of one
// line of a known array, in place; all else is left to helpers.

#include <cstddef>
#include <utility>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

std::string Emitter::field(const std::string& base, std::size_t offset) {
  return t_.def("getelementptr i8, ptr ", base, ", i64 ", offset);
}

void Emitter::bump(const std::string& base, std::size_t place, int more) {
  std::string p = field(base, place);
  t_.line("store i64 ", t_.def("add i64 ", t_.def("load i64, ptr ", p), ", ", more), ", ptr ", p);
}

/// The later of two clocks, in two steps: LLVM would make a branch of it that nobody foretells.
std::string Emitter::later(const std::string& a, const std::string& b) {
  return t_.def("call i64 asm \"cmpq $2, $0\\0Acmovlq $2, $0\", \"=r,0,r,~{flags}\"(i64 ", a,
                ", i64 ", b, ")");
}

/// Calendar::book, and `more` clocks later.
std::string Emitter::book(const std::string& calendar, const std::string& now, int clocks,
                          int more) {
  static_assert(Calendar::kWidth == 64);
  Booking b{calendar, now, t_.def("and i64 ", now, ", ", -Calendar::kWidth)};
  std::string until = bucket(calendar, now);
  b.before = t_.def("load i64, ptr ", until);
  std::string value = t_.def("add i64 ", later(b.base, b.before), ", ", clocks);
  b.room = t_.def("add i64 ", b.base, ", ", Calendar::kWidth);
  std::string full = t_.def("icmp sgt i64 ", value, ", ", b.room);
  unsigned id = t_.fresh();
  t_.line("br i1 ", full, ", label %f", id, ", label %c", id, ", !prof !2");
  t_.label("c", id);
  t_.line("store i64 ", value, ", ptr ", until);
  std::string end = t_.def("add i64 ", later(b.before, now), ", ", clocks + more);
  t_.line("br label %e", id);
  t_.label("f", id);
  std::string next;
  // Where values are computed as well, registers are too few for it.
  if (role_ == Role::clocks) {
    const std::string other = cat("h", id);
    next = book_next(b, clocks, other);
    if (more) next = t_.def("add i64 ", next, ", ", more);
    next = cat(" [ ", next, ", %", label_, " ],");
    t_.line("br label %e", id);
    label_ = other;
    t_.label(label_);
  } else {
    label_ = cat("f", id);
  }
  t_.line("call preserve_allcc void @book_on(ptr ", calendar, ", i64 ", now, ", i64 ", clocks,
          ", ptr %booked)");
  std::string on = t_.def("load i64, ptr %booked");
  if (more) on = t_.def("add i64 ", on, ", ", more);
  t_.line("br label %e", id);
  const std::string from = std::exchange(label_, cat("e", id));
  t_.label(label_);
  return t_.def("phi i64 [ ", end, ", %c", id, " ],", next, " [ ", on, ", %", from, " ]");
}

std::string Emitter::bucket(const std::string& calendar, const std::string& clock) {
  std::string number = t_.def("lshr i64 ", clock, ", 6");
  return t_.def("getelementptr i64, ptr ", calendar, ", i64 ",
                t_.def("and i64 ", number, ", ", Calendar::kBuckets - 1));
}

/// A booking whose own bucket has no room, in the next one that may have it, as book_on finds it
/// where it need not go further. To label `otherwise`, with nothing booked, where that one has no
/// room for all of it either, or the first has room for a part.
std::string Emitter::book_next(const Booking& b, int clocks, const std::string& otherwise) {
  std::string from_at = field(b.calendar, Calendar::full_from_place()),
              to_at = field(b.calendar, Calendar::full_to_place());
  std::string from = t_.def("load i64, ptr ", from_at), to = t_.def("load i64, ptr ", to_at);
  std::string known = t_.def("icmp ult i64 ", t_.def("sub i64 ", b.base, ", ", from), ", ",
                             t_.def("sub i64 ", to, ", ", from));
  std::string next = t_.def("select i1 ", known, ", i64 ", to, ", i64 ", b.room);
  std::string until = bucket(b.calendar, next);
  std::string before = t_.def("load i64, ptr ", until);
  std::string value = t_.def("add i64 ", later(next, before), ", ", clocks);
  std::string end = t_.def("add i64 ", next, ", ", Calendar::kWidth);
  std::string fits = t_.def("icmp sle i64 ", value, ", ", end);
  std::string whole = t_.def("or i1 ", known, ", ", t_.def("icmp eq i64 ", b.before, ", ", b.room));
  expect(t_.def("and i1 ", fits, ", ", whole), otherwise);
  t_.line("store i64 ", value, ", ptr ", until);
  std::string joins = t_.def("or i1 ", known, ", ", t_.def("icmp eq i64 ", b.base, ", ", to));
  t_.line("store i64 ", t_.def("select i1 ", joins, ", i64 ", from, ", i64 ", b.base), ", ptr ",
          from_at);
  t_.line("store i64 ", next, ", ptr ", to_at);
  return value;
}

/// Calendar::book_on, as a function of the program's module: it has to save only what it uses. The
/// result goes through memory: before LLVM 17 a preserve_allcc function restores rax, its result.
std::string Emitter::book_on() {
  const std::string from_at = cat("getelementptr i8, ptr %c, i64 ", Calendar::full_from_place()),
                    to_at = cat("getelementptr i8, ptr %c, i64 ", Calendar::full_to_place());
  return cat(
      "define internal preserve_allcc void @book_on(ptr %c, i64 %now, i64 %clocks, ptr %booked) "
      "noinline nounwind {\n  %b0 = and i64 %now, ",
      -Calendar::kWidth, "\n  %from_at = ", from_at, "\n  %to_at = ", to_at, R"(
  br label %look
look:
  %b = phi i64 [ %b0, %0 ], [ %b5, %next ]
  %left = phi i64 [ %clocks, %0 ], [ %left1, %next ]
  %end = phi i64 [ %now, %0 ], [ %end3, %next ]
  %from = load i64, ptr %from_at
  %to = load i64, ptr %to_at
  %after = icmp sge i64 %b, %from
  %before = icmp slt i64 %b, %to
  %known = and i1 %after, %before
  %b1 = select i1 %known, i64 %to, i64 %b
  %byte0 = lshr i64 %b1, 3
  %byte = and i64 %byte0, )",
      8 * (Calendar::kBuckets - 1), R"(
  %at = getelementptr i8, ptr %c, i64 %byte
  %until = load i64, ptr %at
  %used0 = sub i64 %until, %b1
  %other = icmp ugt i64 %used0, 64
  %used = select i1 %other, i64 0, i64 %used0
  %free = sub i64 64, %used
  %less = icmp slt i64 %free, %left
  %take = select i1 %less, i64 %free, i64 %left
  %some = icmp sgt i64 %take, 0
  br i1 %some, label %takes, label %next
takes:
  %begin = add i64 %b1, %used
  %end0 = add i64 %begin, %take
  store i64 %end0, ptr %at
  %late = icmp sgt i64 %begin, %end
  %start = select i1 %late, i64 %begin, i64 %end
  %end1 = add i64 %start, %take
  %left0 = sub i64 %left, %take
  %done = icmp eq i64 %left0, 0
  br i1 %done, label %out, label %next
out:
  store i64 %end1, ptr %booked
  ret void
next:
  %left1 = phi i64 [ %left, %look ], [ %left0, %takes ]
  %end3 = phi i64 [ %end, %look ], [ %end1, %takes ]
  %same = icmp eq i64 %b1, %to
  %from1 = select i1 %same, i64 %from, i64 %b1
  store i64 %from1, ptr %from_at
  %b5 = add i64 %b1, 64
  store i64 %b5, ptr %to_at
  br label %look
}
)");
}

std::string Emitter::tmu(int unit) {
  if (!swaps_) return unit ? "%tmu1" : "%tmu0";
  return t_.def("load ptr, ptr ", address(offsetof(Qpu, tmu) + 8 * static_cast<std::size_t>(unit)));
}

Line Emitter::line_of(const std::string& first) {
  Line line = places_of(t_.def("lshr i32 ", first, ", 6"));
  std::string one = t_.def("insertelement <4 x i32> undef, i32 ", line.number, ", i32 0");
  line.four =
      t_.def("shufflevector <4 x i32> ", one, ", <4 x i32> undef, <4 x i32> zeroinitializer");
  return line;
}

Line Emitter::places_of(const std::string& number) {
  Line line;
  line.number = number;
  auto index = [&](int count_of, int shift) {
    std::string low = t_.def("and i32 ", line.number, ", ", count_of - 1);
    return t_.def("shl i64 ", t_.def("zext i32 ", low, " to i64"), ", ", shift);
  };
  line.tag = index(timing::kTmuLines, 2);
  line.set = index(timing::kL2Sets, 4);
  return line;
}

/// Its number alone: what follows from it costs less than lines that change their core.
void Emitter::tell_line(const std::string& first, const std::string& place) {
  static_assert(timing::kLine == 64);
  t_.line("store i32 ", t_.def("lshr i32 ", first, ", 6"), ", ptr ", place);
}

/// The same as who has the clocks reads it.
Line Emitter::told_line(const std::string& number, const std::string& place) {
  Line line = places_of(number);
  line.four = t_.def("call <4 x i32> asm \"vpbroadcastd $1, $0\", \"=x,*m\"(ptr elementtype(i32) ",
                     place, ")");
  return line;
}

/// Machine::line_booked.
std::string Emitter::line_ready(int unit, const Line& line, const std::string& now) {
  const std::string tmu = this->tmu(unit);
  static_assert(offsetof(Tmu, calendar) == 0);
  std::string asked = book(tmu, now, timing::kTmuVector, 0);
  unsigned id = t_.fresh();
  std::string tag_at =
      t_.def("getelementptr i8, ptr ", field(tmu, offsetof(Tmu, tag)), ", i64 ", line.tag);
  std::string tag = t_.def("load i32, ptr ", tag_at);
  std::string same = t_.def("icmp eq i32 ", tag, ", ", line.number);
  auto counted = [&](std::size_t place_in_counters, const std::string& more) {
    std::string at = field("%shared", offsetof(Shared, counters) + place_in_counters);
    t_.line("store i64 ", t_.def("add i64 ", t_.def("load i64, ptr ", at), ", ", more), ", ptr ",
            at);
  };
  // Which of the two caches has it follows no pattern that a processor could foretell.
  t_.line("store i32 ", line.number, ", ptr ", tag_at);
  static_assert(sizeof(Shared::l2_tag[0]) == 16);
  std::string ways_at = t_.def("getelementptr i8, ptr ", field("%shared", offsetof(Shared, l2_tag)),
                               ", i64 ", line.set);
  std::string ways = t_.def("load <4 x i32>, ptr ", ways_at, ", align 16");
  std::string equal = t_.def("icmp eq <4 x i32> ", ways, ", ", line.four);
  std::string bits = t_.def("bitcast <4 x i1> ", equal, " to i4");
  // A line that only the TMU's cache still has is rare.
  std::string absent = t_.def("icmp eq i4 ", bits, ", 0");
  t_.line("br i1 ", absent, ", label %q", id, ", label %h", id);
  t_.label("q", id);
  t_.rarely(same, cat("h", id), cat("o", id));
  t_.label("h", id);
  counted(offsetof(Counters, tmu_hits), t_.def("zext i1 ", same, " to i64"));
  std::string latency =
      t_.def("select i1 ", same, ", i64 ", timing::kTmuHit, ", i64 ", timing::kL2Hit);
  std::string hit = t_.def("add i64 ", asked, ", ", latency);
  t_.line("br label %a", id);
  t_.label("o", id);
  std::string kept = t_.def("shufflevector <4 x i32> ", line.four, ", <4 x i32> ", ways,
                            ", <4 x i32> <i32 3, i32 4, i32 5, i32 6>");
  t_.line("store <4 x i32> ", kept, ", ptr ", ways_at, ", align 16");
  counted(offsetof(Counters, memory_lines), "1");
  std::string fetched =
      book(field("%shared", offsetof(Shared, sdram)), asked, timing::kLineClocks, timing::kMemory);
  std::string last = label_;
  t_.line("br label %a", id);
  label_ = cat("a", id);
  t_.label(label_);
  return t_.def("phi i64 [ ", hit, ", %h", id, " ], [ ", fetched, ", %", last, " ]");
}

/// Machine::tmu_request_line, or the half of it that the role has.
void Emitter::request_row(std::uint32_t at, int unit, const std::string& first) {
  const std::size_t fifo = offsetof(Qpu, fifo) + sizeof(TmuFifo) * static_cast<std::size_t>(unit),
                    known = offsetof(Qpu, site) + sizeof(RequestSite) * flow_.site[at];
  const std::string_view name = unit ? "tmu_row1" : "tmu_row0";
  const std::string extra = cat("i32 ", first, ", ptr ", address(known));
  if (!in_place_) return helper(name, at, extra);
  const Kept head_of = unit ? kHead1 : kHead0, count_of = unit ? kCount1 : kCount0;
  const std::string head = kept(head_of), waiting = kept(count_of);
  if (role_ == Role::alone) kept(kTime);
  const std::string place_written = role_ == Role::values ? entry() : "";
  const KeptState before = kept_;
  unsigned id = t_.fresh();
  // Is it a line of the array?
  std::string begin = t_.def("load i32, ptr ", address(known + offsetof(RequestSite, begin)));
  std::string lines = t_.def("load i32, ptr ", address(known + offsetof(RequestSite, lines)));
  std::string from = t_.def("sub i32 ", first, ", ", begin);
  std::string place = t_.def("call i32 @llvm.fshr.i32(i32 ", from, ", i32 ", from, ", i32 6)");
  std::string inside = t_.def("icmp ult i32 ", place, ", ", lines);
  t_.usually(inside, cat("i", id), cat("s", id));
  t_.label("i", id);
  std::string room = t_.def("icmp ult i64 ", waiting, ", ", assume::kTmuFifoDepth);
  t_.usually(room, cat("u", id), cat("s", id));
  t_.label("u", id);
  // Has nobody written it, or parts of it?
  std::string wide = t_.def("zext i32 ", place, " to i64");
  std::string summaries = t_.def("load ptr, ptr ", address(known + offsetof(RequestSite, summary)));
  std::string summary_at = t_.def("getelementptr i32, ptr ", summaries, ", i64 ", wide);
  std::string summary = t_.def("load i32, ptr ", summary_at);
  std::string differs = t_.def("xor i32 ", summary, ", %launch");
  std::string older =
      t_.def("icmp uge i32 ", differs, ", ", std::uint32_t{1} << Shadow::kLaunchShift);
  std::string touched = t_.def("select i1 ", older, ", i32 0, i32 ", differs);
  std::string odd = t_.def("and i32 ", touched, ", ", Shadow::kNotOnlyRead);
  std::string plain = t_.def("icmp eq i32 ", odd, ", 0");
  t_.usually(plain, cat("p", id), cat("s", id));
  t_.label("p", id);
  std::string readers = t_.def("or i32 ", t_.def("or i32 ", touched, ", %launch"), ", %bit");
  t_.line("store i32 ", readers, ", ptr ", summary_at);
  std::string slot =
      t_.def("and i64 ", t_.def("add i64 ", head, ", ", waiting), ", ", TmuFifo::kSlots - 1);
  std::string data = t_.def("load ptr, ptr ", address(known + offsetof(RequestSite, data)));
  static_assert(timing::kLine == 64 && sizeof(Vec) == 64);
  std::string source =
      t_.def("getelementptr i8, ptr ", data, ", i64 ", t_.def("shl i64 ", wide, ", 6"));
  std::string to = t_.def("getelementptr i8, ptr %q, i64 ", t_.def("shl i64 ", slot, ", 6"));
  for (std::size_t half : {0u, 32u}) {
    std::string words = t_.def("load ", kInt8, ", ptr ", field(source, half), ", align 4");
    t_.line("store ", kInt8, " ", words, ", ptr ", field(to, fifo + half), ", align 32");
  }
  // Without clocks the next lines are asked for sooner.
  const std::size_t away = role_ == Role::alone ? 4 : 8;
  t_.line("call void @llvm.prefetch.p0(ptr ", field(source, away * timing::kLine),
          ", i32 0, i32 3, i32 1)");
  label_ = cat("p", id);
  if (role_ == Role::alone) {
    std::string now = t_.def("add i64 ", kept(kTime), ", ", (at - start_) * timing::kIssue);
    const std::string ready = line_ready(unit, line_of(first), now);
    std::string ready_at =
        t_.def("getelementptr i8, ptr %q, i64 ", t_.def("shl i64 ", slot, ", 3"));
    t_.line("store i64 ", ready, ", ptr ", field(ready_at, fifo + offsetof(TmuFifo, ready)));
  } else {
    tell_line(first, place_written);
  }
  keep(count_of, t_.def("add i64 ", waiting, ", 1"));
  const std::string done = label_;
  t_.line("br label %k", id);
  t_.label("s", id);
  label_ = cat("s", id);
  Aside rare = request_aside(name, at, extra, before, place_written);
  t_.line("br label %k", id);
  label_ = cat("k", id);
  t_.label(label_);
  join(rare, done);
}

/// A request by its helper; what that wrote down is counted at `place`, as no line is.
Emitter::Aside Emitter::request_aside(std::string_view name, std::uint32_t at,
                                      std::string_view extra, const KeptState& before,
                                      const std::string& place) {
  if (role_ == Role::alone) return aside(name, at, extra, before);
  auto written = [&] {
    std::string p = t_.def("load ptr, ptr ", address(offsetof(Qpu, events)));
    return t_.def("ptrtoint ptr ", p, " to i64");
  };
  std::string start = written();
  Aside out = aside(name, at, extra, before);
  std::string bytes = t_.def("trunc i64 ", t_.def("sub i64 ", written(), ", ", start), " to i32");
  t_.line("store i32 ", t_.def("or i32 ", bytes, ", ", std::uint32_t{Event::kBytes}), ", ptr ",
          place);
  return out;
}

void Emitter::request(std::uint32_t at, int unit, std::int32_t value, bool row) {
  const Value& asked = this->at(value);
  if (asked.affine() ? asked.stride == 4 : row) return request_row(at, unit, first_lane(value));
  Halves lanes = ints(value);
  std::string first = t_.def("extractelement ", kInt8, " ", lanes.lo, ", i32 0");
  // Consecutive words all the same?
  std::string one = t_.def("insertelement ", kInt8, " undef, i32 ", first, ", i32 0");
  std::string all =
      t_.def("shufflevector ", kInt8, " ", one, ", ", kInt8, " undef, ", kInt8, " zeroinitializer");
  Halves row_of{"<i32 0, i32 4, i32 8, i32 12, i32 16, i32 20, i32 24, i32 28>",
                "<i32 32, i32 36, i32 40, i32 44, i32 48, i32 52, i32 56, i32 60>"};
  Halves wanted = each2("add", kInt8, {all, all}, row_of);
  std::string bits = any(each2("icmp ne", kInt8, lanes, wanted));
  std::string good = t_.def("icmp eq i8 ", bits, ", 0");
  unsigned id = t_.fresh();
  const Kept head_of = unit ? kHead1 : kHead0, count_of = unit ? kCount1 : kCount0;
  kept(head_of), kept(count_of);
  if (role_ == Role::alone) kept(kTime);
  const KeptState before = kept_;
  // Both paths write the same word down.
  const std::size_t bytes_before = record_bytes_;
  const std::string place = role_ == Role::values ? entry() : "";
  t_.line("br i1 ", good, ", label %c", id, ", label %s", id);
  t_.label("c", id);
  label_ = cat("c", id);
  record_bytes_ = bytes_before;
  request_row(at, unit, first);
  for (std::size_t w = 0; w < kKeptWords; ++w)
    if (!before[w].value.empty()) kept(static_cast<Kept>(w));
  const std::string done = label_;
  t_.line("br label %j", id);
  t_.label("s", id);
  label_ = cat("s", id);
  store(kInt8, lanes, offsetof(Qpu, slot) + 64ull * kSlotOutAdd);
  Aside rare = request_aside("tmu", at, cat("i32 ", unit), before, place);
  t_.line("br label %j", id);
  label_ = cat("j", id);
  t_.label(label_);
  join(rare, done);
}

void Emitter::receive(std::uint32_t at, int unit) {
  std::size_t fifo = offsetof(Qpu, fifo) + sizeof(TmuFifo) * static_cast<std::size_t>(unit);
  const Kept head_of = unit ? kHead1 : kHead0, count_of = unit ? kCount1 : kCount0;
  const std::string head = kept(head_of), count = kept(count_of);
  if (role_ == Role::alone) kept(kTime);
  const KeptState before = kept_;
  std::string slow = t_.def("icmp eq i64 ", count, ", 0");
  if (role_ == Role::alone) {
    std::string traced = t_.def("load i8, ptr ", address(offsetof(Qpu, traced)));
    slow = t_.def("or i1 ", slow, ", ", t_.def("icmp ne i8 ", traced, ", 0"));
  }
  unsigned id = t_.fresh();
  t_.rarely(slow, cat("s", id), cat("c", id));
  // The oldest result, and the wait for it.
  t_.label("c", id);
  label_ = cat("c", id);
  std::string place = t_.def("and i64 ", head, ", ", TmuFifo::kSlots - 1);
  std::string bytes = t_.def("shl i64 ", place, ", 6");
  std::string base = t_.def("getelementptr i8, ptr %q, i64 ", bytes);
  std::string lo_at = t_.def("getelementptr i8, ptr ", base, ", i64 ", fifo),
              hi_at = t_.def("getelementptr i8, ptr ", base, ", i64 ", fifo + 32);
  std::string lo = t_.def("load ", kInt8, ", ptr ", lo_at, ", align 32"),
              hi = t_.def("load ", kInt8, ", ptr ", hi_at, ", align 32");
  if (role_ == Role::alone) wait_for(at, unit);
  keep(head_of, t_.def("add i64 ", head, ", 1"));
  keep(count_of, t_.def("sub i64 ", count, ", 1"));
  t_.line("br label %j", id);
  t_.label("s", id);
  label_ = cat("s", id);
  Aside rare = aside("receive", at, cat("i32 ", unit), before);
  Halves kept = load(kInt8, offsetof(Qpu, slot) + 64ull * (kSlotAcc + 4));
  t_.line("br label %j", id);
  label_ = cat("j", id);
  t_.label(label_);
  join(rare, cat("c", id));
  Value v;
  v.loaded = true;
  v.as_int.lo =
      t_.def("phi ", kInt8, " [ ", lo, ", %c", id, " ], [ ", kept.lo, ", %", rare.from, " ]");
  v.as_int.hi =
      t_.def("phi ", kInt8, " [ ", hi, ", %c", id, " ], [ ", kept.hi, ", %", rare.from, " ]");
  set(kSlotAcc + 4, add(v));
}

void Emitter::wait_for(std::uint32_t at, int unit) {
  std::size_t fifo = offsetof(Qpu, fifo) + sizeof(TmuFifo) * static_cast<std::size_t>(unit);
  std::string place = t_.def("and i64 ", kept(unit ? kHead1 : kHead0), ", ", TmuFifo::kSlots - 1);
  std::string times = t_.def("getelementptr i8, ptr %q, i64 ", t_.def("shl i64 ", place, ", 3"));
  std::string time_of = field(times, fifo + offsetof(TmuFifo, ready));
  std::string ready = t_.def("load i64, ptr ", time_of);
  wait_until(at, ready, kStallTmu);
}

void Emitter::wait_until(std::uint32_t at, const std::string& ready, StallReason why) {
  const std::string before = kept(kTime);
  std::string sooner = t_.def("sub i64 ", ready, ", ", (at - start_) * timing::kIssue);
  keep(kTime, later(before, sooner));
  // Waits for the TMU are what remains of the clock in the end (translate.cpp, Untold).
  if (why == kStallTmu) return;
  std::string stall_at = address(offsetof(Qpu, stall) + 8 * static_cast<std::size_t>(why));
  std::string stalled = t_.def("load i64, ptr ", stall_at);
  std::string wait = t_.def("sub i64 ", kept(kTime), ", ", before);
  t_.line("store i64 ", t_.def("add i64 ", stalled, ", ", wait), ", ptr ", stall_at);
}

}  // namespace weft::qpu::hw
