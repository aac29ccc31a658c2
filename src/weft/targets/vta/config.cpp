// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/config.h"

#include <algorithm>

#include "weft/base/file.h"

namespace weft::vta {

namespace {

struct Key {
  const char* name;
  int ConfigValues::*member;
};
constexpr Key kKeys[] = {
    {"LOG_INP_WIDTH", &ConfigValues::log_inp_width},
    {"LOG_WGT_WIDTH", &ConfigValues::log_wgt_width},
    {"LOG_ACC_WIDTH", &ConfigValues::log_acc_width},
    {"LOG_BATCH", &ConfigValues::log_batch},
    {"LOG_BLOCK", &ConfigValues::log_block},
    {"LOG_UOP_BUFF_SIZE", &ConfigValues::log_uop_buff},
    {"LOG_INP_BUFF_SIZE", &ConfigValues::log_inp_buff},
    {"LOG_WGT_BUFF_SIZE", &ConfigValues::log_wgt_buff},
    {"LOG_ACC_BUFF_SIZE", &ConfigValues::log_acc_buff},
};

const Board* find_board(std::string_view target) {
  static const Board pynq{"pynq",
                          "xc7z020",
                          100e6,
                          64,
                          {0x43C00000, 0x43C01000, 0x43C02000, 0x43C03000},
                          "armv7-none-linux-gnueabihf"};
  static const Board ultra96{
      "ultra96",          "xczu3eg", 333e6, 128, {0xA0000000, 0xA0001000, 0xA0002000, 0xA0003000},
      "aarch64-linux-gnu"};
  static const Board zcu104{
      "zcu104", "xczu7ev", 333e6, 128, {0xA0000000, 0xA0001000, 0xA0002000, 0xA0003000}, ""};
  static const Board de10{"de10nano",
                          "5CSEBA6U23I7",
                          100e6,
                          64,
                          {0xFF220000, 0xFF221000, 0xFF222000, 0xFF223000},
                          "armv7-none-linux-gnueabihf"};
  static const std::pair<std::string_view, const Board*> table[] = {
      {"pynq", &pynq},       {"sim", &pynq},      {"tsim", &pynq},     {"intelfocl", &pynq},
      {"ultra96", &ultra96}, {"zcu104", &zcu104}, {"de10nano", &de10}, {"de10", &de10}};
  for (const auto& [name, board] : table) {
    if (name == target) return board;
  }
  return nullptr;
}

int log_depth_of(const ConfigValues& v, MemType type) {
  switch (type) {
    case MemType::uop: return v.log_uop_buff - 5 + 3;
    case MemType::wgt: return v.log_wgt_buff - 2 * v.log_block - v.log_wgt_width + 3;
    case MemType::inp: return v.log_inp_buff - v.log_batch - v.log_block - v.log_inp_width + 3;
    default: return v.log_acc_buff - v.log_batch - v.log_block - v.log_acc_width + 3;
  }
}

Refusal refuse(const char* slug, std::string message) {
  Refusal refusal;
  refusal.code = cat("vta.config.", slug);
  refusal.message = std::move(message);
  return refusal;
}

}  // namespace

std::string_view to_string(MemType type) {
  static constexpr std::string_view names[] = {"uop", "wgt", "inp", "acc", "out", "acc8"};
  return names[static_cast<std::size_t>(type)];
}

Verdict Config::check(const ConfigValues& v) {
  if (!find_board(v.target)) {
    std::vector<std::string> known{"pynq", "ultra96", "zcu104", "de10nano",
                                   "de10", "sim",     "tsim",   "intelfocl"};
    Refusal r = refuse("target", cat("TARGET \"", v.target, "\" is no known board"));
    r.note(cat("known: ", join(known))).repair(did_you_mean(v.target, known));
    return r;
  }
  for (const Key& key : kKeys) {
    int value = v.*key.member;
    if (value < 0 || value > 30) {
      return refuse("range", cat(key.name, " is ", value)).note("legal: 0 to 30 (values are log2)");
    }
  }
  if (v.log_inp_width != 3 || v.log_wgt_width != 3 || v.log_acc_width != 5) {
    return refuse("width", cat("operands of ", 1 << v.log_inp_width, " x ", 1 << v.log_wgt_width,
                               " bits into ", 1 << v.log_acc_width, " bits are not supported"))
        .note("legal: LOG_INP_WIDTH 3, LOG_WGT_WIDTH 3, LOG_ACC_WIDTH 5 (int8 x int8 into int32)");
  }
  if (v.log_block < 2 || v.log_block > 6) {
    return refuse("block", cat("LOG_BLOCK is ", v.log_block))
        .note("legal: 2 to 6 (blocks of 4 to 64)");
  }
  if (v.log_batch > 6)
    return refuse("batch", cat("LOG_BATCH is ", v.log_batch)).note("legal: 0 to 6");
  struct Row {
    MemType type;
    const char* key;
    int value;
  };
  const Row rows[] = {{MemType::uop, "LOG_UOP_BUFF_SIZE", v.log_uop_buff},
                      {MemType::inp, "LOG_INP_BUFF_SIZE", v.log_inp_buff},
                      {MemType::wgt, "LOG_WGT_BUFF_SIZE", v.log_wgt_buff},
                      {MemType::acc, "LOG_ACC_BUFF_SIZE", v.log_acc_buff}};
  for (const Row& row : rows) {
    int log_elem = row.value - log_depth_of(v, row.type);
    if (log_depth_of(v, row.type) < 1) {
      return refuse("buffer", cat(row.key, " ", row.value, " holds less than two elements of ",
                                  1 << log_elem, " bytes"))
          .note(cat("legal: at least ", log_elem + 1));
    }
    if (log_elem > 12) {
      return refuse("element",
                    cat("an element of ", to_string(row.type), " has ", 1 << log_elem, " bytes"))
          .note("legal: at most 4096, one page, so that addresses count whole elements");
    }
  }
  int u = log_depth_of(v, MemType::uop), i = log_depth_of(v, MemType::inp);
  int w = log_depth_of(v, MemType::wgt), a = log_depth_of(v, MemType::acc);
  if (u > 13) {
    return refuse("uop_depth", cat("LOG_UOP_BUFF_SIZE ", v.log_uop_buff, " needs ", 2 * u + 1,
                                   " bits for the range of micro-operations"))
        .note(
            "legal: at most 15 (8192 micro-operations), because both loop extents share the word");
  }
  if (a > 11) {
    return refuse("acc_depth", cat("an accumulator of ", 1 << a, " elements needs four factors of ",
                                   a, " bits in ALU"))
        .note(cat("legal: LOG_ACC_BUFF_SIZE at most ", v.log_acc_buff - (a - 11),
                  " here (2048 elements)"));
  }
  if (a + std::max(a, i) + w > 32) {
    return refuse("uop_width",
                  cat("a micro-operation needs ", a, " + ", std::max(a, i), " + ", w, " bits"))
        .note("legal: at most 32 for the log2 depths of acc, max(acc, inp) and wgt together");
  }
  if (2 * (a + i + w) > 64) {
    return refuse("gemm_width", cat("GEMM's factors need 2 x (", a, " + ", i, " + ", w, ") bits"))
        .note("legal: at most 64");
  }
  return std::nullopt;
}

Config::Config() : Config(ConfigValues{}) {}

Config::Config(ConfigValues values)
    : values_(std::move(values)), board_(*find_board(values_.target)) {}

Config Config::make(ConfigValues values) {
  if (Verdict refusal = check(values)) throw Error(ErrorKind::value, std::move(*refusal));
  return Config(std::move(values));
}

Config Config::parse(std::string_view text, std::string_view file) {
  Json json = Json::parse(text, file);
  if (!json.is_object())
    throw Error(ErrorKind::value, "vta.config.object", cat(file, " holds no object"));
  std::vector<std::string> known{"TARGET", "HW_VER"};
  for (const Key& key : kKeys) known.emplace_back(key.name);
  // Redundant keys of older files: accepted when they agree.
  const std::vector<std::string> derived{"LOG_BLOCK_IN", "LOG_BLOCK_OUT", "LOG_OUT_WIDTH",
                                         "LOG_OUT_BUFF_SIZE"};
  auto integer = [&](const std::string& name, const Json& value) {
    if (!value.is_int()) {
      throw Error(ErrorKind::value, "vta.config.type", cat(name, " is ", value.dump()))
          .note("legal: an integer, the log2 of the size");
    }
    std::int64_t number = value.as_int();
    if (number < 0 || number > 30) {
      throw Error(ErrorKind::value, "vta.config.range", cat(name, " is ", number))
          .note("legal: 0 to 30 (values are log2)");
    }
    return static_cast<int>(number);
  };
  ConfigValues values;
  std::vector<std::string> seen;
  for (const auto& [name, value] : json.as_object()) {
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw Error(ErrorKind::value, "vta.config.key", cat("key \"", name, "\" appears twice"));
    }
    seen.push_back(name);
    if (name == "TARGET" || name == "HW_VER") {
      if (!value.is_string())
        throw Error(ErrorKind::value, "vta.config.type", cat(name, " is ", value.dump()))
            .note("legal: a string");
      (name == "TARGET" ? values.target : values.hw_ver) = value.as_string();
    } else if (std::find(derived.begin(), derived.end(), name) == derived.end()) {
      auto key = std::find_if(std::begin(kKeys), std::end(kKeys),
                              [&](const Key& k) { return name == k.name; });
      if (key == std::end(kKeys)) {
        throw Error(ErrorKind::value, "vta.config.key", cat("key \"", name, "\" is unknown"))
            .note(cat("known: ", join(known)))
            .help(did_you_mean(name, known));
      }
      values.*key->member = integer(name, value);
    }
  }
  for (const std::string& name : known) {
    if (name != "HW_VER" && std::find(seen.begin(), seen.end(), name) == seen.end()) {
      throw Error(ErrorKind::value, "vta.config.missing",
                  cat("key \"", name, "\" is missing from ", file))
          .note(cat("needed: ", join(known)));
    }
  }
  Config config = make(values);
  const int expected[] = {values.log_block, values.log_block, values.log_inp_width,
                          config.out_buff_log()};
  for (std::size_t i = 0; i < derived.size(); ++i) {
    const Json* value = json.find(derived[i]);
    if (value && integer(derived[i], *value) != expected[i]) {
      throw Error(
          ErrorKind::value, "vta.config.contradiction",
          cat(derived[i], " is ", value->dump(), ", but the other keys make it ", expected[i]))
          .help(cat("remove ", derived[i], "; it is derived"));
    }
  }
  return config;
}

