// SPDX-License-Identifier: Apache-2.0
// Sorting by digits (array/sort_kernels.h).

#include "weft/base/text.h"
#include "weft/host/generate/vectors.h"
#include "weft/host/sort_kernels.h"
#include "weft/ir/text.h"

namespace weft::generate {

namespace {

struct Name {
  const char *type, *key;
  int bits;
  char kind;  // i, u, f
};
constexpr Name kNames[] = {{"uint8", "uint8", 8, 'u'},     {"int8", "uint8", 8, 'i'},
                           {"uint16", "uint16", 16, 'u'},  {"int16", "uint16", 16, 'i'},
                           {"uint32", "uint32", 32, 'u'},  {"int32", "uint32", 32, 'i'},
                           {"uint64", "uint64", 64, 'u'},  {"int64", "uint64", 64, 'i'},
                           {"float32", "uint32", 32, 'f'}, {"float64", "uint64", 64, 'f'}};

Elem elem_named(const std::string& name) {
  for (int e = 0; e < kElems; ++e) {
    if (name_of(static_cast<Elem>(e)) == name) return static_cast<Elem>(e);
  }
  return Elem::uint8;
}

std::string top_of(const Name& t) {
  return cat("T.", t.key, "(", std::uint64_t{1} << (t.bits - 1), ")");
}

/// A number of the key's type with all bits set as `flip` says.
std::string flipped(const Name& t) { return cat("T.cast(flip, \"", t.key, "\")"); }

/// Statements that bind `key` to the key of the value `x`, at the given depth.
std::string key_text(const Name& t, const std::string& deep) {
  const std::string top = top_of(t), whole = cat("int", t.bits);
  if (t.kind == 'u') return cat(deep, "key: T.", t.key, " = T.bitwise_xor(x, ", flipped(t), ")\n");
  if (t.kind == 'i')
    return cat(deep, "key: T.", t.key, " = T.bitwise_xor(T.bitwise_xor(T.reinterpret(\"", t.key,
               "\", x), ", top, "), ", flipped(t), ")\n");
  // The bits of negative numbers are turned, others get the sign's bit; -0 is 0.
  return cat(deep, "bits: T.", whole, " = T.reinterpret(\"", whole, "\", T.Select(x == T.", t.type,
             "(0), T.", t.type, "(0), x))\n", deep, "sign: T.", t.key, " = T.reinterpret(\"", t.key,
             "\", T.shift_right(bits, ", t.bits - 1, "))\n", deep, "up: T.", t.key,
             " = T.bitwise_xor(T.reinterpret(\"", t.key, "\", bits), T.bitwise_or(sign, ", top,
             "))\n", deep, "key: T.", t.key, " = T.Select(x != x, T.bitwise_not(T.", t.key,
             "(0)), T.bitwise_xor(up, ", flipped(t), "))\n");
}

ir::PrimFunc parsed(const std::string& parameters, const std::string& body) {
  return ir::parse_func(cat("@T.prim_func\ndef main(", parameters,
                            "):\n    T.func_attr({\"noalias\": True})\n", body),
                        "<digits>");
}

std::string buffer(const char* name, const std::string& extent, const std::string& type) {
  return cat("    ", name, " = T.match_buffer(p_", name, ", (", extent, ",), \"", type, "\")\n");
}

ir::PrimFunc keys_function(const Name& t) {
  return parsed("p_A: T.handle, p_O: T.handle, n: T.int64, flip: T.int64",
                cat(buffer("A", "n", t.type), buffer("O", "n", t.key),
                    "    for i in T.vectorized(n):\n        x: T.", t.type, " = A[i]\n",
                    key_text(t, "        "), "        O[i] = key\n"));
}

ir::PrimFunc values_function(const Name& t) {
  const std::string top = top_of(t), key = cat("T.bitwise_xor(A[i], ", flipped(t), ")");
  std::string body;
  if (t.kind == 'u') body = cat("        O[i] = ", key, "\n");
  else if (t.kind == 'i')
    body = cat("        O[i] = T.reinterpret(\"", t.type, "\", T.bitwise_xor(", key, ", ", top,
               "))\n");
  else
    body = cat("        key: T.", t.key, " = ", key, "\n        sign: T.", t.key,
               " = T.reinterpret(\"", t.key, "\", T.shift_right(T.reinterpret(\"int", t.bits,
               "\", key), ", t.bits - 1, "))\n        O[i] = T.reinterpret(\"", t.type,
               "\", T.bitwise_xor(key, T.bitwise_or(T.bitwise_not(sign), ", top, ")))\n");
  return parsed("p_A: T.handle, p_O: T.handle, n: T.int64, flip: T.int64",
                cat(buffer("A", "n", t.key), buffer("O", "n", t.type),
                    "    for i in T.vectorized(n):\n", body));
}

ir::PrimFunc special_function(const Name& t) {
  auto count = [](const char* at, const std::string& what) {
    return cat("        S[", at, "] = S[", at, "] + T.cast(", what, ", \"int64\")\n");
  };
  return parsed(
      "p_A: T.handle, p_C: T.handle, n: T.int64",
      cat(buffer("A", "n", t.type), buffer("C", "2", "int64"),
          "    S = T.alloc_buffer((2,), \"int64\", scope=\"local\")\n    S[0] = T.int64(0)\n    "
          "S[1] = T.int64(0)\n    for i in T.serial(n):\n        x: T.",
          t.type, " = A[i]\n",
          count("0",
                cat("T.bitwise_or(T.reinterpret(\"", t.key, "\", x) == ", top_of(t), ", x != x)")),
          count("1", cat("x - x != T.", t.type, "(0)")),
          "    C[0] = C[0] + S[0]\n    C[1] = C[1] + S[1]\n"));
}

ir::PrimFunc items_function(const Name& t, bool pairs) {
  const std::string put =
      pairs ? std::string(
                  "        O[i * 2] = T.cast(key, \"uint64\")\n        O[i * 2 + 1] = "
                  "T.cast(first + i, \"uint64\")\n")
            : std::string(
                  "        O[i] = T.bitwise_or(T.shift_left(T.cast(key, \"uint64\"), "
                  "T.uint64(32)), T.cast(first + i, \"uint64\"))\n");
  return parsed("p_A: T.handle, p_O: T.handle, n: T.int64, first: T.int64, flip: T.int64",
                cat(buffer("A", "n", t.type), buffer("O", pairs ? "n * 2" : "n", "uint64"),
                    "    for i in T.vectorized(n):\n        x: T.", t.type, " = A[i]\n",
                    key_text(t, "        "), put));
}

ir::PrimFunc places_function(bool pairs) {
  return parsed("p_A: T.handle, p_O: T.handle, n: T.int64",
                cat(buffer("A", pairs ? "n * 2" : "n", "uint64"), buffer("O", "n", "int64"),
                    "    for i in T.vectorized(n):\n        O[i] = T.reinterpret(\"int64\", ",
                    pairs ? "A[i * 2 + 1]" : "T.bitwise_and(A[i], T.uint64(4294967295))", ")\n"));
}

/// Words of an item, and the type that holds it; the first one has the key.
int words_of(int size) { return size == 16 ? 2 : 1; }
std::string word_of(int size) { return cat("uint", size == 16 ? 64 : size * 8); }
std::string first_word(int size) { return size == 16 ? "A[i * 2]" : "A[i]"; }
std::string items_buffer(const char* name, int size) {
  return buffer(name, words_of(size) == 2 ? "n * 2" : "n", word_of(size));
}

/// So many digits of items of `size` bytes, the first one at a bit.
ir::PrimFunc digits_function(int size, int digits, int first) {
  const std::string word = word_of(size);
  std::string body =
      cat(items_buffer("A", size), buffer("C", cat(256 * digits), "int64"),
          "    for i in T.serial(n):\n        x: T.", word, " = ", first_word(size), "\n");
  for (int d = 0; d < digits; ++d)
    body += cat("        d", d, ": T.int64 = T.cast(T.bitwise_and(T.shift_right(x, T.", word, "(",
                first + 8 * d, ")), T.", word, "(255)), \"int64\") + ", 256 * d, "\n        C[d", d,
                "] = C[d", d, "] + T.int64(1)\n");
  return parsed("p_A: T.handle, p_C: T.handle, n: T.int64", body);
}

/// `d`, the digit of the item at hand whose word is x.
std::string digit_text(int size) {
  const std::string word = word_of(size);
  return cat("        d: T.int64 = T.cast(T.bitwise_and(T.shift_right(x, T.cast(bit, \"", word,
             "\")), T.", word, "(255)), \"int64\")\n");
}

ir::PrimFunc digit_function(int size) {
  return parsed(
      "p_A: T.handle, p_C: T.handle, n: T.int64, bit: T.int64",
      cat(items_buffer("A", size), buffer("C", "256", "int64"),
          "    for i in T.serial(n):\n        x: T.", word_of(size), " = ", first_word(size), "\n",
          digit_text(size), "        C[d] = C[d] + T.int64(1)\n"));
}

ir::PrimFunc move_function(int size) {
  std::string body =
      cat(items_buffer("A", size), items_buffer("O", size), buffer("C", "256", "int64"),
          "    for i in T.serial(n):\n        x: T.", word_of(size), " = ", first_word(size), "\n");
  if (words_of(size) == 2) body += "        y: T.uint64 = A[i * 2 + 1]\n";
  body += cat(digit_text(size), "        to: T.int64 = C[d]\n");
  body += words_of(size) == 2 ? "        O[to * 2] = x\n        O[to * 2 + 1] = y\n"
                              : "        O[to] = x\n";
  return parsed("p_A: T.handle, p_O: T.handle, p_C: T.handle, n: T.int64, bit: T.int64",
                body + "        C[d] = to + T.int64(1)\n");
}

ir::PrimFunc offsets_function() {
  return parsed(
      "p_C: T.handle, p_M: T.handle, blocks: T.int64",
      cat(buffer("C", "blocks * 256", "int64"), buffer("M", "1", "int64"),
          "    S = T.alloc_buffer((2,), \"int64\", scope=\"local\")\n    S[0] = T.int64(0)\n    "
          "S[1] = T.int64(0)\n    for v in T.serial(256):\n        before: T.int64 = S[0]\n        "
          "for b in T.serial(blocks):\n            held: T.int64 = C[b * 256 + v]\n            C[b "
          "* 256 + v] = S[0]\n            S[0] = S[0] + held\n        S[1] = T.max(S[1], S[0] - "
          "before)\n    M[0] = S[1]\n"));
}

/// Minima and maxima of rows i and j, for pairs of them.
ir::PrimFunc exchange_function(const VectorShape& shape, Elem e, int vectors) {
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e)), rows = cat("(256, ", vectors * lanes, ")");
  std::string text = cat("@T.prim_func\ndef main(a: T.handle, p: T.handle, count: T.int64):\n",
                         "    A = T.match_buffer(a, ", rows, ", \"", type,
                         "\")\n    P = T.match_buffer(p, (count * 2,), \"uint8\")\n");
  for (int v = 0; v < 2 * vectors; ++v)
    text += cat("    x", v, " = T.alloc_buffer((", lanes, ",), \"", type, "\", scope=\"local\")\n");
  text +=
      "    for c in T.serial(count):\n        i: T.int64 = T.cast(P[c * 2], \"int64\")\n        "
      "j: T.int64 = T.cast(P[c * 2 + 1], \"int64\")\n";
  // Loops of one access each, so that none has to be told that i is not j.
  auto loop = [&](const std::string& line) {
    text += cat("        for l in T.vectorized(", lanes, "):\n            ", line, "\n");
  };
  for (int v = 0; v < vectors; ++v) {
    loop(cat("x", 2 * v, "[l] = A[i, ", v * lanes, " + l]"));
    loop(cat("x", 2 * v + 1, "[l] = A[j, ", v * lanes, " + l]"));
  }
  for (int v = 0; v < vectors; ++v) {
    const std::string both = cat("(x", 2 * v, "[l], x", 2 * v + 1, "[l])");
    loop(cat("A[i, ", v * lanes, " + l] = T.min", both));
    loop(cat("A[j, ", v * lanes, " + l] = T.max", both));
  }
  return ir::parse_func(text, "<exchange>");
}

}  // namespace

std::vector<Kernel> exchange_kernels(const VectorShape& shape) {
  std::vector<Kernel> out;
  for (Elem e : {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64}) {
    for (int vectors : {1, 2})
      out.push_back(vector_kernel(
          vectors == 1 ? VectorKernel::exchange : VectorKernel::exchange_two, e,
          cat("v_exchange_", vectors, "_", name_of(e)), "void* A, const uint8_t* P, int64_t count",
          exchange_function(shape, e, vectors)));
  }
  return out;
}

std::vector<Kernel> sort_kernels() {
  using K = SortKernel;
  std::vector<Kernel> out;
  auto add = [&](K k, Elem e, const char* name, const char* frame, ir::PrimFunc f) {
    Kernel kernel{entry(KernelEntry::sorting, static_cast<int>(k), e),
                  cat("d_", name, "_", name_of(e)), std::move(f)};
    kernel.parameters = frame;
    out.push_back(std::move(kernel));
  };
  constexpr const char *kKeys = "const void* A, void* O, int64_t n, int64_t flip",
                       *kItems = "const void* A, void* O, int64_t n, int64_t first, int64_t flip",
                       *kPlaces = "const void* A, int64_t* O, int64_t n",
                       *kCount = "const void* A, int64_t* C, int64_t n";
  for (const Name& t : kNames) {
    const Elem e = elem_named(t.type);
    add(K::keys, e, "keys", kKeys, keys_function(t));
    add(K::values, e, "values", kKeys, values_function(t));
    if (t.kind == 'f') add(K::special, e, "special", kCount, special_function(t));
    if (t.bits <= 32) add(K::items, e, "items", kItems, items_function(t, false));
    add(K::pairs, e, "pairs", kItems, items_function(t, true));
    if (t.kind != 'u') continue;
    const int bytes = t.bits / 8;
    add(K::digits, e, "digits", kCount, digits_function(bytes, bytes, 0));
    if (bytes <= 4) add(K::item_digits, e, "item_digits", kCount, digits_function(8, bytes, 32));
  }
  add(K::item_places, Elem::uint64, "item_places", kPlaces, places_function(false));
  add(K::pair_places, Elem::uint64, "pair_places", kPlaces, places_function(true));
  add(K::digits, Elem::complex128, "digits", kCount, digits_function(16, 8, 0));
  for (int size : {1, 2, 4, 8, 16}) {
    const Elem e = size == 16 ? Elem::complex128 : elem_named(cat("uint", size * 8));
    add(K::digit, e, "digit", "const void* A, int64_t* C, int64_t n, int64_t bit",
        digit_function(size));
    add(K::move, e, "move", "const void* A, void* O, int64_t* C, int64_t n, int64_t bit",
        move_function(size));
  }
  add(K::offsets, Elem::uint8, "offsets", "int64_t* C, int64_t* M, int64_t blocks",
      offsets_function());
  return out;
}

}  // namespace weft::generate
