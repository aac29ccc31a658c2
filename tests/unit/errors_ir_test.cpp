// SPDX-License-Identifier: Apache-2.0
// What base and the builders of programs refuse: kind, slug and text.

#include "../expect_error.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/ir/build.h"

namespace weft {
namespace {

using namespace ir;
using testing::expect_error;

TEST(BaseErrors, json_of_another_type_without_the_member_or_the_index) {
  const Json json = Json::parse(R"({"number": 1, "list": [1, 2]})");
  expect_error(ErrorKind::value, "json.type", {"string", "integer"},
               [&] { json.at("number").as_string(); });
  expect_error(ErrorKind::value, "json.key", {"\"nubmer\"", "did you mean \"number\"?", "list"},
               [&] { json.at("nubmer"); });
  expect_error(ErrorKind::index, "json.index", {"2"}, [&] { json.at("list").at(2); });
}

TEST(BaseErrors, a_file_that_cannot_be_written_and_a_broken_invariant) {
  expect_error(ErrorKind::io, "file.write", {"/proc/none/file"},
               [] { write_file_atomic("/proc/none/file", "x"); });
  expect_error(ErrorKind::internal, "internal.check",
               {"a mistake in weft", "1 == 2", "two is 2", "errors_ir_test.cpp:"},
               [] { WEFT_CHECK(1 == 2, "two is ", 2); });
}

TEST(BuildErrors, operands_that_cannot_be_joined) {
  const Expr i = make_var("i"), x = make_var("x", dtypes::float32),
             p = make_var("p", dtypes::handle), v4 = make_var("v", dtypes::int64.with_lanes(4));
  auto types = [](std::initializer_list<std::string_view> parts, auto f) {
    expect_error(ErrorKind::dtype, "ir.build.types", parts, f);
  };
  types({"\"+\"", "int64", "float32", "T.Cast"}, [&] { i + x; });
  types({"\"and\"", "int64"}, [&] { logical_and(i, i); });
  types({"\"//\"", "float32", "T.floor"}, [&] { floordiv(x, x); });
  types({"\"%\"", "float32", "T.fmod"}, [&] { floormod(x, x); });
  types({"handle"}, [&] { p + p; });
  types({"\"not\"", "int64"}, [&] { logical_not(i); });
  types({"select", "int64"}, [&] { select(i, x, x); });
  types({"broadcast", "int64x4"}, [&] { broadcast(v4, 2); });
}

TEST(BuildErrors, calls) {
  const Expr i = make_var("i"), x = make_var("x", dtypes::float32);
  expect_error(ErrorKind::value, "ir.call.unknown", {"\"sqtr\"", "did you mean \"sqrt\"?"},
               [&] { call("sqtr", {x}); });
  expect_error(ErrorKind::value, "ir.call.arity", {"\"sqrt\" takes 1", "2"}, [&] {
    call("sqrt", {x, x});
  });
  expect_error(ErrorKind::dtype, "ir.call.types", {"\"sqrt\" needs a float", "int64"},
               [&] { call("sqrt", {i}); });
  expect_error(ErrorKind::dtype, "ir.call.types", {"\"popcount\" needs an integer", "float32"},
               [&] { call("popcount", {x}); });
  expect_error(ErrorKind::value, "ir.call.reinterpret", {"no type of its own", "call_typed"},
               [&] { call("reinterpret", {x}); });
}

TEST(BuildErrors, stores) {
  const Buffer a = make_buffer("A", dtypes::float32, {make_int(4), make_int(4)});
  const Expr i = make_var("i"), x = make_var("x", dtypes::float32),
             y = make_var("y", dtypes::float64);
  expect_error(ErrorKind::shape, "ir.store.rank", {"\"A\" has 2 dimensions", "1 indices"},
               [&] { store(a, x, {i}); });
  expect_error(ErrorKind::dtype, "ir.store.types",
               {"\"A\" holds float32", "float64 is stored", "T.Cast"}, [&] {
                 store(a, y, {i, i});
               });
}

}  // namespace
}  // namespace weft
