// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/side_link.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "channel/rings/link_welcome.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kSidePosts = 1024;  // and not completed
constexpr std::uint64_t kSideNapNs = 10'000'000;

}  // namespace

SideLink::SideLink(std::unique_ptr<fabric::Endpoint> endpoint)
    : endpoint_(std::move(endpoint)),
      completions_(*endpoint_, kSidePosts),
      receives_(*endpoint_, 1) {}

SideLink::~SideLink() {
  if (!pair_) return;
  pair_->close();
  try {
    endpoint_->progress();           // sends the close
  } catch (const std::bad_alloc&) {  // the node detects it by timeout
  }
}

Result<std::unique_ptr<SideLink>> SideLink::open(const fabric::FabricAddress& address,
                                                 std::span<const std::byte> hello,
                                                 const SideLinkTimes& times) {
  auto regions = fabric::RegionTable::create();
  if (!regions) return std::unexpected(regions.error());
  auto way = fabric::open_for_connecting(address, std::move(*regions));
  if (!way) return std::unexpected(way.error());
  return open(std::move(*way), hello, times);
}

Result<std::unique_ptr<SideLink>> SideLink::open(fabric::Connecting way,
                                                 std::span<const std::byte> hello,
                                                 const SideLinkTimes& times) {
  auto link = begin(std::move(way), hello, times.pair_timeout_ns);
  if (!link) return std::unexpected(link.error());
  if (const auto connected = (*link)->await(hello, times); !connected) {
    return std::unexpected(connected.error());
  }
  return link;
}

Result<std::unique_ptr<SideLink>> SideLink::begin(fabric::Connecting way,
                                                  std::span<const std::byte> hello,
                                                  std::uint64_t pair_timeout_ns) {
  std::unique_ptr<SideLink> link(new SideLink(std::move(way.endpoint)));
  if (const auto dialled = link->dial(way, hello, pair_timeout_ns); !dialled) {
    return std::unexpected(dialled.error());
  }
  return link;
}

Result<void> SideLink::dial(const fabric::Connecting& way, std::span<const std::byte> hello,
                            std::uint64_t pair_timeout_ns) {
  fabric::QueuePairOptions options;
  options.sends = &completions_;
  options.receives = &receives_;
  options.receive_depth = 1;
  options.send_depth = kSidePosts;
  options.mtu_bytes = mtu_bytes_ = way.mtu_bytes;
  options.timeout_ns = pair_timeout_ns;
  auto pair = endpoint_->connect(way.target, options, hello);
  if (!pair) return std::unexpected(pair.error());
  pair_ = std::move(*pair);
  return {};
}

Result<void> SideLink::await(std::span<const std::byte> hello, const SideLinkTimes& times) {
  const std::uint64_t until = times.now_ns() + times.timeout_ns;
  while (pair_->state() == fabric::QueuePair::State::connecting) {
    if (times.now_ns() >= until) return fail(Code::system, ETIMEDOUT);
    endpoint_->progress();
    endpoint_->wait(kSideNapNs);
  }
  if (pair_->state() == fabric::QueuePair::State::error) {
    return std::unexpected(why_not_connected(*pair_));
  }
  wire::LinkHello said{};
  std::memcpy(&said, hello.data(), sizeof said);
  return check_welcome(said);
}

Result<void> SideLink::check_welcome(const wire::LinkHello& hello) const {
  const auto read = read_welcome(pair_->peer_data());
  if (!read) return std::unexpected(read.error());
  const wire::LinkWelcome& welcome = *read;
  if (welcome.way != hello.way || welcome.token != hello.token) {
    return fail(Code::corrupt, 2);
  }
  return {};
}

}  // namespace espalier::client
