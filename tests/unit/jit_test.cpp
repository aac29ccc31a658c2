// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/jit/jit.h"

namespace weft::jit {

TEST(Jit, compiles_text_and_calls_it) {
  if (!llvm().available) GTEST_SKIP() << llvm().reason;
  Ref<Code> code = compile(
      "declare float @llvm.sqrt.f32(float)\n"
      "@k = private constant [2 x float] [float 1.0, float 2.0]\n"
      "define float @f(float %x, i64 %i) {\n"
      "  %p = getelementptr float, ptr @k, i64 %i\n"
      "  %c = load float, ptr %p\n"
      "  %s = call float @llvm.sqrt.f32(float %x)\n"
      "  %r = fadd float %s, %c\n"
      "  ret float %r\n}\n"
      "declare float @expf(float)\n"
      "define float @g(float %x) {\n  %r = call float @expf(float %x)\n  ret float %r\n}\n");
  auto* f = code->function<float(float, std::int64_t)>("f");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f(9.0f, 1), 5.0f);
  EXPECT_EQ(code->function<float(float)>("g")(0.0f), 1.0f);
  EXPECT_EQ(code->find("absent"), nullptr);
}

TEST(Jit, refuses_text_that_is_not_llvm) {
  if (!llvm().available) GTEST_SKIP() << llvm().reason;
  try {
    compile("define i32 @f( {");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "jit.llvm.parse");
    EXPECT_NE(std::string(error.what()).find("refuses the text"), std::string::npos);
  }
}

TEST(Jit, a_damaged_object_is_refused) {
  if (!llvm().available) GTEST_SKIP() << llvm().reason;
  std::string object = compile_to_object("define i32 @f() {\n ret i32 7\n}\n");
  EXPECT_EQ(load_object(object)->function<int()>("f")(), 7);
  for (std::size_t cut : {std::size_t{0}, std::size_t{10}, std::size_t{64}, object.size() / 2}) {
    EXPECT_THROW(load_object(object.substr(0, cut)), Error) << cut;
  }
  std::string unknown = compile_to_object(
      "declare i32 @nowhere()\ndefine i32 @f() {\n %r = call i32 @nowhere()\n ret i32 %r\n}\n");
  try {
    load_object(unknown);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "jit.load.symbol");
    EXPECT_NE(error.message().find("nowhere"), std::string::npos);
  }
}

}  // namespace weft::jit
