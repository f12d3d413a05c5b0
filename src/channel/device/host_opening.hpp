// SPDX-License-Identifier: Apache-2.0
// Opens a connection to a host: rings over a fabric, and for their session a queue pair by which
// the host's memory is read. Both need handshakes, which may take as long as the options' timeouts;
// so a device that lost its host does this on a thread of its own.
//
// Thread: any; the result belongs to one thread.
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
  /// The file with the device's name and secret, for a host on a network, read at each try; empty:
  /// the file of ESPALIER_SECRET_FILE.
  std::string secret_file;
  /// Timeout of one try to reach the host; also how long requests wait for a host that is gone.
  std::uint64_t timeout_ns = 1'000'000'000;
  /// Keepalive timeout: a host that answers nothing for so long, not even a probe, is given up.
  std::uint64_t silence_ns = 3'000'000'000;
  /// Pause between two tries.
  std::uint64_t pause_ns = 50'000'000;
  /// The required number of the host's node; 0: any.
  std::uint64_t node_id = 0;
  /// Most bytes of each worker's cache of interior nodes; roots of maps are extra.
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;
  /// Whether roots are cached besides; if not, nothing is cached, whatever cache_bytes is. For
  /// measurements of the cache's benefit.
  bool pins_roots = true;
  /// The balancer's weight (kinds/map/remote/balancer.hpp); 0: cached data is never read from the
  /// host.
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
