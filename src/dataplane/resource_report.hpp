// SPDX-License-Identifier: Apache-2.0
// Estimates whether tables fit into switches, and what they use there: stages, and blocks of SRAM
// and TCAM in each. A model of pipelines with match-action stages, by the numbers of a target; the
// compiler of such a switch decides, for it also places what this does not count (parser, headers,
// forwarding).
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "dataplane/index_tables.hpp"

namespace espalier::dataplane {

/// A kind of switch. The defaults are what is public of Tofino: 12 stages, in each 80 blocks of
/// SRAM of 1024 words of 128 bits, and 24 blocks of TCAM of 512 words of 44 bits.
struct SwitchTarget {
  std::string name = "tofino";
  std::size_t switches = 2;      // in a row on the path; [Fat-B+Tree §V-A] has two
  std::size_t stages = 12;       // of each switch
  std::size_t sram_blocks = 80;  // of each stage
  std::size_t sram_words = 1024;
  std::size_t sram_bits = 128;
  std::size_t tcam_blocks = 24;
  std::size_t tcam_words = 512;
  std::size_t tcam_bits = 44;
  /// Ranges are matched as such; else each becomes prefixes, up to 30 for 16 bits.
  bool matches_ranges = true;
  /// Stages in a row that a fat root takes, and a set of nodes [Fat-B+Tree §IV-A]. All of one lie
  /// in one switch.
  std::size_t root_stages = 6;
  std::size_t set_stages = 6;
};

/// One match-action table.
struct TableUse {
  std::string name;
  std::size_t switch_number = 0;
  std::size_t stage = 0;  // of that switch
  std::size_t entries = 0;
  std::size_t key_bits = 0;
  std::size_t action_bits = 0;
  std::size_t sram_blocks = 0;
  std::size_t tcam_blocks = 0;
};

struct ResourceReport {
  std::string target;
  std::vector<TableUse> tables;
  std::size_t switches = 0;                 // that hold something
  std::vector<std::size_t> sets_of_switch;  // how many each of them has, as a row is filled
  std::size_t sram_blocks = 0;
  std::size_t tcam_blocks = 0;
};

/// What the tables take; or a sentence that says what does not fit, and what would.
[[nodiscard]] std::expected<ResourceReport, std::string> report_resources(
    const IndexTables& tables, const SwitchTarget& target);

/// The report as lines for people.
[[nodiscard]] std::string to_text(const ResourceReport& report);

/// How many prefixes of 16 bits a range is. Requires: first <= last. At most 30.
[[nodiscard]] std::size_t prefixes_of(std::uint16_t first, std::uint16_t last);

}  // namespace espalier::dataplane
