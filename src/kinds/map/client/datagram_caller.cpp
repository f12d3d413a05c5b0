// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/datagram_caller.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "crypto/datagram_tag.hpp"
#include "wire/items.hpp"
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

bool DatagramCaller::serves(const Request& read) {
  if (read.key.size() + read.high.size() > wire::kDatagramKeyBytesMax) return false;
  switch (read.op) {
    case Op::get:
    case Op::floor: return !read.key.empty() && read.high.empty();
    case Op::scan: return read.limit != 0 && read.limit <= wire::kDatagramItemsMax;
    default: return false;
  }
}

bool DatagramCaller::run(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                         const Request& read, Handler& handler) {
  if (!is_ready(requests, connection)) {
    ++traffic_.by_rings;
    return false;
  }
  DatagramGets::Asked asked{.map = map, .key = read.key, .high = read.high};
  if (read.op == Op::floor) asked.kind = wire::DatagramKind::floor;
  if (read.op == Op::scan) {
    asked.kind = wire::DatagramKind::scan;
    asked.limit = read.limit;
  }
  const auto reply = gets_->read(asked);
  if (!reply) proved_ = false;  // it may have another address by now, as others see it
  if (!reply || !answer(read, *reply, handler)) {
    ++traffic_.by_rings;
    return false;
  }
  ++traffic_.reads;
  return true;
}

// Returns false, and does not call the handler, where the reply is none to this.
bool DatagramCaller::answer(const Request& read, const wire::TakenReply& reply, Handler& handler) {
  const auto status = static_cast<wire::DatagramStatus>(reply.header.status);
  const bool found = status == wire::DatagramStatus::found;
  if (!found && status != wire::DatagramStatus::absent) return false;
  Completion completion;
  completion.tag = read.tag;
  completion.op = read.op;
  completion.ok = true;
  completion.read_version = reply.header.read_version;
  if (read.op == Op::get) {
    completion.found = found;
    completion.version = reply.header.item_version;
    completion.value = reply.payload;
    handler.done(completion);
    return true;
  }
  items_.clear();
  std::string_view payload = reply.payload;
  for (Item item; !payload.empty(); items_.push_back(item)) {
    if (!wire::take_item(payload, item)) return false;
  }
  if (read.op == Op::floor) {
    if (items_.size() != (found ? 1 : 0)) return false;
    completion.found = found;
    if (found) {
      completion.key = items_.front().key;
      completion.value = items_.front().value;
      completion.version = items_.front().version;
    }
  } else {
    completion.items = items_.size();
    if (!items_.empty()) static_cast<void>(handler.items(read.tag, items_));
  }
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
