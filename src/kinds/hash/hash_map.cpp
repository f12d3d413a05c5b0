// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/hash_map.hpp"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/durable_mark.hpp"
#include "catalog/samples.hpp"
#include "store/clock_groups.hpp"
#include "store/durable_store.hpp"
#include "store/store_core.hpp"

namespace espalier::hash {
namespace {

std::uint64_t header_bytes(std::uint32_t partitions) {
  return sizeof(HashHeader) + std::uint64_t{partitions} * sizeof(PartitionLine);
}

Result<HashSeed> draw_seed() {
  HashSeed drawn;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
    return fail(Code::system, static_cast<std::uint32_t>(errno));
  }
  return drawn;
}

// The memory of a dropped map waits for remote readers.
void let_go(HashMap* map) {
  std::unique_ptr<HashMap> last(map);
  if (!map->is_dropped()) return;  // the store ends
  store::DroppedObjects& dropped = map->store().dropped;
  dropped.add(std::move(last));
}

std::string form_of(const HashOptions& options) {
  const HashShape shape = shape_of(options);
  return std::string(base::bytes_of(shape)) + options.group;
}

}  // namespace

HashMap::HashMap(HashStore& store, std::uint32_t id, std::string name, const HashOptions& options,
                 store::ClockMember group)
    : store_(store),
      name_(std::move(name)),
      options_(options),
      group_(std::move(group)),
      clock_(group_.clock() != nullptr ? group_.clock()->clock() : own_clock_),
      records_(store.pool, id),
      retirement_(store.pool, records_, options.partitions),
      services_{store.pool,  store.reclaimer, *this, clock_,          records_,
                retirement_, *this,           id,    store.pool.at(0)} {
  image = store.pool.at(0);
  versions = options.versions;
  partition_bits = static_cast<std::uint32_t>(std::countr_zero(options.partitions));
  for (std::uint32_t i = 0; i < options.partitions; ++i) partitions_.emplace_back(services_, i);
}

Result<std::unique_ptr<HashMap>> HashMap::create(HashStore& store, std::uint32_t id,
                                                 std::string name, const HashOptions& options) {
  if (!std::has_single_bit(options.partitions) || options.partitions > kPartitionsMax) {
    return fail(Code::invalid_argument);
  }
  const auto drawn = options.seed ? Result<HashSeed>(*options.seed) : draw_seed();
  if (!drawn) return std::unexpected(drawn.error());
  auto group = options.versions ? store.core.groups->join(options.group, options.durability)
                                : Result<store::ClockMember>();
  if (!group) return std::unexpected(group.error());
  std::unique_ptr<HashMap> map(new HashMap(store, id, std::move(name), options, std::move(*group)));
  if (const auto made = map->make_header(*drawn); !made) return std::unexpected(made.error());
  if (const auto kept = map->reserve_links(); !kept) return std::unexpected(kept.error());
  store.reclaimer.add(*map, map->name_, map->clock_, options.snapshot_bytes_max);
  store.maps.add(*map);
  store.objects.add(*map);
  return map;
}

bool HashMaps::give_back(memory::Reclaimer& reclaimer, memory::BufferCache& cache) noexcept {
  const std::lock_guard lock(mutex_);
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  for (HashMap* const map : maps_) {
    before += map->record_memory();
    map->flush(holder_);
  }
  // What one round stamps is free in the next, if there is no reader.
  for (int i = 0; i < 3; ++i) reclaimer.collect(cache);
  for (HashMap* const map : maps_) {
    map->reserve_for_erases();
    map->trim();
    after += map->record_memory();
  }
  return after < before;
}

