// SPDX-License-Identifier: Apache-2.0
#include "tools/switch_metrics.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "dataplane/switch_control.hpp"
#include "node/testing/metrics_reader.hpp"

namespace espalier::tools {
namespace {

using node::MetricsReader;
using node::ReadMetrics;

TEST(SwitchMetrics, TellWhatTheStatusTells) {
  const std::string text = switch_metrics_text(
      "maps 1\nranges 600\ngeneration 7\nlinks 2\nlinks_up 3\nframes_to_node 10\n"
      "frames_to_clients 11\nframes_lost 0\nreads_passed 4\nredirected 9\n"
      "redirected_by_sets_0 5\nredirected_by_sets_1 4\n"
      "reads_carried 6\nshims_passed 1\nshims_removed 2\nshims_dropped 3\n");
  const ReadMetrics read = MetricsReader::read(text);
  EXPECT_EQ(read.size(), switch_metrics().size());
  EXPECT_EQ(read.at("espalier_switch_ranges").at({}), 600);
  EXPECT_EQ(read.at("espalier_switch_generation").at({}), 7);
  EXPECT_EQ(read.at("espalier_switch_links").at({}), 2);
  EXPECT_EQ(read.at("espalier_switch_links_up_total").at({}), 3);
  EXPECT_EQ(read.at("espalier_switch_frames_total").at({{"to", "node"}}), 10);
  EXPECT_EQ(read.at("espalier_switch_frames_total").at({{"to", "clients"}}), 11);
  EXPECT_EQ(read.at("espalier_switch_reads_redirected_total").at({{"sets", "1"}}), 4);
  EXPECT_EQ(read.at("espalier_switch_reads_passed_total").at({}), 4);
  EXPECT_EQ(read.at("espalier_switch_reads_carried_total").at({}), 6);
  EXPECT_EQ(read.at("espalier_switch_shims_total").at({{"fate", "removed"}}), 2);
  EXPECT_TRUE(read.at("espalier_switch_nodes").samples.empty()) << "it was not told";
}

TEST(SwitchMetrics, KnowEveryNumberOfTheControl) {
  dataplane::InstalledFunction function;
  dataplane::SwitchControl control(function, [](std::string&) {});
  const ReadMetrics read = MetricsReader::read(switch_metrics_text(*control.ask("status", {})));
  for (const char* const name : {"maps", "maps_held", "ranges", "nodes", "generation",
                                 "programs_installed_total", "entries_changed_total"}) {
    EXPECT_EQ(read.at(std::string("espalier_switch_") + name).samples.size(), 1u) << name;
  }
}

TEST(SwitchMetrics, HaveARowEachInTheDocument) {
  std::ifstream in(std::string(ESPALIER_SOURCE_DIR) + "/docs/metrics.md");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.erase(0, text.find("\n## A switch\n"));
  std::string rows;
  for (const SwitchMetric& metric : switch_metrics()) {
    const std::string label =
        metric.label.empty() ? "| " : "`" + std::string(metric.label) + "` | ";
    rows += "| `" + std::string(metric.name) + "` | " + std::string(metric.type) + " | " + label +
            std::string(metric.help) + " |\n";
  }
  std::string found;
  for (std::size_t at = text.find("\n| `"); at != std::string::npos;
       at = text.find("\n| `", at + 1)) {
    found += text.substr(at + 1, text.find('\n', at + 1) - at);
  }
  EXPECT_EQ(found, rows);
}

}  // namespace
}  // namespace espalier::tools
