// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "bench/report.hpp"
#include "bench/run_tree.hpp"

namespace espalier::bench {
namespace {

TreeOptions tiny_tree() {
  TreeOptions options;
  options.base.keys = 2000;
  options.base.ops = 1000;
  options.base.probe_rounds = 0;
  options.base.json = true;
  return options;
}

TEST(TreePoints, AreValidForEveryExperiment) {
  for (const Experiment experiment : all_experiments()) {
    std::set<std::string> labels;
    const std::vector<Point> points = points_of(experiment, YcsbOptions());
    EXPECT_FALSE(points.empty());
    for (const Point& point : points) {
      EXPECT_EQ(problem_of(point.options), std::nullopt) << point.label;
      const std::string workload(name(point.options.workload));
      EXPECT_TRUE(labels.insert(workload + " " + point.label).second) << point.label;
    }
    EXPECT_EQ(parse_experiment(name(experiment)), experiment);
  }
}

TEST(TreePoints, PeersRunWhereTheParameterIsTheirsToo) {
  YcsbOptions base;
  base.targets = {TargetKind::embedded, TargetKind::absl};
  for (const Point& point : points_of(Experiment::log_size, base)) {
    EXPECT_EQ(point.options.targets, std::vector{TargetKind::embedded});
  }
  for (const Point& point : points_of(Experiment::key_size, base)) {
    EXPECT_EQ(point.options.targets, base.targets);
  }
}

class TreeExperiment : public testing::TestWithParam<Experiment> {};

TEST_P(TreeExperiment, RunsTiny) {
  TreeOptions options = tiny_tree();
  options.experiments = {GetParam()};
  options.base.targets = {TargetKind::embedded, TargetKind::absl};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_tree(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::uint64_t runs = 0;
  Json last;
  for (std::string line; std::getline(lines, line);) {
    last = Json::parse(line);
    EXPECT_EQ(last.at("bench"), "tree");
    if (last.contains("total")) continue;
    ++runs;
    EXPECT_EQ(last.at("experiment"), name(GetParam()));
    EXPECT_GT(last.at("ops_per_s"), 0);
  }
  EXPECT_EQ(last.at("runs"), runs);
}

INSTANTIATE_TEST_SUITE_P(All, TreeExperiment,
                         testing::ValuesIn(all_experiments().begin(), all_experiments().end()),
                         [](const testing::TestParamInfo<Experiment>& parameter) {
                           std::string text(name(parameter.param));
                           std::erase(text, '-');
                           return text;
                         });

TEST(RunTree, TablesForPeople) {
  TreeOptions options = tiny_tree();
  options.experiments = {Experiment::erase};
  options.base.targets = {TargetKind::absl};
  options.base.json = false;
  std::ostringstream out;
  EXPECT_EQ(run_tree(options, {out, out}), 0);
  EXPECT_NE(out.str().find("order=random"), std::string::npos);
  EXPECT_NE(out.str().find("total: 1 runs"), std::string::npos);
}

TEST(RunTree, AnExperimentThatNoTargetCanDoFails) {
  TreeOptions options = tiny_tree();
  options.experiments = {Experiment::versions, Experiment::erase};
  options.base.targets = {TargetKind::absl};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_tree(options, {out, err}), 1);
  EXPECT_NE(err.str().find("experiment 'versions': no target"), std::string::npos) << err.str();
  EXPECT_EQ(err.str().find("'erase'"), std::string::npos);
}

}  // namespace
}  // namespace espalier::bench