Result<void> HashMap::make_header(const HashSeed& drawn) {
  const std::uint64_t bytes = header_bytes(options_.partitions);
  const auto offset = store_.pool.allocate_or_reclaim(memory::bins_class_of(bytes));
  if (!offset) return std::unexpected(offset.error());
  header_offset = *offset;
  seed = drawn;
  std::byte* const head = store_.pool.at(*offset);
  HashHeader fields{};
  fields.map_id = services_.map_id;
  fields.generation = base::load_shared<std::uint32_t>(head + offsetof(HashHeader, generation));
  fields.created = wire::kNoNode;
  fields.magic = kHashMagic;
  fields.format = kHashFormat;
  fields.partitions = options_.partitions;
  fields.versions = versions ? 1 : 0;
  fields.seed[0] = seed.first;
  fields.seed[1] = seed.second;
  fields.clock_offset = group_.clock() != nullptr ? group_.clock()->place()
                                                  : *offset + offsetof(HashHeader, read_version);
  base::copy_shared(head, reinterpret_cast<const std::byte*>(&fields), sizeof fields);
  const PartitionLine line{};
  for (std::uint32_t i = 0; i < options_.partitions; ++i) {
    base::copy_shared(head + sizeof fields + i * sizeof line,
                      reinterpret_cast<const std::byte*>(&line), sizeof line);
  }
  base::store_shared<std::uint64_t>(head + offsetof(HashHeader, superseded), wire::kLive,
                                    std::memory_order_release);
  own_clock_.attach({.read = head + offsetof(HashHeader, read_version),
                     .write = head + offsetof(HashHeader, write_version)},
                    versions);
  return {};
}

// Without reserved links an erase in a full store might fail, so creation fails without them.
Result<void> HashMap::reserve_links() {
  spare_links_.reserve(kSpareLinks);
  if (!versions) return {};
  refill_spare_links();
  if (spare_links_.empty()) {
    const auto page = store_.pool.allocate_or_reclaim(memory::kRecordsClass);
    if (!page) return std::unexpected(page.error());
    if (!records_.adopt_page(kLinkClass, *page)) throw std::bad_alloc();
    refill_spare_links();
  }
  return {};
}

void HashMap::reserve_for_erases() noexcept {
  if (versions && !planted(Bug::spare_links_not_first)) refill_spare_links();
}

bool HashMap::refill_reserve(memory::BufferCache&) noexcept {
  if (!versions) return true;
  refill_spare_links();
  if (spare_links() != 0) return true;
  const auto page = store_.pool.allocate(memory::kRecordsClass);
  if (!page) return false;
  if (!records_.adopt_page(kLinkClass, *page)) {
    store_.pool.release(*page, memory::kRecordsClass);
    return false;
  }
  refill_spare_links();
  return spare_links() != 0;
}

void HashMap::refill_spare_links() noexcept {
  const std::lock_guard lock(spare_mutex_);
  const std::size_t have = spare_links_.size();
  if (have == kSpareLinks) return;
  std::uint64_t offsets[kSpareLinks];
  const std::uint32_t got = records_.take(kLinkClass, std::span(offsets).first(kSpareLinks - have));
  spare_links_.insert(spare_links_.end(), offsets, offsets + got);
}

std::size_t HashMap::spare_links() const {
  const std::lock_guard lock(spare_mutex_);
  return spare_links_.size();
}

// Other threads must not find the map while its memory is freed.
void HashMap::begin_freeing() {
  if (std::exchange(freeing_.begun, true)) return;
  const std::uint64_t before = long_bytes();
  store_.maps.remove(*this);
  store_.objects.remove(*this);
  store_.reclaimer.forget(*this);
  freeing_.bytes += before - long_bytes();
}

std::uint64_t HashMap::free_step() {
  for (; freeing_.partition < partitions_.size(); ++freeing_.partition) {
    const std::uint64_t before = long_bytes();
    const std::uint64_t bytes = partitions_[freeing_.partition].free_segment(before != 0);
    if (bytes != 0) return bytes + before - long_bytes();
  }
  return records_.free_page();
}

bool HashMap::free_some(std::uint32_t steps) {
  begin_freeing();
  for (; steps != 0; --steps) {
    const std::uint64_t bytes = free_step();
    if (bytes == 0) return true;
    freeing_.bytes += bytes;
  }
  return false;
}

HashMap::~HashMap() {
  own_clock_.wait_for_records(nullptr);  // while the header has its words
  while (!free_some(std::numeric_limits<std::uint32_t>::max())) {
  }
  partitions_.clear();
  if (header_offset != 0) {
    store_.pool.release(header_offset, memory::bins_class_of(header_bytes(options_.partitions)));
  }
}

