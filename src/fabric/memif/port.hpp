// SPDX-License-Identifier: Apache-2.0
// Packets of RoCEv2 as Ethernet frames over memif: shared memory between two processes, or between
// one and a switch such as VPP or a program over DPDK. No privileges, and no kernel between.
//
// A port that listens has up to kLinksMax links at one socket, each to one peer; one that connects
// has one, that of a number or any free one, and reconnects when it was lost. Addresses follow from
// the link and need no configuration: the listening end is 169.254.1.1, and the connecting end of
// link n is 169.254.2.n; over IPv6 fe80::1 and fe80::2:n. Hardware addresses begin with 02:00
// (locally administered), and end as those.
//
// A listening port accepts from link n only packets with n's address as their source, so no peer
// can impersonate another. One that connects accepts whatever the far end of its link, which may be
// a switch, sends. While a link is down, packets get lost, as on a cable that is unplugged.
//
// Thread: one at a time, but for wake(). No thread of its own: links come up while it is polled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::memif {

inline constexpr std::uint32_t kLinksMax = 256;
/// For one attempt to bring a link up, and for all attempts of a port that takes any link: a
/// listener that is busy with others may miss some.
inline constexpr std::uint64_t kAgreeLongestNs = 2'000'000'000;
inline constexpr std::uint64_t kOpenLongestNs = 10'000'000'000;

/// The addresses of the ends of links. Requires: link < kLinksMax.
[[nodiscard]] roce::PortAddress listener_address(bool is_v6 = false);
[[nodiscard]] roce::PortAddress connector_address(std::uint32_t link, bool is_v6 = false);

struct MemifPortOptions {
  std::string path;        // of the socket
  bool listens = false;    // else connects,
  /// to this one; nothing: to any free one, and if another port takes that while it is lost, to
  /// another, with another address.
  std::optional<std::uint32_t> link = 0;
  bool is_v6 = false;
  /// Connecting: the user that the listener may run as beside this user and root
  /// (base/trusted_server.hpp).
  std::optional<std::uint32_t> server_user{};
};

/// What a port has seen; for monitoring and tests.
struct MemifCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;  // good ones
  std::uint64_t not_ours = 0;  // no RoCEv2, damaged, or between other addresses
  std::uint64_t wrong_icrc = 0;
  std::uint64_t unsent = 0;      // no link to go through, or no room there for one so long
  std::uint64_t links_up = 0;    // came up
  std::uint64_t links_down = 0;  // ended, after they had been up
  std::uint64_t refused = 0;     // ended before
};

class MemifPort : public roce::PacketPort {
 public:
  /// Waits for a link only where any will do, for the address depends on it: for at most
  /// kOpenLongestNs. Errors: invalid_argument (no path of a socket, or no such link),
  /// already_exists (another port listens there), connection_lost (none does),
  /// too_many_participants (no link is free), not_permitted (base::check_server),
  /// system (ETIMEDOUT: the listener does not answer).
  static Result<std::unique_ptr<MemifPort>> open(const MemifPortOptions& options);
  [[nodiscard]] virtual const MemifCounters& counters() const = 0;
  /// Links that are up.
  [[nodiscard]] virtual std::size_t links() const = 0;
};

}  // namespace espalier::fabric::memif
