// SPDX-License-Identifier: Apache-2.0
// UDP's checksum where some words of a datagram change: by the difference [RFC 1624], so that one
// that was wrong stays wrong.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/frame_parts.hpp"

namespace espalier::dataplane {

/// What 16-bit words add to a sum that is folded, taken 32 bits at a time: 2^16 counts as 1 there.
inline std::uint64_t halves(std::uint64_t number) {
  return (number >> 32) + (number & 0xFFFF'FFFF);
}

/// `sum` is of the new words and of the old ones, these inverted. All of them lie at even distances
/// from the header. A checksum that comes to 0 is written as all ones, for 0 says that there is
/// none. Requires: there is one.
inline void mend_checksum(std::byte* udp, std::uint64_t sum) {
  std::byte* const at = udp + wire::kUdpChecksumOffset;
  sum += static_cast<std::uint16_t>(~load16(at));
  sum = halves(sum);
  for (int i = 0; i < 3; ++i) sum = (sum & 0xFFFF) + (sum >> 16);
  const auto checksum = static_cast<std::uint16_t>(~sum);
  base::store_be(at, checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
}

}  // namespace espalier::dataplane
