// SPDX-License-Identifier: Apache-2.0
// How a client goes about it that reads the memory by itself.
#pragma once

#include <cstdint>

namespace espalier::client {

/// Looks in vain before a thread that waits for READs sleeps.
inline constexpr std::uint32_t kReadSpins = 2000;

/// How walks go about it.
struct WalkOptions {
  std::uint64_t cache_bytes = 0;  ///< what is remembered of nodes, at most
  bool by_key = false;            ///< they begin with READs that carry a key
};

}  // namespace espalier::client