Config Config::load(const std::string& path) { return parse(read_file(path), path); }

std::vector<std::string> Config::samples() {
  return {"pynq", "ultra96", "de10", "sim", "4x8x8", "1x32x32"};
}

Config Config::sample(std::string_view name) {
  ConfigValues v;
  if (name == "pynq" || name == "ultra96" || name == "sim") {
    v.target = std::string(name);
  } else if (name == "de10") {
    v.target = "de10nano";
  } else if (name == "4x8x8") {
    v.log_batch = 2, v.log_block = 3, v.log_inp_buff = 16, v.log_wgt_buff = 16, v.log_acc_buff = 18;
  } else if (name == "1x32x32") {
    v.log_block = 5, v.log_inp_buff = 16, v.log_wgt_buff = 20, v.log_acc_buff = 18;
  } else {
    throw Error(ErrorKind::value, "vta.config.sample",
                cat("\"", name, "\" is no sample configuration"))
        .note(cat("samples: ", join(samples())))
        .help(did_you_mean(name, samples()));
  }
  return make(v);
}

Json Config::to_json() const {
  Json json = Json::object();
  json["TARGET"] = values_.target;
  json["HW_VER"] = values_.hw_ver;
  for (const Key& key : kKeys) json[key.name] = values_.*key.member;
  return json;
}

