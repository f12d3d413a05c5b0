// SPDX-License-Identifier: Apache-2.0
#include "client/one_sided_maps.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kNapNs = 1'000'000;
// After a failure, so that little of a thread's time goes into trying again.
constexpr std::uint64_t kPauseNs = 100'000'000;
constexpr std::uint64_t kPauseFactor = 4;

/// What the answer to one_sided_open holds.
struct Opening {
  std::optional<wire::OfferedRegion> region;
  std::optional<wire::MapPlace> map;
  std::optional<wire::LeaseGrant> lease;
};

template <class T>
void take_field(std::optional<T>& to, std::string_view content) {
  if (content.size() < sizeof(T)) return;
  T field;
  std::memcpy(&field, content.data(), sizeof field);
  to = field;
}

// Fields of kinds that are not known are skipped. Errors: corrupt.
Result<Opening> read_fields(std::string_view payload) {
  Opening opening;
  while (!payload.empty()) {
    wire::FieldHeader header;
    if (payload.size() < sizeof header) return fail(Code::corrupt, 1);
    std::memcpy(&header, payload.data(), sizeof header);
    payload.remove_prefix(sizeof header);
    const std::uint64_t padded = (std::uint64_t{header.bytes} + 7) & ~std::uint64_t{7};
    if (padded > payload.size()) return fail(Code::corrupt, 1);
    const std::string_view content = payload.substr(0, header.bytes);
    switch (static_cast<wire::FieldKind>(header.kind)) {
      case wire::FieldKind::region: take_field(opening.region, content); break;
      case wire::FieldKind::map: take_field(opening.map, content); break;
      case wire::FieldKind::lease: take_field(opening.lease, content); break;
      default: break;
    }
    payload.remove_prefix(padded);
  }
  if (!opening.region || !opening.map || !opening.lease) return fail(Code::corrupt, 1);
  return opening;
}

}  // namespace

struct OneSidedMaps::OpenedMap {
  OpenedMap(ReadLink& link, std::uint32_t lanes, const fabric::RemoteRegion& region,
            const tree::MapView& view_in, const wire::LeaseGrant& grant)
      : view(view_in),
        reader(link.endpoint(), link.pair(), link.completions(), region, view,
               {.lanes = lanes,
                .terms = {.renew_every_ns = grant.renew_every_ns,
                          .believed_for_ns = grant.believed_for_ns,
                          .lost_after_ns = grant.lost_after_ns},
                .now_ns = base::monotonic_ns}) {
    reader.lease().granted(grant.lease, grant.epoch, base::monotonic_ns());
  }
  tree::MapView view;
  place::OneSidedReader reader;
};

OneSidedMaps::OneSidedMaps(std::uint32_t lanes) : lanes_(lanes) {}
OneSidedMaps::~OneSidedMaps() = default;

Result<place::OneSidedReader*> OneSidedMaps::open(RemoteRequests& requests,
                                                  NodeConnection& connection, std::uint32_t map) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::error) close();
  if (const auto known = maps_.find(map); known != maps_.end()) return &known->second->reader;
  if (connection.lost()) return fail(Code::connection_lost);
  const std::uint64_t began = base::monotonic_ns();
  // Without a connection for READs none of the maps can be opened.
  if (began < failed_until_ns_ && (!link_ || failed_map_ == map)) return std::unexpected(failure_);
  const auto opened = open_anew(requests, connection, map);
  if (opened) return opened;
  const std::uint64_t now = base::monotonic_ns();
  failure_ = opened.error();
  failed_map_ = map;
  failed_until_ns_ = now + std::max(kPauseNs, kPauseFactor * (now - began));
  return opened;
}

Result<place::OneSidedReader*> OneSidedMaps::open_anew(RemoteRequests& requests,
                                                       NodeConnection& connection,
                                                       std::uint32_t map) {
  if (!link_) {
    auto link = connection.open_reads();
    if (!link) return std::unexpected(link.error());
    link_ = std::move(*link);
  }
  Outgoing ask;
  ask.offload = wire::OffloadId::one_sided_open;
  ask.map = map;
  const auto reply = requests.call(ask);
  if (!reply) return std::unexpected(reply.error());
  const auto opening = read_fields(reply->payload);
  if (!opening) return std::unexpected(opening.error());
  const fabric::RemoteRegion region{opening->region->base, opening->region->bytes,
                                    opening->region->key, 0};
  const auto view =
      tree::MapView::read(opening->map->header, opening->map->header_offset, region.bytes, nullptr);
  if (!view) return std::unexpected(view.error());
  if (view->id != map || opening->lease->lease == 0) return fail(Code::corrupt, 2);
  auto opened = std::make_unique<OpenedMap>(*link_, lanes_, region, *view, *opening->lease);
  return &maps_.emplace(map, std::move(opened)).first->second->reader;
}

void OneSidedMaps::renew(RemoteRequests& requests, place::LeaseGuard& lease) {
  const std::uint64_t now = base::monotonic_ns();
  const auto asked = lease.due(now);
  if (!asked) return;
  // A session stands and falls with all its leases, those of maps that are not read now too.
  for (const auto& [map, opened] : maps_) {
    place::LeaseGuard& other = opened->reader.lease();
    if (&other == &lease) continue;
    if (const auto idle = other.idle_due(now)) ask_renewal(requests, other, *idle);
  }
  ask_renewal(requests, lease, *asked);
}

void OneSidedMaps::ask_renewal(RemoteRequests& requests, place::LeaseGuard& lease,
                               const place::LeaseGuard::Asked& asked) {
  if (asked.id == 0) return lease.end_all();  // another comes with another reader
  const wire::LeaseRenewal renewal{asked.id, asked.oldest};
  Outgoing ask;
  ask.offload = wire::OffloadId::lease_renew;
  ask.payload = base::bytes_of(renewal);
  const auto reply = requests.call(ask);
  if (!reply) return lease.end_all();
  lease.renewed(reply->header.version, base::monotonic_ns());
}

void OneSidedMaps::wait() {
  if (link_) link_->endpoint().wait(kNapNs);
}

void OneSidedMaps::close() {
  ended_ = traffic();
  maps_.clear();
  link_.reset();
}

tree::WalkTraffic OneSidedMaps::traffic() const {
  tree::WalkTraffic sum = ended_;
  for (const auto& [map, opened] : maps_) {
    sum.round_trips += opened->reader.traffic().round_trips;
    sum.bytes += opened->reader.traffic().bytes;
  }
  return sum;
}

}  // namespace espalier::client
