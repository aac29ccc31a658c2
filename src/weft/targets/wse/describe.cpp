// SPDX-License-Identifier: Apache-2.0
// What the device needs to move data, as JSON.
#include "weft/targets/wse/lower.h"

namespace weft::wse {

Json describe(const StageProgram& p) {
  Json out = Json::object();
  out["name"] = p.name;
  out["width"] = p.width;
  out["height"] = p.height;
  Json buffers = Json::array();
  for (const StageBuffer& b : p.buffers) {
    Json row = Json::object();
    row["dtype"] = to_string(b.dtype);
    row["param"] = b.param;
    if (b.view_of >= 0) {
      row["view_of"] = static_cast<std::int64_t>(b.view_of);
      row["index"] = b.index;
    }
    Json shape = Json::array();
    for (std::int64_t e : b.shape) shape.push_back(e);
    row["shape"] = shape;
    buffers.push_back(row);
  }
  out["buffers"] = buffers;
  auto numbers = [](const std::vector<std::int64_t>& v) {
    Json list = Json::array();
    for (std::int64_t n : v) list.push_back(n);
    return list;
  };
  auto array = [&](const LocalArray& a) {
    Json row = Json::object();
    row["name"] = a.name;
    row["buffer"] = static_cast<std::int64_t>(a.buffer);
    Json coef = Json::array();
    for (const auto& c : a.coef) coef.push_back(numbers(c));
    row["coef"] = coef;
    row["kept"] = a.on_wafer();
    row["base"] = numbers(a.base);
    row["extent"] = numbers(a.extent);
    row["strides"] = numbers(a.strides());
    return row;
  };
  Json stages = Json::array();
  for (const Stage& s : p.stages) {
    Json row = Json::object();
    row["name"] = s.name;
    row["keeps"] = s.keeps;
    row["collect"] = s.collect;
    row["whole"] = s.whole;
    row["reduced"] = static_cast<int>(s.reduced);
    Json iters = Json::array();
    for (const StageIter& i : s.iters) {
      Json it = Json::object();
      it["extent"] = i.extent;
      it["chunk"] = i.chunk;
      it["reduce"] = i.reduce;
      it["travels"] = i.travels;
      it["spread"] = static_cast<int>(i.partition);
      iters.push_back(it);
    }
    row["iters"] = iters;
    Json inputs = Json::array();
    for (const LocalArray& a : s.inputs) inputs.push_back(array(a));
    row["inputs"] = inputs;
    row["output"] = array(s.output);
    stages.push_back(row);
  }
  out["stages"] = stages;
  Json takes = Json::array();
  for (const Take& t : p.takes) {
    Json row = Json::object();
    row["from"] = t.from;
    row["to"] = t.to;
    takes.push_back(row);
  }
  out["takes"] = takes;
  return out;
}

}  // namespace weft::wse
