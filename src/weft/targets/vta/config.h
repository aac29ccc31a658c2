// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine's parameters as read from a vta_config.json (upstream's keys, log2 values) at run
// time, with everything that follows from them. A Config that exists is legal: make() and parse()
// check every rule, so that encoders and engines need not.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/json.h"

namespace weft::vta {

enum class MemType : std::uint8_t { uop = 0, wgt = 1, inp = 2, acc = 3, out = 4, acc8 = 5 };
std::string_view to_string(MemType type);

/// The values of the file; log2 of bits, elements or bytes.
struct ConfigValues {
  std::string target = "sim";
  std::string hw_ver = "0.0.2";
  int log_inp_width = 3, log_wgt_width = 3, log_acc_width = 5;
  int log_batch = 0, log_block = 4;
  int log_uop_buff = 15, log_inp_buff = 15, log_wgt_buff = 18, log_acc_buff = 17;
  bool operator==(const ConfigValues&) const = default;
};

/// What the board gives; chosen by TARGET (sim and tsim take pynq's).
struct Board {
  std::string name, device;
  double clock_hz = 0;
  int axi_bits = 64;
  std::array<std::uint64_t, 4> registers{};  // fetch, load, compute, store
  std::string host_triple;                   // empty: no host toolchain is defined for the board
};

class Config {
 public:
  /// The sample "sim".
  Config();
  /// Throws Error(value, "vta.config.*") naming the rule, the values and what would fit.
  static Config make(ConfigValues values);
  /// vta_config.json text. Throws Error(parse, "json.parse") or Error(value, "vta.config.*").
  static Config parse(std::string_view json, std::string_view file = "vta_config.json");
  static Config load(const std::string& path);
  /// "pynq" "ultra96" "de10" "sim" "4x8x8" "1x32x32"; throws Error(value, "vta.config.sample").
  static Config sample(std::string_view name);
  static std::vector<std::string> samples();

  const ConfigValues& values() const { return values_; }
  Json to_json() const;
  const Board& board() const { return board_; }
  /// "1x16_i8w8a32_15_15_18_17": what bitstreams and tuning records are keyed by.
  std::string key() const;
  std::string model() const { return values_.target + "_" + key(); }
  /// Equal architecture, whatever the board.
  bool same_machine(const Config& other) const { return key() == other.key(); }

  int batch() const { return 1 << values_.log_batch; }
  int block_in() const { return 1 << values_.log_block; }
  int block_out() const { return 1 << values_.log_block; }
  int inp_width() const { return 1 << values_.log_inp_width; }
  int wgt_width() const { return 1 << values_.log_wgt_width; }
  int acc_width() const { return 1 << values_.log_acc_width; }
  int out_width() const { return inp_width(); }
  /// Lanes of one accumulator element.
  int lanes() const { return batch() * block_out(); }
  /// Bytes of one element as it lies in DRAM.
  std::int64_t elem_bytes(MemType type) const;
  /// log2 of the number of elements of a memory; acc8 and out share acc's.
  int log_depth(MemType type) const;
  std::int64_t depth(MemType type) const { return std::int64_t{1} << log_depth(type); }
  std::int64_t buffer_bytes(MemType type) const;
  int out_buff_log() const {
    return values_.log_acc_buff + values_.log_inp_width - values_.log_acc_width;
  }
  /// Multiply-accumulates of one micro-operation.
  std::int64_t macs_per_uop() const { return std::int64_t{batch()} * block_in() * block_out(); }
  double peak_gops() const { return 2e-9 * static_cast<double>(macs_per_uop()) * board_.clock_hz; }
  std::string inp_dtype() const { return cat("int", inp_width()); }
  std::string wgt_dtype() const { return cat("int", wgt_width()); }
  std::string acc_dtype() const { return cat("int", acc_width()); }
  std::string out_dtype() const { return cat("int", out_width()); }

  /// Why these values make no machine; nothing: they do.
  static Verdict check(const ConfigValues& values);

 private:
  explicit Config(ConfigValues values);
  ConfigValues values_;
  Board board_;
};

/// The text that the seed prints: three lines of dimensions, three of throughput.
std::string describe(const Config& config);

}  // namespace weft::vta
