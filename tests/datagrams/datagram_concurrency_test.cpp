// SPDX-License-Identifier: Apache-2.0
// Threads that write a map of a node and get by datagrams, with their histories checked.
#include <gtest/gtest.h>

#include "engine/datagram_sessions.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sizes.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {
namespace {

class DatagramConcurrency : public NodeFixture {
 protected:
  void run(const MapOptions& map_options, const WorkloadOptions& options) {
    SCOPED_TRACE(seed_text(options.seed));
    reach_by("datagram");
    start();
    Store store = connect();
    Map map = *store.create_map("m", map_options);
    WorkloadReport report;
    ASSERT_EQ(run_and_check(map, options, &report).value_or(""), "");
    EXPECT_GT(report.overlapping, 0u);
    EXPECT_GT(node_->services().part<offload::DatagramSessions>().counts.answered, 0u);
  }
};

TEST_F(DatagramConcurrency, LongHistories) {
  WorkloadOptions options;
  options.seed = seed_from_environment(4531);
  options.threads = 3;
  options.audit = false;  // it is on the node
  options.pipelines = 1;
  options.operations = steps_or(scaled(1500));
  run({.node_bytes = 512, .log_bytes = 128}, options);
}

TEST_F(DatagramConcurrency, ManyShortHistories) {
  WorkloadOptions options;
  options.seed = seed_from_environment(4532);
  options.keys = 10;
  options.threads = 3;
  options.audit = false;  // it is on the node
  options.pipelines = 1;
  options.in_flight = 4;
  options.operations = 30;
  options.operations_per_phase = 15;
  options.rounds = static_cast<std::uint32_t>(steps_or(scaled(60)));
  options.search = true;
  run({.node_bytes = 512, .log_bytes = 64}, options);
}

}  // namespace
}  // namespace espalier::test
