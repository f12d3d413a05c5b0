// SPDX-License-Identifier: Apache-2.0
// Counters of a node's links to a peer (peer_posts.hpp).
#pragma once

#include <cstdint>

namespace espalier::offload {

/// Of all links to a peer together.
struct PeerTotals {
  std::uint64_t links_up = 0;
  std::uint64_t opened = 0;
  std::uint64_t posts = 0;
  std::uint64_t doorbells = 0;
  std::uint64_t completions = 0;
  std::uint64_t failures = 0;
};

}  // namespace espalier::offload
