// SPDX-License-Identifier: Apache-2.0
// The latency of memory, from which the distances of a gather are chosen, is measured when a store
// or a node starts, and not by the first request: each time in a process of its own, in which
// nothing has asked for it before.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "base/line_latency.hpp"
#include "espalier/map.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

/// Ends the process: well if only `start` has measured the latency, and it has started.
template <class Start>
void end_after(const Start& start) {
  const bool before = base::line_latency_is_known();
  const bool started = start();
  std::_Exit(!before && started && base::line_latency_is_known() ? 0 : 1);
}

class GatherProbe : public NodeFixture {
 protected:
  // The program is started anew for the statement, and runs this test alone.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(GatherProbe, AStoreMeasuresTheLatencyWhenItOpens) {
  EXPECT_EXIT(end_after([] {
                StoreOptions options;
                options.memory_bytes_max = std::uint64_t{64} << 20;
                options.huge_pages = false;
                return Store::open(options).has_value();
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(GatherProbe, ANodeMeasuresTheLatencyWhenItStarts) {
  EXPECT_EXIT(end_after([&] {
                start();
                const bool started = node_ != nullptr;
                node_.reset();
                // Nothing else removes the folder of a process that ends like this.
                std::filesystem::remove_all(std::filesystem::path(socket()).parent_path());
                return started;
              }),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace espalier::test
