// SPDX-License-Identifier: Apache-2.0
// One row for each transport: another one is a row or two, and its listening address.
#include "bench/node_transport.hpp"

#include <algorithm>
#include <array>

#include "bench/own_node.hpp"
#include "node/config.hpp"
#include "node/node.hpp"

namespace espalier::bench {
namespace {

std::string fresh_shm() { return "shm:" + fresh_socket(); }
// Port 0 takes a free one; the node reports it (Node::fabric_addresses()).
std::string fresh_roce_udp() { return "roce://127.0.0.1:0/1"; }
std::string fresh_roce_udp6() { return "roce://[::1]:0/1"; }
std::string fresh_roce_memif() { return "roce+memif:" + fresh_socket(); }
std::string fresh_ofi_tcp() { return "ofi://tcp/127.0.0.1:0"; }

struct TransportRow {
  NodeTransport transport;
  std::string_view name;
  std::string (*fresh_address)();  // null: every node's socket
  bool sends = false;
};
constexpr std::array kRows{
    TransportRow{NodeTransport::unix_socket, "unix", nullptr},
    TransportRow{NodeTransport::shm, "shm", fresh_shm},
    TransportRow{NodeTransport::shm_send, "shm-send", fresh_shm, true},
    TransportRow{NodeTransport::roce_udp, "roce-udp", fresh_roce_udp},
    TransportRow{NodeTransport::roce_udp_send, "roce-udp-send", fresh_roce_udp, true},
    TransportRow{NodeTransport::roce_udp6, "roce-udp6", fresh_roce_udp6},
    TransportRow{NodeTransport::roce_memif, "roce-memif", fresh_roce_memif},
    TransportRow{NodeTransport::roce_memif_send, "roce-memif-send", fresh_roce_memif, true},
    TransportRow{NodeTransport::ofi_tcp, "ofi-tcp", fresh_ofi_tcp},
    TransportRow{NodeTransport::ofi_tcp_send, "ofi-tcp-send", fresh_ofi_tcp, true},
};

const TransportRow& row_of(NodeTransport transport) {
  return *std::ranges::find(kRows, transport, &TransportRow::transport);
}

}  // namespace

std::string_view name(NodeTransport transport) { return row_of(transport).name; }

std::optional<NodeTransport> parse_node_transport(std::string_view text) {
  const auto row = std::ranges::find(kRows, text, &TransportRow::name);
  if (row == kRows.end()) return std::nullopt;
  return row->transport;
}

std::vector<NodeTransport> all_node_transports() {
  std::vector<NodeTransport> all;
  for (const TransportRow& row : kRows) all.push_back(row.transport);
  return all;
}

std::string node_transport_names() {
  std::string names;
  for (const TransportRow& row : kRows)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

void prepare(node::Config& config, NodeTransport transport) {
  const TransportRow& row = row_of(transport);
  if (row.fresh_address == nullptr) return;
  std::string& addresses = config.node.fabric;
  for (std::uint32_t core = 0; core < config.node.cores; ++core) {
    addresses += (addresses.empty() ? "" : " ") + row.fresh_address();
  }
}

std::string address_of(const node::Node& node, NodeTransport transport, std::uint32_t client) {
  const TransportRow& row = row_of(transport);
  if (row.fresh_address == nullptr) return local_address(node);
  const std::vector<std::string>& addresses = node.fabric_addresses();
  return addresses.at(client % addresses.size()) + (row.sends ? "?rings=send" : "");
}

}  // namespace espalier::bench
