// SPDX-License-Identifier: Apache-2.0
#include "dataplane/resource_report.hpp"

#include <algorithm>
#include <bit>

namespace espalier::dataplane {
namespace {

constexpr std::size_t kAddressBits = 64;
constexpr std::size_t kPivotBits = 64;
constexpr std::size_t kHalfBits = 32;

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// Bits that distinguish this many things, and "none".
std::size_t number_bits(std::size_t count) {
  return static_cast<std::size_t>(std::bit_width(count));
}

// Lays tables out, part by part, each in stages in a row of one switch.
class Layout {
 public:
  Layout(const IndexTables& tables, const SwitchTarget& target) : tables_(tables), target_(target) {
    made_.target = target.name;
  }

  std::expected<ResourceReport, std::string> run() {
    const std::size_t stages_wanted = std::max(target_.root_stages, tables_.root.stages.size() + 1);
    if (!tables_.ways.empty()) {
      if (!begin("fat root", stages_wanted)) return std::unexpected(std::move(fault_));
      place_root();
    }
    for (std::size_t set = 0; set < tables_.sets.size(); ++set) {
      const std::string name = "set " + std::to_string(set + 1);
      if (!begin(name, std::max<std::size_t>(target_.set_stages, 4))) break;
      place_set(set, name);
      made_.sets_of_switch.resize(switch_ + 1);
      ++made_.sets_of_switch.back();
    }
    made_.sets_of_switch.resize(switch_ + 1);
    if (fault_.empty()) check_stages();
    if (!fault_.empty()) return std::unexpected(std::move(fault_));
    made_.switches = switch_ + 1;
    for (const TableUse& table : made_.tables) {
      made_.sram_blocks += table.sram_blocks;
      made_.tcam_blocks += table.tcam_blocks;
    }
    return std::move(made_);
  }

 private:
  // Finds room for a part that takes so many stages.
  bool begin(const std::string& part, std::size_t stages) {
    if (stages > target_.stages) {
      fault_ = part + " takes " + std::to_string(stages) + " stages in a row, and a switch '" +
               target_.name + "' has " + std::to_string(target_.stages);
      return false;
    }
    first_stage_ = next_stage_;
    if (first_stage_ + stages > target_.stages) {
      ++switch_;
      first_stage_ = 0;
    }
    if (switch_ >= target_.switches) {
      fault_ = part + " begins in switch " + std::to_string(switch_ + 1) + ", and there are " +
               std::to_string(target_.switches) +
               ": compile with fewer sets, or name more switches on the path";
      return false;
    }
    next_stage_ = first_stage_ + stages;
    return true;
  }

  // The last result is an exact table behind the stages of ranges.
  void place_root() {
    const RangeTables& root = tables_.root;
    std::size_t stage = 0;
    for (const auto& entries : root.stages) {
      std::size_t sub_tables = 0;
      std::size_t words = 0;
      for (const RangeEntry& entry : entries) {
        sub_tables = std::max<std::size_t>(sub_tables, entry.table + std::size_t{1});
        words += target_.matches_ranges ? 1 : prefixes_of(entry.first, entry.last);
      }
      const std::size_t key_bits = number_bits(sub_tables) + root.bits_per_stage;
      const std::size_t action_bits =
          number_bits(entries.size()) + number_bits(tables_.ways.size());
      add_tcam("fat root, ranges " + std::to_string(stage + 1), stage, words, key_bits,
               action_bits);
      ++stage;
    }
    const std::size_t next = nodes_of(0);
    add_sram("fat root, ways", stage, tables_.ways.size(), number_bits(tables_.ways.size()),
             kAddressBits + number_bits(next));
  }

  // Pivots by node; then a comparison of each pivot by halves, of which the tables are constant;
  // then the child number of the comparisons' bits; then the way by node and child number.
  void place_set(std::size_t set, const std::string& name) {
    const NodeSet& nodes = tables_.sets[set];
    const std::size_t node_bits = number_bits(nodes.size());
    for (std::size_t pivot = 0; pivot < kPivotsMax; ++pivot) {
      add_sram(name + ", pivot " + std::to_string(pivot + 1), 0, nodes.size(), node_bits,
               kPivotBits);
    }
    constexpr std::size_t kCompareEntries = 8;
    for (std::size_t pivot = 0; pivot < kPivotsMax; ++pivot) {
      add_tcam(name + ", comparison " + std::to_string(pivot + 1), 2, kCompareEntries,
               kHalfBits + 2, 1);
    }
    add_sram(name + ", child number", 3, kWaysMax, kPivotsMax, number_bits(kWaysMax));
    std::size_t ways = 0;
    for (const SetNode& node : nodes) ways += node.way_count;
    const std::size_t next = nodes_of(set + 1);
    add_sram(name + ", ways", 4 <= target_.set_stages - 1 ? 4 : 3, ways,
             node_bits + number_bits(kWaysMax), kAddressBits + number_bits(next));
  }

