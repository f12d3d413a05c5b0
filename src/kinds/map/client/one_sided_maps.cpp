// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/one_sided_maps.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/map/client/one_sided_opening.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kMapsNapNs = 1'000'000;
constexpr std::uint64_t kKeepNs = 1'000'000;  // time limit of keep() on the keepalive thread
// After a failure, so that retries take little of a thread's time.
constexpr std::uint64_t kPauseNs = 100'000'000;
constexpr std::uint64_t kPauseFactor = 4;

// The renewal carries the samples of leaves that were read.
session_calls::RenewLease renewal_of(const place::LeaseGuard::Asked& asked, std::uint32_t map,
                                     const tree::LeafSamples& samples) {
  return {map, {asked.id, asked.oldest}, text_of(std::as_bytes(samples.leaves()))};
}

}  // namespace

struct OneSidedMaps::OpenedMap {
  OpenedMap(place::ReadPort& port, place::NodeCache* cache, std::uint32_t lanes,
            const tree::MapView& view_in, const wire::LeaseGrant& grant, std::uint64_t asked_ns,
            bool groups_gets)
      : view(view_in),
        reader(port, view,
               {.lanes = lanes,
                .terms = {.renew_every_ns = grant.renew_every_ns,
                          .believed_for_ns = grant.believed_for_ns,
                          .lost_after_ns = grant.lost_after_ns},
                .now_ns = base::monotonic_ns,
                .cache = cache,
                .groups_gets = groups_gets}) {
    reader.lease().granted(grant.lease, grant.epoch, asked_ns, base::monotonic_ns());
  }
  tree::MapView view;
  place::OneSidedReader reader;
};

bool OneSidedMaps::serves(Op op) {
  switch (op) {
    case Op::get:
    case Op::floor:
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor: return true;
    default: return false;
  }
}

OneSidedMaps::OneSidedMaps(std::uint32_t lanes, const WalkOptions& options)
    : lanes_(lanes), options_(options) {}

OneSidedMaps::~OneSidedMaps() = default;

Result<place::OneSidedReader*> OneSidedMaps::open(RemoteRequests& requests,
                                                  NodeConnection& connection, std::uint32_t map) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::error) close();
  if (const auto known = maps_.find(map); known != maps_.end()) return &known->second->reader;
  if (connection.lost()) return std::unexpected(connection.lost_error());
  const std::uint64_t began = base::monotonic_ns();
  // Without a connection for READs no map can be opened.
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
    auto link = connection.open_beside(wire::LinkWay::reads);
    if (!link) return std::unexpected(link.error());
    if (options_.cache_bytes != 0) {
      cache_ = std::make_unique<place::NodeCache>(options_.cache_bytes);
    }
    link_ = std::move(*link);
  }
  const std::uint64_t asked_ns = base::monotonic_ns();
  Reply answer;
  const auto described =
      ask(requests, map_calls::OpenReads{map, options_.by_key ? wire::kReadsByKey : 0U}, answer);
  if (!described) return std::unexpected(described.error());
  const auto opening = OneSidedOpening::read(described->fields_there);
  if (!opening) return std::unexpected(opening.error());
  const auto view = opening->view_of(map);
  if (!view) return std::unexpected(view.error());
  if (options_.by_key && !opening->keyed) return fail(Code::unsupported);
  const fabric::RemoteRegion region{opening->region.base, opening->region.bytes,
                                    opening->region.key, 0};
  if (!port_) {
    port_.emplace(link_->pair(), link_->completions(), region, link_->endpoint().properties());
  } else if (port_->region() != region) {
    // The session has another key, so all readers of the old one are void.
    close();
    return open_anew(requests, connection, map);
  }
  // If READs complete asynchronously, walks proceed as theirs arrive; groups wait for all.
  const bool groups_gets = link_->endpoint().properties().reads_end_in_post;
  auto opened = std::make_unique<OpenedMap>(*port_, cache_.get(), lanes_, *view, opening->lease,
                                            asked_ns, groups_gets);
  if (options_.by_key) {
    const std::uint32_t bytes = std::min(link_->mtu_bytes(), view->geometry.node_bytes);
    opened->reader.read_by_key({opening->keyed->key, opening->keyed->prefix, bytes});
  }
  if (cache_) follow(requests, map, opened->reader);
  return &maps_.emplace(map, std::move(opened)).first->second->reader;
}

wire::Ref OneSidedMaps::remembered(std::uint32_t map, std::string_view key) {
  const auto known = maps_.find(map);
  return known == maps_.end() ? wire::Ref{} : known->second->reader.remembered(key);
}

