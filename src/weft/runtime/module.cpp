// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/module.h"

#include <cstring>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/runtime/signature.h"

namespace weft::runtime {

namespace {

// Layout: magic, version u32, header length u64, header (JSON), payloads in the order of the
// header's "payloads" sizes, checksum u64 over everything before it. Little-endian.
constexpr char kModuleMagic[8] = {'W', 'E', 'F', 'T', 'M', 'O', 'D', '\n'};
constexpr std::uint32_t kModuleVersion = 1;
constexpr std::size_t kPrefix = sizeof(kModuleMagic) + 4 + 8;
// Read, a header takes some twenty times its size; no program's comes near this.
constexpr std::uint64_t kMostHeader = 32u << 20;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t get(std::string_view in, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |=
        static_cast<std::uint64_t>(static_cast<unsigned char>(in[at + static_cast<std::size_t>(i)]))
        << (8 * i);
  }
  return value;
}

Json signature_json(const KernelSignature& k) {
  Json out = Json::object(), params = Json::array(), axes = Json::array();
  for (const KernelParam& p : k.params) {
    Json j = Json::object();
    j["name"] = p.name;
    j["pointer"] = p.kind == ParamKind::pointer;
    j["dtype"] = to_string(p.dtype);
    j["space"] = p.space;
    if (p.kind == ParamKind::tensor) {
      Json box = Json::array(), steps = Json::array();
      for (int n : p.box) box.push_back(n);
      for (int n : p.steps) steps.push_back(n);
      j["box"] = std::move(box);
      j["steps"] = std::move(steps);
    }
    params.push_back(std::move(j));
  }
  for (const std::string& a : k.axes) axes.push_back(a);
  out["name"] = k.name;
  out["params"] = std::move(params);
  out["axes"] = std::move(axes);
  out["scratch_bytes"] = k.scratch_bytes;
  return out;
}

KernelSignature signature_from(const Json& json) {
  KernelSignature k;
  k.name = json.at("name").as_string();
  for (const Json& p : json.at("params").as_array()) {
    KernelParam param{p.at("name").as_string(),
                      p.at("pointer").as_bool() ? ParamKind::pointer : ParamKind::scalar,
                      parse_dtype(p.at("dtype").as_string()), p.at("space").as_string()};
    if (const Json* box = p.find("box")) {
      param.kind = ParamKind::tensor;
      for (const Json& n : box->as_array()) param.box.push_back(static_cast<int>(n.as_int()));
      for (const Json& n : p.at("steps").as_array())
        param.steps.push_back(static_cast<int>(n.as_int()));
      if (param.box.empty() || param.box.size() > 5 || param.steps.size() != param.box.size())
        throw Error(ErrorKind::io, "module.file.tensor",
                    cat("parameter \"", param.name, "\" of kernel \"", k.name, "\" has ",
                        param.box.size(), " extents and ", param.steps.size(), " steps"))
            .note("legal: 1 to 5 extents and as many steps");
    }
    k.params.push_back(std::move(param));
  }
  for (const Json& a : json.at("axes").as_array()) k.axes.push_back(a.as_string());
  k.scratch_bytes = json.at("scratch_bytes").as_int();
  return k;
}

void check_launches(const std::vector<PlanStep>& steps, const Binary& binary) {
  for (const PlanStep& s : steps) {
    if (s.kind == StepKind::launch) {
      const KernelSignature& k = binary.kernel(s.text);
      const std::vector<bool> pointers = pointer_arguments(k);
      const std::size_t wanted = pointers.size();
      if (wanted != s.args.size() || k.axes.size() != s.extents.size()) {
        throw Error(
            ErrorKind::io, "module.file.plan",
            cat("the plan hands ", s.args.size(), " arguments and ", s.extents.size(),
                " extents to kernel \"", s.text, "\", which has ", wanted, " and ", k.axes.size()));
      }
      for (std::size_t i = 0; i < wanted; ++i) {
        if (s.args[i].is_pointer == pointers[i]) continue;
        throw Error(ErrorKind::io, "module.file.plan",
                    cat("the plan hands ", pointers[i] ? "a number" : "an array", " as argument ",
                        i + 1, " to kernel \"", s.text, "\", which takes ",
                        pointers[i] ? "an array" : "a number"));
      }
    }
    check_launches(s.body, binary);
    check_launches(s.otherwise, binary);
  }
}

}  // namespace

std::vector<std::string> Module::notes() const {
  std::vector<std::string> out;
  const Json* list = binary_.metadata.is_object() ? binary_.metadata.find("notes") : nullptr;
  if (!list || !list->is_array()) return out;
  for (const Json& note : list->as_array()) {
    if (note.is_string()) out.push_back(note.as_string());
  }
  return out;
}

const HostPlan& Module::plan(std::string_view name) const {
  std::vector<std::string> known;
  for (const HostPlan& p : plans_) {
    if (p.name == name) return p;
    known.push_back(p.name);
  }
  throw Error(ErrorKind::value, "module.function.unknown",
              cat("the module has no function \"", name, "\""))
      .note(cat("functions: ", join(known)))
      .help(did_you_mean(name, known));
}

