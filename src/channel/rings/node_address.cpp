// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/node_address.hpp"

#include <cstdlib>
#include <utility>

#include "base/peer_user.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/ring_connection.hpp"

namespace espalier::client {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kRings = "?rings=";

}  // namespace

Result<NodeAddress> parse_node_address(std::string_view text) {
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

bool is_far(const NodeAddress& address) {
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
  if (const auto* const path = std::get_if<UnixPath>(&address)) {
    return RingConnection::open(path->path,
                                {.server_user = node_user, .secret = std::move(*secret)});
  }
  OverFabric over = std::get<OverFabric>(address);
  over.address.server_user = node_user;
  FabricConnectionOptions connecting;
  connecting.way = over.way;
  connecting.secret = std::move(*secret);
  return FabricConnection::open(over.address, connecting);
}

}  // namespace espalier::client
