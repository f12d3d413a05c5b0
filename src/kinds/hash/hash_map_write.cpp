// SPDX-License-Identifier: Apache-2.0
// Writes of a hash map: the work before the partition's lock is taken, and after it is released.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/redo_record.hpp"
#include "store/starved_write.hpp"
#include "store/store_core.hpp"

namespace espalier::hash {
namespace {

bool is_long(std::string_view key, std::string_view value) {
  return sizeof(RecordHeader) + key.size() + value.size() > kRecordBytesMax;
}

std::uint64_t pair_bytes(std::string_view key, std::string_view value) {
  return sizeof(LongPairHeader) + key.size() + value.size();
}

}  // namespace

bool HashMap::wait_for(std::uint64_t version) {
  for (;;) {
    const std::uint64_t seen = clock_.seen_durable();
    if (released(version)) return true;
    if (clock_.failed()) return released(version);
    reached(Moment::release_awaited);
    clock_.pause(seen);
  }
}

Result<HashWritten> HashMap::write(HashThread& thread, WriteOp op, std::string_view key,
                                   std::string_view value, const Condition& condition) {
  return await(begin(thread, op, key, value, condition));
}

Unreleased<HashWritten> HashMap::begin(HashThread& thread, WriteOp op, std::string_view key,
                                       std::string_view value, const Condition& condition,
                                       const WriteHelp& help) {
  if (key.empty() || key.size() > kKeyBytesMax) {
    return Unreleased<HashWritten>(fail(Code::key_too_long));
  }
  WriteIntent intent;
  intent.op = op;
  intent.hash = help.hash != nullptr ? *help.hash : hash(key);
  intent.key = key;
  intent.value = value;
  intent.condition = condition;
  intent.help = help;
  const bool compares = condition.kind == ConditionKind::value && help.expected == nullptr;
  if (compares) return write_if_equal(thread, intent);
  return answer_of(outcome_of(thread, intent));
}

Unreleased<HashWritten> HashMap::answer_of(const Result<WriteOutcome>& outcome) const {
  if (!outcome) return Unreleased<HashWritten>(std::unexpected(outcome.error()));
  Result<HashWritten> answer = fail(Code::condition_failed);
  if (!outcome->condition_failed) {
    answer = HashWritten{outcome->version, outcome->applied, outcome->existed};
  }
  return Unreleased(std::move(answer), outcome->wait_for);
}

// Values may be long, so they are compared without the lock; under it the record must be the one
// that was compared.
Unreleased<HashWritten> HashMap::write_if_equal(HashThread& thread, WriteIntent& intent) {
  const std::string_view expected = intent.condition.value;
  intent.condition = {};
  for (;;) {
    Seen seen;
    bool equal = false;
    {
      const ExposedEpoch exposed(thread);
      seen = read_newest(thread, intent.hash, intent.key);
      equal = seen.value == expected;
    }
    if (!equal) return Unreleased<HashWritten>(fail(Code::condition_failed), seen.version);
    intent.help.expected = &seen.stamp;
    const auto outcome = outcome_of(thread, intent);
    if (!outcome || !outcome->condition_failed) return answer_of(outcome);
  }
}

// All but the version, which is taken under the lock.
Result<catalog::RedoRoom> HashMap::record_room(const WriteIntent& intent) const {
  const bool erases = intent.op == WriteOp::erase;
  const std::string_view value = erases ? std::string_view() : intent.value;
  auto room = catalog::RedoRoom::reserve(redo(), written_bytes(intent.key, value));
  if (!room || !*room) return room;
  write_written(room->bytes(), id(), 0, erases ? RedoOp::erase : RedoOp::put, intent.key, value);
  return room;
}

Result<WriteOutcome> HashMap::outcome_of(HashThread& thread, WriteIntent& intent) {
  WriteOutcome outcome;
  const auto carried = carry_out(thread, intent, outcome);
  if (!carried) return std::unexpected(carried.error());
  return outcome;
}

Result<void> HashMap::carry_out(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome) {
  std::optional<memory::StagedBytes> own;
  auto carried = attempt(thread, intent, outcome, own);
  if (intent.help.waits && intent.starved) [[unlikely]]
    carried = attempt_starved(thread, intent, outcome, own);
  if (own) [[unlikely]]
    intent.help.staged = nullptr;
  if (carried && store_.reclaimer.due()) store_.reclaimer.collect(*thread.cache);
  return carried;
}

// `own`: a long pair that the caller has not staged; it is kept between attempts.
Result<void> HashMap::attempt(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome,
                              std::optional<memory::StagedBytes>& own) {
  const bool stores = intent.op != WriteOp::erase;
  if (stores && intent.value.size() > kValueBytesMax) return fail(Code::value_too_long);
  intent.may_grow = true;
  intent.starved = false;
  catalog::RedoRoom record;
  if (redo() != nullptr) {
    auto room = record_room(intent);
    if (!room) return std::unexpected(room.error());
    record = *std::move(room);
    intent.record = &record;
    intent.answers_early = is_async();
  }
  memory::StagedBytes*& staged = intent.help.staged;
  if (stores && staged == nullptr && is_long(intent.key, intent.value)) {
    auto pair = stage(thread, intent.hash, intent.key, intent.value);
    intent.starved = !pair;
    if (!pair) return std::unexpected(pair.error());
    own.emplace(*std::move(pair));
    own->copy(intent.value.size());
    staged = &*own;
  }
  const bool pairs = stores && staged != nullptr;
  if (pairs) intent.pair = make_live(*staged);
  clock_.admit();
  auto applied = apply(thread, intent, outcome);
  if (!pairs) [[likely]]
    return applied;
  if (applied && outcome.applied) {
    staged->take();
  } else {
    retirement_.long_bytes.fetch_sub(memory::BufferPool::class_bytes(staged->size_class()),
                                     std::memory_order_relaxed);
  }
  return applied;
}

// If the heap failed, other threads cannot give memory back.
bool HashMap::may_try_again(tree::StarvedWrite& starved) const {
  return tree::may_try_again(store_.core, starved) &&
         (starved.attempts < tree::kAttemptsAtOnce || store_.core.is_full());
}

void HashMap::make_room(HashThread& thread, const tree::StarvedWrite& starved) noexcept {
  try {
    // An erase needs no more than earlier ones have unlinked, whatever failed.
    if (starved.erases) give_back(thread);
    tree::make_room(store_.core, *thread.cache, starved);
  } catch (const std::bad_alloc&) {  // while freeing memory for others; no lock is held
  }
  reserve_for_erases();
}

// As ordered maps do (store/starved_write.hpp).
Result<void> HashMap::attempt_starved(HashThread& thread, WriteIntent& intent,
                                      WriteOutcome& outcome,
                                      std::optional<memory::StagedBytes>& own) {
  tree::StarvedWrite starved{intent.op == WriteOp::erase, 0, base::monotonic_ns(), false};
  while (may_try_again(starved)) {
    ++starved.attempts;
    if (starved.attempts > tree::kAttemptsAtOnce) {
      const std::uint64_t until_ns = base::monotonic_ns() + tree::kStarvedPaceNs;
      while (base::monotonic_ns() < until_ns) std::this_thread::yield();
    }
    make_room(thread, starved);
    auto attempted = attempt(thread, intent, outcome, own);
    if (!intent.starved) return attempted;
  }
  return store_.pool.region().out_of_memory();
}

Result<void> HashMap::apply(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome) {
  Partition& partition = partitions_[intent.hash.partition()];
  for (;;) {
    Shortage shortage;
    memory::RetiredList unlinked;
    {
      const PartitionGuard guard(partition.lock, thread.holder());
      partition.take_elements(*thread.elements);
      shortage = partition.write(intent, outcome);
      unlinked = partition.take_retired();
    }
    hand_over_retired(services_, unlinked, *thread.elements);
    if (outcome.applied && planted(Bug::record_outside_lock)) {
      intent.hand_over_record(outcome.version);
    }
    if (outcome.refused) return fail(Code::exhausted);
    if (outcome.no_memory) return store_.pool.region().out_of_memory();
    if (!shortage.any()) return {};
    const auto provided = provide(thread, partition, shortage, intent);
    if (!provided) return std::unexpected(provided.error());
  }
}

Result<void> HashMap::provide(HashThread& thread, Partition& partition, const Shortage& shortage,
                              WriteIntent& intent) {
  const auto out_of_memory = [this] { return store_.pool.region().out_of_memory(); };
  if (shortage.retirement) {
    const PartitionGuard guard(partition.lock, thread.holder());
    if (!partition.stock_retirement()) return out_of_memory();
  }
  const bool erases = intent.op == WriteOp::erase;
  const bool provided =
      (shortage.cls == kRecordClasses || provide_records(thread, partition, shortage.cls, false)) &&
      (!shortage.links || provide_records(thread, partition, kLinkClass, erases));
  intent.starved = !provided;
  if (!provided) return out_of_memory();
  if (!shortage.segment && !shortage.directory) return {};
  const auto fetch = [&](std::uint64_t bytes, const auto& stock) -> Result<void> {
    const auto offset = store_.pool.allocate(memory::bins_class_of(bytes));
    if (!offset) return std::unexpected(offset.error());
    const PartitionGuard guard(partition.lock, thread.holder());
    stock(*offset);
    return {};
  };
  Result<void> fetched;
  if (shortage.segment) {
    fetched = fetch(kSegmentBytes, [&](std::uint64_t at) { partition.stock_segment(at); });
  }
  if (fetched && shortage.directory) {
    const std::uint32_t depth = *shortage.directory;
    fetched = fetch(sizeof(DirectoryHeader) + (std::uint64_t{8} << depth),
                    [&](std::uint64_t at) { partition.stock_directory(depth, at); });
  }
  // A partition continues without new segments as long as there is room in the old ones: for new
  // ones no snapshot expires, and nothing is reclaimed.
  intent.starved = !fetched && !shortage.growth_can_wait;
  if (fetched || !shortage.growth_can_wait) return fetched;
  intent.may_grow = false;
  return {};
}

bool HashMap::take_spare_link(std::uint64_t& offset) {
  const std::lock_guard lock(spare_mutex_);
  if (spare_links_.empty()) return false;
  offset = spare_links_.back();
  spare_links_.pop_back();
  return true;
}

bool HashMap::provide_records(HashThread& thread, Partition& partition, RecordClass cls,
                              bool from_spares) {
  constexpr std::uint64_t kMost = 32;
  std::array<std::uint64_t, kMost> offsets;
  if (cls == kLinkClass) reserve_for_erases();
  // Few for small maps, which have as many partitions.
  const auto wanted = std::min<std::uint64_t>(2 + partition.items() / 8, kMost);
  std::uint32_t got = records_.take(cls, std::span(offsets).first(wanted));
  if (got == 0 && from_spares && take_spare_link(offsets[0])) got = 1;
  if (got == 0) return false;
  const PartitionGuard guard(partition.lock, thread.holder());
  return partition.stock_records(cls, std::span(offsets).first(got));
}

void HashMap::flush(LockHolder& holder) noexcept {
  memory::RetiredStock elements;
  for (Partition& partition : partitions_) {
    memory::RetiredList unlinked;
    {
      const PartitionGuard guard(partition.lock, holder);
      partition.take_elements(elements);
      partition.flush();
      unlinked = partition.take_retired();
    }
    hand_over_retired(services_, unlinked, elements);
  }
}

void HashMap::give_back(HashThread& thread) {
  flush(thread.holder());
  // What one round stamps is free in the next, if there is no reader.
  for (int i = 0; i < 3; ++i) store_.reclaimer.collect(*thread.cache);
  records_.trim();
  thread.cache->flush();
}

Result<memory::StagedBytes> HashMap::stage(HashThread& thread, const KeyHash& hashed,
                                           std::string_view key, std::string_view value) {
  const memory::SizeClass cls = memory::BufferPool::class_of(pair_bytes(key, value));
  const auto offset = thread.cache->allocate(cls);
  if (!offset) return std::unexpected(offset.error());
  std::byte* const at = store_.pool.at(*offset);
  base::store_shared<std::uint32_t>(at + offsetof(LongPairHeader, map_id), services_.map_id);
  base::store_shared<std::uint64_t>(at + offsetof(LongPairHeader, created), wire::kNoNode);
  base::store_shared<std::uint64_t>(at + offsetof(LongPairHeader, bytes),
                                    key.size() + value.size());
  base::store_shared<std::uint64_t>(at + offsetof(LongPairHeader, hash), hashed.bits());
  std::memcpy(at + sizeof(LongPairHeader), key.data(), key.size());
  return memory::StagedBytes(store_.pool, cls, *offset, sizeof(LongPairHeader) + key.size(), value);
}

Result<memory::StagedBytes> HashMap::stage(HashThread& thread, std::string_view key,
                                           std::string_view value) {
  if (key.empty() || key.size() > kKeyBytesMax) return fail(Code::key_too_long);
  if (value.size() > kValueBytesMax) return fail(Code::value_too_long);
  return stage(thread, hash(key), key, value);
}

// No reader can reach it before a record names it. It is counted from now on.
wire::Ref HashMap::make_live(const memory::StagedBytes& pair) {
  ESPALIER_ASSERT(pair.is_whole());
  std::byte* const at = pair.at();
  base::store_shared<std::uint64_t>(at + offsetof(LongPairHeader, superseded), wire::kLive,
                                    std::memory_order_release);
  const auto generation =
      base::load_shared<std::uint32_t>(at + offsetof(LongPairHeader, generation));
  retirement_.long_bytes.fetch_add(memory::BufferPool::class_bytes(pair.size_class()),
                                   std::memory_order_relaxed);
  return wire::Ref::make(pair.offset(), generation);
}

Result<HashWritten> HashMap::compare_and_set(HashThread& thread, std::string_view key,
                                             std::optional<std::string_view> expected,
                                             std::optional<std::string_view> desired) {
  Condition condition;
  condition.kind = expected ? ConditionKind::value : ConditionKind::absent;
  if (expected) condition.value = *expected;
  return desired ? write(thread, WriteOp::put, key, *desired, condition)
                 : write(thread, WriteOp::erase, key, {}, condition);
}

HashMap::Seen HashMap::read_newest(HashThread& thread, const KeyHash& hashed,
                                   std::string_view key) const {
  Seen seen;
  Looked looked{.look = Look::changed};
  for (std::uint32_t looks = 0; looked.look == Look::changed && looks != kLooksMax; ++looks) {
    looked = look_up(*this, hashed, key, kAnyVersion, true);
  }
  std::uint64_t version = kAnyVersion;
  const bool unwritten =
      looked.look == Look::found && RecordView(image, looked.record).version() == kUnwritten;
  // The record of a transaction that holds the lock.
  if (looked.look == Look::changed || unwritten)
    looked = look_locked(thread, hashed, key, version, true);
  if (looked.look == Look::found) {
    const RecordView record(image, looked.record);
    const auto generation =
        base::load_shared<std::uint32_t>(record.at() + offsetof(RecordHeader, generation));
    seen.stamp = {looked.record, generation, record.version()};
    seen.value = record.pair().value;
    seen.version = seen.stamp.version;
  } else if (versions) {
    seen.version = clock_.taken();  // that of the erase, or a later one
  }
  return seen;
}

Result<WriteOutcome> HashMap::write_if_seen(HashThread& thread, const KeyHash& hashed,
                                            std::string_view key, const RecordStamp& seen,
                                            std::optional<std::string_view> desired, bool waits) {
  WriteIntent intent;
  intent.op = desired ? WriteOp::put : WriteOp::erase;
  intent.hash = hashed;
  intent.key = key;
  if (desired) intent.value = *desired;
  intent.help.expected = &seen;
  intent.help.waits = waits;
  return outcome_of(thread, intent);
}

Result<HashWritten> HashMap::modify(
    HashThread& thread, std::string_view key,
    const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change) {
  if (key.empty() || key.size() > kKeyBytesMax) return fail(Code::key_too_long);
  const KeyHash hashed = hash(key);
  for (;;) {
    Seen seen;
    std::optional<std::string> value;
    {
      const ExposedEpoch exposed(thread);
      seen = read_newest(thread, hashed, key);
      if (seen.value) value.emplace(*seen.value);
    }
    const auto desired = change(value ? std::optional<std::string_view>(*value) : std::nullopt);
    const auto outcome = write_if_seen(thread, hashed, key, seen.stamp, desired, true);
    if (outcome && outcome->condition_failed) continue;
    return await(answer_of(outcome));
  }
}

Result<std::uint64_t> HashMap::add(HashThread& thread, std::string_view key, std::uint64_t amount) {
  const auto summed = await(begin_add(thread, key, amount));
  if (!summed) return std::unexpected(summed.error());
  return summed->sum;
}

Unreleased<HashSummed> HashMap::begin_add(HashThread& thread, std::string_view key,
                                          std::uint64_t amount, const WriteHelp& help) {
  if (key.empty() || key.size() > kKeyBytesMax) {
    return Unreleased<HashSummed>(fail(Code::key_too_long));
  }
  const KeyHash hashed = help.hash != nullptr ? *help.hash : hash(key);
  for (;;) {
    Seen seen;
    std::uint64_t sum = amount;
    {
      const ExposedEpoch exposed(thread);
      seen = read_newest(thread, hashed, key);
      if (seen.value && seen.value->size() != sizeof sum) {
        const auto bytes = static_cast<std::uint32_t>(seen.value->size());
        return Unreleased<HashSummed>(fail(Code::invalid_argument, bytes), seen.version);
      }
      if (seen.value) sum += base::load_le<std::uint64_t>(seen.value->data());
    }
    char bytes[sizeof sum];
    base::store_le(bytes, sum);
    const auto outcome = write_if_seen(thread, hashed, key, seen.stamp,
                                       std::string_view(bytes, sizeof bytes), help.waits);
    if (!outcome) return Unreleased<HashSummed>(std::unexpected(outcome.error()));
    if (outcome->condition_failed) continue;
    return Unreleased<HashSummed>(HashSummed{sum, outcome->version, outcome->existed},
                                  outcome->wait_for);
  }
}

}  // namespace espalier::hash
