// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/benchmark.hpp"
#include "bench/run_inference.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

InferenceOptions tiny_inference() {
  InferenceOptions options;
  options.repeats = 1;
  options.ops = 50;
  options.rows = 300;
  options.bags = 8;
  options.lengths = {1, 70};
  options.probe_rounds = 0;
  options.json = true;
  return options;
}

TEST(RunInference, AllWaysComeToTheSameSums) {
  InferenceOptions options = tiny_inference();
  options.types = {EmbeddingType::fp32, EmbeddingType::int8};
  options.targets.push_back(InferenceTarget::reads);
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  // Two lengths, by five ways of fp32 and four of int8.
  ASSERT_EQ(lines.medians.size(), 18u);
  EXPECT_EQ(lines.runs_with("type", "int8").size(), 8u);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 50);
    EXPECT_GT(line.at("rows_per_s").get<double>(), 0);
  }
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

TEST(RunInference, ParsesQueries) {
  InferenceOptions options = tiny_inference();
  options.targets = {InferenceTarget::parse};
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.medians.size(), 2u);
  for (const Json& line : lines.runs) EXPECT_GT(line.at("rows_per_s").get<double>(), 0);
  options.bags = 1025;
  EXPECT_TRUE(problem_of(options));
}

TEST(RunInference, SeveralThreadsComeToTheSameSums) {
  InferenceOptions options = tiny_inference();
  options.categories = {"office"};
  options.scale = 0.01;
  options.threads = {1, 3};
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  // Lines have one thread, eight other ways two numbers of them.
  ASSERT_EQ(lines.medians.size(), 17u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  options.threads = {0};
  EXPECT_TRUE(problem_of(options));
}

TEST(RunInference, RanksQueries) {
  InferenceOptions options = tiny_inference();
  options.targets = {InferenceTarget::model, InferenceTarget::model_node};
  options.lengths = {3};
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.medians.size(), 2u);
  for (const Json& line : lines.runs) EXPECT_EQ(line.at("ops"), 50);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true) << "each is a number between 0 and 1";
  options.bags = 1000;
  EXPECT_TRUE(problem_of(options));
  options.bags = 8;
  options.categories = {"office"};
  EXPECT_TRUE(problem_of(options));
}

TEST(RunInference, GroupsComeToTheSameSumsAndReadFewerRows) {
  InferenceOptions options = tiny_inference();
  options.categories = {"office"};
  options.scale = 0.01;
  options.ratios = {0.1, 0.5};
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  // Four ways without groups, and five with them of two ratios.
  ASSERT_EQ(lines.medians.size(), 14u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  double saved[2] = {0, 0};
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("category"), "office");
    if (!line.contains("ratio")) continue;
    const double of_rows = line.at("rows_saved").get<double>();
    double& before = saved[line.at("ratio") == 0.5 ? 1 : 0];
    EXPECT_GT(of_rows, 0);
    if (before != 0) {
      EXPECT_NEAR(of_rows, before, 1e-9) << "all ways read the same rows";
    }
    before = of_rows;
  }
  EXPECT_GT(saved[1], saved[0]);
}

// What Fig. 13 of the paper is drawn of, in small.
TEST(RunInference, MeasuresEachCategoryByAllWays) {
  InferenceOptions options = tiny_inference();
  options.categories = {"all"};
  options.scale = 0.001;
  options.targets.push_back(InferenceTarget::parse);
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  // Four ways without groups, five with them, and parsing.
  ASSERT_EQ(lines.medians.size(), 6u * 10);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  for (const char* const category :
       {"sports", "clothing", "electronics", "home-kitchen", "office", "books"}) {
    EXPECT_EQ(lines.runs_with("category", category).size(), 10u) << category;
  }
  EXPECT_EQ(lines.runs_with("ratio", 0.25).size(), 30u);
}

TEST(RunInference, ManyRequestsComeToTheSameSumsBesideNoops) {
  InferenceOptions options = tiny_inference();
  options.targets = {InferenceTarget::node, InferenceTarget::node_many, InferenceTarget::noop};
  const PointLines lines =
      slots_of("inference", [&](const Output& output) { return run_benchmark(options, output); });
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.medians.size(), 6u);
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
  EXPECT_EQ(lines.runs_with("in_flight", 32).size(), 4u);
  options.in_flight = 0;
  EXPECT_TRUE(problem_of(options));
  options.in_flight = 257;
  EXPECT_TRUE(problem_of(options));
}

TEST(RunInference, WrongOptionsAreRefused) {
  InferenceOptions options = tiny_inference();
  options.dimension = 12;
  EXPECT_TRUE(problem_of(options));
  options = tiny_inference();
  options.lengths = {0};
  EXPECT_TRUE(problem_of(options));
  options = tiny_inference();
  options.targets = {InferenceTarget::merci};
  options.types = {EmbeddingType::fp16};
  EXPECT_TRUE(problem_of(options));
  options = tiny_inference();
  options.rows = 0;
  EXPECT_TRUE(problem_of(options));
  options = tiny_inference();
  options.ops = 10'000'000;
  options.lengths = {1, 100};
  EXPECT_EQ(problem_of(options), std::nullopt);
  options.lengths = {1, 101};
  EXPECT_TRUE(problem_of(options));
  options.lengths = {1};
  options.dimension = 104;
  EXPECT_TRUE(problem_of(options));
  options = tiny_inference();
  options.categories = {"toys"};
  EXPECT_TRUE(problem_of(options));
  options.categories = {"office", "books"};
  EXPECT_EQ(problem_of(options), std::nullopt);
  options.scale = 0.0001;
  EXPECT_TRUE(problem_of(options));
  options = tiny_inference();
  options.targets = {InferenceTarget::grouped};
  EXPECT_TRUE(problem_of(options)) << "without a category";
  options = tiny_inference();
  options.ops = 0;
  std::ostringstream out;
  EXPECT_THROW(static_cast<void>(run_benchmark(options, {out, out})), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench
