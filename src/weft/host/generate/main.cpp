// SPDX-License-Identifier: Apache-2.0
// weft_make_kernels DIR: writes integers.c, rows0.c to rows5.c, reals.c, complex.c,
// complex_products.c, booleans.c, random.c, casts.c and places.c, the text of the host's eager
// kernels, and vectors_<level>.c, those for one width of vectors. Runs at build time, on the
// machine that builds.

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "weft/base/error.h"
#include "weft/host/generate/kernels.h"
#include "weft/host/generate/vectors.h"

namespace {

using weft::Elem;
using weft::generate::Kernel;

/// Leaves a file that holds this text as it is: what is compiled from it stays up to date.
bool store(const std::string& path, const std::string& text) {
  std::ifstream old(path, std::ios::binary);
  if (old && std::string(std::istreambuf_iterator<char>(old), {}) == text) return true;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::cerr << "cannot write " << path << "\n";
  return static_cast<bool>(file);
}

/// `level`: of a text that is written for one.
bool write(const std::string& folder, const std::string& group, const std::vector<Kernel>& kernels,
           const std::string& level = "", const std::string& target = "c:library=1") {
  return store(folder + "/" + group + level + ".c",
               weft::generate::library_text(group, kernels, target));
}

/// Files of the element-wise rows of floats, which take longest to compile. All kernels of a row
/// lie in one, chosen by its name, so that a new row compiles one file anew; those of a row whose
/// code serves another lie with it.
constexpr std::size_t kParts = 6;
using Parts = std::array<std::vector<Kernel>, kParts>;

std::size_t part_of(const Kernel& k) {
  const std::string& name = k.code.empty() ? k.name : k.code;
  const std::string row = name.substr(0, std::min(name.find("_float"), name.find("_bfloat")));
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (char c : row) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash % kParts;
}

/// Moves the element-wise rows of `from` into their parts.
void share_out(std::vector<Kernel>& from, Parts& parts) {
  std::vector<Kernel> rest;
  for (Kernel& k : from) {
    const bool row = k.entry.table == weft::KernelEntry::elementwise;
    (row ? parts[part_of(k)] : rest).push_back(std::move(k));
  }
  from = std::move(rest);
}

bool vectors(const std::string& folder, const std::string& level, const weft::VectorShape& shape) {
  std::vector<Kernel> all = weft::generate::product_kernels(shape);
  for (Kernel& k : weft::generate::transpose_kernels(shape)) all.push_back(std::move(k));
  for (Kernel& k : weft::generate::exchange_kernels(shape)) all.push_back(std::move(k));
  return write(folder, "vectors", all, "_" + level,
               "c:library=1,vector_bytes=" + std::to_string(shape.bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: weft_make_kernels DIR\n";
    return 2;
  }
  try {
    std::vector<Kernel> reals = weft::generate::table_kernels({Elem::float32, Elem::float64});
    for (Kernel& k : weft::generate::row_kernels({Elem::float32, Elem::float64}))
      reals.push_back(std::move(k));
    for (Kernel& k : weft::generate::plane_kernels({Elem::float32, Elem::float64}))
      reals.push_back(std::move(k));
    std::vector<Kernel> moves = weft::generate::cast_kernels();
    Parts parts;
    share_out(reals, parts);
    share_out(moves, parts);
    for (Kernel& k : weft::generate::sort_kernels()) moves.push_back(std::move(k));
    for (Kernel& k : weft::generate::parting_kernels()) moves.push_back(std::move(k));
    for (Kernel& k : weft::generate::copy_kernels()) moves.push_back(std::move(k));
    std::vector<Kernel> places = weft::generate::extreme_kernels();
    for (Kernel& k : weft::generate::index_kernels()) places.push_back(std::move(k));
    for (Kernel& k : weft::generate::loop_kernels()) places.push_back(std::move(k));
    for (Kernel& k : weft::generate::bit_kernels()) places.push_back(std::move(k));
    const std::string folder = argv[1];
    bool done = true;
    for (std::size_t i = 0; i < kParts; ++i)
      done = done && write(folder, "rows" + std::to_string(i), parts[i]);
    done =
        done &&
        write(folder, "integers",
              weft::generate::table_kernels({Elem::int8, Elem::int16, Elem::int32, Elem::int64,
                                             Elem::uint8, Elem::uint16, Elem::uint32,
                                             Elem::uint64})) &&
        write(folder, "reals", reals) &&
        write(folder, "complex", weft::generate::complex_kernels(false)) &&
        write(folder, "complex_products", weft::generate::complex_kernels(true)) &&
        write(folder, "booleans", weft::generate::table_kernels({Elem::boolean})) &&
        store(folder + "/random.c",
              weft::generate::library_text("random", weft::generate::random_kernels(),
                                           "c:library=1", weft::generate::philox_text())) &&
        store(folder + "/casts.c", weft::generate::library_text("casts", moves, "c:library=1",
                                                                weft::generate::parting_text())) &&
        write(folder, "places", places) && vectors(folder, "base", weft::kShapeBase) &&
        vectors(folder, "avx2", weft::kShapeAvx2) && vectors(folder, "avx512", weft::kShapeAvx512);
    return done ? 0 : 1;
  } catch (const weft::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