std::string Module::serialize() const {
  Json header = Json::object(), kernels = Json::array(), debug = Json::array(),
       plans = Json::array(), sizes = Json::array();
  for (const KernelSignature& k : binary_.kernels) kernels.push_back(signature_json(k));
  for (const DebugEntry& d : binary_.debug) {
    Json e = Json::array();
    e.push_back(d.pc);
    e.push_back(d.block);
    e.push_back(d.file);
    e.push_back(d.line);
    debug.push_back(std::move(e));
  }
  for (const HostPlan& p : plans_) plans.push_back(to_json(p));
  sizes.push_back(binary_.bytes.size());
  sizes.push_back(binary_.source.size());
  header["target"] = binary_.target;
  header["format"] = binary_.format;
  header["kernels"] = std::move(kernels);
  header["debug"] = std::move(debug);
  header["metadata"] = binary_.metadata;
  header["plans"] = std::move(plans);
  header["payloads"] = std::move(sizes);
  std::string text = header.dump();
  std::string out(kModuleMagic, sizeof(kModuleMagic));
  put(out, kModuleVersion, 4);
  put(out, text.size(), 8);
  out += text;
  out += binary_.bytes;
  out += binary_.source;
  put(out, hash_bytes(out.data(), out.size()), 8);
  return out;
}

Ref<Module> Module::deserialize(std::string_view bytes, std::string_view name) {
  auto refuse = [&](std::string_view reason, std::string detail) {
    return Error(ErrorKind::io, cat("module.file.", reason), cat("\"", name, "\" ", detail));
  };
  if (bytes.size() < sizeof(kModuleMagic) ||
      std::memcmp(bytes.data(), kModuleMagic, sizeof(kModuleMagic)) != 0) {
    throw refuse("foreign", cat("is no module of weft (", bytes.size(), " bytes)"));
  }
  if (bytes.size() < kPrefix + 8)
    throw refuse("truncated", cat("ends after ", bytes.size(), " bytes"));
  std::uint64_t version = get(bytes, sizeof(kModuleMagic), 4);
  if (version != kModuleVersion) {
    throw refuse("version", cat("has format version ", version))
        .note(cat("this build reads version ", kModuleVersion))
        .help("build the module again with this version");
  }
  std::size_t end = bytes.size() - 8;
  std::uint64_t length = get(bytes, sizeof(kModuleMagic) + 4, 8);
  if (length > end - kPrefix)
    throw refuse("truncated",
                 cat("announces a header of ", length, " bytes and has ", end - kPrefix));
  if (length > kMostHeader)
    throw refuse("header", cat("has a header of ", human_bytes(length)))
        .note(cat("legal: at most ", human_bytes(kMostHeader)));
  std::uint64_t found = hash_bytes(bytes.data(), end), stated = get(bytes, end, 8);
  if (found != stated)
    throw refuse("checksum", cat("is damaged: checksum ", hex(found), ", stated ", hex(stated)));
  try {
    Json header = Json::parse(bytes.substr(kPrefix, length), name);
    const Json::Array& sizes = header.at("payloads").as_array();
    std::size_t rest = end - kPrefix - length;
    if (sizes.size() != 2)
      throw refuse("payload", cat("has ", sizes.size(), " payloads, 2 are expected"));
    auto a = static_cast<std::uint64_t>(sizes[0].as_int()),
         b = static_cast<std::uint64_t>(sizes[1].as_int());
    if (a > rest || b != rest - a)
      throw refuse("payload", cat("announces ", a, " + ", b, " bytes and has ", rest));
    Binary binary;
    binary.target = header.at("target").as_string();
    binary.format = header.at("format").as_string();
    for (const Json& k : header.at("kernels").as_array())
      binary.kernels.push_back(signature_from(k));
    for (const Json& d : header.at("debug").as_array()) {
      binary.debug.push_back({static_cast<std::uint64_t>(d.at(0).as_int()), d.at(1).as_string(),
                              d.at(2).as_string(), static_cast<int>(d.at(3).as_int())});
    }
    binary.metadata = header.at("metadata");
    binary.bytes = bytes.substr(kPrefix + length, a);
    binary.source = bytes.substr(kPrefix + length + a, b);
    std::vector<HostPlan> plans;
    for (const Json& p : header.at("plans").as_array()) {
      plans.push_back(plan_from_json(p));
      check_launches(plans.back().steps, binary);
    }
    return make_ref<Module>(std::move(binary), std::move(plans));
  } catch (Error& e) {
    throw e.context(cat("while reading module \"", name, "\""));
  }
}

void Module::save(const std::string& path) const { write_file_atomic(path, serialize()); }

Ref<Module> Module::load(const std::string& path) { return deserialize(read_file(path), path); }

}  // namespace weft::runtime
