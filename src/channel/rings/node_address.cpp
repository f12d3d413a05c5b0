// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/node_address.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/peer_user.hpp"
#include "chain/membership/etcd_membership.hpp"
#include "channel/rings/chain_nodes.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/ring_connection.hpp"

namespace espalier::client {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kRings = "?rings=";
constexpr std::string_view kChain = "chain://";
constexpr std::size_t kChainNodesMax = 8;
constexpr std::uint64_t kHeadTimeoutNs = 10'000'000'000;  // until a chain has a head
constexpr std::uint32_t kNodeTimeoutMs = 1'000;           // of one node of it
constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr int kHeadPauseMs = 10;

Result<ChainAddress> parse_chain_address(std::string_view text) {
  if (text.starts_with(chain::kEtcdScheme)) {
    auto place = chain::parse_etcd_place(text);
    if (!place) return fail(Code::invalid_argument);
    return ChainAddress{std::make_shared<ChainNodes>(std::move(*place))};
  }
  std::vector<OneAddress> nodes;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find(','), text.size());
    auto node = parse_one_address(text.substr(0, end));
    if (!node) return std::unexpected(node.error());
    if (nodes.size() == kChainNodesMax) return fail(Code::invalid_argument);
    nodes.push_back(std::move(*node));
    more = end != text.size();
    text.remove_prefix(more ? end + 1 : end);
  }
  return ChainAddress{std::make_shared<ChainNodes>(std::move(nodes))};
}

Result<std::shared_ptr<NodeConnection>> connect_to_one(
    const OneAddress& address, std::shared_ptr<const KnownSecret> secret,
    std::optional<std::uint32_t> node_user, std::optional<std::uint32_t> timeout_ms = {}) {
  if (const auto* const path = std::get_if<UnixPath>(&address)) {
    RingConnectionOptions connecting{.server_user = node_user, .secret = std::move(secret)};
    if (timeout_ms) connecting.timeout_ms = *timeout_ms;
    return RingConnection::open(path->path, connecting);
  }
  OverFabric over = std::get<OverFabric>(address);
  over.address.server_user = node_user;
  FabricConnectionOptions connecting;
  connecting.way = over.way;
  connecting.secret = std::move(secret);
  if (timeout_ms) connecting.timeout_ns = *timeout_ms * kMillisecondNs;
  return FabricConnection::open(over.address, connecting);
}

/// Whether etcd may name nodes a little later.
bool may_name_nodes(const Error& error) {
  return error.detail == static_cast<std::uint32_t>(ChainFault::unavailable);
}

// Members that are not the head accept no client. A node that refuses this client may be another
// one than a member, at an old address: the search ends by its refusal once all nodes were tried
// and etcd, if it may be asked, was. While etcd fails, the nodes known so far are tried until the
// end.
Result<std::shared_ptr<NodeConnection>> connect_to_head(
    ChainNodes& chain, const std::shared_ptr<const KnownSecret>& secret,
    std::optional<std::uint32_t> node_user) {
  const std::uint64_t until_ns = base::monotonic_ns() + kHeadTimeoutNs;
  bool has_asked = false;
  for (bool is_first = true;; is_first = false) {
    auto turn = chain.turn(is_first);
    if ((!is_first || turn.count == 0) && chain.may_ask()) {
      has_asked = true;
      const auto asked = chain.ask(until_ns);
      const bool may_come = asked || may_name_nodes(asked.error());
      if (!asked && turn.nodes->empty() && (!may_come || base::monotonic_ns() >= until_ns)) {
        return std::unexpected(asked.error());
      }
      turn = chain.turn(false);
    }
    std::optional<Error> refused;
    for (std::size_t i = 0; i < turn.count; ++i) {
      const std::size_t place = (turn.first + i) % turn.nodes->size();
      auto connected = connect_to_one((*turn.nodes)[place], secret, node_user, kNodeTimeoutMs);
      if (connected) {
        chain.accepted(turn, place, *connected);
        return connected;
      }
      if (!refused && connected.error().code == Code::not_permitted) refused = connected.error();
      if (base::monotonic_ns() > until_ns)
        return std::unexpected(refused.value_or(connected.error()));
    }
    const bool tried_all = turn.count == turn.nodes->size();
    const bool is_final = tried_all && (has_asked || !chain.may_ask());
    if (refused && is_final) return std::unexpected(*refused);
    ::poll(nullptr, 0, kHeadPauseMs);
  }
}

}  // namespace

Result<OneAddress> parse_one_address(std::string_view text) {
  if (text.starts_with(kUnix)) {
    if (text.size() == kUnix.size()) return fail(Code::invalid_argument);
    return UnixPath{std::string(text.substr(kUnix.size()))};
  }
  OverFabric over;
  if (const std::size_t at = text.rfind(kRings); at != std::string_view::npos) {
    const std::string_view way = text.substr(at + kRings.size());
    if (way != "send" && way != "write") return fail(Code::invalid_argument);
    over.way = way == "send" ? wire::LinkWay::send : wire::LinkWay::write;
    text = text.substr(0, at);
  }
  auto address = fabric::parse(text);
  if (!address) return std::unexpected(address.error());
  over.address = std::move(*address);
  return over;
}

Result<NodeAddress> parse_node_address(std::string_view text) {
  if (text.starts_with(kChain)) {
    auto chain = parse_chain_address(text.substr(kChain.size()));
    if (!chain) return std::unexpected(chain.error());
    return std::move(*chain);
  }
  auto one = parse_one_address(text);
  if (!one) return std::unexpected(one.error());
  return std::visit([](auto& address) -> NodeAddress { return std::move(address); }, *one);
}

bool is_far(const NodeAddress& address) {
  if (const auto* const chain = std::get_if<ChainAddress>(&address)) return chain->nodes->is_far();
  const auto* const over = std::get_if<OverFabric>(&address);
  return over != nullptr && over->address.transport != fabric::FabricAddress::Transport::shm;
}

bool sends_packets(const NodeAddress& address) {
  using Transport = fabric::FabricAddress::Transport;
  const auto* const over = std::get_if<OverFabric>(&address);
  if (over == nullptr) return false;
  const Transport transport = over->address.transport;
  return transport == Transport::roce || transport == Transport::memif ||
         transport == Transport::xdp;
}

std::string explain_node_address(const Error& error) {
  const auto fault = static_cast<fabric::AddressFault>(error.detail);
  if (fault != fabric::AddressFault::none && fault != fabric::AddressFault::scheme) {
    return std::string(fabric::explain(fault));
  }
  return "Give " + std::string(kNodeAddressForms) +
         "; behind those of a fabric ?rings=send or ?rings=write may stand.";
}

std::optional<std::uint32_t> node_user_of_process() {
  const char* const text = std::getenv("ESPALIER_NODE_USER");
  if (text == nullptr || *text == '\0') return std::nullopt;
  return base::user_named(text);
}

Result<std::shared_ptr<NodeConnection>> connect_to(const NodeAddress& address,
                                                   const ConnectOptions& options) {
  const auto node_user = options.node_user ? options.node_user : node_user_of_process();
  auto secret = KnownSecret::or_of_process(options.secret);
  if (!secret) return std::unexpected(secret.error().error);
  if (const auto* const chain = std::get_if<ChainAddress>(&address)) {
    return connect_to_head(*chain->nodes, *secret, node_user);
  }
  if (const auto* const path = std::get_if<UnixPath>(&address)) {
    return connect_to_one(*path, std::move(*secret), node_user);
  }
  return connect_to_one(std::get<OverFabric>(address), std::move(*secret), node_user);
}

}  // namespace espalier::client
