// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/device/map_reader.hpp"

#include <utility>

namespace espalier::device {

void MapReads::count() {
  const tree::WalkTraffic traffic = reads_->traffic();
  trips_.publish(counts_.round_trips, traffic.round_trips);
  bytes_.publish(counts_.bytes, traffic.bytes);
}

MapReader::MapReader(std::shared_ptr<MapReads> reads_in, place::ReadPort& port,
                     const tree::MapView& view, const wire::LeaseGrant& grant,
                     std::uint64_t asked_ns)
    : reads(std::move(reads_in)),
      reader(port, view,
             {.lanes = kLanes,
              .terms = {.renew_every_ns = grant.renew_every_ns,
                        .believed_for_ns = grant.believed_for_ns,
                        .lost_after_ns = grant.lost_after_ns},
              .now_ns = reads->clock(),
              // Only interior nodes: an append to a leaf's log changes no mapping, so leaves are
              // read each time.
              .cache = reads->cache(),
              .remembers_leaves = false,
              .balance = reads->balance()}) {
  reader.lease().granted(grant.lease, grant.epoch, asked_ns, reads->now_ns());
}

void MapReader::count() {
  offload::ElsewhereCounts& counts = reads->counts();
  if (const place::MapCache* const cache = reader.cache()) {
    descents_.publish(counts.descents, cache->descents());
    hits_.publish(counts.hits, cache->hits());
    remembered_bytes_.publish(counts.remembered_bytes, cache->taken_bytes());
  }
  if (const place::Balancer* const balancer = reader.balancer()) {
    balanced_.publish(counts.balanced, balancer->sent());
  }
  if (const place::FeedFollower* const feed = reader.feed()) {
    feed_reads_.publish(counts.feed_reads, feed->counts().reads);
    feed_changes_.publish(counts.feed_changes, feed->counts().changes);
    feed_replaced_.publish(counts.feed_replaced, feed->counts().replaced);
    feed_behind_.publish(counts.feed_behind, feed->counts().behind);
  }
}

LeaseSnapshot::LeaseSnapshot(std::shared_ptr<MapReader> reader, std::uint32_t map,
                             std::uint64_t version, const std::string& owner)
    : reader_(std::move(reader)), map_(map), tick_(reader_->reader.hold_completing()) {
  held_.version = version;
  held_.owner = owner;
  reader_->held.insert(&held_);
}

LeaseSnapshot::~LeaseSnapshot() {
  reader_->held.erase(&held_);
  reader_->reader.lease().end(tick_);
}

}  // namespace espalier::device
