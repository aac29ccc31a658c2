// SPDX-License-Identifier: Apache-2.0
// Mutated texts and files through every parser of the shared parts: each ends in a value or a
// weft::Error, never in another exception, a crash or a hang. Without arguments a short run with a
// fixed seed; `fuzz_parsers SECONDS SEED` goes on for as long as asked (tools/check_sanitized).

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/ir/text.h"
#include "weft/isa/isa.h"
#include "weft/runtime/module.h"
#include "weft/target/target.h"

namespace {

using weft::cat;

struct Parser {
  std::string name;
  std::function<void(const std::string&)> parse;
  std::vector<std::string> seeds;
};

const weft::isa::InstructionSet& toy() {
  using namespace weft::isa;
  static const InstructionSet set("toy", 32,
                                  {Format{"add",
                                          {{28, 4, 1}},
                                          {{"rd", 0, 5, FieldKind::unsigned_, {}, ""},
                                           {"ra", 5, 5, FieldKind::unsigned_, {}, ""},
                                           {"imm", 10, 12, FieldKind::signed_, {}, ""}},
                                          "r{rd}, r{ra}, #{imm}",
                                          "adds"},
                                   Format{"halt", {{28, 4, 2}}, {}, "", "ends"}});
  return set;
}

std::string module_bytes() {
  weft::runtime::Binary b;
  b.target = b.format = "toy";
  b.bytes = std::string("\0\1\2\3", 4);
  b.kernels = {
      {"k", {{"data", weft::runtime::ParamKind::pointer, weft::dtypes::int8, "global"}}, {}, 0}};
  weft::runtime::HostPlan plan;
  plan.name = "main";
  return weft::runtime::Module(b, {plan}).serialize();
}

const char* kPrograms[] = {
    R"(@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i, j, k in T.grid(8, 4, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
    R"(@T.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, n: T.int64):
        A = T.match_buffer(a, (n, 4), "int8", strides=[8, 1])
        s = T.alloc_buffer((4,), "int32", scope="shared")
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("s"):
                vi = T.axis.spatial(4, i)
                T.where(vi < 3)
                s[vi] = T.if_then_else(vi % 2 == 0, T.Cast("int32", A[0, vi]), T.max(vi, 1) // 2)
)",
    "x = 'a\\n' + \"b\" # comment\n"};

std::string mutate(std::string s, const std::vector<std::string>& others, std::mt19937_64& rng) {
  auto below = [&](std::size_t n) { return n ? static_cast<std::size_t>(rng() % n) : 0; };
  static const std::string pieces[] = {"(",
                                       ")",
                                       "[",
                                       "{",
                                       "\"",
                                       "'",
                                       "\n",
                                       "\t",
                                       "    ",
                                       ",",
                                       ":",
                                       "-1",
                                       "99999999999999999999",
                                       "1e999",
                                       "\\u0000",
                                       "\xff",
                                       "\0",
                                       "T.",
                                       "0x",
                                       "#"};
  for (std::size_t edits = 1 + below(6); edits > 0; --edits) {
    std::size_t at = below(s.size() + 1), n = below(12);
    switch (rng() % 7) {
      case 0:
        if (at < s.size()) s[at] = static_cast<char>(rng());
        break;
      case 1:
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ (1 << (rng() % 8)));
        break;
      case 2: s.erase(at, n); break;
      case 3: s.insert(at, pieces[below(std::size(pieces))]); break;
      case 4: s.insert(at, s.substr(below(s.size() + 1), below(40))); break;
      case 5: s.resize(at); break;
      default: {
        const std::string& other = others[below(others.size())];
        s.insert(at, other.substr(below(other.size() + 1), below(60)));
      }
    }
    if (s.size() > 20000) s.resize(20000);
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20261121;
  std::printf("fuzz_parsers: seed %llu\n", static_cast<unsigned long long>(seed));
  std::vector<Parser> parsers = {
      {"T-script",
       [](const std::string& s) {
         weft::ir::IRModule m = weft::ir::parse_module(s);
         std::string text = weft::ir::print(m);
         try {  // what parses also prints, and parses again
           weft::ir::parse_module(text);
         } catch (const weft::Error& error) {
           throw weft::Error(weft::ErrorKind::internal, "fuzz.print",
                             cat("the printed text is refused: ", error.what(), "\n", text));
         }
       },
       {std::begin(kPrograms), std::end(kPrograms)}},
      {"JSON",
       [](const std::string& s) { weft::Json::parse(weft::Json::parse(s).dump()); },
       {R"({"a": [1, -2.5e3, "x\u00e9\n", null, true], "b": {"c": {}}})", "[[[[]]]]",
        "9223372036854775808"}},
      {"target",
       [](const std::string& s) { weft::Target::parse(weft::Target::parse(s).text()); },
       {"cuda:arch=sm_90a,max_threads_per_block=1024", "wse:4x4", "vta:config.json"}},
      {"assembly",
       [](const std::string& s) { toy().assemble(s); },
       {"add r1, r2, #-5\nhalt ; end\n"}},
      {"module file",
       [](const std::string& s) { weft::runtime::Module::deserialize(s, "<fuzz>"); },
       {module_bytes()}},
      {"element type",
       [](const std::string& s) { weft::parse_dtype(s); },
       {"float32x4", "bfloat16", "bool"}},
  };
  std::mt19937_64 rng(seed);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::vector<std::size_t> accepted(parsers.size()), refused(parsers.size());
  int bad = 0;
  for (std::size_t round = 0;
       round < 1500 || (seconds > 0 && std::chrono::steady_clock::now() < end); ++round) {
    Parser& p = parsers[round % parsers.size()];
    std::string text = mutate(p.seeds[rng() % p.seeds.size()], p.seeds, rng);
    try {
      p.parse(text);
      ++accepted[round % parsers.size()];
    } catch (const weft::Error& error) {
      ++refused[round % parsers.size()];
      if (error.kind() == weft::ErrorKind::internal || error.code().empty() || !*error.what()) {
        std::printf("%s: %s\n  for: %s\n", p.name.c_str(), error.what(),
                    weft::json_quote(text).c_str());
        ++bad;
      }
    } catch (const std::exception& error) {
      std::printf("%s: foreign exception %s\n  for: %s\n", p.name.c_str(), error.what(),
                  weft::json_quote(text).c_str());
      ++bad;
    }
  }
  for (std::size_t i = 0; i < parsers.size(); ++i) {
    std::printf("%-14s %8zu accepted %8zu refused\n", parsers[i].name.c_str(), accepted[i],
                refused[i]);
    if (!refused[i]) ++bad;  // a parser that takes everything was not tried
  }
  return bad ? 1 : 0;
}
