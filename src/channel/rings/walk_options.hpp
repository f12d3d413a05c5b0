// SPDX-License-Identifier: Apache-2.0
// Options of clients that read the node's memory themselves.
#pragma once

#include <cstdint>

namespace espalier::client {

/// Empty polls before a thread that waits for READs sleeps.
inline constexpr std::uint32_t kReadSpins = 2000;

/// Options of walks.
struct WalkOptions {
  std::uint64_t cache_bytes = 0;  ///< most bytes of cached nodes
  bool by_key = false;            ///< walks begin with READs that carry a key
};

}  // namespace espalier::client
