// SPDX-License-Identifier: Apache-2.0
// The program of products of 16-bit arrays under the rule's schedule, run by the interpreter
// against sums taken directly; and each form of it as a cubin that keeps its registers.

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <tuple>

#include "weft/base/error.h"
#include "weft/devices/gemm_program.h"
#include "weft/devices/pieces.h"
#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

using device::GemmProgram;

float widen(std::uint16_t v) { return std::bit_cast<float>(std::uint32_t{v} << 16); }
std::uint16_t narrow(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
std::int64_t up(std::int64_t v, std::int64_t to) { return (v + to - 1) / to; }

struct Form {
  const char* name;
  bool a_along_m, b_along_n, partial;
  int unit, batch_axes;
  std::int64_t rows, columns, slots, parts, cluster = 1;
  bool turned = false;
  std::int64_t cluster_columns = 1;
};

/// Rows of a multiple of 8 elements, batches one after the other.
struct Matrix {
  std::int64_t rows, row, pitch, step;
  std::vector<std::uint16_t> data;
  Matrix(std::int64_t batches, std::int64_t r, std::int64_t c)
      : rows(r), row(c), pitch(up(c, 8) * 8), step(pitch * r) {
    data.resize(static_cast<std::size_t>(step * batches), narrow(99));
  }
  std::uint16_t& at(std::int64_t z, std::int64_t i, std::int64_t j) {
    return data[static_cast<std::size_t>(z * step + i * pitch + j)];
  }
  void fill(std::mt19937& rng, std::int64_t batches) {  // few bits: sums are exact
    for (std::int64_t z = 0; z < batches; ++z)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < row; ++j)
          at(z, i, j) = narrow(static_cast<float>(static_cast<int>(rng() % 17) - 8) / 8);
  }
};

GemmProgram program_of(const Form& form) {
  GemmProgram p;
  p.type = p.type_b = p.result = dtypes::bfloat16, p.partial = form.partial;
  p.a_along_m = form.a_along_m, p.b_along_n = form.b_along_n;
  p.unit = form.unit, p.batch_axes = form.batch_axes;
  // a moves along the inner batch axis, b along the outer one.
  if (form.batch_axes == 2) p.moves_a[1] = p.moves_b[0] = true;
  if (form.batch_axes == 1) p.moves_a[0] = true;
  const std::int64_t cluster = form.cluster * form.cluster_columns;
  p.decisions = {
      form.rows,    form.columns,         form.slots, form.parts, cluster > 1 ? 2 * cluster : 3,
      form.cluster, form.cluster_columns, form.turned};
  return p;
}

std::int64_t product_errors(const Form& form, std::int64_t m, std::int64_t n, std::int64_t k) {
  const GemmProgram p = program_of(form);
  const std::int64_t inner = form.batch_axes > 0 ? 2 : 1, outer = form.batch_axes > 1 ? 2 : 1;
  std::mt19937 rng(7);
  Matrix a(inner, form.a_along_m ? k : m, form.a_along_m ? m : k),
      b(outer, form.b_along_n ? k : n, form.b_along_n ? n : k);
  a.fill(rng, inner), b.fill(rng, outer);
  const std::int64_t part = up(up(k, 64), form.parts), batches = inner * outer;
  std::vector<float> sums(static_cast<std::size_t>(form.parts * batches * m * n), NAN);
  std::vector<std::uint16_t> rounded(static_cast<std::size_t>(batches * m * n), narrow(NAN));
  std::vector<ir::InterpretArg> args;
  auto matrix = [&](Matrix& x, bool moves, std::int64_t count) {
    ir::InterpretArg arg{x.data.data(), {x.rows, x.row}, {x.pitch, 1}, 0, 0};
    if (moves)
      arg.shape.insert(arg.shape.begin(), count), arg.strides.insert(arg.strides.begin(), x.step);
    args.push_back(arg);
  };
  matrix(a, form.batch_axes > 0, inner), matrix(b, form.batch_axes > 1, outer);
  std::vector<std::int64_t> shape;
  if (form.parts > 1) shape.push_back(form.parts);
  if (form.batch_axes > 1) shape.push_back(outer);
  if (form.batch_axes > 0) shape.push_back(inner);
  shape.insert(shape.end(), {m, n});
  args.push_back(
      {form.partial ? static_cast<void*>(sums.data()) : rounded.data(), shape, {}, 0, 0});
  auto number = [&](std::int64_t v) { args.push_back({nullptr, {}, {}, v, 0}); };
  for (std::int64_t v : {m, n / form.unit, k, form.parts, part}) number(v);
  if (form.batch_axes > 1) number(outer);
  if (form.batch_axes > 0) number(inner), number(a.step / 8);
  number(a.pitch / 8);
  if (form.batch_axes > 1) number(b.step / 8);
  number(b.pitch / 8);
  ir::interpret(
      pass::run_pipeline(find_backend("ref").pipeline(Target::parse("ref")), p.scheduled()), args);
  std::int64_t wrong = 0;
  for (std::int64_t z = 0; z < batches; ++z) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float want = 0, got = 0;
        for (std::int64_t r = 0; r < k; ++r)
          want += widen(form.a_along_m ? a.at(z % inner, r, i) : a.at(z % inner, i, r)) *
                  widen(form.b_along_n ? b.at(z / inner, r, j) : b.at(z / inner, j, r));
        if (form.partial) {
          for (std::int64_t q = 0; q < form.parts; ++q)
            got += sums[static_cast<std::size_t>(((q * batches + z) * m + i) * n + j)];
        } else {
          got = widen(rounded[static_cast<std::size_t>((z * m + i) * n + j)]);
          want = widen(narrow(want));
        }
        wrong += !(got == want);
      }
    }
  }
  return wrong;
}

const Form kForms[] = {
    {"two_groups", false, true, false, 8, 0, 128, 128, 3, 1},
    {"a_transposed", true, true, false, 8, 0, 128, 64, 2, 1},
    {"b_transposed", false, false, false, 8, 1, 64, 192, 2, 1},
    {"both_transposed", true, false, false, 8, 2, 64, 64, 2, 1},
    {"pairs", false, true, false, 2, 1, 64, 64, 2, 1},
    {"singles", false, true, false, 1, 0, 64, 64, 2, 1},
    {"sums", false, true, true, 2, 2, 64, 128, 4, 1},
    {"parts", false, true, true, 1, 0, 128, 64, 3, 4},
    {"parts_of_batches", true, false, true, 2, 2, 64, 64, 2, 2},
    {"half_pieces", false, true, false, 8, 0, 128, 96, 2, 1},
    {"half_pieces_of_pairs", true, true, false, 2, 1, 64, 160, 2, 1},
    {"half_pieces_b_transposed", false, false, false, 8, 0, 128, 224, 2, 1},
    {"widest", false, true, false, 8, 0, 128, 256, 2, 1},
    {"cluster", false, true, false, 8, 0, 64, 128, 3, 1, 2},
    {"cluster_of_four", false, false, false, 8, 1, 64, 96, 2, 1, 4},
    {"cluster_of_two_groups", true, true, false, 2, 1, 128, 96, 2, 1, 2},
    {"cluster_of_parts", false, true, true, 1, 2, 64, 64, 2, 3, 2},
    {"turned", false, true, false, 8, 0, 128, 80, 2, 1, 1, true},
    {"turned_other_layout", true, false, false, 2, 1, 64, 144, 2, 1, 1, true},
    {"turned_cluster", false, false, false, 1, 0, 64, 48, 2, 1, 2, true},
    {"turned_parts", true, true, true, 2, 2, 192, 112, 2, 2, 1, true},
    {"cluster_beside", false, true, false, 8, 0, 64, 96, 3, 1, 1, false, 2},
    {"cluster_of_four_beside", true, false, false, 2, 1, 64, 64, 2, 1, 1, false, 4},
    {"cluster_of_two_by_two", true, true, false, 1, 2, 64, 64, 2, 1, 2, false, 2},
    {"cluster_of_two_by_four", false, false, false, 8, 0, 128, 32, 2, 1, 2, false, 4},
    {"cluster_of_four_by_two", false, true, true, 2, 0, 64, 48, 2, 2, 4, false, 2},
    {"turned_cluster_beside", true, false, false, 8, 0, 192, 32, 2, 1, 1, true, 2},
};

class ArrayGemm : public ::testing::TestWithParam<Form> {};

TEST_P(ArrayGemm, multiplies) {
  const Form& form = GetParam();
  const std::int64_t n = form.unit == 8 ? 136 : form.unit == 2 ? 70 : 67;
  EXPECT_EQ(product_errors(form, 150, n, 200), 0);
  EXPECT_EQ(product_errors(form, 1, form.unit, 1), 0);
}

