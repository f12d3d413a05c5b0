// SPDX-License-Identifier: Apache-2.0
// Reaching a host: a connection by rings over a fabric, and beside it, for its session, a queue
// pair by which its memory is read. Both shake hands, which takes as long as the host makes it take
// and at most the times of the options; so a device that lost its host does it on a thread aside.
//
// Thread: any; what is opened belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/thread_rings.hpp"

namespace espalier::device {

struct HostOptions {
  fabric::FabricAddress address;
  wire::LinkWay way = wire::LinkWay::write;
  /// Where its name and secret stand, by which it comes to a host of a network, read at each try;
  /// empty: where ESPALIER_SECRET_FILE says.
  std::string secret_file;
  /// How long one try to reach the host takes at most; and how long one that is gone is awaited
  /// while something is asked of it.
  std::uint64_t timeout_ns = 1'000'000'000;
  /// A host that does not answer for so long, though it is asked, is given up.
  std::uint64_t silence_ns = 3'000'000'000;
  /// Between two tries.
  std::uint64_t pause_ns = 50'000'000;
  /// The number of the node that the host must be; 0: any.
  std::uint64_t node_id = 0;
  /// What each worker remembers of interior nodes, at most; the roots of maps aside.
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;
  /// Whether roots are kept besides; else nothing is remembered, whatever cache_bytes says. For
  /// measuring what it is worth.
  bool pins_roots = true;
  /// The balancer's weight (kinds/map/remote/balancer.hpp); 0: nothing that is remembered is read
  /// of the host.
  std::uint32_t balance = 0;
};

/// The secret of a device. Errors: those of KnownSecret::read_file.
SecretResult<std::shared_ptr<const client::KnownSecret>> secret_of(const HostOptions& options);

struct OpenedHost {
  std::shared_ptr<client::FabricConnection> connection;
  std::unique_ptr<client::ThreadRings> rings;
  std::unique_ptr<client::SideLink> reads;
};

/// Errors: as FabricConnection::open and SideLink::open: system (ECONNREFUSED, ETIMEDOUT),
/// unsupported (the host does not offer its memory), corrupt, too_many_participants, not_permitted;
/// those of KnownSecret::read_file.
Result<OpenedHost> open_host(const HostOptions& options);

}  // namespace espalier::device
