// SPDX-License-Identifier: Apache-2.0
// A loader for ELF64 relocatable objects of the host (x86-64 and AArch64, small code model, PIC).
// Layout: [text and read-only | stubs and GOT | writable], one mapping; text becomes read+execute.

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/vector_math.h"
#include "weft/jit/jit.h"

// Conversions of libgcc or compiler-rt that LLVM may call. The compiler that knows the type has
// them in its archive, which comes before the shared libgcc: that of version 12 would be asked for.
// On aarch64 they are instructions, and libgcc has none.
#if defined(__FLT16_MAX__) && !defined(__aarch64__)
#define WEFT_WEAK
#else
#define WEFT_WEAK __attribute__((weak))
#endif
extern "C" {
float __extendhfsf2(std::uint16_t) WEFT_WEAK;
std::uint16_t __truncsfhf2(float) WEFT_WEAK;
}

namespace weft::jit {

struct Code::Image {
  std::byte* base = nullptr;
  std::size_t size = 0;
  std::map<std::string, void*, std::less<>> symbols;
  ~Image() {
    if (base) ::munmap(base, size);
  }
};

Code::Code() : image_(std::make_unique<Image>()) {}
Code::~Code() = default;
std::size_t Code::size_bytes() const { return image_->size; }

void* Code::find(std::string_view symbol) const {
  auto found = image_->symbols.find(symbol);
  return found == image_->symbols.end() ? nullptr : found->second;
}

namespace {

void* known_symbol(std::string_view name) {
  struct Known {
    std::string_view name;
    void* address;
  };
#define WEFT_F(f, type) \
  { #f, reinterpret_cast < void*>(static_cast <type*>(&::f)) }
  using F1 = float(float);
  using F2 = float(float, float);
  using F3 = float(float, float, float);
  using D1 = double(double);
  using D2 = double(double, double);
  using D3 = double(double, double, double);
  using FI = float(float, int);
  using DI = double(double, int);
  static const Known known[] = {
      {"memcpy", reinterpret_cast<void*>(&::memcpy)},
      {"memmove", reinterpret_cast<void*>(&::memmove)},
      {"memset", reinterpret_cast<void*>(&::memset)},
      WEFT_F(expf, F1),
      WEFT_F(exp2f, F1),
      WEFT_F(logf, F1),
      WEFT_F(log2f, F1),
      WEFT_F(log10f, F1),
      WEFT_F(log1pf, F1),
      WEFT_F(expm1f, F1),
      WEFT_F(sinf, F1),
      WEFT_F(cosf, F1),
      WEFT_F(tanf, F1),
      WEFT_F(asinf, F1),
      WEFT_F(acosf, F1),
      WEFT_F(atanf, F1),
      WEFT_F(sinhf, F1),
      WEFT_F(coshf, F1),
      WEFT_F(tanhf, F1),
      WEFT_F(asinhf, F1),
      WEFT_F(acoshf, F1),
      WEFT_F(atanhf, F1),
      WEFT_F(erff, F1),
      WEFT_F(floorf, F1),
      WEFT_F(ceilf, F1),
      WEFT_F(truncf, F1),
      WEFT_F(roundf, F1),
      WEFT_F(rintf, F1),
      WEFT_F(nearbyintf, F1),
      WEFT_F(sqrtf, F1),
      WEFT_F(powf, F2),
      WEFT_F(fmodf, F2),
      WEFT_F(atan2f, F2),
      WEFT_F(hypotf, F2),
      WEFT_F(copysignf, F2),
      WEFT_F(nextafterf, F2),
      WEFT_F(fmaf, F3),
      WEFT_F(fminf, F2),
      WEFT_F(fmaxf, F2),
      WEFT_F(ldexpf, FI),  // LLVM makes it of exp2 of a whole number
      WEFT_F(exp, D1),
      WEFT_F(exp2, D1),
      WEFT_F(log, D1),
      WEFT_F(log2, D1),
      WEFT_F(log10, D1),
      WEFT_F(log1p, D1),
      WEFT_F(expm1, D1),
      WEFT_F(sin, D1),
      WEFT_F(cos, D1),
      WEFT_F(tan, D1),
      WEFT_F(asin, D1),
      WEFT_F(acos, D1),
      WEFT_F(atan, D1),
      WEFT_F(sinh, D1),
      WEFT_F(cosh, D1),
      WEFT_F(tanh, D1),
      WEFT_F(asinh, D1),
      WEFT_F(acosh, D1),
      WEFT_F(atanh, D1),
      WEFT_F(erf, D1),
      WEFT_F(floor, D1),
      WEFT_F(ceil, D1),
      WEFT_F(trunc, D1),
      WEFT_F(round, D1),
      WEFT_F(rint, D1),
      WEFT_F(nearbyint, D1),
      WEFT_F(sqrt, D1),
      WEFT_F(pow, D2),
      WEFT_F(fmod, D2),
      WEFT_F(atan2, D2),
      WEFT_F(hypot, D2),
      WEFT_F(copysign, D2),
      WEFT_F(nextafter, D2),
      WEFT_F(fma, D3),
      WEFT_F(fmin, D2),
      WEFT_F(fmax, D2),
      WEFT_F(ldexp, DI),
      {"__extendhfsf2", reinterpret_cast<void*>(&__extendhfsf2)},
      {"__truncsfhf2", reinterpret_cast<void*>(&__truncsfhf2)},
  };
#undef WEFT_F
  for (const Known& entry : known) {
    if (entry.name == name) return entry.address;
  }
  return nullptr;
}

[[noreturn]] void bad_object(std::string why) {
  throw Error(ErrorKind::emit, "jit.load.format", cat("the object cannot be loaded: ", why));
}

/// Bounds-checked views into the object, which may come from a damaged cache file.
class Elf {
 public:
  explicit Elf(std::string_view data) : data_(data) {
    header_ = read<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_type != ET_REL) {
      bad_object("it is no ELF64 relocatable file");
    }
#if defined(__x86_64__)
    if (header_.e_machine != EM_X86_64) bad_object("it is for another processor");
#elif defined(__aarch64__)
    if (header_.e_machine != EM_AARCH64) bad_object("it is for another processor");
#endif
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      sections.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    }
  }
  template <typename T>
  T read(std::size_t at) const {
    if (at > data_.size() || sizeof(T) > data_.size() - at) bad_object("it is truncated");
    T out;
    std::memcpy(&out, data_.data() + at, sizeof(T));
    return out;
  }
  const char* bytes(std::size_t at, std::size_t n) const {
    if (at > data_.size() || n > data_.size() - at) bad_object("it is truncated");
    return data_.data() + at;
  }
  std::string text(const Elf64_Shdr& strings, std::size_t at) const {
    const char* begin = bytes(strings.sh_offset, strings.sh_size);
    if (at >= strings.sh_size) bad_object("a name lies outside its table");
    return std::string(begin + at, ::strnlen(begin + at, strings.sh_size - at));
  }
  std::vector<Elf64_Shdr> sections;

