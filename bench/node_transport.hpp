// SPDX-License-Identifier: Apache-2.0
// The transports between a benchmark and its node, by name. With the suffix "-send" requests and
// answers travel as messages; else they are written into the peer's rings.
//
// Thread: any; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::node {
struct Config;
class Node;
}  // namespace espalier::node

namespace espalier::bench {

enum class NodeTransport : std::uint8_t {
  unix_socket,
  shm,
  shm_send,
  roce_udp,
  roce_udp_send,
  roce_udp6,
  roce_memif,
  roce_memif_send,
  ofi_tcp,
  ofi_tcp_send,
};

[[nodiscard]] std::string_view name(NodeTransport transport);
[[nodiscard]] std::optional<NodeTransport> parse_node_transport(std::string_view text);
[[nodiscard]] std::vector<NodeTransport> all_node_transports();
/// All names, comma-separated.
[[nodiscard]] std::string node_transport_names();

/// Makes the node listen on this transport, at an unused address: once for each of its workers,
/// since what arrives at an address of the fabric stays with one of them.
void prepare(node::Config& config, NodeTransport transport);
/// The address of such a node for the `client`-th client. Clients alternate.
[[nodiscard]] std::string address_of(const node::Node& node, NodeTransport transport,
                                     std::uint32_t client = 0);

}  // namespace espalier::bench
