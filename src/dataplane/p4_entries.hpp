// SPDX-License-Identifier: Apache-2.0
// The entries of a map's tables for the P4 program (dataplane/p4/index.p4), as lines that bmv2's
// runtime CLI takes.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/index_tables.hpp"
#include "dataplane/packet_function.hpp"

namespace espalier::dataplane {

/// Sets of nodes, stages and bits of a stage that the P4 program has.
inline constexpr std::size_t kP4Sets = 3;
inline constexpr std::size_t kP4Stages = 4;
inline constexpr std::uint32_t kP4BitsPerStage = 16;

/// Whether the P4 program has as many sets and stages as these tables.
[[nodiscard]] bool fits_p4(const IndexTables& tables);

/// One `table_add` for each entry. `map` tells maps apart. Requires: fits_p4(tables).
[[nodiscard]] std::string p4_entries(std::uint16_t map, const MapKeys& keys,
                                     const IndexTables& tables);

}  // namespace espalier::dataplane
