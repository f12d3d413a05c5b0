// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/device/host_maps.hpp"

#include <span>
#include <utility>

#include "channel/device/host_opening.hpp"
#include "channel/rings/thread_rings.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/client/one_sided_opening.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "wire/session_calls.hpp"

namespace espalier::device {
namespace {

Result<std::shared_ptr<MapReader>> reader_from(const Result<map_calls::Described>& described,
                                               const std::shared_ptr<MapReads>& reads,
                                               std::uint32_t map, std::uint64_t asked_ns) {
  if (!described) return std::unexpected(described.error());
  const auto opening = client::OneSidedOpening::read(described->fields_there);
  if (!opening) return std::unexpected(opening.error());
  const auto view = opening->view_of(map);
  if (!view) return std::unexpected(view.error());
  place::ReadPort* const port =
      reads->port({opening->region.base, opening->region.bytes, opening->region.key, 0});
  if (port == nullptr) {
    reads->fail();
    return fail(Code::connection_lost);
  }
  auto reader = std::make_shared<MapReader>(reads, *port, *view, opening->lease, asked_ns);
  reader->borders = opening->borders;
  return reader;
}

}  // namespace

void HostMaps::read_by(std::shared_ptr<HostReads> reads) {
  reads_ = std::make_shared<MapReads>(std::move(reads), options_.reads, counts());
}

void HostMaps::stop_reading() {
  if (reads_) reads_->fail();
  reads_.reset();
}

void HostMaps::turn(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  if (reads_ && reads_->failed()) stop_reading();
  if (now_ns_ - leases_kept_ns_ >= options_.keep_leases_ns) keep_idle_leases();
}

void HostMaps::count() {
  if (reads_) reads_->count();
  for (const std::weak_ptr<MapReader>& weak : readers_) {
    if (const auto reader = weak.lock()) reader->count();
  }
}

std::shared_ptr<MapOpening> HostMaps::open_map(std::uint32_t number) {
  auto opening = std::make_shared<MapOpening>();
  if (asker_ == nullptr || !reads_) {
    opening->result = fail(Code::connection_lost);
    return opening;
  }
  const std::uint64_t asked_ns = now_ns();
  ask(*asker_, map_calls::OpenReads{number, 0},
      [this, opening, number, asked_ns,
       reads = reads_](const Result<map_calls::Described>& described) {
        opening->result = reader_from(described, reads, number, asked_ns);
        if (!*opening->result) return;
        readers_.emplace_back(**opening->result);
        follow(number, **opening->result);
      });
  return opening;
}

// If the node refuses a feed, stale cache entries are detected at the leaves.
void HostMaps::follow(std::uint32_t number, const std::shared_ptr<MapReader>& reader) {
  if (asker_ == nullptr) return;
  ask(*asker_, map_calls::OpenFeed{number},
      [weak = std::weak_ptr(reader)](const Result<map_calls::Described>& described) {
        const auto kept = weak.lock();
        if (!kept || !described) return;
        const auto place = client::read_feed_place(described->fields_there);
        if (!place) return;
        const auto cursor = place::FeedCursor::create(*place, kept->reader.view());
        if (cursor) kept->reader.follow(*cursor);
      });
}

void HostMaps::renew(const std::shared_ptr<MapReader>& reader) {
  if (const auto asked = reader->reader.lease().due(now_ns_)) ask_renewal(reader, *asked);
}

// A lost lease revokes the session's key, and with it all readers.
void HostMaps::ask_renewal(const std::shared_ptr<MapReader>& reader,
                           const place::LeaseGuard::Asked& asked) {
  if (asked.id == 0 || asker_ == nullptr) {
    reader->reader.lease().end_all();
    return reader->reads->fail();
  }
  // Carries the samples of answering leaves, as one-sided clients' renewals do.
  tree::LeafSamples& samples = reader->reader.samples();
  ask(*asker_,
      session_calls::RenewLease{reader->reader.view().id,
                                {asked.id, asked.oldest},
                                client::text_of(std::as_bytes(samples.leaves()))},
      [weak = std::weak_ptr(reader)](const Result<session_calls::Renewed>& renewed) {
        const auto kept = weak.lock();
        if (!kept) return;
        if (renewed || tree::planted(tree::Bug::lost_lease_kept)) {
          const std::uint64_t epoch = renewed ? renewed->epoch : 0;
          kept->reader.lease().renewed(epoch, kept->reads->now_ns());
        } else {
          kept->reader.lease().end_all();
          kept->reads->fail();
        }
      });
  samples.clear();
}

void HostMaps::keep_idle_leases() {
  leases_kept_ns_ = now_ns_;
  std::erase_if(readers_, [this](const std::weak_ptr<MapReader>& weak) {
    const auto reader = weak.lock();
    if (!reader) return true;
    if (reader->reads->failed()) return false;
    auto asked = reader->reader.lease().due(now_ns_);
    if (!asked) asked = reader->reader.lease().idle_due(now_ns_);
    if (asked) ask_renewal(reader, *asked);
    return false;
  });
}

std::unique_ptr<HostPart> maps_of_host(offload::TypedSlots<offload::NodePart>& parts,
                                       const HostOptions& options) {
  auto maps = std::make_unique<HostMaps>(HostMapsOptions{.reads = {
                                                             .cache_bytes = options.cache_bytes,
                                                             .pins_roots = options.pins_roots,
                                                             .balance = options.balance,
                                                         }});
  parts.of<offload::NodeMapsElsewhere>().of_scheduler.push_back(maps.get());
  return maps;
}

}  // namespace espalier::device
