// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/datagram_caller.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "crypto/datagram_tag.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kPauseNsMin = 100'000'000;
constexpr std::uint64_t kPauseNsMax = 10'000'000'000;

fabric::roce::PortAddress address_of(const wire::DatagramOffer& offer) {
  using fabric::roce::IpAddress;
  IpAddress ip = IpAddress::v6({});
  std::ranges::copy(offer.address, ip.bytes.begin());
  const auto v4 = IpAddress::v4(ip.bytes[12], ip.bytes[13], ip.bytes[14], ip.bytes[15]);
  return {v4.gid() == ip.bytes ? v4 : ip, offer.port};
}

}  // namespace

Result<void> DatagramCaller::open(RemoteRequests& requests, NodeConnection& connection) {
  if (gets_) return {};
  const auto opened = ask(requests, session_calls::OpenDatagrams{});
  if (!opened) return std::unexpected(opened.error());
  auto link = crypto::Secret<crypto::SecretBytes>::make();
  if (!link) return std::unexpected(link.error());
  auto key = crypto::Secret<crypto::SecretBytes>::make();
  if (!key) return std::unexpected(key.error());
  connection.copy_key(**link);
  if (auto made = crypto::datagram_key(**link, opened->offer, **key); !made) return made;
  auto wire = UdpWire::open(address_of(opened->offer));
  if (!wire) return std::unexpected(wire.error());
  wire_ = std::move(*wire);
  gets_ = std::make_unique<DatagramGets>(*wire_, opened->offer.session, std::move(*key));
  proved_ = false;
  return {};
}

bool DatagramCaller::run(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                         const Request& get, Handler& handler) {
  if (get.key.empty() || get.key.size() > wire::kDatagramKeyBytesMax) return false;
  if (!is_ready(requests, connection)) {
    ++traffic_.by_rings;
    return false;
  }
  const auto reply = gets_->get(map, get.key);
  if (!reply) proved_ = false;  // its address, as the node sees it, may have changed
  const auto status =
      reply ? static_cast<wire::DatagramStatus>(reply->header.status) : wire::DatagramStatus{};
  if (status != wire::DatagramStatus::found && status != wire::DatagramStatus::absent) {
    ++traffic_.by_rings;
    return false;
  }
  ++traffic_.reads;
  Completion completion;
  completion.tag = get.tag;
  completion.op = get.op;
  completion.ok = true;
  completion.found = status == wire::DatagramStatus::found;
  completion.version = reply->header.item_version;
  completion.read_version = reply->header.read_version;
  completion.value = reply->payload;
  handler.done(completion);
  return true;
}

bool DatagramCaller::is_ready(RemoteRequests& requests, NodeConnection& connection) {
  if (gets_ && proved_) return true;
  if (base::monotonic_ns() < not_before_ns_) return false;
  if (!open(requests, connection)) return pause();
  proved_ = gets_->prove();
  if (!proved_) {
    close();
    return pause();
  }
  pause_ns_ = 0;
  return true;
}

bool DatagramCaller::pause() {
  pause_ns_ = std::clamp(2 * pause_ns_, kPauseNsMin, kPauseNsMax);
  not_before_ns_ = base::monotonic_ns() + pause_ns_;
  return false;
}

void DatagramCaller::close() {
  traffic_ = traffic();
  gets_.reset();
  wire_.reset();
}

tree::WalkTraffic DatagramCaller::traffic() const {
  tree::WalkTraffic sum = traffic_;
  if (gets_) {
    sum.round_trips += gets_->counts().sent;
    sum.bytes += gets_->counts().bytes;
  }
  return sum;
}

}  // namespace espalier::client
