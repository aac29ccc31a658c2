// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/program.h"

#include <cstring>

namespace weft::vta {

namespace {

constexpr std::string_view kMagic = "WVTA";
constexpr std::uint32_t kVersion = 2;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

[[noreturn]] void damaged(std::string what) {
  throw Error(ErrorKind::emit, "vta.binary.damaged", cat("the binary is no VTA program: ", what));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value;
    if (sizeof(T) > bytes_.size() - at_) damaged(cat("it ends at byte ", bytes_.size()));
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string_view text(std::size_t n) {
    if (n > bytes_.size() - at_) damaged(cat("it ends at byte ", bytes_.size()));
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace

runtime::Binary to_binary(const Program& program, std::string target) {
  Isa isa(program.config);
  runtime::Binary out;
  out.target = std::move(target);
  out.format = "vta";
  out.source = listing(program);
  out.metadata = Json::object();
  out.metadata["config"] = program.config.to_json();
  std::string& b = out.bytes;
  b.append(kMagic);
  put(b, kVersion);
  std::string config = program.config.to_json().dump();
  put(b, static_cast<std::uint32_t>(config.size()));
  b += config;
  put(b, static_cast<std::uint32_t>(program.uops.size()));
  put(b, static_cast<std::uint32_t>(program.kernels.size()));
  b.append(reinterpret_cast<const char*>(program.uops.data()), program.uops.size() * 4);
  for (const Kernel& kernel : program.kernels) {
    out.kernels.push_back(kernel.signature);
    put(b, static_cast<std::uint32_t>(kernel.stream.insns.size()));
    for (std::size_t i = 0; i < kernel.stream.insns.size(); ++i) {
      isa::Word word = isa.encode(kernel.stream.insns[i]);
      put(b, word.lo);
      put(b, word.hi);
    }
    b.append(reinterpret_cast<const char*>(kernel.stream.base.data()),
             kernel.stream.base.size() * 2);
    std::string host;
    if (!kernel.host.empty()) {
      Json copies = Json::array();
      for (const HostCopy& copy : kernel.host) copies.push_back(to_json(copy));
      host = copies.dump();
    }
    put(b, static_cast<std::uint32_t>(host.size()));
    b += host;
  }
  return out;
}

Program from_binary(const runtime::Binary& binary) {
  Reader in(binary.bytes);
  if (in.left() < 4 || in.text(4) != kMagic) damaged("the magic number is missing");
  if (auto version = in.get<std::uint32_t>(); version != kVersion) {
    throw Error(ErrorKind::emit, "vta.binary.version",
                cat("the program has version ", version, ", this build reads ", kVersion));
  }
  Program out;
  out.config = Config::parse(in.text(in.get<std::uint32_t>()), "<binary>");
  Isa isa(out.config);
  std::size_t uops = in.get<std::uint32_t>(), kernels = in.get<std::uint32_t>();
  if (uops > in.left() / 4) damaged("the micro-operations are cut off");
  out.uops.resize(uops);
  std::memcpy(out.uops.data(), in.text(uops * 4).data(), uops * 4);
  if (kernels != binary.kernels.size())
    damaged(cat("it has ", kernels, " kernels, but ", binary.kernels.size(), " signatures"));
  for (std::size_t k = 0; k < kernels; ++k) {
    Kernel kernel{binary.kernels[k], {}, {}};
    std::size_t n = in.get<std::uint32_t>();
    if (n > in.left() / 18) damaged("the instructions are cut off");
    kernel.stream.insns.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      isa::Word word;
      word.lo = in.get<std::uint64_t>(), word.hi = in.get<std::uint64_t>();
      try {
        kernel.stream.insns.push_back(isa.decode(word));
      } catch (const Error& error) {
        damaged(cat("instruction ", i, " of \"", kernel.signature.name, "\": ", error.message()));
      }
    }
    kernel.stream.base.resize(n);
    std::memcpy(kernel.stream.base.data(), in.text(n * 2).data(), n * 2);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint16_t base = kernel.stream.base[i];
      if (base < kUopArena && base >= kernel.signature.params.size())
        damaged(cat("instruction ", i, " refers to parameter ", base));
    }
    if (std::size_t bytes = in.get<std::uint32_t>()) {
      if (n) damaged(cat("\"", kernel.signature.name, "\" is for the host and for the machine"));
      Json copies = Json::parse(in.text(bytes));
      for (const Json& copy : copies.as_array())
        kernel.host.push_back(host_copy_from_json(copy, kernel.signature.params.size()));
    }
    out.kernels.push_back(std::move(kernel));
  }
  if (in.left()) damaged(cat(in.left(), " bytes follow the program"));
  return out;
}

std::string listing(const Program& program, unsigned parts) {
  Isa isa(program.config);
  std::string out = cat("; vta ", program.config.model(), "\n");
  for (const Kernel& kernel : program.kernels) {
    out += cat("; kernel ", kernel.signature.name, "(");
    for (std::size_t i = 0; i < kernel.signature.params.size(); ++i) {
      out += cat(i ? ", " : "", kernel.signature.params[i].name, ": ",
                 to_string(kernel.signature.params[i].dtype));
    }
    out += kernel.host.empty() ? ")\n" : ")  on the host\n";
    for (const HostCopy& copy : kernel.host) out += to_c(copy, ";   ");
    // Where each micro-operation in on-chip memory came from.
    std::vector<std::uint32_t> resident(
        static_cast<std::size_t>(program.config.depth(MemType::uop)), 0);
    for (std::size_t i = 0; i < kernel.stream.insns.size(); ++i) {
      const Insn& n = kernel.stream.insns[i];
      std::uint16_t base = kernel.stream.base[i];
      if (n.op == Opcode::load && n.mem == MemType::uop && base == kUopArena) {
        for (std::uint32_t j = 0;
             j < n.x_size && n.sram + j < resident.size() && n.dram + j < program.uops.size();
             ++j) {
          resident[n.sram + j] = program.uops[n.dram + j];
        }
      }
      if (parts & 2) {
        std::string text = isa.print(n);
        if (!(parts & 8) && text.ends_with(" pop=-,- push=-,-")) text.resize(text.size() - 17);
        out += cat("%", i, "\t", to_string(n.stage()), "\t", text);
        if (n.is_nop()) {
          out += "\t; tokens only";
        } else if (n.is_dma()) {
          out += cat("\t; ", base == kUopArena   ? "micro-operations"
                             : base == kAbsolute ? "absolute"
                                                 : kernel.signature.params[base].name);
        }
        out += '\n';
      }
      if ((parts & 4) && (n.op == Opcode::gemm || n.op == Opcode::alu)) {
        for (std::uint32_t u = n.uop_begin; u < n.uop_end && u < resident.size(); ++u) {
          out +=
              cat("\t\t;   uop ", u, ": ", isa.print(isa.decode_uop(resident[u])).substr(4), "\n");
          if (u - n.uop_begin == 15 && n.uop_end - u > 2) {
            out += cat("\t\t;   ... ", n.uop_end - u - 1, " more\n");
            break;
          }
        }
      }
    }
  }
  return out;
}

}  // namespace weft::vta
