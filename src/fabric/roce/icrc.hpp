// SPDX-License-Identifier: Apache-2.0
// The ICRC, RoCEv2's checksum from end to end: over the IP and UDP headers, the BTH and all behind
// it, as they are at both ends; what routers may change counts as all ones [Annex A17].
//
//   IPv4   8 bytes FF | 45 FF length id flags FF protocol FF FF source destination | UDP, checksum
//          FF FF | BTH, byte 4 FF | the rest, with its pad
//   IPv6   8 bytes FF | 6F FF FF FF length next FF source destination | the same
//
// A UDP socket shows no IP header. All of it is known all the same, but for IPv4's id: Linux sends
// 0 on sockets that are not connected and set IP_MTU_DISCOVER to DO. So what a flow has in common
// is worked out once, and what differs (length, id) is added for each packet by looking it up, for
// the checksum is linear.
//
// Thread: pure functions, and a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/crc32.hpp"
#include "fabric/roce/ip_flow.hpp"

namespace espalier::fabric::roce {

/// UDP can carry no more in one packet of either IP version.
inline constexpr std::size_t kIbBytesMax = 65535 - 8 - 40;

/// Makes and checks the ICRCs of one flow.
///
/// `ib` is the UDP payload, from the BTH to the ICRC. `ip_id` is IPv4's; IPv6 has none.
class Icrc {
 public:
  explicit Icrc(const IpFlow& flow);

  /// What the ICRC of these bytes is, its own not looked at. Requires: between 16 and kIbBytesMax
  /// bytes. Cost: about 10 ns, and that of the payload (base/crc32.hpp).
  [[nodiscard]] std::uint32_t of(std::span<const std::byte> ib, std::uint16_t ip_id = 0) const;
  /// Writes it into the last four bytes. Requires: as of().
  void seal(std::span<std::byte> ib, std::uint16_t ip_id = 0) const;
  /// Whether the last four bytes are right. Any bytes may come, of any length.
  [[nodiscard]] bool matches(std::span<const std::byte> ib, std::uint16_t ip_id = 0) const;

  /// For packets that lie in pieces: base::crc32_extend() with the other pieces and the pad, then
  /// base::crc32_end(). `ib_bytes` counts the whole, ICRC included; `first` holds the BTH or more.
  [[nodiscard]] std::uint32_t begin(std::size_t ib_bytes, std::span<const std::byte> first,
                                    std::uint16_t ip_id = 0) const;

 private:
  std::uint32_t seed_;  // after the headers of IP and UDP, as if lengths and id were 0
  bool is_v6_;
};

/// The incremental update of the ICRC of a READ request whose address and key change: xor it. The
/// arguments are the old numbers xor the new ones. A packet that was damaged before stays wrong,
/// which a checksum made anew would hide. Holds in all IP versions; a UDP checksum covers the ICRC
/// too. Cost: twelve independent loads.
[[nodiscard]] std::uint32_t icrc_change(std::uint64_t address_change, std::uint32_t key_change);

/// The same where the key stays: for a caller that knows by what a key changes it.
/// Cost: eight independent loads.
[[nodiscard]] inline std::uint32_t icrc_change_of_address(std::uint64_t address_change) {
  // Key and length, 4 bytes each, lie between the address and the end.
  std::uint32_t change = 0;
  for (unsigned i = 0; i < 8; ++i) {
    change ^= base::kCrc32Tables[8 + i][static_cast<std::uint8_t>(address_change >> (8 * i))];
  }
  return change;
}

/// The same in the packet: sets address and key, and updates the ICRC. Requires: the bytes are a
/// READ request, parsed as such.
void redirect_read(std::span<std::byte> ib, std::uint64_t address, std::uint32_t key);

}  // namespace espalier::fabric::roce
