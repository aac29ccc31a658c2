// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of the LLVM text that the translated engine writes: sixteen lanes as two halves of eight,
// as integers, as floats, or both, made when asked for.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/targets/qpu/engine/translate.h"

namespace weft::qpu::hw {

/// Two halves of a vector by their names in the text.
struct Halves {
  std::string lo, hi;
  bool empty() const { return lo.empty(); }
};

struct Value {
  Halves as_int, as_float;
  // Lane 0, where lane l is known to hold it plus l times `stride`; the vector is made when asked
  // for.
  std::string scalar;
  std::int32_t stride = 0;
  bool affine() const { return !scalar.empty(); }
  bool uniform() const { return affine() && stride == 0; }
  // The integer form differs from the float's bits until -0 has become +0.
  bool constant = false;  // every lane is `word`; as_float comes from memory, unseen by LLVM
  std::uint32_t word = 0;
  std::int32_t pool = -1;  // constants: place in the pool, or
  std::int32_t slot = -1;  // the slot that holds it
  bool loaded = false;     // from memory: nothing that LLVM could compute beforehand
  // Sums and products not yet repaired: the operation and its operands.
  bool pending = false, consumed = false;
  std::uint8_t op = 0;
  std::int32_t a = -1, b = -1;
};

/// Flags of one kind as two vectors of i1 or, from memory, of i32.
struct Flag {
  Halves bits;          // <8 x i1>
  std::string uniform;  // i1: all lanes alike
  bool known = false, dirty = false;
};

class Text {
 public:
  /// A fresh name, given `line` as its definition.
  template <typename... Ts>
  std::string def(const Ts&... parts) {
    std::string name = cat("%v", next_++);
    body_ += "  ";
    body_ += name;
    body_ += " = ";
    (put(parts), ...);
    body_ += '\n';
    return name;
  }
  template <typename... Ts>
  void line(const Ts&... parts) {
    body_ += "  ";
    (put(parts), ...);
    body_ += '\n';
  }
  template <typename... Ts>
  void label(const Ts&... parts) {
    (put(parts), ...);
    body_ += ":\n";
  }
  /// A branch of which one side is rarely taken: what lies there is kept out of the way.
  void usually(std::string_view condition, std::string_view yes, std::string_view no) {
    line("br i1 ", condition, ", label %", yes, ", label %", no, ", !prof !0");
  }
  void rarely(std::string_view condition, std::string_view yes, std::string_view no) {
    line("br i1 ", condition, ", label %", yes, ", label %", no, ", !prof !1");
  }
  unsigned fresh() { return next_++; }
  std::string& body() { return body_; }

 private:
  void put(std::string_view s) { body_ += s; }
  void put(const char* s) { body_ += s; }
  void put(const std::string& s) { body_ += s; }
  template <typename T>
  requires std::is_integral_v<T>
  void put(T v) { body_ += std::to_string(v); }

  std::string body_;
  unsigned next_ = 0;
};

inline constexpr std::string_view kInt8 = "<8 x i32>", kFloat8 = "<8 x float>", kBit8 = "<8 x i1>";

/// Words of the QPU's state that a block keeps in registers of the host.
/// Whoever has clocks only keeps those of results that wait (kReady, by TMU), the oldest first.
enum Kept : std::uint8_t {
  kTime,
  kHead0,
  kCount0,
  kHead1,
  kCount1,
  kReady0,
  kReady1 = kReady0 + assume::kTmuFifoDepth,
  kKeptWords = kReady1 + assume::kTmuFifoDepth
};

/// A line by its number, four times its number, and where its tags are in the caches (bytes).
struct Line {
  std::string number, four, tag, set;
};

class Emitter {
 public:
  Emitter(const Program& program, const Flow& flow, bool count, Role role)
      : program_(program), flow_(flow), count_(count), role_(role) {}
  std::string run();

 private:
  struct KeptWord {
    std::string value;
    bool dirty = false;
  };
  using KeptState = std::array<KeptWord, kKeptWords>;
  /// A rare path that calls a helper and comes back; what was kept, read again there.
  struct Aside {
    std::array<std::string, kKeptWords> value;
    std::string from;
  };

