// SPDX-License-Identifier: Apache-2.0
// The entries of a switch's tables for the P4 program (dataplane/p4/index.p4), as lines that bmv2's
// runtime CLI takes.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "dataplane/switch_program.hpp"

namespace espalier::dataplane {

/// Sets of nodes, stages and bits of a stage that the P4 program has.
inline constexpr std::size_t kP4Sets = 3;
inline constexpr std::size_t kP4Stages = 4;
inline constexpr std::uint32_t kP4BitsPerStage = 16;

/// What its tables hold, all maps together.
inline constexpr std::size_t kP4Maps = 64;
inline constexpr std::size_t kP4StageEntries = 2048;  // of each stage of the fat root
inline constexpr std::size_t kP4Ranges = 1024;
inline constexpr std::size_t kP4Nodes = 4096;  // of each set

/// One `table_add` for each entry of all maps, or a sentence that says what does not fit into the
/// P4 program. Parts of tables (way_tables.hpp) are as good as whole ones. A map's keys come after
/// all that they lead to: until then its READs pass.
[[nodiscard]] std::expected<std::string, std::string> p4_entries(const SwitchProgram& program);

/// What makes a switch that was given the entries `from`, and nothing else, one with the entries
/// `to`: a `table_modify` for each that its action is given something else; or, where other numbers
/// are matched than before, `table_clear` of each table and all entries anew. An entry's handle is
/// how many were added to its table before it. Requires: both of p4_entries(). Cost: linear.
[[nodiscard]] std::string p4_changes(std::string_view from, std::string_view to);

}  // namespace espalier::dataplane
