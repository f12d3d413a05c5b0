// SPDX-License-Identifier: Apache-2.0
#include "client/read_link.hpp"

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/clock.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kReads = 1024;  // posted and not ended
constexpr std::uint64_t kNapNs = 10'000'000;

}  // namespace

ReadLink::ReadLink(std::unique_ptr<fabric::Endpoint> endpoint)
    : endpoint_(std::move(endpoint)), completions_(*endpoint_, kReads), receives_(*endpoint_, 1) {}

ReadLink::~ReadLink() {
  if (!pair_) return;
  pair_->close();
  endpoint_->progress();  // so that the node hears of it
}

Result<std::unique_ptr<ReadLink>> ReadLink::open(const fabric::FabricAddress& address,
                                                 const wire::LinkToken& token,
                                                 std::uint64_t timeout_ns) {
  auto regions = fabric::RegionTable::create();
  if (!regions) return std::unexpected(regions.error());
  auto way = fabric::open_for_connecting(address, std::move(*regions));
  if (!way) return std::unexpected(way.error());
  std::unique_ptr<ReadLink> link(new ReadLink(std::move(way->endpoint)));
  if (const auto connected = link->connect(*way, token, timeout_ns); !connected) {
    return std::unexpected(connected.error());
  }
  return link;
}

Result<void> ReadLink::connect(const fabric::Connecting& way, const wire::LinkToken& token,
                               std::uint64_t timeout_ns) {
  wire::LinkHello hello{};
  hello.magic = wire::kLinkMagic;
  hello.protocol = wire::kLinkProtocol;
  hello.way = static_cast<std::uint8_t>(wire::LinkWay::reads);
  hello.token = token;
  fabric::QueuePairOptions options;
  options.sends = &completions_;
  options.receives = &receives_;
  options.receive_depth = 1;
  options.send_depth = kReads;
  options.mtu_bytes = way.mtu_bytes;
  auto pair = endpoint_->connect(way.target, options, std::as_bytes(std::span(&hello, 1)));
  if (!pair) return std::unexpected(pair.error());
  pair_ = std::move(*pair);
  const std::uint64_t until = base::monotonic_ns() + timeout_ns;
  while (pair_->state() == fabric::QueuePair::State::connecting) {
    if (base::monotonic_ns() >= until) return fail(Code::system, ETIMEDOUT);
    endpoint_->progress();
    endpoint_->wait(kNapNs);
  }
  if (pair_->state() == fabric::QueuePair::State::error) return fail(Code::system, ECONNREFUSED);
  return check_welcome(token);
}

Result<void> ReadLink::check_welcome(const wire::LinkToken& token) const {
  wire::LinkWelcome welcome{};
  const auto data = pair_->peer_data();
  if (data.size() < sizeof welcome) return fail(Code::corrupt, 1);
  std::memcpy(&welcome, data.data(), sizeof welcome);
  if (welcome.magic != wire::kLinkMagic) return fail(Code::corrupt, 1);
  if (welcome.code != 0) return fail(static_cast<Code>(welcome.code), welcome.detail);
  if (welcome.way != static_cast<std::uint8_t>(wire::LinkWay::reads) || welcome.token != token) {
    return fail(Code::corrupt, 2);
  }
  return {};
}

}  // namespace espalier::client
