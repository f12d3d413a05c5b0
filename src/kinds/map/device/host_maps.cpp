// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/device/host_maps.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "kinds/map/client/one_sided_opening.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::device {
namespace {

Error error_of(const HostAnswer& answer) {
  Error error{static_cast<Code>(answer.header.code), 0, 0};
  if (answer.payload.size() >= sizeof error.detail) {
    std::memcpy(&error.detail, answer.payload.data(), sizeof error.detail);
  }
  return error;
}

Result<std::shared_ptr<MapReader>> reader_from(const HostAnswer& answer,
                                               const std::shared_ptr<MapReads>& reads,
                                               std::uint32_t map, std::uint64_t asked_ns) {
  if (answer.header.code != 0) return std::unexpected(error_of(answer));
  const auto opening = client::OneSidedOpening::read(answer.payload);
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
  asker_->ask(wire::OffloadId::one_sided_open, number, {},
              [this, opening, number, asked_ns, reads = reads_](const HostAnswer& answer) {
                opening->result = reader_from(answer, reads, number, asked_ns);
                if (!*opening->result) return;
                readers_.emplace_back(**opening->result);
                follow(number, **opening->result);
              });
  return opening;
}

// Where it is refused, entries of the cache are found out by leaves alone.
void HostMaps::follow(std::uint32_t number, const std::shared_ptr<MapReader>& reader) {
  if (asker_ == nullptr) return;
  asker_->ask(wire::OffloadId::feed_open, number, {},
              [weak = std::weak_ptr(reader)](const HostAnswer& answer) {
                const auto kept = weak.lock();
                if (!kept || answer.header.code != 0) return;
                const auto place = client::read_feed_place(answer.payload);
                if (!place) return;
                const auto cursor = place::FeedCursor::create(*place, kept->reader.view());
                if (cursor) kept->reader.follow(*cursor);
              });
}

void HostMaps::renew(const std::shared_ptr<MapReader>& reader) {
  if (const auto asked = reader->reader.lease().due(now_ns_)) ask_renewal(reader, *asked);
}

// A lease that was lost took the session's key with it, and all that is read by it.
void HostMaps::ask_renewal(const std::shared_ptr<MapReader>& reader,
                           const place::LeaseGuard::Asked& asked) {
  if (asked.id == 0 || asker_ == nullptr) {
    reader->reader.lease().end_all();
    return reader->reads->fail();
  }
  // With it goes from which leaves the device has answered, as clients tell it that read alone.
  const wire::LeaseRenewal renewal{asked.id, asked.oldest};
  std::string payload(base::bytes_of(renewal));
  for (const wire::Lid leaf : reader->reader.samples().leaves()) payload += base::bytes_of(leaf);
  reader->reader.samples().clear();
  asker_->ask(wire::OffloadId::lease_renew, reader->reader.view().id, std::move(payload),
              [weak = std::weak_ptr(reader)](const HostAnswer& answer) {
                const auto kept = weak.lock();
                if (!kept) return;
                const bool renewed =
                    answer.header.code == 0 || tree::planted(tree::Bug::lost_lease_kept);
                if (renewed) {
                  kept->reader.lease().renewed(answer.header.version, kept->reads->now_ns());
                } else {
                  kept->reader.lease().end_all();
                  kept->reads->fail();
                }
              });
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

}  // namespace espalier::device
