// SPDX-License-Identifier: Apache-2.0
// The request that counts a range, of a map and of a snapshot.
#pragma once

#include <cstdint>
#include <string_view>

#include "client/thread_rings.hpp"
#include "espalier/error.hpp"

namespace espalier::client {

/// Only the number travels back. Errors: key_too_long.
[[nodiscard]] inline Result<wire::CallMessage> count_request(std::string_view low,
                                                             std::string_view high,
                                                             std::uint32_t max_key_bytes) {
  if (low.size() > max_key_bytes || high.size() > max_key_bytes) {
    return fail(Code::key_too_long, max_key_bytes);
  }
  wire::CallMessage outgoing;
  outgoing.offload = wire::OffloadId::count;
  outgoing.key = low;
  outgoing.payload = high;
  return outgoing;
}

}  // namespace espalier::client