// If the node refuses a feed, stale cache entries are detected at the leaves.
void OneSidedMaps::follow(RemoteRequests& requests, std::uint32_t map,
                          place::OneSidedReader& reader) {
  Reply answer;
  const auto described = ask(requests, map_calls::OpenFeed{map}, answer);
  if (!described) return;
  const auto place = read_feed_place(described->fields_there);
  if (!place) return;
  if (const auto cursor = place::FeedCursor::create(*place, reader.view())) reader.follow(*cursor);
}

void OneSidedMaps::renew(RemoteRequests& requests, place::LeaseGuard& lease) {
  const std::uint64_t now = base::monotonic_ns();
  const auto asked = lease.due(now);
  if (!asked) return;
  // A session lives as long as all its leases, including those of maps not read now.
  for (const auto& [map, opened] : maps_) {
    place::LeaseGuard& each = opened->reader.lease();
    const auto due = &each == &lease ? asked : each.idle_due(now);
    if (due) ask_renewal(requests, map, opened->reader, *due);
  }
}

void OneSidedMaps::ask_renewal(RemoteRequests& requests, std::uint32_t map,
                               place::OneSidedReader& reader,
                               const place::LeaseGuard::Asked& asked) {
  if (asked.id == 0) return reader.lease().end_all();  // the next reader has a new lease
  const auto renewed = ask(requests, renewal_of(asked, map, reader.samples()));
  reader.samples().clear();
  take_renewal(reader.lease(), renewed);
}

void OneSidedMaps::take_renewal(place::LeaseGuard& lease,
                                const Result<session_calls::Renewed>& renewed) {
  if (!renewed) return lease.end_all();
  lease.renewed(renewed->epoch, base::monotonic_ns());
}

void OneSidedMaps::keep(RemoteRequests& requests) {
  take_kept(requests);
  kept_.reserve(kept_.size() + maps_.size());  // nothing may fail after a request is sent
  const std::uint64_t now = base::monotonic_ns();
  for (const auto& [map, opened] : maps_) {
    place::LeaseGuard& lease = opened->reader.lease();
    auto asked = lease.due(now);
    if (!asked) asked = lease.idle_due(now);
    if (!asked) continue;
    const wire::RequestMessage<session_calls::RenewLease> renewal(
        renewal_of(*asked, map, opened->reader.samples()));
    if (asked->id == 0) {
      lease.end_all();
    } else if (requests.send_alone(renewal.get(), static_cast<std::uint32_t>(kept_.size()))) {
      opened->reader.samples().clear();
      kept_.push_back(&lease);
    } else {
      lease.not_asked();
    }
  }
  // Most answers arrive immediately; over packet fabrics several polls are needed.
  while (!kept_.empty() && base::monotonic_ns() - now < kKeepNs) take_kept(requests);
  requests.rest();  // without an ACK the node would consider the client dead
}

void OneSidedMaps::await_kept(RemoteRequests& requests) {
  for (take_kept(requests); !kept_.empty(); take_kept(requests)) {
    if (requests.wait_alone()) continue;
    for (place::LeaseGuard* const lease : std::exchange(kept_, {})) {
      if (lease != nullptr) lease->end_all();
    }
  }
}

void OneSidedMaps::take_kept(RemoteRequests& requests) {
  if (kept_.empty()) return;
  while (const auto answered = requests.take_alone()) {
    if (answered->ticket >= kept_.size()) continue;
    place::LeaseGuard* const lease = std::exchange(kept_[answered->ticket], nullptr);
    if (lease == nullptr) continue;
    const auto& reply = answered->reply;
    take_renewal(*lease, reply ? reply_in<session_calls::Renewed>(*reply)
                               : Result<session_calls::Renewed>(std::unexpected(reply.error())));
  }
  const bool all = std::ranges::all_of(kept_, [](const auto* lease) { return lease == nullptr; });
  if (all) kept_.clear();
}

void OneSidedMaps::wait() {
  if (link_) link_->endpoint().wait(kMapsNapNs);
}

void OneSidedMaps::widen(std::uint32_t lanes) {
  if (lanes <= lanes_) return;
  lanes_ = lanes;
  if (link_) close();
}

void OneSidedMaps::close() {
  ESPALIER_ASSERT(kept_.empty());
  ended_ = traffic();
  maps_.clear();
  cache_.reset();  // another link may lead to another node
  link_.reset();   // from here on no READ writes to the port's memory
  port_.reset();
}

tree::WalkTraffic OneSidedMaps::traffic() const {
  tree::WalkTraffic sum = ended_;
  if (port_) sum += port_->traffic();
  return sum;
}

}  // namespace espalier::client
