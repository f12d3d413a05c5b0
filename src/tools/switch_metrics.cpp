// SPDX-License-Identifier: Apache-2.0
#include "tools/switch_metrics.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

namespace espalier::tools {
namespace {

constexpr SwitchMetric kMetrics[] = {
    {"espalier_switch_maps", "gauge", "", "Maps that the tables are for.", "maps"},
    {"espalier_switch_maps_held", "gauge", "",
     "Of these maps, those that a controller fills and the switch forgets with it.", "maps_held"},
    {"espalier_switch_ranges", "gauge", "", "Ranges of all fat roots.", "ranges"},
    {"espalier_switch_nodes", "gauge", "", "Nodes in all sets.", "nodes"},
    {"espalier_switch_generation", "gauge", "",
     "The generation of the tables: how often they have changed.", "generation"},
    {"espalier_switch_programs_installed_total", "counter", "",
     "How often all tables were replaced.", "programs_installed"},
    {"espalier_switch_entries_changed_total", "counter", "",
     "Entries that were changed one by one.", "entries_changed"},
    {"espalier_switch_links", "gauge", "", "Clients that have a link to the node.", "links"},
    {"espalier_switch_links_up_total", "counter", "", "Links that came up.", "links_up"},
    {"espalier_switch_links_down_total", "counter", "", "Links that have ended.", "links_down"},
    {"espalier_switch_frames_total", "counter", "to", "Frames that went on.", "frames_to_"},
    {"espalier_switch_frames_lost_total", "counter", "", "Frames that found no room.",
     "frames_lost"},
    {"espalier_switch_reads_redirected_total", "counter", "sets",
     "READs that were redirected, by how many sets of nodes; by 0: the fat root alone.",
     "redirected_by_sets_"},
    {"espalier_switch_reads_passed_total", "counter", "",
     "READs by keys that no table is for: clients' own, or of maps without tables.",
     "reads_passed"},
    {"espalier_switch_keyed_reads_unknown_total", "counter", "",
     "Of these, READs by keyed keys that no tables are for.", "keyed_reads_unknown"},
    {"espalier_switch_reads_carried_total", "counter", "",
     "READs that went to the next switch of a row, to be looked up further.", "reads_carried"},
    {"espalier_switch_shims_total", "counter", "fate",
     "Frames of a row that the tables here say nothing of, by what became of them.", "shims_"},
    {"espalier_switch_gets_hinted_total", "counter", "",
     "Gets in datagrams that were told where to begin.", "gets_hinted"},
};

using Numbers = std::vector<std::pair<std::string, std::uint64_t>>;

Numbers numbers_of(std::string_view status) {
  Numbers numbers;
  std::istringstream lines{std::string(status)};
  std::string name;
  for (std::uint64_t value = 0; lines >> name >> value;) numbers.emplace_back(name, value);
  return numbers;
}

}  // namespace

std::span<const SwitchMetric> switch_metrics() { return kMetrics; }

std::string switch_metrics_text(std::string_view status) {
  const Numbers numbers = numbers_of(status);
  std::string text;
  for (const SwitchMetric& metric : kMetrics) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help, metric.type);
    for (const auto& [name, value] : numbers) {
      if (metric.label.empty()) {
        if (name == metric.status) text += fmt::format("{} {}\n", metric.name, value);
      } else if (name.starts_with(metric.status)) {
        text += fmt::format("{}{{{}=\"{}\"}} {}\n", metric.name, metric.label,
                            name.substr(metric.status.size()), value);
      }
    }
  }
  return text;
}

}  // namespace espalier::tools