TEST_P(ArrayGemm, compiles) {
  ir::IRModule module = ir::make_module(program_of(GetParam()).scheduled());
  try {
    const Ref<runtime::Module> built = build(module, "cuda:arch=sm_90");
    (void)built;
  } catch (const Error& e) {
    if (e.code() == "cuda.nvrtc.missing" || e.code() == "cuda.compiler.missing")
      GTEST_SKIP() << e.message();
    throw;
  }
}

/// Operands of float32 in pieces: every plane has numbers of its own, of few bits.
std::int64_t pieces_errors(const GemmProgram& p, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::mt19937 rng(11);
  Matrix a(device::kPiecePlanes, p.a_along_m ? k : m, p.a_along_m ? m : k),
      b(device::kPiecePlanes, p.b_along_n ? k : n, p.b_along_n ? n : k);
  a.fill(rng, device::kPiecePlanes), b.fill(rng, device::kPiecePlanes);
  const std::int64_t parts = p.decisions.parts, part = up(up(k, 64), parts);
  const std::int64_t pitch = p.pitched ? n + 2 * p.unit : n;
  std::vector<float> out(static_cast<std::size_t>(parts * m * pitch), NAN),
      bias(static_cast<std::size_t>(n), 0);
  for (float& v : bias) v = p.bias ? static_cast<float>(rng() % 5) : 0;
  std::vector<ir::InterpretArg> args;
  for (Matrix* x : {&a, &b})
    args.push_back(
        {x->data.data(), {device::kPiecePlanes, x->rows, x->row}, {x->step, x->pitch, 1}, 0, 0});
  std::vector<std::int64_t> shape{m, n};
  if (parts > 1) shape.insert(shape.begin(), parts);
  std::vector<std::int64_t> steps;
  if (p.pitched) steps = {pitch, 1};
  args.push_back({out.data(), shape, steps, 0, 0});
  if (p.bias) args.push_back({bias.data(), {n}, {}, 0, 0});
  for (std::int64_t v :
       {m, n / p.unit, k, parts, part, a.step / 8, a.pitch / 8, b.step / 8, b.pitch / 8})
    args.push_back({nullptr, {}, {}, v, 0});
  if (p.pitched) args.push_back({nullptr, {}, {}, pitch / p.unit, 0});
  ir::interpret(
      pass::run_pipeline(find_backend("ref").pipeline(Target::parse("ref")), p.scheduled()), args);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = n; j < pitch; ++j)
      wrong += !std::isnan(out[static_cast<std::size_t>(i * pitch + j)]);
    for (std::int64_t j = 0; j < n; ++j) {
      float want = bias[static_cast<std::size_t>(j)], got = 0;
      for (std::int64_t r = 0; r < k; ++r) {
        for (int pair = 0; pair < rules::kPieceProducts; ++pair) {
          const int x = device::kPieceOfA[pair], y = device::kPieceOfB[pair];
          want += widen(p.a_along_m ? a.at(x, r, i) : a.at(x, i, r)) *
                  widen(p.b_along_n ? b.at(y, r, j) : b.at(y, j, r));
        }
      }
      for (std::int64_t q = 0; q < parts; ++q)
        got += out[static_cast<std::size_t>((q * m + i) * pitch + j)];
      wrong += !(got == want);
    }
  }
  return wrong;
}

class ArrayGemmPieces : public ::testing::TestWithParam<int> {};

TEST_P(ArrayGemmPieces, multiplies) {
  const int form = GetParam();
  GemmProgram p;
  p.type = p.type_b = dtypes::bfloat16, p.result = dtypes::float32, p.pieces = true;
  p.a_along_m = form % 2, p.b_along_n = form / 2 % 2;
  p.bias = form == 1, p.partial = !p.bias, p.pitched = form == 0 || form == 1;
  p.unit = form % 3 ? 1 : 2;
  p.decisions = {form == 3 ? 192 : 64 * (1 + form % 2),
                 64 + 16 * (form % 3),
                 2,
                 form == 2 ? 2 : 1,
                 form == 4 ? 4 : 3,
                 form == 4 ? 2 : 1};
  EXPECT_EQ(pieces_errors(p, 150, p.unit == 1 ? 67 : 70, 200), 0);
  EXPECT_EQ(pieces_errors(p, 3, p.unit, 1), 0);
  try {
    const Ref<runtime::Module> built = build(ir::make_module(p.scheduled()), "cuda:arch=sm_90");
    (void)built;
  } catch (const Error& e) {
    if (e.code() == "cuda.nvrtc.missing" || e.code() == "cuda.compiler.missing")
      GTEST_SKIP() << e.message();
    throw;
  }
}

