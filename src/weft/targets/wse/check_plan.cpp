// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/check_plan.h"

#include <algorithm>

#include "weft/base/dtype.h"
#include "weft/base/error.h"
#include "weft/targets/wse/program.h"

namespace weft::wse {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostNumber = std::int64_t{1} << 31;

std::int64_t number(const Json& json, std::int64_t low, std::int64_t high, std::string_view what) {
  const std::int64_t value = json.as_int();
  if (value < low || value > high)
    damaged_plan(cat(what, " is ", value, "; legal: ", low, " to ", high));
  return value;
}

/// The product of extents of at least `least`, at most `most`.
std::int64_t product(const Json& list, std::int64_t least, std::int64_t most,
                     std::string_view what) {
  std::int64_t out = 1;
  for (const Json& e : list.as_array()) {
    const std::int64_t extent = number(e, least, most, what);
    if (extent > 0 && out > most / extent) damaged_plan(cat(what, " multiply to more than ", most));
    out *= extent;
  }
  return out;
}

struct Checker {
  const Json& plan;
  const Json::Array& buffers;
  std::int64_t width, height;

  std::size_t rank(std::size_t buffer) const { return buffers[buffer].at("shape").size(); }

  void check_buffer(std::size_t i) const {
    const Json& b = buffers[i];
    product(b.at("shape"), 0, kMostBytes / 8, cat("the extents of buffer ", i));
    const int bytes = parse_dtype(b.at("dtype").as_string()).bytes();
    if (bytes != 1 && bytes != 2 && bytes != 4)
      damaged_plan(cat("elements of buffer ", i, " have ", bytes, " bytes; legal: 1, 2 and 4"));
    const Json* of = b.find("view_of");
    if (!of) return;
    const auto whole = static_cast<std::size_t>(
        number(*of, 0, static_cast<std::int64_t>(buffers.size()) - 1, "view_of"));
    if (whole == i) damaged_plan(cat("buffer ", i, " is a view of itself"));
    if (b.at("index").size() != rank(whole))
      damaged_plan(cat("buffer ", i, " sees buffer ", whole, " through ", b.at("index").size(),
                       " indices, not ", rank(whole)));
    if (parse_dtype(buffers[whole].at("dtype").as_string()).bytes() != bytes)
      damaged_plan(cat("buffers ", i, " and ", whole, " have elements of different sizes"));
  }

  void check_array(const Json& a, std::size_t iters) const {
    const auto buffer = static_cast<std::size_t>(
        number(a.at("buffer"), 0, static_cast<std::int64_t>(buffers.size()) - 1, "a buffer"));
    const std::string& name = a.at("name").as_string();
    const std::size_t n = rank(buffer);
    if (a.at("base").size() != n || a.at("extent").size() != n || a.at("coef").size() != n)
      damaged_plan(
          cat("array \"", name, "\" has ", a.at("extent").size(), " dimensions, its buffer ", n));
    // What a PE holds has room in it; all PEs' parts fit the transfer's words.
    product(a.at("extent"), 1, kMemoryBytes, cat("the extents of array \"", name, "\""));
    // Distances in memory: those of the dimensions in some order.
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;
    if (a.at("strides").size() != n)
      damaged_plan(cat("array \"", name, "\" has ", a.at("strides").size(), " strides for ", n,
                       " dimensions"));
    for (std::size_t d = 0; d < n; ++d)
      steps.emplace_back(number(a.at("strides").at(d), 1, kMemoryBytes, "a stride"),
                         a.at("extent").at(d).as_int());
    std::sort(steps.begin(), steps.end());
    std::int64_t expected = 1;
    for (const auto& [stride, extent] : steps) {
      if (stride != expected && extent > 1)
        damaged_plan(cat("array \"", name, "\" has a stride of ", stride, " where ", expected,
                         " elements lie inside"));
      expected *= extent;
    }
    for (const Json& b : a.at("base").as_array()) number(b, -kMostNumber, kMostNumber, "a base");
    for (const Json& row : a.at("coef").as_array()) {
      if (row.size() != iters)
        damaged_plan(
            cat("array \"", name, "\" has ", row.size(), " factors for ", iters, " iterators"));
      for (const Json& c : row.as_array()) number(c, -kMostNumber, kMostNumber, "a factor");
    }
  }

  void check_stage(const Json& s) const {
    const Json::Array& iters = s.at("iters").as_array();
    for (const Json& i : iters) {
      number(i.at("extent"), 0, kMostNumber, "an iterator's extent");
      number(i.at("chunk"), 1, kMostNumber, "an iterator's chunk");
      number(i.at("spread"), 0, 3, "an iterator's spread");
    }
    for (const Json& a : s.at("inputs").as_array()) check_array(a, iters.size());
    check_array(s.at("output"), iters.size());
  }
};

}  // namespace

void damaged_plan(std::string what) {
  throw Error(ErrorKind::io, "wse.plan", cat("the kernel's plan is damaged: ", what))
      .help("build the module again: its file was changed");
}

std::int64_t bytes_of(const std::vector<std::int64_t>& shape, std::int64_t element) {
  for (std::int64_t e : shape) element *= e;
  return element;
}

void check_plan(const Json& plan, std::size_t arrays) {
  const Json::Array& buffers = plan.at("buffers").as_array();
  const Checker checker{plan, buffers, plan.at("width").as_int(), plan.at("height").as_int()};
  std::size_t params = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    params += buffers[i].at("param").as_bool() ? 1 : 0;
    checker.check_buffer(i);
  }
  if (params != arrays) damaged_plan(cat("it has ", params, " parameters, the kernel ", arrays));
  for (const Json& s : plan.at("stages").as_array()) checker.check_stage(s);
  if (const Json* takes = plan.find("takes")) {
    for (const Json& t : takes->as_array())
      if (t.at("from").as_string() == t.at("to").as_string())
        damaged_plan(cat("array \"", t.at("to").as_string(), "\" takes itself"));
  }
}

}  // namespace weft::wse
