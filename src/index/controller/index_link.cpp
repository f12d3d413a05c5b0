// SPDX-License-Identifier: Apache-2.0
#include "index/controller/index_link.hpp"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

// What the session has opened exists until its leases end; then the node answers not_found. A
// dropped map is detected when it is opened again.
Error lost_if_fenced(const Error& error) {
  return error.code == Code::not_found ? Error{Code::connection_lost, 0, 0} : error;
}

constexpr std::uint64_t kIndexNapNs = 1'000'000;
constexpr std::uint32_t kSpins = 2000;  // empty polls before a nap
// A lease is lost after more than twice this share of its time.
constexpr std::uint64_t kRenewShare = 4;

}  // namespace

Result<std::unique_ptr<IndexLink>> IndexLink::open(const NodeAddress& address, std::string_view map,
                                                   const ConnectOptions& connecting) {
  if (!sends_packets(address)) return fail(Code::unsupported);
  auto connection = connect_to(address, connecting);
  if (!connection) return std::unexpected(connection.error());
  auto rings = ThreadRings::open(*connection);
  if (!rings) return std::unexpected(rings.error());
  auto link = (*connection)->open_beside(wire::LinkWay::reads);
  if (!link) return std::unexpected(link.error());
  std::unique_ptr<IndexLink> made(
      new IndexLink(std::move(*connection), std::move(*rings), std::move(*link)));
  if (const auto opened = made->open_map(map); !opened) return std::unexpected(opened.error());
  return made;
}

IndexLink::IndexLink(std::shared_ptr<NodeConnection> connection, std::unique_ptr<ThreadRings> rings,
                     std::unique_ptr<SideLink> link)
    : connection_(std::move(connection)),
      rings_(std::move(rings)),
      requests_(*rings_, 1),
      link_(std::move(link)) {}

Result<void> IndexLink::open_map(std::string_view name) {
  const auto opened = open_map_by(requests_, name, true);
  if (!opened) return std::unexpected(opened.error());
  const std::uint32_t number = opened->id;
  renewed_ns_ = base::monotonic_ns();
  Reply answer;
  const auto described = ask(requests_, map_calls::OpenIndex{number}, answer);
  if (!described) return std::unexpected(described.error());
  auto opening = OneSidedOpening::read(described->fields_there);
  if (!opening) return std::unexpected(opening.error());
  opening_ = std::move(*opening);
  if (!opening_.keyed || !opening_.redirect) return fail(Code::unsupported);
  const auto view = opening_.view_of(number);
  if (!view) return std::unexpected(view.error());
  view_.emplace(*view);
  epoch_ = opening_.lease.epoch;
  const fabric::RemoteRegion region{opening_.region.base, opening_.region.bytes,
                                    opening_.region.key, 0};
  port_.emplace(link_->pair(), link_->completions(), region, link_->endpoint().properties());
  return {};
}

// The lease holds back no memory: no walk is in flight, and readers check for torn nodes and nodes
// of another map.
Result<void> IndexLink::keep() {
  const std::uint64_t now = base::monotonic_ns();
  if (now - renewed_ns_ < opening_.lease.lost_after_ns / kRenewShare) return {};
  const auto renewed =
      ask(requests_, session_calls::RenewLease{0, {opening_.lease.lease, epoch_}, {}});
  if (!renewed) return std::unexpected(lost_if_fenced(renewed.error()));
  epoch_ = renewed->epoch;
  renewed_ns_ = now;
  return {};
}

Result<void> IndexLink::begin_generation() {
  Reply answer;
  const auto described = ask(requests_, map_calls::NextGeneration{view_->id, 0}, answer);
  if (!described) return std::unexpected(lost_if_fenced(described.error()));
  const auto place = read_redirect_place(described->fields_there);
  if (!place) return std::unexpected(place.error());
  opening_.redirect = *place;
  return {};
}

Result<void> IndexLink::end_generations_before() {
  Reply answer;
  const auto ended =
      ask(requests_, map_calls::NextGeneration{view_->id, wire::kEndsGenerations}, answer);
  if (!ended) return std::unexpected(lost_if_fenced(ended.error()));
  return {};
}

Result<void> IndexLink::check_map() {
  alignas(8) wire::MapHeader header{};
  const Want want{view_->header_offset, std::as_writable_bytes(std::span(&header, 1))};
  if (const auto come = read({&want, 1}); !come) return come;
  if (view_->same_map(header.map_id, header.generation, header.superseded)) return {};
  return fail(Code::not_found);
}

Result<place::FeedCursor> IndexLink::follow() {
  Reply answer;
  const auto described = ask(requests_, map_calls::OpenFeed{view_->id}, answer);
  if (!described) return std::unexpected(described.error());
  const auto place = read_feed_place(described->fields_there);
  if (!place) return std::unexpected(place.error());
  return place::FeedCursor::create(*place, *view_);
}

// What it reports was so before a tree that is read afterwards.
Result<IndexLink::FeedNews> IndexLink::read_feed(place::FeedCursor& feed) {
  const auto landing = std::make_unique<place::FeedCursor::Landing>();
  FeedNews news;
  bool more = true;
  while (more) {
    const bool knew = feed.entries_bytes() != 0;
    const place::RegionSource::Want wanted[] = {
        {feed.header_offset(), landing->header},
        {feed.entries_offset(), std::span(landing->entries).first(feed.entries_bytes())}};
    if (const auto come = read(wanted); !come) return std::unexpected(come.error());
    const std::size_t before = news.changes.size();
    switch (feed.take(*landing, news.changes)) {
      case place::FeedCursor::Came::entries: break;
      case place::FeedCursor::Came::behind: news.behind = true; break;
      case place::FeedCursor::Came::ended: news.ended = true; return news;
    }
    // What the writer has begun and not published yet comes with the next time.
    more = feed.waiting() != 0 && (!knew || news.changes.size() != before);
  }
  return news;
}

Result<place::LeafCounts> IndexLink::read_counts() {
  Reply answer;
  const auto counted = ask(requests_, map_calls::CountLeaves{view_->id, 0}, answer);
  if (!counted) return std::unexpected(counted.error());
  if (counted->keyed_key != opening_.keyed->key) return fail(Code::contended);
  place::LeafCounts counts;
  std::string_view rows = counted->rows;
  wire::LeafCount row{};
  for (; rows.size() >= sizeof row; rows.remove_prefix(sizeof row)) {
    std::memcpy(&row, rows.data(), sizeof row);
    counts[row.lid] = row.answers;
  }
  return counts;
}

void IndexLink::await(const place::LaneReads& lane) {
  std::uint32_t quiet = 0;
  while (lane.waiting) {
    if (port_->poll()) quiet = 0;
    const auto kept = keep();
    if (!kept || link_->pair().state() == fabric::QueuePair::State::error) port_->fail();
    if (++quiet > kSpins) link_->endpoint().wait(kIndexNapNs);
  }
}

Result<void> IndexLink::read(std::span<const Want> wanted) {
  base::ReadyQueue ready(1);
  place::LaneReads lane;
  lane.ready = &ready;
  lane.walk = std::noop_coroutine();
  for (const Want& want : wanted) {
    port_->want(lane, want.offset, want.into.data(), want.into.size());
  }
  if (lane.failed) return fail(Code::connection_lost);
  if (lane.wanted.empty()) return {};
  port_->send(lane);
  try {
    if (meanwhile_) meanwhile_();
    await(lane);
  } catch (...) {
    port_->fail();  // the lane is destroyed, and so is the memory of its READs
    throw;
  }
  return lane.failed ? fail(Code::connection_lost) : Result<void>();
}

}  // namespace espalier::client
