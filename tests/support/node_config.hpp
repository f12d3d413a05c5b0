// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/temporary_folder.hpp"
#include "node/config.hpp"

namespace espalier::test {

/// Leases that survive busy machines: a reader may be preempted for minutes.
inline constexpr base::LeaseTerms kLeasesThatLast{.renew_every_ns = 20'000'000,
                                                  .believed_for_ns = 120'000'000'000,
                                                  .lost_after_ns = 300'000'000'000};

/// A node for tests: at a socket in `folder`, with less memory than in production, and without huge
/// pages, of which a machine may have few.
inline node::Config node_config(const base::TemporaryFolder& folder, std::uint32_t cores = 1) {
  node::Config config;
  config.node.socket = (folder / "node").string();
  config.node.cores = cores;
  config.node.sweep_asleep_ms = 10;
  config.memory.limit = std::uint64_t{512} << 20;
  config.memory.huge_pages = false;
  return config;
}

}  // namespace espalier::test