Result<std::optional<std::string>> HashMap::get(HashThread& thread, std::string_view key) const {
  if (key.empty() || key.size() > kKeyBytesMax) return fail(Code::key_too_long);
  HashReader reader(*this, thread);
  const HashAnswer answer = reader.get(key);
  if (!answer.found) return std::nullopt;
  return std::string(answer.value);
}

HashAnswer HashReader::get_at(const HashMap& map, HashThread& thread, std::string_view key,
                              const KeyHash& hash, std::uint64_t& version, bool held) {
  Looked looked = look_up(map, hash, key, version, held);
  if (looked.look != Look::found) {
    if (begins_again(looked.look)) [[unlikely]]
      looked = look_again(map, thread, key, hash, version, held, looked);
    if (looked.look == Look::absent) return {false, 0, version, {}};
  }
  const RecordView record(map.image, looked.record);
  return {true, record.version(), version, record.pair().value};
}

// Looks in the bin of the hint, which answers if it has the key still or surely lacks it.
HashAnswer HashReader::get_hinted(const HashMap& map, HashThread& thread, std::string_view key,
                                  const KeyHash& hash, const KeyHint& hint) {
  if (hint.bin == nullptr) return get_exposed(map, thread, key, hash);
  const std::uint64_t version = version_of(map);
  const Looked looked =
      look_in(map, revisit(hint.segment, hint.bin), hash, key, version, !map.versions);
  if (begins_again(looked.look)) return get_exposed(map, thread, key, hash);
  if (looked.look == Look::absent) return {false, 0, version, {}};
  const RecordView record(map.image, looked.record);
  return {true, record.version(), version, record.pair().value};
}

// A reader restarts because of a write of its partition at the wrong moment. Many restarts in a row
// are rare; then it makes writers wait.
Looked HashReader::look_again(const HashMap& map, HashThread& thread, std::string_view key,
                              const KeyHash& hash, std::uint64_t& version, bool held,
                              Looked looked) {
  for (std::uint32_t looks = 1; begins_again(looked.look); ++looks) {
    if (looks >= kLooksMax && !planted(Bug::looks_without_end)) {
      return map.look_locked(thread, hash, key, version, held);
    }
    if (looked.look == Look::too_late) version = version_of(map);
    looked = look_up(map, hash, key, version, held);
  }
  return looked;
}

// Under the lock nothing moves, and all states that were taken out are of released versions.
Looked HashMap::look_locked(HashThread& thread, const KeyHash& hash, std::string_view key,
                            std::uint64_t& version, bool held) const {
  const PartitionGuard guard(partitions_[hash.partition()].lock, thread.holder());
  if (!held) version = clock_.released();
  const Looked looked = look_up(*this, hash, key, version, held);
  ESPALIER_ASSERT(!begins_again(looked.look));
  return looked;
}

Result<HashSnapshot> HashMap::hold(HashThread& thread, std::string owner) {
  if (!versions) return fail(Code::unsupported);
  const std::lock_guard lock(snapshot_mutex_);
  const ExposedEpoch exposed(thread);
  services_.holding.store(true, std::memory_order_relaxed);
  // Each later writer sees the flag, and takes no current state out.
  for (Partition& partition : partitions_) {
    const PartitionGuard guard(partition.lock, thread.holder());
  }
  Result<HashSnapshot> held = fail(Code::out_of_memory);
  if (services_.held.reserve()) {
    try {
      const std::uint64_t version = clock_.released();
      reached(Moment::hold_read);
      held = store_.reclaimer.hold(*this, version, std::move(owner));
      services_.held.add(**held);
    } catch (const std::bad_alloc&) {
      held = fail(Code::out_of_memory);
    }
  }
  services_.holding.store(false, std::memory_order_release);
  return held;
}

void HashMap::drop(HashSnapshot snapshot) noexcept {
  const std::lock_guard lock(snapshot_mutex_);
  services_.held.remove(*snapshot);
  store_.reclaimer.drop(*this, snapshot);
}

void HashMap::record_to(catalog::RedoSink* sink) {
  base::DurableMark* const mark = sink != nullptr ? &sink->mark() : nullptr;
  if (group_.clock() != nullptr) {
    group_.clock()->wait_for_records(mark);
  } else {
    clock_.wait_for_records(mark);
  }
  Object::record_to(sink);
  if (versions && promises_async(sink)) answer_early();
}

void HashMap::set_dropped() {
  std::byte* const head = store_.pool.at(header_offset);
  base::store_shared<std::uint64_t>(head + offsetof(HashHeader, superseded), 0,
                                    std::memory_order_release);
  dropped_.store(true, std::memory_order_release);
  group_.leave();
}

std::string HashMap::description() const { return form_of(options_); }

std::uint64_t HashMap::memory_bytes() const {
  std::uint64_t bytes =
      memory::class_bytes(memory::bins_class_of(header_bytes(options_.partitions))) +
      record_memory();
  for (const Partition& partition : partitions_) {
    bytes += partition.segments() * kSegmentBytes + partition.directory_bytes();
  }
  return bytes;
}

catalog::ObjectNumbers HashMap::numbers() const {
  catalog::ObjectNumbers numbers;
  numbers.memory_bytes = memory_bytes();
  for (const Partition& partition : partitions_) numbers.entries += partition.items();
  return numbers;
}

HashNumbers HashMap::all_numbers() const {
  HashNumbers all{};
  const catalog::ObjectNumbers own = numbers();
  all.items = own.entries;
  all.memory_bytes = own.memory_bytes;
  for (const Partition& partition : partitions_) {
    all.segments += partition.segments();
    all.splits += partition.splits();
  }
  all.record_bytes = records_.numbers().record_bytes;
  all.long_bytes = long_bytes();
  const auto waiting = store_.reclaimer.waiting(*this, false);
  all.retired_bytes = waiting.bytes;
  all.snapshots = waiting.snapshots;
  all.read_version = clock_.released();
  all.write_version = clock_.taken();
  return all;
}

void HashMap::add_samples(catalog::SampleList& to) const {
  const HashNumbers all = all_numbers();
  const auto records = records_.numbers();
  to.gauge({"items", "", "Items."}, all.items);
  to.gauge({"partitions", "", "Parts of the keys that one lock each guards."}, partitions_.size());
  to.gauge({"segments", "", "Segments of bins."}, all.segments);
  to.gauge({"segment_bytes", "bytes", "Memory of the segments."}, all.segments * kSegmentBytes);
  to.gauge({"records", "", "Records and version links in use."}, records.records);
  to.gauge({"record_bytes", "bytes", "Memory of these."}, records.record_bytes);
  to.gauge({"free_records", "", "Records that are free in pages of the map."}, records.free);
  to.gauge({"long_bytes", "bytes", "Memory of pairs that lie beside the records."}, all.long_bytes);
  to.gauge({"retired_bytes", "bytes",
            "Memory that is unlinked, or will be, and waits for readers or snapshots."},
           all.retired_bytes);
  to.gauge({"snapshots", "", "Snapshots held; they keep old versions."}, all.snapshots);
  to.gauge({"read_version", "", "The version at which reads begin."}, all.read_version);
  to.gauge({"write_version", "", "The last version that a write has taken."}, all.write_version);
  to.counter({"splits", "", "Segments split."}, all.splits);
}

Result<std::shared_ptr<HashMap>> make_hash_map(HashStore& store, std::uint32_t id, std::string name,
                                               const HashOptions& options) {
  auto made = HashMap::create(store, id, std::move(name), options);
  if (!made) return std::unexpected(made.error());
  return std::shared_ptr<HashMap>(made->release(), let_go);
}

Result<std::shared_ptr<HashMap>> create_hash_map(HashStore& store, std::string_view name,
                                                 HashOptions options) {
  const auto durability = tree::agreed_durability(store.catalog, options.durability);
  if (!durability) return std::unexpected(durability.error());
  options.durability = *durability;
  if (!options.versions && tree::must_be_durable(store.catalog, *durability)) {
    return fail(Code::unsupported);
  }
  if (!wire::is_group_of(options.group, options.versions)) return fail(Code::invalid_argument);
  return store.catalog.create<HashMap>(
      name, form_of(options),
      [&](std::uint32_t id, std::string own) {
        return make_hash_map(store, id, std::move(own), options);
      },
      *durability);
}

}  // namespace espalier::hash
