// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/device/host_hashes.hpp"

#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/try_reserve.hpp"
#include "channel/device/host_opening.hpp"
#include "channel/device/host_reads.hpp"
#include "engine/long_answer.hpp"
#include "kinds/hash/client/hash_opening.hpp"
#include "kinds/hash/remote/hash_gets.hpp"
#include "wire/session_calls.hpp"

namespace espalier::device {
namespace {

constexpr std::uint32_t kGetsInFlight = 64;  // of one map; fewer if they share doorbells
/// Time for which a map that the host did not offer is not requested again.
constexpr std::uint64_t kNotOfferedNs = 1'000'000'000;
constexpr std::uint64_t kDirectoriesOfCache = 8;  // share of the cache: one part in so many
/// Share of records; bins have the rest: a cached bin spares a wait and names four records, a
/// cached record spares a get a READ, or a wait if READs are not ordered.
constexpr std::uint64_t kRecordsOfCache = 4;
/// Limit on maps that a link reads: each has a lease of the link's session, which has 64.
constexpr std::size_t kMapsMax = 48;

}  // namespace

void DeviceHashGet::done(const Completion& completion) {
  over_ = true;
  answered_ = completion.ok;
  dropped_ = !completion.ok && completion.error.code == Code::not_found;
  found_ = completion.ok && completion.found;
  if (!answered_) return;
  version_ = completion.version;
  read_version_ = completion.read_version;
  try {
    value_.assign(completion.value);
  } catch (const std::bad_alloc&) {
    answered_ = false;  // the host may have the memory
  }
}

hash_calls::ItemFound DeviceHashGet::found() const {
  return {found_, version_, read_version_, value_};
}

struct HostHashes::OpenedHash {
  bool asked = false;                  // a request to the host is in flight
  bool dropped = false;                // at the host
  std::uint64_t refused_until_ns = 0;  // 0: it is not
  std::shared_ptr<HostReads> reads;    // that it is read by
  std::unique_ptr<place::HashTarget> target;
  std::unique_ptr<place::HashGets> gets;                  // null: not opened
  std::vector<std::shared_ptr<DeviceHashGet>> waiting;    // until it is opened
  std::vector<std::shared_ptr<DeviceHashGet>> under_way;  // their requests may be gone
};

HostHashes::HostHashes(std::uint64_t cache_bytes)
    : cache_bytes_(cache_bytes),
      directories_(std::make_unique<place::DirectoryBudget>(cache_bytes / kDirectoriesOfCache)) {}
HostHashes::~HostHashes() = default;

bool HostHashes::reads(std::uint32_t number) const {
  if (asker_ == nullptr || !reads_) return false;
  const auto known = maps_.find(number);
  if (known == maps_.end()) return maps_.size() < kMapsMax;
  return known->second->refused_until_ns <= now_ns_ && !known->second->dropped;
}

std::shared_ptr<DeviceHashGet> HostHashes::begin(std::uint32_t number, std::string_view key) {
  auto get = std::make_shared<DeviceHashGet>(key);
  auto known = maps_.find(number);
  if (known == maps_.end()) known = maps_.emplace(number, std::make_shared<OpenedHash>()).first;
  const std::shared_ptr<OpenedHash>& map = known->second;
  try {
    map->waiting.push_back(get);
    if (!map->gets && !map->asked) open(number, map);
  } catch (const std::bad_alloc&) {
    if (!map->gets && !map->asked) maps_.erase(known);  // it uses no place of other maps
    throw;
  }
  return get;
}

void HostHashes::open(std::uint32_t number, const std::shared_ptr<OpenedHash>& map) {
  const std::uint64_t asked_ns = base::monotonic_ns();
  ask(*asker_, hash_calls::OpenReads{number},
      [this, number, asked_ns,
       weak = std::weak_ptr(map)](const Result<hash_calls::ReadsOpened>& opened) {
        const auto kept = weak.lock();
        if (kept) take_opening(*kept, number, asked_ns, opened);
      });
  map->asked = true;  // the answer arrives in another turn
}

void HostHashes::refuse(OpenedHash& map) {
  map.refused_until_ns = base::monotonic_ns() + kNotOfferedNs;
  for (const auto& get : std::exchange(map.waiting, {})) get->give_up();
}

// Without memory the granted lease is lost, and its session will be fenced: all reading restarts.
void HostHashes::take_opening(OpenedHash& map, std::uint32_t number, std::uint64_t asked_ns,
                              const Result<hash_calls::ReadsOpened>& opened) {
  map.asked = false;
  if (!opened || !reads_) return refuse(map);
  try {
    begin_reading(map, number, asked_ns, *opened);
  } catch (const std::bad_alloc&) {
    map.gets.reset();
    reads_->fail();
    refuse(map);
  }
}

void HostHashes::begin_reading(OpenedHash& map, std::uint32_t number, std::uint64_t asked_ns,
                               const hash_calls::ReadsOpened& opened) {
  const auto opening = client::HashOpening::read(opened.described);
  if (!opening) return refuse(map);
  const auto target = opening->target_of(number);
  if (!target) return refuse(map);
  place::ReadPort* const port =
      reads_->port({opening->region.base, opening->region.bytes, opening->region.key, 0});
  if (port == nullptr) {
    reads_->fail();
    return refuse(map);
  }
  const wire::LeaseGrant& grant = opening->lease;
  map.refused_until_ns = 0;
  map.reads = reads_;
  map.gets = std::make_unique<place::HashGets>(
      *port, *target,
      place::HashGets::Options{.in_flight = kGetsInFlight,
                               .terms = {.renew_every_ns = grant.renew_every_ns,
                                         .believed_for_ns = grant.believed_for_ns,
                                         .lost_after_ns = grant.lost_after_ns},
                               .now_ns = base::monotonic_ns,
                               .cache = cache_.get(),
                               .records = records_.get(),
                               .directories = directories_.get(),
                               .value_bytes_max = offload::kLongValueBytes,
                               .together = reads_->reads_end_in_post()});
  map.gets->lease().granted(grant.lease, grant.epoch, asked_ns, base::monotonic_ns());
}

void HostHashes::read_by(std::shared_ptr<HostReads> reads) {
  stop_reading();
  reads_ = std::move(reads);
  const std::uint64_t of_records = cache_bytes_ / kRecordsOfCache;
  cache_ = std::make_unique<place::BinCache>(cache_bytes_ - of_records);
  records_ = std::make_unique<place::RecordCache>(of_records);
}

// Waiting gets are given up, and gets in flight end with the pair.
void HostHashes::stop_reading() {
  if (reads_) reads_->fail();
  for (auto& [number, map] : std::exchange(maps_, {})) {
    if (map->gets) map->gets->fail();
    try {
      for (int rounds = 0; map->gets && map->gets->poll() != 0 && rounds < 8; ++rounds) {
      }
    } catch (const std::bad_alloc&) {  // gets that are not over are given up
    }
    for (const auto& get : map->waiting) get->give_up();
    for (const auto& get : map->under_way) {
      if (!get->is_over()) get->give_up();
    }
  }
  cache_.reset();
  records_.reset();
  reads_.reset();
}

void HostHashes::turn(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  if (reads_ && reads_->failed()) stop_reading();
  std::erase_if(maps_, [now_ns](const auto& entry) {
    const OpenedHash& map = *entry.second;
    return map.refused_until_ns != 0 && map.refused_until_ns <= now_ns && map.waiting.empty();
  });
  for (const auto& [number, map] : maps_) {
    if (!map->gets) continue;
    submit_waiting(*map);
    try {
      map->gets->poll();
    } catch (const std::bad_alloc&) {  // it is unknown which gets are still in flight
      map->reads->fail();
    }
    std::erase_if(map->under_way, [&dropped = map->dropped](const auto& get) {
      dropped = dropped || (get->is_over() && get->met_dropped_map());
      return get->is_over();
    });
    keep_lease(map);
  }
  let_go_of_dropped();
}

// Returns their leases, which frees places for other maps. A lease that cannot be returned for lack
// of memory expires, and fences all reading.
void HostHashes::let_go_of_dropped() {
  std::erase_if(maps_, [this](const auto& entry) {
    const OpenedHash& map = *entry.second;
    if (!map.dropped || map.gets->pending() != 0 || !map.waiting.empty()) return false;
    const auto lease = map.gets->lease().give_back();
    if (!lease || asker_ == nullptr) return true;
    try {
      ask(*asker_, session_calls::RenewLease{0, {lease->id, lease->oldest}, {}},
          [](const Result<session_calls::Renewed>&) {});
    } catch (const std::bad_alloc&) {
      map.reads->fail();
    }
    return true;
  });
}

// Without memory for one, the host answers it and those behind it.
void HostHashes::submit_waiting(OpenedHash& map) {
  if (map.waiting.empty()) return;
  std::size_t begun = 0;
  try {
    base::reserve_more(map.under_way, map.waiting.size());
    for (; begun < map.waiting.size(); ++begun) {
      const std::shared_ptr<DeviceHashGet>& get = map.waiting[begun];
      map.gets->submit({&get->request(), 1}, *get);
      map.under_way.push_back(get);
    }
  } catch (const std::bad_alloc&) {
    for (; begun < map.waiting.size(); ++begun) map.waiting[begun]->give_up();
  }
  map.waiting.clear();
}

// A lost lease revoked the session's key, and so ends all reading by it.
void HostHashes::keep_lease(const std::shared_ptr<OpenedHash>& map) {
  place::LeaseGuard& lease = map->gets->lease();
  auto asked = lease.due(now_ns_);
  if (!asked) asked = lease.idle_due(now_ns_);
  if (!asked) return;
  if (asked->id == 0 || asker_ == nullptr) {
    lease.end_all();
    return map->reads->fail();
  }
  const auto on_renewed = [weak =
                               std::weak_ptr(map)](const Result<session_calls::Renewed>& renewed) {
    const auto kept = weak.lock();
    if (!kept || !kept->gets) return;
    if (renewed) {
      kept->gets->lease().renewed(renewed->epoch, base::monotonic_ns());
    } else {
      kept->gets->lease().end_all();
      kept->reads->fail();
    }
  };
  try {
    ask(*asker_, session_calls::RenewLease{0, {asked->id, asked->oldest}, {}}, on_renewed);
  } catch (const std::bad_alloc&) {
    lease.not_asked();  // retried in the next turn
  }
}

std::unique_ptr<HostPart> hashes_of_host(offload::TypedSlots<offload::NodePart>& parts,
                                         const HostOptions& options) {
  auto hashes = std::make_unique<HostHashes>(options.cache_bytes);
  parts.of<NodeHostHashes>().of_scheduler.push_back(hashes.get());
  return hashes;
}

}  // namespace espalier::device
