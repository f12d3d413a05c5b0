// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/node_address.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.hpp"
#include "base/peer_user.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/ring_connection.hpp"

namespace espalier::client {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kRings = "?rings=";
constexpr std::string_view kChain = "chain://";
constexpr std::size_t kChainNodesMax = 8;
constexpr std::uint64_t kHeadTimeoutNs = 10'000'000'000;  // to find a chain's head
constexpr std::uint64_t kNodeTimeoutNs = 1'000'000'000;   // for each of its nodes
constexpr int kHeadPauseMs = 10;

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

Result<ChainAddress> parse_chain_address(std::string_view text) {
  ChainAddress chain;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find(','), text.size());
    auto node = parse_one_address(text.substr(0, end));
    if (!node) return std::unexpected(node.error());
    if (chain.nodes.size() == kChainNodesMax) return fail(Code::invalid_argument);
    chain.nodes.push_back(std::move(*node));
    more = end != text.size();
    text.remove_prefix(more ? end + 1 : end);
  }
  return chain;
}

Result<std::shared_ptr<NodeConnection>> connect_to_one(
    const OneAddress& address, std::shared_ptr<const KnownSecret> secret,
    std::optional<std::uint32_t> node_user, std::optional<std::uint64_t> timeout_ns = {}) {
  if (const auto* const path = std::get_if<UnixPath>(&address)) {
    return RingConnection::open(path->path,
                                {.server_user = node_user, .secret = std::move(secret)});
  }
  OverFabric over = std::get<OverFabric>(address);
  over.address.server_user = node_user;
  FabricConnectionOptions connecting;
  connecting.way = over.way;
  connecting.secret = std::move(secret);
  if (timeout_ns) connecting.timeout_ns = *timeout_ns;
  return FabricConnection::open(over.address, connecting);
}

/// Members other than the head accept no clients; a node with another secret refuses immediately.
Result<std::shared_ptr<NodeConnection>> connect_to_head(
    const ChainAddress& chain, const std::shared_ptr<const KnownSecret>& secret,
    std::optional<std::uint32_t> node_user) {
  const std::size_t first = chain.next->load();
  const base::Stopwatch watch;
  for (std::size_t i = first;; ++i) {
    const std::size_t place = i % chain.nodes.size();
    auto connected = connect_to_one(chain.nodes[place], secret, node_user, kNodeTimeoutNs);
    if (connected) chain.next->store(place + 1);
    const bool is_final = connected || connected.error().code == Code::not_permitted ||
                          watch.elapsed_ns() > kHeadTimeoutNs;
    if (is_final) return connected;
    if (place + 1 == chain.nodes.size()) ::poll(nullptr, 0, kHeadPauseMs);
  }
}

}  // namespace

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
  if (const auto* const chain = std::get_if<ChainAddress>(&address)) {
    return std::ranges::any_of(chain->nodes, [](const OneAddress& node) {
      const auto* const over = std::get_if<OverFabric>(&node);
      return over != nullptr && over->address.transport != fabric::FabricAddress::Transport::shm;
    });
  }
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
    return connect_to_head(*chain, *secret, node_user);
  }
  if (const auto* const path = std::get_if<UnixPath>(&address)) {
    return connect_to_one(*path, std::move(*secret), node_user);
  }
  return connect_to_one(std::get<OverFabric>(address), std::move(*secret), node_user);
}

}  // namespace espalier::client