std::string Config::key() const {
  return cat(batch(), "x", block_in(), "_i", inp_width(), "w", wgt_width(), "a", acc_width(), "_",
             values_.log_uop_buff, "_", values_.log_inp_buff, "_", values_.log_wgt_buff, "_",
             values_.log_acc_buff);
}

std::int64_t Config::elem_bytes(MemType type) const {
  switch (type) {
    case MemType::uop: return 4;
    case MemType::wgt: return std::int64_t{block_out()} * block_in() * wgt_width() / 8;
    case MemType::inp: return std::int64_t{batch()} * block_in() * inp_width() / 8;
    case MemType::acc: return std::int64_t{lanes()} * acc_width() / 8;
    case MemType::out: return std::int64_t{lanes()} * out_width() / 8;
    case MemType::acc8: return std::int64_t{lanes()} * acc_width() / 32;
  }
  return 0;
}

int Config::log_depth(MemType type) const { return log_depth_of(values_, type); }

std::int64_t Config::buffer_bytes(MemType type) const { return depth(type) * elem_bytes(type); }

std::string describe(const Config& c) {
  return cat("Weights are ", c.block_out(), " by ", c.block_in(), ", of type ", c.wgt_dtype(),
             "\nInput activations are ", c.batch(), " by ", c.block_in(), ", of type ",
             c.inp_dtype(), "\nOutput activations are ", c.batch(), " by ", c.block_out(),
             ", of type ", c.acc_dtype(), "\nWeight buffer requires ",
             c.block_out() * c.block_in() * c.wgt_width(),
             " bits per cycle of read xput\nInput buffer requires ",
             c.batch() * c.block_in() * c.inp_width(),
             " bits per cycle of read xput\nRegister file requires ",
             c.batch() * c.block_out() * c.acc_width(), " bits per cycle of read & write xput\n");
}

}  // namespace weft::vta
