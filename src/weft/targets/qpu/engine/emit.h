// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of the LLVM text that the translated engine writes: sixteen lanes as two halves of eight,
// as integers, as floats, or both, made when asked for.

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
  Halves bits;  // <8 x i1>
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

class Emitter {
 public:
  Emitter(const Program& program, const Flow& flow, bool count)
      : program_(program), flow_(flow), count_(count) {}
  std::string run();

 private:
  // emit.cpp: structure.
  void block(std::size_t index);
  void finish_block(const FlowBlock& b, std::uint32_t length);
  void instruction(std::uint32_t at);
  void branch(std::uint32_t at);
  void alu(std::uint32_t at, const Instr& i);
  void load_immediate(std::uint32_t at, const Instr& i);
  void deliver(std::uint32_t at, bool file_b, unsigned address, unsigned cond, std::int32_t value,
               Shape shape);
  void helper(std::string_view name, std::uint32_t at, std::string_view extra = {});
  std::string where(std::uint32_t at) const;
  void literal(std::uint32_t at);
  void advance(std::uint32_t length);
  /// The QPU's clock at the start of the block, plus its stalls since.
  const std::string& time();
  /// Writes an event of `time` at `place` down; the place of the next.
  std::string event(const std::string& place, const std::string& time, Event::Kind kind, int extra);
  void slots_left(std::uint32_t n);

  // requests.cpp: texture units.
  void request(std::uint32_t at, int unit, std::int32_t value, bool row);
  void request_row(std::uint32_t at, int unit, const std::string& first);
  std::string reserve(const std::string& calendar, const std::string& now, int clocks);
  void bump(const std::string& base, std::size_t place, int more);
  std::string field(const std::string& base, std::size_t offset);
  void receive(std::uint32_t at, int unit);

  // values.cpp: registers, flags, repairs.
  std::int32_t add(Value v);
  std::int32_t splat(std::uint32_t word);
  std::int32_t read(unsigned slot);
  std::int32_t source(const Instr& i, unsigned mux);
  void set(unsigned slot, std::int32_t value);
  Halves ints(std::int32_t value);
  Halves floats(std::int32_t value);
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
  bool in_place_ = false;  // the block's requests; where there are many, code grows too large
  static constexpr std::size_t kInPlace = 4;
  std::string taken_, time_, label_;
  std::string clock_;  // time()'s value; empty: in memory only
  std::uint32_t start_ = 0;
  std::vector<std::vector<int>> recipes_;
  std::vector<Vec> pool_;
};

}  // namespace weft::qpu::hw
