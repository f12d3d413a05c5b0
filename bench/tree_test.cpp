// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "bench/benchmark.hpp"
#include "bench/report.hpp"
#include "bench/run_tree.hpp"

namespace espalier::bench {
namespace {

TreeOptions tiny_tree() {
  TreeOptions options;
  options.keys = 2000;
  options.ops = 1000;
  options.probe_rounds = 0;
  options.json = true;
  return options;
}

TEST(TreePoints, AreValidForEveryExperiment) {
  for (const std::string_view experiment : tree_experiments()) {
    std::set<std::string> labels;
    const std::vector<TreePoint> points = tree_points(experiment, YcsbOptions());
    EXPECT_FALSE(points.empty());
    for (const TreePoint& point : points) {
      EXPECT_EQ(problem_of(point.options), std::nullopt) << point.label;
      const std::string workload(name(point.options.workload));
      EXPECT_TRUE(labels.insert(workload + " " + point.label).second) << point.label;
    }
  }
}

TEST(TreePoints, PeersRunWhereTheParameterIsTheirsToo) {
  YcsbOptions base;
  base.targets = {TargetKind::embedded, TargetKind::absl};
  for (const TreePoint& point : tree_points("log-size", base)) {
    EXPECT_EQ(point.options.targets, std::vector{TargetKind::embedded});
  }
  for (const TreePoint& point : tree_points("key-size", base)) {
    EXPECT_EQ(point.options.targets, base.targets);
  }
}

class TreeExperiment : public testing::TestWithParam<std::string_view> {};

TEST_P(TreeExperiment, RunsTiny) {
  TreeOptions options = tiny_tree();
  options.experiments = {std::string(GetParam())};
  options.targets = {TargetKind::embedded, TargetKind::absl};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::uint64_t runs = 0;
  Json last;
  for (std::string line; std::getline(lines, line);) {
    last = Json::parse(line);
    EXPECT_EQ(last.at("bench"), "tree");
    if (last.contains("total")) continue;
    ++runs;
    EXPECT_EQ(last.at("experiment"), GetParam());
    EXPECT_GT(last.at("ops_per_s"), 0);
  }
  EXPECT_EQ(last.at("runs"), runs);
}

INSTANTIATE_TEST_SUITE_P(All, TreeExperiment,
                         testing::ValuesIn(tree_experiments().begin(), tree_experiments().end()),
                         [](const testing::TestParamInfo<std::string_view>& parameter) {
                           std::string text(parameter.param);
                           std::erase(text, '-');
                           return text;
                         });

TEST(RunTree, TablesForPeople) {
  TreeOptions options = tiny_tree();
  options.experiments = {"erase"};
  options.targets = {TargetKind::absl};
  options.json = false;
  std::ostringstream out;
  EXPECT_EQ(run_benchmark(options, {out, out}), 0);
  EXPECT_NE(out.str().find("order=random"), std::string::npos);
  EXPECT_NE(out.str().find("total: 1 runs"), std::string::npos);
}

TEST(RunTree, AnExperimentThatNoTargetCanDoFails) {
  for (const TargetKind target : {TargetKind::absl, TargetKind::device}) {
    TreeOptions options = tiny_tree();
    options.experiments = {"versions", "erase"};
    options.targets = {target};
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(run_benchmark(options, {out, err}), 1);
    EXPECT_NE(err.str().find("experiment 'versions': no target"), std::string::npos) << err.str();
    EXPECT_EQ(err.str().find("'erase'"), std::string::npos);
  }
}

}  // namespace
}  // namespace espalier::bench