 private:
  std::string_view data_;
  Elf64_Ehdr header_;
};

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

void put32(std::byte* at, std::int64_t value, const char* what) {
  if (value != static_cast<std::int32_t>(value))
    bad_object(cat("a ", what, " relocation does not reach"));
  std::int32_t narrow = static_cast<std::int32_t>(value);
  std::memcpy(at, &narrow, 4);
}

#if defined(__aarch64__)
void patch_bits(std::byte* at, unsigned low, unsigned width, std::uint64_t value) {
  std::uint32_t word, mask = ((1u << width) - 1) << low;
  std::memcpy(&word, at, 4);
  word = (word & ~mask) | (static_cast<std::uint32_t>(value << low) & mask);
  std::memcpy(at, &word, 4);
}
#endif

}  // namespace

Ref<Code> load_object(std::string_view object,
                      const std::function<void*(std::string_view)>& resolve) {
  Elf elf(object);
  Ref<Code> code(new Code());
  Code::Image& image = *code->image_;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

  std::vector<std::size_t> place(elf.sections.size(), SIZE_MAX);
  std::size_t cursor = 0;
  auto lay_out = [&](bool writable) {
    for (std::size_t i = 0; i < elf.sections.size(); ++i) {
      const Elf64_Shdr& s = elf.sections[i];
      if (!(s.sh_flags & SHF_ALLOC) || bool(s.sh_flags & SHF_WRITE) != writable) continue;
      if (s.sh_addralign > 4096 || s.sh_size > (1u << 30)) bad_object("a section is too large");
      cursor = round_up(cursor, std::max<std::size_t>(s.sh_addralign, 1));
      place[i] = cursor;
      cursor += s.sh_size;
    }
  };
  lay_out(false);
  const Elf64_Shdr* symtab = nullptr;
  for (const Elf64_Shdr& s : elf.sections) {
    if (s.sh_type == SHT_SYMTAB) symtab = &s;
  }
  if (!symtab || symtab->sh_link >= elf.sections.size()) bad_object("it has no symbol table");
  std::size_t symbol_count = symtab->sh_size / sizeof(Elf64_Sym);
  constexpr std::size_t kStubBytes = 16;  // a jump through the GOT, then padding
  std::size_t stubs = round_up(cursor, 16);
  std::size_t got = stubs + symbol_count * kStubBytes;
  std::size_t text_end = round_up(got + symbol_count * 8, page);
  cursor = text_end;
  lay_out(true);
  image.size = round_up(std::max<std::size_t>(cursor, 1), page);
  void* mapped =
      ::mmap(nullptr, image.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error(ErrorKind::memory, "jit.load.memory",
                cat("no room for ", image.size, " bytes of code"));
  image.base = static_cast<std::byte*>(mapped);

  for (std::size_t i = 0; i < elf.sections.size(); ++i) {
    const Elf64_Shdr& s = elf.sections[i];
    if (place[i] == SIZE_MAX || s.sh_type == SHT_NOBITS || !s.sh_size) continue;
    std::memcpy(image.base + place[i], elf.bytes(s.sh_offset, s.sh_size), s.sh_size);
  }

  // Addresses of symbols; externals get a GOT slot and a stub.
  const Elf64_Shdr& names = elf.sections[symtab->sh_link];
  std::vector<std::byte*> address(symbol_count, nullptr);
  std::vector<bool> external(symbol_count, false);
  std::vector<std::string> missing;
  for (std::size_t i = 1; i < symbol_count; ++i) {
    auto symbol = elf.read<Elf64_Sym>(symtab->sh_offset + i * sizeof(Elf64_Sym));
    if (symbol.st_shndx == SHN_UNDEF) {
      std::string name = elf.text(names, symbol.st_name);
      void* found = resolve ? resolve(name) : nullptr;
      if (!found) found = known_symbol(name);
      if (!found) found = vector_function(name);
      if (!found && name != "_GLOBAL_OFFSET_TABLE_") missing.push_back(name);
      external[i] = true;
      address[i] = static_cast<std::byte*>(found);
    } else if (symbol.st_shndx < elf.sections.size() && place[symbol.st_shndx] != SIZE_MAX) {
      address[i] = image.base + place[symbol.st_shndx] + symbol.st_value;
      if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL)
        image.symbols[elf.text(names, symbol.st_name)] = address[i];
    }
    std::memcpy(image.base + got + i * 8, &address[i], 8);
  }
  if (!missing.empty()) {
    throw Error(ErrorKind::emit, "jit.load.symbol",
                cat("the object needs symbols that are not provided: ", join(missing)));
  }

  for (const Elf64_Shdr& s : elf.sections) {
    if (s.sh_type != SHT_RELA || s.sh_info >= place.size() || place[s.sh_info] == SIZE_MAX)
      continue;
    for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= s.sh_size; at += sizeof(Elf64_Rela)) {
      auto rela = elf.read<Elf64_Rela>(s.sh_offset + at);
      std::size_t index = ELF64_R_SYM(rela.r_info);
      if (index >= symbol_count || rela.r_offset + 8 > elf.sections[s.sh_info].sh_size + 4)
        bad_object("a relocation lies outside");
      std::byte* where = image.base + place[s.sh_info] + rela.r_offset;
      std::byte* got_slot = image.base + got + index * 8;
      std::byte* target = address[index];
#if defined(__x86_64__)
      auto stub = [&] {
        std::byte* entry = image.base + stubs + index * kStubBytes;  // jmp *[rip + got_slot]
        entry[0] = std::byte{0xff};
        entry[1] = std::byte{0x25};
        put32(entry + 2, got_slot - (entry + 6), "stub");
        return entry;
      };
      switch (ELF64_R_TYPE(rela.r_info)) {
        case R_X86_64_NONE: break;
        case R_X86_64_64: {
          std::byte* value = target + rela.r_addend;
          std::memcpy(where, &value, 8);
          break;
        }
        case R_X86_64_PC32:
        case R_X86_64_PLT32:
          put32(where, (external[index] ? stub() : target) + rela.r_addend - where, "PC32");
          break;
        case R_X86_64_PC64: {
          std::int64_t value = target + rela.r_addend - where;
          std::memcpy(where, &value, 8);
          break;
        }
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: put32(where, got_slot + rela.r_addend - where, "GOT"); break;
        default:
          bad_object(cat("relocation type ", static_cast<unsigned>(ELF64_R_TYPE(rela.r_info)),
                         " is not supported"));
      }
#elif defined(__aarch64__)
      auto page_of = [](const std::byte* p) {
        return reinterpret_cast<std::uint64_t>(p) & ~0xfffull;
      };
      auto low12 = [](const std::byte* p) { return reinterpret_cast<std::uint64_t>(p) & 0xfff; };
      auto adrp = [&](const std::byte* p) {
        std::int64_t pages = static_cast<std::int64_t>(page_of(p) - page_of(where)) >> 12;
        patch_bits(where, 29, 2, static_cast<std::uint64_t>(pages) & 3);
        patch_bits(where, 5, 19, static_cast<std::uint64_t>(pages >> 2));
      };
      std::byte* value = target + rela.r_addend;
      switch (ELF64_R_TYPE(rela.r_info)) {
        case R_AARCH64_NONE: break;
        case R_AARCH64_ABS64: std::memcpy(where, &value, 8); break;
        case R_AARCH64_PREL32: put32(where, value - where, "PREL32"); break;
        case R_AARCH64_ADR_PREL_PG_HI21: adrp(value); break;
        case R_AARCH64_ADD_ABS_LO12_NC:
        case R_AARCH64_LDST8_ABS_LO12_NC: patch_bits(where, 10, 12, low12(value)); break;
        case R_AARCH64_LDST16_ABS_LO12_NC: patch_bits(where, 10, 12, low12(value) >> 1); break;
        case R_AARCH64_LDST32_ABS_LO12_NC: patch_bits(where, 10, 12, low12(value) >> 2); break;
        case R_AARCH64_LDST64_ABS_LO12_NC: patch_bits(where, 10, 12, low12(value) >> 3); break;
        case R_AARCH64_LDST128_ABS_LO12_NC: patch_bits(where, 10, 12, low12(value) >> 4); break;
        case R_AARCH64_ADR_GOT_PAGE: adrp(got_slot); break;
        case R_AARCH64_LD64_GOT_LO12_NC: patch_bits(where, 10, 12, low12(got_slot) >> 3); break;
        case R_AARCH64_CALL26:
        case R_AARCH64_JUMP26: {
          std::byte* to = value;
          if (external[index]) {  // ldr x16, #8; br x16; .quad target
            to = image.base + stubs + index * kStubBytes;
            const std::uint32_t words[2] = {0x58000050u, 0xd61f0200u};
            std::memcpy(to, words, 8);
            std::memcpy(to + 8, &target, 8);
          }
          patch_bits(where, 0, 26, static_cast<std::uint64_t>((to - where) >> 2));
          break;
        }
        default:
          bad_object(cat("relocation type ", static_cast<unsigned>(ELF64_R_TYPE(rela.r_info)),
                         " is not supported"));
      }
#else
      bad_object("this processor has no loader");
#endif
    }
  }
  if (::mprotect(image.base, text_end, PROT_READ | PROT_EXEC) != 0)
    bad_object("the system refuses executable memory");
#if defined(__aarch64__)
  __builtin___clear_cache(reinterpret_cast<char*>(image.base),
                          reinterpret_cast<char*>(image.base + text_end));
#endif
  return code;
}

std::string host_fingerprint() {
  static const std::string fingerprint = [] {
    std::string model = "unknown", flags;
    try {
      std::string info = read_file("/proc/cpuinfo");
      for (const std::string& line : split(info, '\n')) {
        std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        std::string_view key = trim(std::string_view(line).substr(0, colon));
        std::string_view value = trim(std::string_view(line).substr(colon + 1));
        if (key == "model name" || key == "cpu family" || key == "model" || key == "CPU part")
          model += cat("/", value);
        if (key == "flags" || key == "Features") flags = value;
        if (line.empty() || !flags.empty()) break;
      }
    } catch (const Error&) {
      // No /proc: the model stays "unknown"; flags are empty.
    }
    std::string wish = wanted_llvm();
    return cat(model, " ", hex(hash_text(flags), 16), wish.empty() ? "" : " llvm ", wish);
  }();
  return fingerprint;
}

}  // namespace weft::jit
