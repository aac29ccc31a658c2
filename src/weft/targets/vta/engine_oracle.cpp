// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "weft/targets/vta/engine.h"

namespace weft::vta {

void fault_sram(const Insn& insn, std::string_view memory, std::int64_t first, std::int64_t last,
                std::int64_t depth) {
  throw Error(ErrorKind::fault, cat("vta.sram.", memory),
              cat(to_string(insn.op), " touches elements ", first, " to ", last, " of ", memory,
                  ", which has ", depth));
}

void fault_shift(std::int64_t amount) {
  throw Error(ErrorKind::fault, "vta.alu.shift",
              cat("a shift by ", amount, " has no meaning on this machine"))
      .note(
          "legal: 0 to 31 to the right, -31 to -1 to the left; the chips' readings differ beyond "
          "that");
}

namespace {

class Oracle final : public LiteralEngine {
 public:
  explicit Oracle(const Isa& isa) : LiteralEngine(isa), c_(isa.config()) { Oracle::clear(); }

  void clear() override {
    inp_.assign(static_cast<std::size_t>(c_.buffer_bytes(MemType::inp)), 0);
    wgt_.assign(static_cast<std::size_t>(c_.buffer_bytes(MemType::wgt)), 0);
    acc_.assign(static_cast<std::size_t>(c_.depth(MemType::acc) * c_.lanes()), 0);
    uop_.assign(static_cast<std::size_t>(c_.depth(MemType::uop)), 0);
  }

  void load(const Insn& n, const std::byte* dram) override {
    if (n.is_nop()) return;
    bounds(n, n.mem == MemType::acc8 ? MemType::acc : n.mem, n.sram, n.sram_elements());
    std::int64_t at = n.sram;
    std::int64_t row = n.x_pad_0 + n.x_size + n.x_pad_1;
    for (std::uint32_t y = 0; y < n.y_pad_0; ++y) zero(n.mem, at, row);
    for (std::uint32_t y = 0; y < n.y_size; ++y) {
      zero(n.mem, at, n.x_pad_0);
      const std::byte* src = dram + std::int64_t{y} * n.x_stride * c_.elem_bytes(n.mem);
      for (std::uint32_t x = 0; x < n.x_size; ++x, ++at)
        element(n.mem, at, src + x * c_.elem_bytes(n.mem));
      zero(n.mem, at, n.x_pad_1);
    }
    for (std::uint32_t y = 0; y < n.y_pad_1; ++y) zero(n.mem, at, row);
  }

  void store(const Insn& n, std::byte* dram) override {
    if (n.is_nop()) return;
    bounds(n, MemType::acc, n.sram, std::int64_t{n.y_size} * n.x_size);
    std::int64_t at = n.sram;
    for (std::uint32_t y = 0; y < n.y_size; ++y) {
      std::byte* row = dram + std::int64_t{y} * n.x_stride * c_.elem_bytes(MemType::out);
      for (std::uint32_t x = 0; x < n.x_size; ++x, ++at) {
        for (int l = 0; l < c_.lanes(); ++l) {
          row[x * c_.elem_bytes(MemType::out) + l] =
              static_cast<std::byte>(static_cast<std::uint32_t>(lane(at, l)) & 0xff);
        }
      }
    }
  }

  void gemm(const Insn& n) override {
    each(n, [&](std::int64_t dst, std::int64_t src, std::int64_t wgt) {
      bounds(n, MemType::acc, dst, 1);
      if (!n.reset) bounds(n, MemType::inp, src, 1), bounds(n, MemType::wgt, wgt, 1);
      for (int b = 0; b < c_.batch(); ++b) {
        for (int o = 0; o < c_.block_out(); ++o) {
          std::int32_t& acc = lane(dst, b * c_.block_out() + o);
          if (n.reset) {
            acc = 0;
            continue;
          }
          for (int k = 0; k < c_.block_in(); ++k) {
            std::int32_t x = inp_[static_cast<std::size_t>(src * c_.elem_bytes(MemType::inp) +
                                                           b * c_.block_in() + k)];
            std::int32_t w = wgt_[static_cast<std::size_t>(wgt * c_.elem_bytes(MemType::wgt) +
                                                           o * c_.block_in() + k)];
            acc = wrap(std::int64_t{acc} + x * w);
          }
        }
      }
    });
  }

  void alu(const Insn& n) override {
    each(n, [&](std::int64_t dst, std::int64_t src, std::int64_t) {
      bounds(n, MemType::acc, dst, 1);
      if (!n.use_imm) bounds(n, MemType::acc, src, 1);
      for (int l = 0; l < c_.lanes(); ++l) {
        std::int32_t& x = lane(dst, l);
        std::int64_t y = n.use_imm ? n.imm : lane(src, l);
        switch (n.alu) {
          case AluOp::min: x = y < x ? static_cast<std::int32_t>(y) : x; break;
          case AluOp::max: x = y > x ? static_cast<std::int32_t>(y) : x; break;
          case AluOp::add: x = wrap(x + y); break;
          case AluOp::mul: x = wrap(x * y); break;
          case AluOp::shr:
            if (y < -31 || y > 31) fault_shift(y);
            x = y >= 0 ? x >> y : wrap(std::int64_t{x} * (std::int64_t{1} << -y));
            break;
        }
      }
    });
  }

  std::vector<std::int32_t> acc(std::uint32_t element) const override {
    auto begin = acc_.begin() + std::int64_t{element} * c_.lanes();
    return {begin, begin + c_.lanes()};
  }
  std::uint32_t uop_word(std::uint32_t index) const override { return uop_.at(index); }
  std::span<const std::int8_t> inp() const override { return inp_; }
  std::span<const std::int8_t> wgt() const override { return wgt_; }
  std::span<const std::int32_t> acc_lanes() const override { return acc_; }
  std::span<const std::uint32_t> uop() const override { return uop_; }

 private:
  static std::int32_t wrap(std::int64_t v) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(v)));
  }
  std::int32_t& lane(std::int64_t element, int l) {
    return acc_[static_cast<std::size_t>(element * c_.lanes() + l)];
  }

  void bounds(const Insn& n, MemType mem, std::int64_t first, std::int64_t count) const {
    if (first + count > c_.depth(mem))
      fault_sram(n, to_string(mem), first, first + count - 1, c_.depth(mem));
  }

  /// The loop nest: outer, inner, micro-operations.
  template <typename F>
  void each(const Insn& n, F&& f) {
    if (n.uop_runs() > 0 && n.uop_end > c_.depth(MemType::uop))
      fault_sram(n, "uop", n.uop_begin, std::int64_t{n.uop_end} - 1, c_.depth(MemType::uop));
    for (std::int64_t y = 0; y < n.iter_out; ++y) {
      for (std::int64_t x = 0; x < n.iter_in; ++x) {
        for (std::uint32_t u = n.uop_begin; u < n.uop_end; ++u) {
          Uop uop = isa_.decode_uop(uop_[u]);
          f(uop.dst + y * n.dst_out + x * n.dst_in, uop.src + y * n.src_out + x * n.src_in,
            uop.wgt + y * n.wgt_out + x * n.wgt_in);
        }
      }
    }
  }

  void zero(MemType mem, std::int64_t& at, std::int64_t count) {
    static const std::byte nothing[4096] = {};
    for (std::int64_t i = 0; i < count; ++i, ++at) element(mem, at, nothing);
  }

  void element(MemType mem, std::int64_t at, const std::byte* from) {
    auto bytes = static_cast<std::size_t>(c_.elem_bytes(mem));
    auto offset = static_cast<std::size_t>(at) * bytes;
    switch (mem) {
      case MemType::inp: std::memcpy(inp_.data() + offset, from, bytes); break;
      case MemType::wgt: std::memcpy(wgt_.data() + offset, from, bytes); break;
      case MemType::uop: std::memcpy(&uop_[static_cast<std::size_t>(at)], from, bytes); break;
      case MemType::acc: std::memcpy(acc_.data() + at * c_.lanes(), from, bytes); break;
      case MemType::acc8:
        for (int l = 0; l < c_.lanes(); ++l) lane(at, l) = static_cast<std::int8_t>(from[l]);
        break;
      case MemType::out: break;
    }
  }

  const Config& c_;
  std::vector<std::int8_t> inp_, wgt_;
  std::vector<std::int32_t> acc_;
  std::vector<std::uint32_t> uop_;
};

}  // namespace

std::unique_ptr<LiteralEngine> make_oracle(const Isa& isa) { return std::make_unique<Oracle>(isa); }

}  // namespace weft::vta
