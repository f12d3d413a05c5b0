// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_opening.hpp"

#include <utility>

#include "channel/rings/node_address.hpp"

namespace espalier::device {

SecretResult<std::shared_ptr<const client::KnownSecret>> secret_of(const HostOptions& options) {
  if (options.secret_file.empty()) return client::KnownSecret::of_process();
  return client::KnownSecret::read_file(options.secret_file);
}

Result<OpenedHost> open_host(const HostOptions& options) {
  client::FabricConnectionOptions connecting;
  connecting.way = options.way;
  connecting.timeout_ns = options.timeout_ns;
  auto secret = secret_of(options);
  if (!secret) return std::unexpected(secret.error().error);
  connecting.secret = std::move(*secret);
  fabric::FabricAddress address = options.address;
  address.server_user = client::node_user_of_process();
  auto connection = client::FabricConnection::open(address, connecting);
  if (!connection) return std::unexpected(connection.error());
  auto rings = client::ThreadRings::open(*connection);
  if (!rings) return std::unexpected(rings.error());
  auto reads = (*connection)->open_beside(wire::LinkWay::reads);
  if (!reads) return std::unexpected(reads.error());
  return OpenedHost{std::move(*connection), std::move(*rings), std::move(*reads)};
}

}  // namespace espalier::device
