// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/abi.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "weft/base/error.h"

namespace weft::qpu::hw {

namespace {
unsigned number(std::string_view text, std::string_view all) {
  unsigned value = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size()) {
    throw Error(ErrorKind::emit, "qpu.binary.uniform", cat("\"", all, "\" describes no uniform"))
        .note("legal: me, count, spill, p<i>, s<i>, f<i> and numbers");
  }
  return value;
}

Uniform parse_uniform(std::string_view text) {
  if (text == "me") return {UniformKind::me};
  if (text == "count") return {UniformKind::count};
  if (text == "spill") return {UniformKind::spill};
  if (text.starts_with("p")) return {UniformKind::pointer, number(text.substr(1), text)};
  if (text.starts_with("s")) return {UniformKind::integer, number(text.substr(1), text)};
  if (text.starts_with("f")) return {UniformKind::real, number(text.substr(1), text)};
  return {UniformKind::constant, number(text, text)};
}
}  // namespace

std::vector<std::uint64_t> words_of(const runtime::Binary& binary) {
  if (binary.bytes.size() % 8) {
    throw Error(ErrorKind::emit, "qpu.binary.size",
                cat("the binary has ", binary.bytes.size(), " bytes, which is no multiple of 8"));
  }
  std::vector<std::uint64_t> words(binary.bytes.size() / 8);
  if (!words.empty()) std::memcpy(words.data(), binary.bytes.data(), binary.bytes.size());
  return words;
}

std::vector<Instr> decode_words(std::span<const Code> words) {
  if (words.empty())
    throw Error(ErrorKind::emit, "qpu.binary.empty", "the binary holds no instruction");
  std::vector<Instr> out;
  out.reserve(words.size());
  for (std::size_t n = 0; n < words.size(); ++n) {
    try {
      out.push_back(decode(words[n]));
    } catch (const Error& e) {
      throw Error(ErrorKind::emit, "qpu.binary.word",
                  cat("word ", n, " of the binary, ", hex(words[n], 16), ", is no instruction"))
          .note(e.message());
    }
  }
  return out;
}

std::vector<runtime::Binary> kernels_of(const runtime::Binary& binary) {
  const Json* list = binary.metadata.is_object() ? binary.metadata.find("programs") : nullptr;
  if (!list) return {binary};
  std::vector<runtime::Binary> out;
  for (const Json& item : list->as_array()) {
    auto first = static_cast<std::uint64_t>(item.at("first").as_int()) * 8,
         size = static_cast<std::uint64_t>(item.at("words").as_int()) * 8;
    if (first > binary.bytes.size() || size > binary.bytes.size() - first)
      throw Error(ErrorKind::emit, "qpu.binary.size",
                  cat("a kernel of ", size, " bytes at ", first, " lies outside the binary of ",
                      binary.bytes.size(), " bytes"));
    runtime::Binary& one = out.emplace_back();
    one.target = binary.target;
    one.format = binary.format;
    one.bytes = binary.bytes.substr(first, size);
    for (const runtime::DebugEntry& d : binary.debug) {
      if (d.pc < first || d.pc >= first + size) continue;
      one.debug.push_back(d);
      one.debug.back().pc -= first;
    }
    one.metadata = item;
    if (out.size() <= binary.kernels.size()) one.kernels = {binary.kernels[out.size() - 1]};
  }
  if (out.empty())
    throw Error(ErrorKind::emit, "qpu.binary.size",
                cat("the binary of ", binary.bytes.size(), " bytes lists no kernel"));
  return out;
}

void check_kernel(std::size_t kernel, std::size_t count) {
  if (kernel < count) return;
  throw Error(ErrorKind::value, "qpu.launch.kernel",
              cat("the binary has no kernel number ", kernel))
      .note(cat("legal: 0 to ", count - 1));
}

Abi parse_abi(const runtime::Binary& binary) {
  Abi out;
  if (!binary.metadata.is_object()) return out;
  if (const Json* list = binary.metadata.find("uniforms")) {
    for (const Json& item : list->as_array())
      out.uniforms.push_back(parse_uniform(item.as_string()));
  }
  if (const Json* spill = binary.metadata.find("spill_bytes"))
    out.spill_bytes = static_cast<std::uint64_t>(spill->as_int());
  return out;
}

std::vector<std::uint32_t> fill_uniforms(const Abi& abi, std::span<const std::uint64_t> pointers,
                                         std::span<const std::int64_t> scalars, std::int64_t active,
                                         int limit) {
  if (active < 1 || active > limit) {
    throw Error(ErrorKind::value, "qpu.launch.qpus", cat("a launch on ", active, " QPUs"))
        .note(cat("legal: 1 to ", limit));
  }
  std::vector<std::uint32_t> words;
  for (std::int64_t q = 0; q < active; ++q) {
    for (const Uniform& u : abi.uniforms) {
      std::uint32_t value = u.value;
      switch (u.kind) {
        case UniformKind::me: value = static_cast<std::uint32_t>(q); break;
        case UniformKind::count: value = static_cast<std::uint32_t>(active); break;
        case UniformKind::spill: value = 0; break;  // patched below
        case UniformKind::constant: break;
        case UniformKind::pointer: {
          if (u.value >= pointers.size())
            throw Error(ErrorKind::value, "qpu.launch.unbound",
                        cat("pointer parameter ", u.value, " of the kernel is not bound"));
          std::uint64_t p = pointers[u.value];
          if (p == 0)
            throw Error(ErrorKind::value, "qpu.launch.null",
                        cat("pointer argument ", u.value, " is null"));
          if (p & 3)
            throw Error(ErrorKind::value, "qpu.launch.align",
                        cat("pointer argument ", u.value, ", ", hex(p), ", is no multiple of 4"));
          if (p > 0xffffffffu)
            throw Error(ErrorKind::value, "qpu.launch.range",
                        cat("pointer argument ", u.value, ", ", hex(p), ", does not fit 32 bits"));
          value = static_cast<std::uint32_t>(p);
          break;
        }
        case UniformKind::integer:
        case UniformKind::real: {
          if (u.value >= scalars.size())
            throw Error(ErrorKind::value, "qpu.launch.unbound",
                        cat("scalar parameter ", u.value, " of the kernel is not bound"));
          std::int64_t s = scalars[u.value];
          if (u.kind == UniformKind::real) {
            value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(s)));
          } else {
            if (s < -(1ll << 31) || s > 0xffffffffll)
              throw Error(ErrorKind::value, "qpu.launch.range",
                          cat("scalar argument ", u.value, ", ", s, ", does not fit 32 bits"));
            value = static_cast<std::uint32_t>(s);
          }
          break;
        }
      }
      words.push_back(value);
    }
  }
  return words;
}

}  // namespace weft::qpu::hw