  // Of the set behind the last one, too, which another switch has.
  [[nodiscard]] std::size_t nodes_of(std::size_t set) const {
    return set < tables_.sets.size() ? tables_.sets[set].size() : tables_.beyond;
  }
  [[nodiscard]] std::size_t sram_blocks(std::size_t entries, std::size_t bits) const {
    return divide_up(bits, target_.sram_bits) * divide_up(entries, target_.sram_words);
  }
  void add_sram(std::string name, std::size_t stage, std::size_t entries, std::size_t key_bits,
                std::size_t action_bits) {
    made_.tables.push_back({std::move(name), switch_, first_stage_ + stage, entries, key_bits,
                            action_bits, sram_blocks(entries, key_bits + action_bits), 0});
  }
  // Keys in TCAM, what they lead to in SRAM.
  void add_tcam(std::string name, std::size_t stage, std::size_t entries, std::size_t key_bits,
                std::size_t action_bits) {
    const std::size_t blocks =
        divide_up(key_bits, target_.tcam_bits) * divide_up(entries, target_.tcam_words);
    made_.tables.push_back({std::move(name), switch_, first_stage_ + stage, entries, key_bits,
                            action_bits, sram_blocks(entries, action_bits), blocks});
  }

  void check_stages() {
    for (std::size_t number = 0; number <= switch_; ++number) {
      for (std::size_t stage = 0; stage < target_.stages; ++stage) {
        std::size_t sram = 0;
        std::size_t tcam = 0;
        for (const TableUse& table : made_.tables) {
          if (table.switch_number != number || table.stage != stage) continue;
          sram += table.sram_blocks;
          tcam += table.tcam_blocks;
        }
        complain(number, stage, "SRAM", sram, target_.sram_blocks);
        complain(number, stage, "TCAM", tcam, target_.tcam_blocks);
      }
    }
  }
  void complain(std::size_t number, std::size_t stage, const char* kind, std::size_t wanted,
                std::size_t there) {
    if (wanted <= there || !fault_.empty()) return;
    fault_ = "stage " + std::to_string(stage + 1) + " of switch " + std::to_string(number + 1) +
             " wants " + std::to_string(wanted) + " blocks of " + kind + " and has " +
             std::to_string(there) + ": compile with fewer " +
             (kind[0] == 'T' ? "ranges" : "nodes per set");
  }

  const IndexTables& tables_;
  const SwitchTarget& target_;
  ResourceReport made_;
  std::string fault_;
  std::size_t switch_ = 0;
  std::size_t first_stage_ = 0;
  std::size_t next_stage_ = 0;
};

}  // namespace

std::size_t prefixes_of(std::uint16_t first, std::uint16_t last) {
  std::size_t count = 0;
  std::uint32_t at = first;
  const std::uint32_t end = std::uint32_t{last} + 1;
  while (at < end) {
    // The largest aligned block that begins here and does not go beyond.
    std::uint32_t block = at == 0 ? 0x10000u : at & (0u - at);
    while (block > end - at) block >>= 1;
    at += block;
    ++count;
  }
  return count;
}

std::expected<ResourceReport, std::string> report_resources(const IndexTables& tables,
                                                            const SwitchTarget& target) {
  return Layout(tables, target).run();
}

std::string to_text(const ResourceReport& report) {
  std::string text = "target " + report.target + ", " + std::to_string(report.switches) +
                     (report.switches == 1 ? " switch" : " switches") + ", " +
                     std::to_string(report.sram_blocks) + " blocks of SRAM, " +
                     std::to_string(report.tcam_blocks) + " of TCAM\n";
  if (report.switches > 1) {
    text += "run by: espalier switch controller --row ";
    for (const std::size_t sets : report.sets_of_switch) {
      if (text.back() != ' ') text += ',';
      text += std::to_string(sets);
    }
    text += '\n';
  }
  for (const TableUse& table : report.tables) {
    text += "switch " + std::to_string(table.switch_number + 1) + " stage " +
            std::to_string(table.stage + 1) + "  " + table.name + ": " +
            std::to_string(table.entries) + " entries of " + std::to_string(table.key_bits) +
            " + " + std::to_string(table.action_bits) + " bits, " +
            std::to_string(table.sram_blocks) + " SRAM, " + std::to_string(table.tcam_blocks) +
            " TCAM\n";
  }
  return text;
}

}  // namespace espalier::dataplane