  // emit.cpp: structure.
  void block(std::size_t index);
  void finish_block(const FlowBlock& b, std::uint32_t length);
  void instruction(std::uint32_t at);
  void branch(std::uint32_t at);
  void alu(std::uint32_t at, const Instr& i);
  void load_immediate(std::uint32_t at, const Instr& i);
  void deliver(std::uint32_t at, bool file_b, unsigned address, unsigned cond, std::int32_t value,
               Shape shape);
  void literal(std::uint32_t at);
  void slots_left(std::uint32_t n);
  void advance(std::uint32_t length);
  void leave(const FlowBlock& b);

  // peripherals.cpp: the frequent ones in place.
  void wait_dma(std::uint32_t at, bool store);
  void set_up_store(std::uint32_t at, const std::string& word);
  void write_vpm(std::uint32_t at, bool file_b, std::int32_t value);
  void store_line(std::uint32_t at, const std::string& address);
  std::string own_row(const std::string& row, std::string_view otherwise);
  void touch_row(const std::string& bit);
  /// Its clocks.
  void stored_line(std::uint32_t at);
  /// Goes on where `condition` holds, mostly; to label `otherwise` where not.
  void expect(const std::string& condition, std::string_view otherwise);

  // loops.cpp: blocks that branch to themselves keep everything in registers of the host.
  bool loops(std::size_t index) const;
  void open_loop(std::size_t index);
  void close_loop(std::size_t index);

  // state.cpp: the QPU's state, helpers, and what is written down.
  /// `rare`: one that leaves all registers as they are, so that nothing has to make way for it.
  void helper(std::string_view name, std::uint32_t at, std::string_view extra = {},
              bool rare = false);
  /// The same for what may write events down, or settle them.
  void noted(std::string_view name, std::uint32_t at, std::string_view extra = {});
  Aside aside(std::string_view name, std::uint32_t at, std::string_view extra,
              const KeptState& before);
  void join(const Aside& aside, const std::string& from);
  std::string where(std::uint32_t at) const;
  const std::string& kept(Kept word);
  void keep(Kept word, std::string value);
  void save();
  void drop();
  /// The place of the next word written down, or to be read.
  std::string entry();
  void close_record();

  // clocks.cpp: what Role::clocks does of an instruction.
  void clock(std::uint32_t at);
  void settle(std::uint32_t at);
  void clock_request(std::uint32_t at, int unit);
  void clock_request_in_place(std::uint32_t at, int unit);
  void clock_receive(std::uint32_t at, int unit);
  void clock_store(std::uint32_t at);

  // requests.cpp: texture units.
  void request(std::uint32_t at, int unit, std::int32_t value, bool row);
  void request_row(std::uint32_t at, int unit, const std::string& first);
  std::string later(const std::string& a, const std::string& b);
  std::string book(const std::string& calendar, const std::string& now, int clocks, int more);
  struct Booking {
    std::string calendar, now, base;  // base: of the bucket of `now`
    std::string before = {}, room = {};  // until when it was used; its end
  };
  std::string book_next(const Booking& b, int clocks, const std::string& otherwise);
  /// Where the calendar has the bucket of a clock.
  std::string bucket(const std::string& calendar, const std::string& clock);
  static std::string book_on();
  /// When a line, asked for at `now`, is there.
  std::string line_ready(int unit, const Line& line, const std::string& now);
  /// Its places in the caches, by its number.
  Line places_of(const std::string& number);
  Line line_of(const std::string& first);
  Line told_line(const std::string& number, const std::string& place);
  void tell_line(const std::string& first, const std::string& place);
  std::string tmu(int unit);
  void bump(const std::string& base, std::size_t place, int more);
  std::string field(const std::string& base, std::size_t offset);
  void receive(std::uint32_t at, int unit);
  /// The clock after a wait for the oldest result.
  void wait_for(std::uint32_t at, int unit);
  /// The same until `ready`.
  void wait_until(std::uint32_t at, const std::string& ready, StallReason why);
  Aside request_aside(std::string_view name, std::uint32_t at, std::string_view extra,
                      const KeptState& before, const std::string& place);

