// SPDX-License-Identifier: Apache-2.0
#pragma once
// CSL programs of the shapes that public measurements have; `took` of a PE is what its counter
// says.
#include <string>

namespace weft::wse::timing_programs {

extern const std::string kOne;
extern const std::string kMultiply;
extern const std::string kColumns;
extern const std::string kTwoPhaseLayout;
extern const std::string kTwoPhasePe;
extern const std::string kStencilLayout;
extern const std::string kStencilPe;
extern const std::string kTilesLayout;
extern const std::string kTilesPe;
extern const std::string kTilesOnePe;
extern const std::string kPointsLayout;
extern const std::string kPointsPe;
extern const std::string kBroadcastLayout;
extern const std::string kBroadcastPe;

}  // namespace weft::wse::timing_programs
