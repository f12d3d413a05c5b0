// SPDX-License-Identifier: Apache-2.0
// Samples of objects whose kinds the node's table of metrics does not know, as Prometheus has them.
#include "node/sample_metrics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "node/metrics.hpp"
#include "node/testing/metrics_fixture.hpp"
#include "node/testing/metrics_reader.hpp"

namespace espalier::node {
namespace {

using wire::SampledObject;
using wire::SampleType;

constexpr auto kLater = static_cast<ObjectKind>(200);

std::string page_of(std::vector<SampledObject> objects, std::uint64_t count = 0) {
  NodeNumbers numbers = some_numbers();
  numbers.sampled = {count, std::move(objects)};
  return metrics_text(numbers);
}

TEST(SampleMetrics, AreThoseOfAKindThatNobodyKnows) {
  const SampledObject one{
      kLater,
      "",
      1,
      "one",
      {{"items", "", "Items.", SampleType::gauge, {}, 3},
       {"queued_bytes", "bytes", "Waiting.", SampleType::gauge, {{"queue", "in"}}, 4},
       {"queued_bytes", "bytes", "Waiting.", SampleType::gauge, {{"queue", "out"}}, 5},
       {"lookups", "", "Asked.", SampleType::counter, {}, 6}}};
  SampledObject two = one;
  two.name = "two";
  SampledObject named = one;
  named.kind_name = "hash";
  const ReadMetrics read = MetricsReader::read(page_of({one, two, named}, 7));
  EXPECT_EQ(read.size(), MetricsReader::read(page_of({})).size() + 6);
  const ReadMetric& items = read.at("espalier_kind_200_items");
  EXPECT_EQ(items.type, "gauge");
  EXPECT_EQ(items.help, "Items.");
  EXPECT_EQ(items.samples.size(), 2u);
  EXPECT_EQ(items.at({{"kind_200", "two"}}), 3);
  const ReadMetric& queued = read.at("espalier_kind_200_queued_bytes");
  EXPECT_EQ(queued.at({{"kind_200", "one"}, {"queue", "in"}}), 4);
  EXPECT_EQ(queued.at({{"kind_200", "one"}, {"queue", "out"}}), 5);
  EXPECT_EQ(read.at("espalier_kind_200_lookups_total").type, "counter");
  EXPECT_EQ(read.at("espalier_hash_lookups_total").at({{"hash", "one"}}), 6);
  EXPECT_EQ(read.at("espalier_objects_left_out").at(), 4);
}

TEST(SampleMetrics, NoBytesOfObjectsBreakThePage) {
  const std::string odd = "a\"b\nc\\\x1b\xff";
  const SampledObject object{
      kLater, "", 1, odd, {{"items", "", "", SampleType::gauge, {{"queue", odd}}, 1}}};
  const ReadMetrics read = MetricsReader::read(page_of({object}));
  EXPECT_EQ(read.at("espalier_kind_200_items")
                .at({{"kind_200", shown_name(odd)}, {"queue", shown_name(odd)}}),
            1);
  EXPECT_EQ(shown_name(odd), "a\"b\\x0ac\\\\\\x1b\\xff");
  SampledObject with_help = object;
  with_help.samples[0].help = "two\nlines \\ \x1b";
  const std::string page = page_of({with_help});
  EXPECT_NE(page.find("# HELP espalier_kind_200_items two\\\\x0alines \\\\ \\\\x1b\n"),
            std::string::npos)
      << page;
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
}

// Such a page Prometheus would refuse as a whole.
TEST(SampleMetrics, WhatContradictsIsLeftOut) {
  const auto kind = [](std::string name, wire::Sample sample) {
    return SampledObject{kLater, std::move(name), 1, "one", {std::move(sample)}};
  };
  const ReadMetrics read = MetricsReader::read(page_of(
      {kind("leases", {"x", "", "Of a name of its own.", SampleType::gauge, {}, 1}),
       kind("memory", {"free_bytes", "bytes", "As the table has it.", SampleType::gauge, {}, 1}),
       kind("a", {"b_c", "", "First.", SampleType::gauge, {}, 2}),
       kind("a_b", {"c", "", "Of the same name.", SampleType::gauge, {}, 3}),
       kind("a", {"b_c", "", "The same series.", SampleType::gauge, {}, 4}),
       kind("a_b", {"c", "", "A counter has another name.", SampleType::counter, {}, 5})}));
  EXPECT_EQ(read.size(), MetricsReader::read(page_of({})).size() + 3);
  EXPECT_TRUE(read.at("espalier_memory_free_bytes").samples.empty());
  EXPECT_EQ(read.at("espalier_leases_x").sum(), 1);
  const ReadMetric& both = read.at("espalier_a_b_c");
  EXPECT_EQ(both.help, "First.");
  EXPECT_EQ(both.samples.size(), 2u);
  EXPECT_EQ(both.at({{"a", "one"}}), 2);
  EXPECT_EQ(both.at({{"a_b", "one"}}), 3);
  EXPECT_EQ(read.at("espalier_a_b_c_total").at({{"a_b", "one"}}), 5);
}

}  // namespace
}  // namespace espalier::node