  // values.cpp: registers, flags, repairs.
  std::int32_t add(Value v);
  std::int32_t splat(std::uint32_t word);
  std::int32_t read(unsigned slot);
  std::int32_t source(const Instr& i, unsigned mux);
  void set(unsigned slot, std::int32_t value);
  const Value& at(std::int32_t value) const { return values_[static_cast<std::size_t>(value)]; }
  Halves ints(std::int32_t value);
  Halves floats(std::int32_t value);
  /// Lane 0.
  std::string first_lane(std::int32_t value);
  /// The integer form as something that LLVM cannot know: it would round constants to nearest.
  Halves hidden(std::int32_t value);
  void store_slot(unsigned slot, std::int32_t value);
  std::string address(std::size_t offset);
  Halves load(std::string_view type, std::size_t offset);
  void store(std::string_view type, const Halves& h, std::size_t offset);
  void resolve();
  Halves flag(unsigned cond);  // <8 x i1>, kZs to kCc
  std::int32_t choose(unsigned cond, std::int32_t on, std::int32_t off);
  void flush(const Live& live);
  void forget();
  Halves each2(std::string_view op, std::string_view type, const Halves& a, const Halves& b);
  Halves cast(std::string_view from, const Halves& h, std::string_view to);
  std::string any(const Halves& bits);

  // arithmetic.cpp: the ALUs.
  std::int32_t add_op(const Instr& i, std::int32_t a, std::int32_t b);
  std::int32_t mul_op(const Instr& i, std::int32_t a, std::int32_t b);
  /// The same for lane 0 alone, where that says what all lanes are; false: nothing has happened.
  bool scalar_op(unsigned op, std::int32_t a, std::int32_t b, Value* out);
  bool scalar_flags(const Instr& i, bool from_mul, std::int32_t a, std::int32_t b,
                    std::int32_t result, const Live& live);
  std::int32_t float_op(unsigned op, std::int32_t a, std::int32_t b);
  std::int32_t bytes_op(std::string_view intrinsic, std::int32_t a, std::int32_t b);
  std::int32_t convert_to_int(std::int32_t a);
  Halves shift(std::string_view op, std::int32_t a, std::int32_t b);
  Halves carry_of(unsigned op, std::int32_t a, std::int32_t b, std::int32_t result);
  Halves keys(std::int32_t a);
  std::int32_t rotated(std::int32_t v, unsigned code);
  std::int32_t spread(std::int32_t v, bool lane0);
  void set_flags(const Instr& i, std::uint32_t at, bool from_mul, std::int32_t a, std::int32_t b,
                 std::int32_t result);
  std::string splat_text(std::uint32_t word) const;

  const Program& program_;
  const Flow& flow_;
  bool count_;
  Role role_;
  Text t_;
  std::vector<Value> values_;
  std::vector<std::int32_t> now_;  // slot -> value, -1: in memory only
  std::vector<bool> dirty_;
  Flag flags_[3];
  Halves inverse_[3];
  std::vector<std::int32_t> group_;   // pending values, in order
  std::vector<std::int32_t> pinned_;  // values of the instruction at hand
  std::vector<Live> live_;            // after each instruction of the block
  Shapes shapes_;
  Waiting waiting_{};
  bool swaps_ = false;     // the program swaps TMUs
  bool in_place_ = false;  // the block's requests; where there are many, code grows too large
  static constexpr std::size_t kInPlace = 4;
  std::string taken_, label_;
  KeptState kept_;
  std::string record_;  // where the block's words are, and how many bytes of them there are
  std::size_t record_bytes_ = 0;
  std::uint32_t start_ = 0;
  bool loop_ = false;
  std::vector<unsigned> carried_;           // slots that the loop at hand reads of the round before
  std::array<bool, kKeptWords> carries_{};  // the same of what is kept
  unsigned loop_id_ = 0;
  std::vector<std::vector<int>> recipes_;
  std::vector<Vec> pool_;
};

}  // namespace weft::qpu::hw
