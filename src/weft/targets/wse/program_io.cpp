// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/program_io.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <type_traits>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/json.h"

namespace weft::wse {

namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMagic = 0x35305f6573775f77ull;  // "w_wse_05"

struct Writer {
  std::string out;
  void raw(const void* data, std::size_t n) { out.append(static_cast<const char*>(data), n); }
};

struct Reader {
  std::string_view in;
  std::string_view file;
  std::size_t pos = 0;
  void raw(void* data, std::size_t n) {
    if (n > in.size() - pos) {
      throw Error(ErrorKind::io, "wse.artifact.read", cat(file, " ends early at byte ", in.size()));
    }
    std::memcpy(data, in.data() + pos, n);
    pos += n;
  }
};

// Every struct lists its fields once; `a` is a Writer or a Reader.
template <typename A, typename T>
void io(A& a, T& v);
template <typename A, typename... Ts>
void all(A& a, Ts&... vs) {
  (io(a, vs), ...);
}

template <typename A>
void fields(A& a, Completion& v) {
  all(a, v.kind, v.space, v.id);
}
template <typename A>
void fields(A& a, OpSettings& v) {
  all(a, v.async, v.save_address, v.single_step, v.terminate_on_control, v.done, v.on_control,
      v.ut_id, v.priority);
}
template <typename A>
void fields(A& a, SettingRegs& v) {
  all(a, v.index, v.done, v.on_control);
}
template <typename A>
void fields(A& a, Operand& v) {
  all(a, v.kind, v.file, v.index, v.loaded);
}
template <typename A>
void fields(A& a, BulkOp& v) {
  all(a, v.code, v.dst, v.src0, v.src1, v.scalar, v.settings, v.regs, v.fp_bf16, v.fp_cb16);
}
template <typename A>
void fields(A& a, MapOp::In& v) {
  all(a, v.operand, v.ty);
}
template <typename A>
void fields(A& a, MapOp& v) {
  all(a, v.function, v.window, v.inputs, v.out, v.out_ty, v.settings);
}
template <typename A>
void fields(A& a, DsrLoad& v) {
  all(a, v.file, v.index, v.dsd, v.settings, v.regs);
}
template <typename A>
void fields(A& a, Fifo& v) {
  all(a, v.base, v.bytes, v.elem_bytes, v.on_push, v.on_pop, v.priority, v.on_empty, v.on_full);
}
template <typename A>
void fields(A& a, Function& v) {
  all(a, v.name, v.code, v.regs, v.dsds, v.frame_bytes, v.params, v.lines);
}
template <typename A>
void fields(A& a, TaskBinding& v) {
  all(a, v.space, v.id, v.function, v.args);
}
template <typename A>
void fields(A& a, TaskState& v) {
  all(a, v.space, v.id, v.active, v.blocked, v.unblocked);
}
template <typename A>
void fields(A& a, QueueInit& v) {
  all(a, v.output, v.queue, v.color, v.priority, v.control_table);
}
template <typename A>
void fields(A& a, Segment& v) {
  all(a, v.address, v.bytes);
}
template <typename A>
void fields(A& a, Symbol& v) {
  all(a, v.name, v.address, v.bytes, v.elem);
}
template <typename A>
void fields(A& a, ExportBinding& v) {
  all(a, v.id, v.address, v.function);
}
template <typename A>
void fields(A& a, Filter& v) {
  all(a, v.kind, v.count_data, v.count_control, v.filter_control, v.min_index, v.max_index,
      v.init_counter, v.limit1, v.limit2, v.max_counter);
}
template <typename A>
void fields(A& a, SwitchPosition& v) {
  all(a, v.valid, v.rx, v.tx);
}
template <typename A>
void fields(A& a, Route& v) {
  all(a, v.rx, v.tx, v.positions, v.current, v.ring, v.teardown, v.swap_x, v.swap_y, v.pop,
      v.filter);
}
template <typename A>
void fields(A& a, ColorRoute& v) {
  all(a, v.color, v.route);
}
template <typename A>
void fields(A& a, StartConfig& v) {
  all(a, v.fn, v.args);
}
template <typename A>
void fields(A& a, Rotation& v) {
  all(a, v.queue, v.entry, v.limit, v.init);
}
template <typename A>
void fields(A& a, Program& v) {
  all(a, v.name, v.files, v.strings, v.constants, v.functions, v.dsds, v.bulks, v.maps, v.dsr_loads,
      v.initial_dsrs, v.fifos, v.tasks, v.states, v.queues, v.routes, v.teardown_handlers,
      v.empty_handlers, v.registers, v.start_config, v.rotations, v.post_out, v.post_in,
      v.control_stride, v.image, v.data_bytes, v.code_bytes, v.symbols, v.exports, v.fp16, v.pairs);
}
template <typename A>
void fields(A& a, Export& v) {
  all(a, v.kind, v.name, v.type, v.mutable_, v.elem_bytes, v.inputs, v.color);
}
template <typename A>
void fields(A& a, HostStream& v) {
  all(a, v.color, v.to_device);
}
template <typename A>
void fields(A& a, PortStream& v) {
  all(a, v.name, v.color, v.to_device, v.x, v.y, v.port);
}
template <typename A>
void fields(A& a, Preset& v) {
  all(a, v.x, v.y, v.symbol, v.bytes);
}
template <typename A>
void fields(A& a, Layout& v) {  // programs are files of their own
  all(a, v.arch, v.width, v.height, v.fabric_width, v.fabric_height, v.offset_x, v.offset_y,
      v.channels, v.memcpy, v.route_sets, v.tiles, v.exports, v.streams, v.ports, v.presets,
      v.params, v.colors);
}

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsPair : std::false_type {};
template <typename T, typename U>
struct IsPair<std::pair<T, U>> : std::true_type {};
template <typename T>
struct IsArray : std::false_type {};
template <typename T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
// Written as they lie in memory: no padding, no pointers.
template <typename T>
constexpr bool kFlat =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Insn> ||
    std::is_same_v<T, LineEntry> || std::is_same_v<T, Dsd> || std::is_same_v<T, Tile>;

template <typename A, typename T>
void io(A& a, T& v) {
  constexpr bool reading = std::is_same_v<A, Reader>;
  if constexpr (kFlat<T>) {
    a.raw(&v, sizeof(T));
  } else if constexpr (std::is_same_v<T, std::string> || IsVector<T>::value) {
    std::uint64_t n = v.size();
    a.raw(&n, sizeof(n));
    if constexpr (reading) {
      if (n > a.in.size() - a.pos) {  // an element takes at least one byte
        throw Error(ErrorKind::io, "wse.artifact.read",
                    cat(a.file, " claims ", n, " elements at byte ", a.pos));
      }
      v.resize(n);
    }
    if constexpr (std::is_same_v<T, std::string>) {
      a.raw(v.data(), n);
    } else if constexpr (kFlat<typename T::value_type>) {
      a.raw(v.data(), n * sizeof(typename T::value_type));
    } else {
      for (auto& e : v) io(a, e);
    }
  } else if constexpr (IsPair<T>::value) {
    all(a, v.first, v.second);
  } else if constexpr (IsArray<T>::value) {
    for (auto& e : v) io(a, e);
  } else {
    fields(a, v);
  }
}

template <typename T>
std::string pack(const T& value) {
  Writer w;
  io(w, const_cast<T&>(value));  // a Writer only reads
  std::string out;
  std::uint64_t head[3] = {kMagic, w.out.size(), hash_bytes(w.out.data(), w.out.size())};
  out.append(reinterpret_cast<const char*>(head), sizeof(head));
  return out + w.out;
}

template <typename T>
T unpack(std::string_view bytes, std::string_view file) {
  std::uint64_t head[3];
  if (bytes.size() < sizeof(head)) {
    throw Error(ErrorKind::io, "wse.artifact.read",
                cat(file, " holds only ", bytes.size(), " bytes"));
  }
  std::memcpy(head, bytes.data(), sizeof(head));
  bytes.remove_prefix(sizeof(head));
  if (head[0] != kMagic || head[1] != bytes.size() ||
      head[2] != hash_bytes(bytes.data(), bytes.size())) {
    throw Error(ErrorKind::io, "wse.artifact.read",
                cat(file, " is not a whole file of this version"))
        .help("compile the program again with cslc");
  }
  Reader r{bytes, file};
  T value;
  io(r, value);
  return value;
}

Json rpc_table(const Layout& layout) {
  Json list = Json::array();
  for (std::size_t i = 0; i < layout.exports.size(); ++i) {
    const Export& e = layout.exports[i];
    Json row = Json::object();
    row["id"] = static_cast<std::int64_t>(i);
    row["name"] = e.name;
    row["type"] = e.type;
    row["kind"] = e.kind == Export::var ? "Var" : e.kind == Export::func ? "Func" : "Stream";
    row["immutable"] = !e.mutable_;
    Json inputs = Json::array();
    for (Ty t : e.inputs) inputs.push_back(to_string(t));
    row["inputs"] = inputs;
    row["color"] = e.color == kNone8 ? Json(nullptr) : Json(static_cast<int>(e.color));
    list.push_back(row);
  }
  return list;
}

Json summary(const Layout& layout) {
  Json out = Json::object();
  Json params = Json::object();
  for (const auto& [name, value] : layout.params) params[name] = value;
  out["params"] = params;
  Json colors = Json::object();
  for (const auto& [name, value] : layout.colors) colors[name] = value;
  out["colors"] = colors;
  out["arch"] = layout.arch == Arch::wse2 ? "wse2" : "wse3";
  out["rectangle"] = Json(Json::Array{layout.width, layout.height});
  out["fabric_dims"] = Json(Json::Array{layout.fabric_width, layout.fabric_height});
  out["fabric_offsets"] = Json(Json::Array{layout.offset_x, layout.offset_y});
  out["channels"] = layout.channels;
  Json programs = Json::array();
  for (const Program& p : layout.programs) {
    Json row = Json::object();
    row["name"] = p.name;
    row["data_bytes"] = static_cast<std::int64_t>(p.data_bytes);
    row["code_bytes"] = static_cast<std::int64_t>(p.code_bytes);
    programs.push_back(row);
  }
  out["programs"] = programs;
  return out;
}

[[noreturn]] void refuse_write(const std::string& directory, const std::string& why) {
  throw Error(ErrorKind::io, "wse.artifact.write", cat("cannot write \"", directory, "\": ", why));
}

}  // namespace

std::string to_bytes(const Program& program) { return pack(program); }
Program program_from_bytes(std::string_view bytes, std::string_view file) {
  return unpack<Program>(bytes, file);
}

void write_artifact(const Layout& layout, const std::string& directory) {
  std::error_code ec;
  fs::path target = fs::absolute(fs::path(directory), ec).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (fs::exists(target, ec) &&
      !(fs::is_directory(target, ec) &&
        (fs::is_empty(target, ec) || fs::exists(target / "out.json", ec)))) {
    refuse_write(directory, "it exists and is not a directory that cslc wrote");
  }
  fs::path temp = target;
  temp += cat(".part", static_cast<std::int64_t>(::getpid()));
  fs::remove_all(temp, ec);
  fs::create_directories(temp / "bin", ec);
  if (ec) refuse_write(directory, ec.message());
  try {
    for (std::size_t i = 0; i < layout.programs.size(); ++i) {
      write_file_atomic((temp / "bin" / cat("out_", i, ".bin")).string(), pack(layout.programs[i]));
    }
    write_file_atomic((temp / "bin" / "layout.bin").string(), pack(layout));
    write_file_atomic((temp / "bin" / "out_rpc.json").string(), rpc_table(layout).dump(1) + "\n");
    write_file_atomic((temp / "out.json").string(), summary(layout).dump(1) + "\n");
    fs::path old = target;
    old += cat(".old", static_cast<std::int64_t>(::getpid()));
    bool had = fs::exists(target);
    if (had) fs::rename(target, old);
    fs::rename(temp, target, ec);
    if (ec) {
      if (had) fs::rename(old, target);
      throw fs::filesystem_error("rename", temp, target, ec);
    }
    if (had) {  // what others put beside the program stays
      for (const fs::directory_entry& entry : fs::directory_iterator(old)) {
        const fs::path kept = target / entry.path().filename();
        if (!fs::exists(fs::symlink_status(kept))) fs::rename(entry.path(), kept);
      }
      fs::remove_all(old);
    }
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(temp, ec);
    refuse_write(directory, e.what());
  } catch (...) {
    fs::remove_all(temp, ec);
    throw;
  }
}

Layout read_artifact(const std::string& directory) {
  std::error_code ec;
  fs::path dir(directory);
  if (!fs::exists(dir / "bin" / "layout.bin", ec)) {
    throw Error(ErrorKind::io, "wse.artifact.read",
                cat("\"", directory, "\" holds no compiled program (bin/layout.bin is missing)"))
        .help(cat("compile one with: cslc layout.csl ... -o ", directory));
  }
  std::string path = (dir / "bin" / "layout.bin").string();
  Layout layout = unpack<Layout>(read_file(path), path);
  std::uint32_t programs = 0;
  for (const Tile& t : layout.tiles) {
    if (t.program != kNoProgram) programs = std::max(programs, t.program + 1);
    if (t.routes >= layout.route_sets.size() && !(t.routes == 0 && layout.route_sets.empty())) {
      throw Error(ErrorKind::io, "wse.artifact.read", cat(path, " names route set ", t.routes));
    }
  }
  for (std::uint32_t i = 0; i < programs; ++i) {
    std::string file = (dir / "bin" / cat("out_", i, ".bin")).string();
    layout.programs.push_back(unpack<Program>(read_file(file), file));
  }
  return layout;
}

}  // namespace weft::wse
