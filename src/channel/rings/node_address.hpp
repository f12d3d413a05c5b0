// SPDX-License-Identifier: Apache-2.0
// Addresses of nodes: a UNIX socket of this machine, or an address of the fabric.
//
//     unix:PATH        the node maps its memory into this process
//     shm:PATH, roce://HOST[:PORT][/SERVICE], ...     see fabric/address.hpp
//
// After a fabric's address `?rings=send` makes requests and answers travel as messages, so neither
// side writes the other's memory; by default they are written into the peer's rings.
//
//     chain://ADDRESS,ADDRESS,...     the nodes of a chain, each by one of the above without a
//                                     comma, of which the head answers (docs/chains.md)
//     chain://etcd://HOST:PORT,HOST:PORT/KEY     those that etcd names under that key
//
// Thread: any; no state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_connection.hpp"
#include "fabric/address.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

struct UnixPath {
  std::string path;
};
struct OverFabric {
  fabric::FabricAddress address;
  wire::LinkWay way = wire::LinkWay::write;
};
using OneAddress = std::variant<UnixPath, OverFabric>;
class ChainNodes;  // channel/rings/chain_nodes.hpp
/// The addresses of a chain. Only the head accepts clients.
struct ChainAddress {
  std::shared_ptr<ChainNodes> nodes;  ///< of all copies; never null
};
using NodeAddress = std::variant<UnixPath, OverFabric, ChainAddress>;

/// Errors: invalid_argument (detail: a fabric::AddressFault, or 0 if it is not an address at all).
Result<NodeAddress> parse_node_address(std::string_view text);
/// The same of a single node.
Result<OneAddress> parse_one_address(std::string_view text);

/// Whether the path to this node leaves this machine's memory, so that others could read the
/// traffic.
[[nodiscard]] bool is_far(const NodeAddress& address);

/// Whether the path to this node carries packets, so that it may contain switches.
[[nodiscard]] bool sends_packets(const NodeAddress& address);

/// The forms of addresses of nodes, for people.
inline constexpr std::string_view kNodeAddressForms =
    "unix:PATH, shm:PATH, roce://HOST[:PORT]/SERVICE, "
    "roce+memif:PATH[,link=LINK][,service=SERVICE], roce+xdp://INTERFACE/HOST[:PORT]/SERVICE or "
    "ofi://PROVIDER/HOST[:PORT], or of a chain chain://ADDRESS,ADDRESS or "
    "chain://etcd://HOST:PORT,HOST:PORT/KEY";

/// A sentence on what was expected instead of an address that parse_node_address() refuses.
[[nodiscard]] std::string explain_node_address(const Error& error);

/// The user that ESPALIER_NODE_USER names, by name or number; nothing: it is not set, or there is
/// no such user.
[[nodiscard]] std::optional<std::uint32_t> node_user_of_process();

struct ConnectOptions {
  /// The secret for mutual authentication; null: that of KnownSecret::of_process(), if there is
  /// one.
  std::shared_ptr<const KnownSecret> secret{};
  /// For a path of this machine: a user as which the node may run, beside those of
  /// base/trusted_server.hpp; nothing: that of node_user_of_process().
  std::optional<std::uint32_t> node_user{};
};
/// Connects to a node. For a chain, searches for its head for at most ten seconds, beginning with
/// the node that accepted a client last while that connection lasts, else after it.
/// Errors: as RingConnection::open, or FabricConnection::open, and those of of_process(); for a
/// chain those of the last node tried, or no_chain, where etcd has named none.
Result<std::shared_ptr<NodeConnection>> connect_to(const NodeAddress& address,
                                                   const ConnectOptions& options = {});

}  // namespace espalier::client
