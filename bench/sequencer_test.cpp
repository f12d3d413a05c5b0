// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/benchmark.hpp"
#include "bench/run_sequencer.hpp"
#include "bench/testing/point_lines.hpp"

namespace espalier::bench {
namespace {

SequencerOptions tiny_sequencer() {
  SequencerOptions options;
  options.repeats = 1;
  options.ops = 60;
  options.probe_rounds = 0;
  options.json = true;
  return options;
}

PointLines sequencer_lines(const SequencerOptions& options) {
  return slots_of("sequencer",
                  [&](const Output& output) { return run_benchmark(options, output); });
}

TEST(RunSequencerConcurrency, BothFormsGiveAllNumbersOnce) {
  SequencerOptions options = tiny_sequencer();
  options.transports.push_back(NodeTransport::unix_socket);
  const PointLines lines = sequencer_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  // shm and roce-udp in both forms, unix in one; 1 and 2 clients, 1 and 16 numbers.
  ASSERT_EQ(lines.medians.size(), 20u);
  ASSERT_EQ(lines.runs_with("form", "one-sided").size(), 8u);
  for (const Json& line : lines.runs) {
    EXPECT_EQ(line.at("ops"), 60);
    EXPECT_GE(line.at("numbers_per_s").get<double>(), line.at("ops_per_s").get<double>() * 0.99);
    EXPECT_EQ(line.contains("node_adds_per_request"), line.at("form") == "rpc");
    EXPECT_LE(line.at("ns_p50"), line.at("ns_p999"));
  }
  EXPECT_EQ(lines.total.at("result_hashes_equal"), true);
}

// Whoever adds himself does not wait for the node's workers.
TEST(RunSequencerConcurrency, ANodeThatIsSlowIsSaid) {
  SequencerOptions options = tiny_sequencer();
  options.transports = {NodeTransport::shm};
  options.clients = {1};
  options.ranges = {1};
  options.slowness = 3;
  const PointLines lines = sequencer_lines(options);
  EXPECT_EQ(lines.exit_code, 0);
  ASSERT_EQ(lines.runs.size(), 2u);
  for (const Json& line : lines.runs) EXPECT_EQ(line.at("slowness"), 3);
}

TEST(RunSequencer, WrongOptionsAreRefused) {
  SequencerOptions options = tiny_sequencer();
  options.ranges = {1, 0};
  EXPECT_TRUE(problem_of(options));
  options = tiny_sequencer();
  options.slowness = 0.5;
  EXPECT_TRUE(problem_of(options));
  options = tiny_sequencer();
  options.clients = {};
  EXPECT_TRUE(problem_of(options));
  options = tiny_sequencer();
  options.forms = {SequencerForm::one_sided};
  options.transports = {NodeTransport::unix_socket};
  EXPECT_TRUE(problem_of(options));
  options = tiny_sequencer();
  options.ops = 0;
  std::ostringstream out;
  EXPECT_THROW(static_cast<void>(run_benchmark(options, {out, out})), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench
