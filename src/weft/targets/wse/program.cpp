// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/program.h"

namespace weft::wse {

namespace {
constexpr std::string_view kTyNames[kTypes] = {"i8",  "i16", "i32",  "i64",  "u8",  "u16", "u32",
                                               "u64", "f16", "bf16", "cb16", "f32", "bool"};
constexpr std::string_view kOpNames[] = {
#define WEFT_WSE_OP(name, cost, meaning) #name,
#include "weft/targets/wse/code.def"
#undef WEFT_WSE_OP
};
constexpr BulkInfo kBulks[] = {
#define WEFT_WSE_BULK(name, d, s, n, k, w2, w3) {#name, d, s, n, k != 0, w2, w3},
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
};
constexpr std::string_view kPortNames[kPorts] = {"EAST", "WEST", "NORTH", "SOUTH", "RAMP"};
}  // namespace

std::string_view to_string(Ty t) { return kTyNames[static_cast<int>(t)]; }
std::string_view to_string(Op op) { return kOpNames[static_cast<int>(op)]; }
std::string_view to_string(Bulk bulk) { return kBulks[static_cast<int>(bulk)].name; }
const BulkInfo& bulk_info(Bulk bulk) { return kBulks[static_cast<int>(bulk)]; }
std::string_view port_name(int port) { return kPortNames[port]; }

}  // namespace weft::wse
