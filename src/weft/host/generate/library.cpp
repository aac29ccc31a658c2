// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "weft/base/error.h"
#include "weft/host/generate/kernels.h"
#include "weft/ir/build.h"
#include "weft/target/backend.h"

namespace weft::generate {

namespace {

const char* c_type(Elem e) {
  static constexpr const char* names[] = {"uint8_t", "int8_t",   "int16_t",  "int32_t",  "int64_t",
                                          "uint8_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t",
                                          "uint8_t", "uint16_t", "uint16_t", "float",    "double",
                                          "float",   "double"};
  static_assert(std::size(names) == kElems);
  return names[static_cast<int>(e)];
}

/// Parameters of a table's functions, and what the kernel's own parameters are of them.
struct Frame {
  const char* parameters;
  std::vector<std::pair<std::string, std::string>> arguments;
};

const Frame& frame_of(std::int16_t table) {
  using T = KernelEntry;
  static const Frame row = {"int64_t n, const void* const* in, void* out",
                            {{"n", "n"}, {"a0", "in[0]"}, {"a1", "in[1]"}, {"out", "out"}}};
  static const Frame three = {
      "int64_t n, const void* const* in, void* out",
      {{"n", "n"}, {"a0", "in[0]"}, {"a1", "in[1]"}, {"a2", "in[2]"}, {"out", "out"}}};
  static const Frame into = {"int64_t n, const void* in, void* acc",
                             {{"n", "n"}, {"a0", "in"}, {"acc", "acc"}}};
  static const Frame four = {"int64_t n, const void* const* in, void* acc",
                             {{"n", "n"},
                              {"a0", "in[0]"},
                              {"a1", "in[1]"},
                              {"a2", "in[2]"},
                              {"a3", "in[3]"},
                              {"acc", "acc"}}};
  // Of what is read or written at computed places the length is not said (m).
  static const Frame moved = {
      "int64_t n, const void* in, const int64_t* at, void* out",
      {{"n", "n"}, {"m", "INT64_MAX"}, {"a0", "in"}, {"a1", "at"}, {"out", "out"}}};
  static const std::map<std::int16_t, Frame> frames = {
      {T::elementwise, row},
      {T::known, row},
      {T::normal_pairs, row},
      {T::plane, three},
      {T::polynomial, three},
      {T::between, row},
      {T::reduce, into},
      {T::accumulate, into},
      {T::fold, four},
      {T::reduce_four, four},
      {T::scan,
       {"int64_t n, const void* in, void* out, void* acc",
        {{"n", "n"}, {"a0", "in"}, {"out", "out"}, {"acc", "acc"}}}},
      {T::cast,
       {"int64_t n, const void* in, void* out", {{"n", "n"}, {"a0", "in"}, {"out", "out"}}}},
      {T::bits,
       {"int64_t n, const void* in, void* out", {{"n", "n"}, {"a0", "in"}, {"out", "out"}}}},
      {T::select,
       {"int64_t n, const uint8_t* c, const void* a, const void* b, void* out",
        {{"n", "n"}, {"condition", "c"}, {"a0", "a"}, {"a1", "b"}, {"out", "out"}}}},
      {T::row_kernel,
       {"int64_t n, const void* const* in, void* out, double eps",
        {{"n", "n"},
         {"a0", "in[0]"},
         {"a1", "in[1]"},
         {"a2", "in[2]"},
         {"out", "out"},
         {"eps", "eps"}}}},
      {T::random,
       {"int64_t n, uint64_t seed, uint64_t first, void* out",
        {{"n", "n"}, {"seed", "seed"}, {"first", "first"}, {"out", "out"}}}},
      {T::find,
       {"int64_t n, const void* const* in, const void* wanted, int64_t* acc",
        {{"n", "n"},
         {"a0", "in[0]"},
         {"a1", "in[1]"},
         {"a2", "in[2]"},
         {"a3", "in[3]"},
         {"wanted", "wanted"},
         {"acc", "acc"}}}},
      {T::place,
       {"int64_t n, const void* in, const void* top, int32_t here, int32_t* acc",
        {{"n", "n"}, {"a0", "in"}, {"a1", "top"}, {"here", "here"}, {"acc", "acc"}}}},
      {T::resolve,
       {"int64_t n, int64_t extent, int64_t step, const int64_t* in, int64_t* out, int64_t* acc",
        {{"n", "n"},
         {"extent", "extent"},
         {"step", "step"},
         {"a0", "in"},
         {"out", "out"},
         {"acc", "acc"}}}},
      {T::along,
       {"int64_t n, int64_t extent, int64_t step, const void* in, const int64_t* at, void* out, "
        "int64_t* acc",
        {{"n", "n"},
         {"m", "INT64_MAX"},
         {"extent", "extent"},
         {"step", "step"},
         {"a0", "in"},
         {"a1", "at"},
         {"out", "out"},
         {"acc", "acc"}}}},
      {T::pick, moved},
      {T::put, moved},
      {T::put_add, moved},
      {T::count,
       {"int64_t n, const void* in, int64_t* acc", {{"n", "n"}, {"a0", "in"}, {"acc", "acc"}}}},
      {T::compress,
       {"int64_t n, const void* in, const void* mask, void* out, int64_t* acc",
        {{"n", "n"}, {"a0", "in"}, {"a1", "mask"}, {"out", "out"}, {"acc", "acc"}}}},
      {T::expand,
       {"int64_t n, const void* in, const void* mask, void* out, int64_t* acc",
        {{"n", "n"}, {"a0", "in"}, {"a1", "mask"}, {"out", "out"}, {"acc", "acc"}}}},
      {T::places,
       {"int64_t n, int64_t first, const void* mask, int64_t* out, int64_t* acc",
        {{"n", "n"}, {"first", "first"}, {"a1", "mask"}, {"out", "out"}, {"acc", "acc"}}}},
  };
  return frames.at(table);
}

std::string call_of(const runtime::KernelSignature& kernel,
                    const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::vector<std::string> values;
  for (const runtime::KernelParam& p : kernel.params) {
    std::string value;
    for (const auto& [name, text] : arguments) {
      if (name == p.name) value = text;
    }
    WEFT_CHECK(!value.empty(), "kernel ", kernel.name, " has a parameter ", p.name);
    values.push_back(value);
  }
  values.push_back("0");
  return cat(kernel.name, "(", join(values), ");\n");
}

/// Whole blocks are read and written in place, the rest through padded copies. The kernel is one
/// function that is not specialised; one that takes n sees whole blocks alone, so that the loop
/// behind its vectors never runs and there is one vector code.
std::string block_text(const Kernel& k, const runtime::KernelSignature& kernel) {
  const bool whole = std::any_of(kernel.params.begin(), kernel.params.end(),
                                 [](const runtime::KernelParam& p) { return p.name == "n"; });
  const std::string type = c_type(k.result);
  auto block = [](Elem e) { return kBlock * (is_complex(e) ? 2 : 1); };
  std::vector<std::pair<std::string, std::string>> places = {{"n", "n - left"}},
                                                   copies = {{"n", cat(kBlock)}};
  auto place = [&](Elem e, const std::string& from) {
    return whole ? from : cat("(", c_type(e), "*)", from, " + at * ", block(e));
  };
  std::string padded;
  for (std::size_t i = 0; i < k.operands.size(); ++i) {
    const std::string a = cat("a", i), from = c_type(k.operands[i]);
    const std::int64_t size = block(k.operands[i]), parts = size / kBlock;
    places.emplace_back(a, place(k.operands[i], cat("in[", i, "]")));
    copies.emplace_back(a, a);
    padded += cat("    ", from, " ", a, "[", size, "];\n    for (int i = 0; i < ", size, "; ++i) ",
                  a, "[i] = 1;\n    __builtin_memcpy(", a, ", (const ", from, "*)in[", i,
                  "] + (n - left) * ", parts, ", left * ", parts, " * sizeof(", from, "));\n");
  }
  places.emplace_back("out", place(k.result, "out"));
  copies.emplace_back("out", "result");
  const std::int64_t size = block(k.result), parts = size / kBlock;
  return cat("static void ", k.name, "(", frame_of(k.entry.table).parameters,
             ") {\n  const int64_t left = n % ", kBlock, ";\n",
             whole ? std::string("  if (n > left) ")
                   : cat("  for (int64_t at = 0; at < n / ", kBlock, "; ++at) "),
             call_of(kernel, places), "  if (left) {\n", padded, "    ", type, " result[", size,
             "];\n    ", call_of(kernel, copies), "    __builtin_memcpy((", type,
             "*)out + (n - left) * ", parts, ", result, left * ", parts, " * sizeof(", type,
             "));\n  }\n}\n");
}

void mark_single(std::string& text, const std::string& function) {
  const std::string head = cat("static int32_t ", function, "(");
  const std::size_t at = text.find(head);
  WEFT_CHECK(at != std::string::npos, "no function ", function, " in the text");
  text.insert(at, "WEFT_SINGLE ");
}

}  // namespace

std::string library_text(const std::string& group, const std::vector<Kernel>& kernels,
                         const std::string& target, const std::string& helpers) {
  std::vector<std::pair<std::string, ir::PrimFunc>> functions;
  std::set<std::string> names, shared;
  for (const Kernel& k : kernels) {
    if (!k.code.empty()) {
      if (k.swapped) shared.insert(k.code);
      continue;
    }
    functions.emplace_back(k.name, k.func);
    names.insert(k.name);
  }
  const std::size_t own = functions.size();
  Ref<runtime::Module> module = build(ir::make_module(std::move(functions)), target);
  const auto& built = module->binary().kernels;
  WEFT_CHECK(built.size() == own, built.size(), " kernels of ", own);
  std::string text = module->source();
  const std::size_t first = text.find("\nstatic int32_t ");
  WEFT_CHECK(first != std::string::npos, "no kernels in the text of ", group);
  text.insert(first,
              "\n#if defined(__clang__)\n#define WEFT_SINGLE __attribute__((noinline))\n#else\n"
              "#define WEFT_SINGLE __attribute__((noipa))\n#endif\n" +
                  helpers);
  std::string rows, swapped;
  std::size_t i = 0;
  for (const Kernel& k : kernels) {
    rows += cat("  {", k.entry.table, ", ", k.entry.row, ", ", k.entry.elem, ", ", k.entry.layout,
                ", (void (*)(void))", k.code.empty() || k.swapped ? k.name : k.code, "},\n");
    if (!k.code.empty()) {
      WEFT_CHECK(names.count(k.code), "no kernel ", k.code, " for ", k.name, " in ", group);
      if (k.swapped)
        swapped += cat("static void ", k.name, "(", frame_of(k.entry.table).parameters,
                       ") {\n  const void* const turned[] = {in[1], in[0]};\n  ", k.code,
                       "(n, turned, out);\n}\n");
      continue;
    }
    const runtime::KernelSignature& kernel = built[i++];
    if (k.blocks) {
      mark_single(text, kernel.name);
      text += block_text(k, kernel);
    } else if (k.parameters) {
      std::vector<std::pair<std::string, std::string>> same;
      for (const runtime::KernelParam& p : kernel.params) same.emplace_back(p.name, p.name);
      text +=
          cat("static void ", k.name, "(", k.parameters, ") {\n  ", call_of(kernel, same), "}\n");
    } else {
      const Frame& frame = frame_of(k.entry.table);
      text += cat("static ", shared.count(k.name) ? "WEFT_SINGLE " : "", "void ", k.name, "(",
                  frame.parameters, ") {\n  ", call_of(kernel, frame.arguments), "}\n");
    }
  }
  text += swapped;
  text += cat(
      "\n#define WEFT_JOIN2(a, b) a##_##b\n#define WEFT_JOIN(a, b) WEFT_JOIN2(a, b)\n"
      "struct weft_kernel_entry { int16_t table, row, elem, layout; void (*function)(void); };\n"
      "extern const struct weft_kernel_entry WEFT_JOIN(weft_kernels_",
      group, ", WEFT_LEVEL)[];\nconst struct weft_kernel_entry WEFT_JOIN(weft_kernels_", group,
      ", WEFT_LEVEL)[] = {\n", rows, "  {-1, 0, 0, 0, 0},\n};\n");
  return text;
}

}  // namespace weft::generate