INSTANTIATE_TEST_SUITE_P(forms, ArrayGemmPieces, ::testing::Range(0, 6));

/// Operands of float8 in rows along k, sums scaled and a bias added.
GemmProgram scaled_program(GemmProgram::Scale a, GemmProgram::Scale b, bool bias, DType result) {
  GemmProgram p;
  p.type = dtypes::float8_e4m3fn, p.type_b = dtypes::float8_e5m2, p.result = result;
  p.b_along_n = false, p.unit = 8;
  p.scale_a = a, p.scale_b = b, p.bias = bias;
  p.decisions = {64, 96, 2, 1, 3};
  return p;
}

TEST(ArrayGemmScaled, multiplies_float8) {
  using Scale = GemmProgram::Scale;
  const std::int64_t m = 70, n = 104, k = 144;
  std::mt19937 rng(5);
  auto codes = [&](DType type, std::int64_t count) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(count));
    for (std::uint8_t& v : out)
      v = float_to_float8(type, static_cast<float>(static_cast<int>(rng() % 9) - 4));
    return out;
  };
  auto numbers = [&](std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& v : out) v = static_cast<float>(static_cast<int>(rng() % 8) + 1) / 4;
    return out;
  };
  std::vector<std::uint8_t> a = codes(dtypes::float8_e4m3fn, m * k),
                            b = codes(dtypes::float8_e5m2, n * k);
  for (const auto& [sa, sb, bias] :
       {std::tuple(Scale::each, Scale::each, true), std::tuple(Scale::one, Scale::none, false)}) {
    const GemmProgram p = scaled_program(sa, sb, bias, dtypes::float32);
    std::vector<float> rows = numbers(sa == Scale::each ? m : 1),
                       columns = numbers(sb == Scale::each ? n : 1), added = numbers(n),
                       out(static_cast<std::size_t>(m * n), NAN);
    std::vector<ir::InterpretArg> args{{a.data(), {m, k}, {k, 1}, 0, 0},
                                       {b.data(), {n, k}, {k, 1}, 0, 0},
                                       {out.data(), {m, n}, {}, 0, 0}};
    auto factor = [&](std::vector<float>& x) {
      args.push_back({x.data(), {static_cast<std::int64_t>(x.size())}, {}, 0, 0});
    };
    if (sa != Scale::none) factor(rows);
    if (sb != Scale::none) factor(columns);
    if (bias) factor(added);
    for (std::int64_t v : {m, n / p.unit, k, std::int64_t{1}, std::int64_t{2}, k / 16, k / 16})
      args.push_back({nullptr, {}, {}, v, 0});
    ir::interpret(
        pass::run_pipeline(find_backend("ref").pipeline(Target::parse("ref")), p.scheduled()),
        args);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float want = 0;
        for (std::int64_t r = 0; r < k; ++r)
          want += float8_to_float(p.type, a[static_cast<std::size_t>(i * k + r)]) *
                  float8_to_float(p.type_b, b[static_cast<std::size_t>(j * k + r)]);
        if (sa != Scale::none) want *= rows[sa == Scale::each ? static_cast<std::size_t>(i) : 0];
        if (sb != Scale::none) want *= columns[sb == Scale::each ? static_cast<std::size_t>(j) : 0];
        if (bias) want += added[static_cast<std::size_t>(j)];
        ASSERT_EQ(out[static_cast<std::size_t>(i * n + j)], want) << i << ", " << j;
      }
    }
  }
}

TEST(ArrayGemmScaled, compiles) {
  using Scale = GemmProgram::Scale;
  for (const DType result : {dtypes::bfloat16, dtypes::float32}) {
    const GemmProgram p = scaled_program(Scale::each, Scale::one, true, result);
    try {
      const Ref<runtime::Module> built = build(ir::make_module(p.scheduled()), "cuda:arch=sm_90");
      (void)built;
    } catch (const Error& e) {
      if (e.code() == "cuda.nvrtc.missing" || e.code() == "cuda.compiler.missing")
        GTEST_SKIP() << e.message();
      throw;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(forms, ArrayGemm, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return form.param.name; });

}  // namespace
}  // namespace weft
