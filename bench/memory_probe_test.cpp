// SPDX-License-Identifier: Apache-2.0
#include "bench/memory_probe.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "bench/benchmark.hpp"
#include "bench/report.hpp"
#include "bench/run_memory.hpp"

namespace espalier::bench {
namespace {

TEST(ChaseBlock, IsOneCycleThroughAllLines) {
  const ChaseBlock block(1000 * kLineBytes, 5);
  std::uint64_t line = 0;
  std::uint64_t steps = 0;
  do {
    line = block.next(line);
    ASSERT_LT(line, block.lines());
    ++steps;
  } while (line != 0 && steps <= block.lines());
  EXPECT_EQ(steps, block.lines());
}

TEST(MemoryProbe, MeasuresSomething) {
  const ChaseBlock block(std::size_t{1} << 18, 5);
  for (std::uint32_t chains = 1; chains <= kChainsMax; chains *= 2) {
    const ChaseResult result = chase(block, chains, 0);
    EXPECT_GT(result.lines_per_s, 0);
    EXPECT_GT(result.ns_per_line, 0);
  }
  const HugeBuffer buffer(kHugePageBytes);
  buffer.data()[kHugePageBytes - 8] = std::byte{3};
  EXPECT_EQ(read_sequentially(buffer, 0).checksum, 3U);
  buffer.data()[kHugePageBytes / 2 - 8] = std::byte{4};
  EXPECT_EQ(copy_sequentially(buffer, 0).checksum, 4U);
}

TEST(RunMemory, PrintsAllMeasurements) {
  MemoryOptions options;
  options.bytes_max = std::uint64_t{1} << 20;
  options.seconds = 0;
  options.json = true;
  options.probe_rounds = 0;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  std::istringstream lines(out.str());
  std::size_t count = 0;
  Json last;
  for (std::string line; std::getline(lines, line); ++count) {
    last = Json::parse(line);
    EXPECT_EQ(last.at("bench"), "memory");
  }
  EXPECT_EQ(count, 3U + 7U + 2U + 1U);  // latency, in flight, bandwidth, total
  EXPECT_TRUE(last.at("total"));
  EXPECT_EQ(last.at("measurements"), 12);

  options.json = false;
  std::ostringstream table;
  EXPECT_EQ(run_benchmark(options, {table, err}), 0);
  EXPECT_NE(table.str().find("total: 12 measurements"), std::string::npos);
  EXPECT_EQ(err.str(), "");
}

TEST(RunMemory, RefusesOptionsWithASentence) {
  MemoryOptions options;
  options.bytes_max = 1;
  EXPECT_NE(problem_of(options)->find("--bytes"), std::string::npos);
  std::ostringstream out;
  EXPECT_THROW(run_benchmark(options, {out, out}), std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench
