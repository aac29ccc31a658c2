// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/integer_loop.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr const char* kPower = R"(                A[0] = x[i]
                B[0] = y[i]
                R[0] = T.{type}(1)
                while B[0] > T.{type}(0):
                    if B[0] % T.{type}(2) != T.{type}(0):
                        R[0] = R[0] * A[0]
                    A[0] = A[0] * A[0]
                    B[0] = B[0] // T.{type}(2)
                out[i] = R[0]
)";

/// A step of Euclid's algorithm while `more`.
std::string steps(std::string_view a, std::string_view b, std::string_view left,
                  const std::string& more) {
  const std::string blanks(16, ' ');
  return cat(blanks, "while ", more, ":\n", blanks, "    ", left, "[0] = ", a, "[0] % ", b,
             "[0]\n") +
         cat(blanks, "    ", a, "[0] = ", b, "[0]\n", blanks, "    ", b, "[0] = ", left, "[0]\n");
}

std::string magnitude(const std::string& element, std::string_view x) {
  const bool sign = element[0] != 'u';
  return fill(sign ? "T.Select({x}[i] < 0, T.u{type}(0) - T.Cast(\"u{type}\", {x}[i]), "
                     "T.Cast(\"u{type}\", {x}[i]))"
                   : "{x}[i]",
              {{"x", std::string(x)}, {"type", element}});
}

/// A becomes the divisor. Numbers of 64 bits are divided as such only until both have 32: a
/// division of 32 bits takes a quarter of the time.
std::string divisor(const std::string& word) {
  const std::string blanks(16, ' ');
  std::string out = cat(blanks, "A[0] = {ax}\n", blanks, "B[0] = {ay}\n");
  if (word == "uint32") return out + steps("A", "B", "R", "B[0] != T.uint32(0)");
  out += steps("A", "B", "R", "B[0] > T.uint64(4294967295)");
  out += R"(                C[0] = T.uint32(0)
                D[0] = T.Cast("uint32", B[0])
                if D[0] != T.uint32(0):
                    C[0] = D[0]
                    D[0] = T.Cast("uint32", A[0] % B[0])
                    A[0] = T.uint64(0)
)";
  out += steps("C", "D", "E", "D[0] != T.uint32(0)");
  return out +
         cat(blanks, "A[0] = T.Select(A[0] == T.uint64(0), T.Cast(\"uint64\", C[0]), A[0])\n");
}

}  // namespace

ir::PrimFunc integer_loop(IntegerLoop what, const std::string& element) {
  const std::string word =
      what == IntegerLoop::power || element[0] == 'u' ? element : cat("u", element);
  std::string body = kPower;
  if (what != IntegerLoop::power) {
    body = divisor(word);
    if (what == IntegerLoop::lcm)
      body += "                A[0] = {ax} // T.max(A[0], T.{word}(1)) * {ay}\n";
    body += "                out[i] = T.Cast(\"{type}\", A[0])\n";
  }
  std::string allocated;
  for (const char* name : {"A", "B", "R"})
    allocated +=
        cat("            ", name, " = T.allocate((1,), \"", word, "\", scope=\"local\")\n");
  if (what != IntegerLoop::power && word == "uint64") {
    for (const char* name : {"C", "D", "E"})
      allocated += cat("            ", name, " = T.allocate((1,), \"uint32\", scope=\"local\")\n");
  }
  return ProgramText("integer_loop")
      .buffer("x", element)
      .buffer("y", element)
      .buffer("out", element)
      .scalar("blocks", "int64")
      .scalar("count", "int64")
      .parse(cat(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
)",
                 allocated, R"(            i: T.int64 = b * {threads} + t
            if i < count:
)",
                 body),
             {{"threads", cat(kIntegerLoopThreads)},
              {"type", element},
              {"word", word},
              {"ax", magnitude(element, "x")},
              {"ay", magnitude(element, "y")}});
}

}  // namespace weft::operators
