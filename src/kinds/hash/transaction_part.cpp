// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/transaction_part.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/redo_record.hpp"

namespace espalier::hash {
namespace {

using catalog::StepKind;
using catalog::TransactionStep;

constexpr std::size_t kRecordAlign = 8;
constexpr std::uint32_t kExtraMax = 64;

std::size_t padded(std::size_t bytes) { return (bytes + kRecordAlign - 1) & ~(kRecordAlign - 1); }

bool is_write(const TransactionStep& step) {
  return step.kind == StepKind::put || step.kind == StepKind::erase;
}

std::string_view value_of(const WriteIntent& intent) {
  return intent.op == WriteOp::erase ? std::string_view() : intent.value;
}

bool lies_apart(const WriteIntent& intent) {
  return intent.op == WriteOp::put &&
         sizeof(RecordHeader) + intent.key.size() + intent.value.size() > kRecordBytesMax;
}

}  // namespace

Result<std::unique_ptr<catalog::TransactionPart>> HashMap::transaction_part(
    std::span<const TransactionStep> steps, catalog::TransactionPlaces& places) {
  auto part = HashTransactionPart::begin(*this, steps, places);
  if (!part) return std::unexpected(part.error());
  return std::unique_ptr<catalog::TransactionPart>(std::move(*part));
}

Result<std::unique_ptr<HashTransactionPart>> HashTransactionPart::begin(
    HashMap& map, std::span<const TransactionStep> steps, catalog::TransactionPlaces& places) {
  for (const TransactionStep& step : steps) {
    if (step.key.empty() || step.key.size() > kKeyBytesMax) return fail(Code::key_too_long);
    if (step.value.size() > kValueBytesMax) return fail(Code::value_too_long);
  }
  auto* place = places.find<HashTransactionPlace>();
  if (place == nullptr) {
    auto lease = HashThreadLease::take(map.store().threads);
    if (!lease) return std::unexpected(lease.error());
    place = &places.make<HashTransactionPlace>(*std::move(lease));
  }
  std::unique_ptr<HashTransactionPart> part(new HashTransactionPart(map, steps, *place->lease));
  part->gather();
  return part;
}

HashTransactionPart::~HashTransactionPart() {
  unlock();
  hand_over();
  if (published_) return;
  for (const memory::StagedBytes& staged : staged_) {
    map_.retirement_.long_bytes.fetch_sub(memory::BufferPool::class_bytes(staged.size_class()),
                                          std::memory_order_relaxed);
  }
}

void HashTransactionPart::gather() {
  hashes_.reserve(steps_.size());
  for (const TransactionStep& step : steps_) hashes_.push_back(map_.hash(step.key));
  add_writes();
  std::vector<std::uint32_t> partitions;
  for (const KeyHash& hash : hashes_) {
    partitions.push_back(static_cast<std::uint32_t>(hash.partition()));
  }
  std::ranges::sort(partitions);
  partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
  std::size_t write = 0;
  for (const std::uint32_t number : partitions) {
    Share share;
    share.partition = &map_.partitions_[number];
    share.first = write;
    while (write < writes_.size() && writes_[write].intent.hash.partition() == number) ++write;
    share.count = write - share.first;
    shares_.push_back(std::move(share));
  }
}

// Only the last write of a key is executed.
void HashTransactionPart::add_writes() {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const TransactionStep& step = steps_[i];
    const auto is_of_key = [&](const PreparedWrite& one) { return one.intent.key == step.key; };
    if (!is_write(step) || std::ranges::any_of(writes_, is_of_key)) continue;
    PreparedWrite write;
    write.intent.op = step.kind == StepKind::put ? WriteOp::put : WriteOp::erase;
    write.intent.hash = hashes_[i];
    write.intent.key = step.key;
    write.intent.value = step.value;
    writes_.push_back(write);
  }
  only_erases_ = std::ranges::all_of(
      writes_, [](const PreparedWrite& one) { return one.intent.op == WriteOp::erase; });
  std::ranges::sort(writes_, {},
                    [](const PreparedWrite& one) { return one.intent.hash.partition(); });
}

std::size_t HashTransactionPart::record_bytes() const {
  std::size_t bytes = 0;
  for (const PreparedWrite& write : writes_) {
    bytes += padded(written_bytes(write.intent.key, value_of(write.intent)));
  }
  return bytes;
}

void HashTransactionPart::write_record(std::span<std::byte> to) const {
  for (const PreparedWrite& write : writes_) {
    const std::string_view value = value_of(write.intent);
    const std::size_t bytes = written_bytes(write.intent.key, value);
    const RedoOp op = write.intent.op == WriteOp::erase ? RedoOp::erase : RedoOp::put;
    write_written(to.first(bytes), map_.id(), 0, op, write.intent.key, value);
    to = to.subspan(padded(bytes));
  }
}

void HashTransactionPart::stamp_record(std::span<std::byte> records,
                                       std::uint64_t version) const noexcept {
  for (const PreparedWrite& write : writes_) {
    std::memcpy(records.data() + offsetof(HashWrittenRecord, version), &version, sizeof version);
    records = records.subspan(padded(written_bytes(write.intent.key, value_of(write.intent))));
  }
}

// Pairs that were retired with a withdrawn record are staged again.
Result<void> HashTransactionPart::stage_pairs() {
  for (PreparedWrite& write : writes_) {
    WriteIntent& intent = write.intent;
    if (!lies_apart(intent) || intent.help.staged != nullptr) continue;
    auto pair = map_.stage(thread_, intent.hash, intent.key, intent.value);
    if (!pair) return std::unexpected(pair.error());
    pair->copy(intent.value.size());
    intent.help.staged = &staged_.emplace_back(*std::move(pair));
    intent.pair = map_.make_live(*intent.help.staged);
  }
  return {};
}

Result<void> HashTransactionPart::fetch() {
  hand_over();
  if (auto staged = stage_pairs(); !staged) return staged;
  if (looked_) extra_ = std::clamp(2 * extra_, 1u, kExtraMax);
  for (Share& share : shares_) {
    if (share.count == 0) continue;
    if (!looked_) {
      const PartitionGuard guard(share.partition->lock, thread_.holder());
      share.lacks = share.partition->lack_of(writes_of(share));
    }
    if (share.lacks.refused) return fail(Code::exhausted);
    if (share.lacks.no_memory) return fail(Code::out_of_memory);
    if (auto fetched = fetch_records(share); !fetched) return fetched;
    if (!share.lacks.growth.any()) continue;
    WriteIntent& intent = writes_[share.first + share.lacks.write].intent;
    auto grown = map_.provide(thread_, *share.partition, share.lacks.growth, intent);
    if (!grown) return grown;
    share.lacks = {};
  }
  looked_ = true;
  return {};
}

Result<void> HashTransactionPart::fetch_records(Share& share) {
  for (RecordClass cls = 0; cls < kRecordClasses; ++cls) {
    std::uint32_t& lacking = share.lacks.records[cls];
    if (lacking == 0) continue;
    if (cls == kLinkClass) map_.reserve_for_erases();
    std::vector<std::uint64_t> offsets(lacking + extra_);
    std::size_t got = map_.records_.take(cls, offsets);
    const bool may_take_spares = cls == kLinkClass && only_erases_;
    while (got < lacking && may_take_spares && map_.take_spare_link(offsets[got])) ++got;
    if (got != 0) {
      const PartitionGuard guard(share.partition->lock, thread_.holder());
      if (!share.partition->stock_records(cls, std::span(offsets).first(got))) {
        return fail(Code::out_of_memory);
      }
    }
    if (got < lacking) return fail(Code::out_of_memory);
    lacking = 0;
  }
  return {};
}

Result<void> HashTransactionPart::lock() {
  for (Share& share : shares_) {
    share.partition->lock.lock_among_others(thread_.holder());
    share.locked = true;
  }
  return {};
}

NewestState HashTransactionPart::newest(std::size_t step) {
  return map_.partitions_[hashes_[step].partition()].newest(hashes_[step], steps_[step].key);
}

bool HashTransactionPart::holds(std::size_t step) {
  const NewestState state = newest(step);
  const bool exists = !state.record.empty();
  const RecordView record(map_.image, state.record);
  const Condition& condition = steps_[step].condition;
  switch (condition.kind) {
    case ConditionKind::none: return true;
    case ConditionKind::absent: return !exists;
    case ConditionKind::present: return exists;
    case ConditionKind::version: return exists && record.version() == condition.version;
    case ConditionKind::value: return exists && record.pair().value == condition.value;
  }
  return false;
}

std::size_t HashTransactionPart::found_bytes(std::size_t step) {
  const Slot record = newest(step).record;
  return record.empty() ? 0 : RecordView(map_.image, record).pair().value.size();
}

void HashTransactionPart::read(std::size_t step, catalog::StepFound& to) {
  const Slot slot = newest(step).record;
  if (slot.empty()) return;
  const RecordView record(map_.image, slot);
  to.value.assign(record.pair().value);
  to.version = record.version();
  to.found = true;
}

// Looks at all partitions before a record is placed in one of them, because withdrawn records are
// not free again immediately.
bool HashTransactionPart::look() noexcept {
  bool lacks = false;
  for (Share& share : shares_) {
    if (share.count == 0) continue;
    share.lacks = share.partition->lack_of(writes_of(share));
    lacks = lacks || share.lacks.any();
  }
  return !lacks;
}

Result<bool> HashTransactionPart::prepare() {
  for (Share& share : shares_) {
    if (share.count == 0) continue;
    share.lacks = share.partition->prepare(writes_of(share));
    if (share.lacks.any()) return false;
    share.prepared = true;
  }
  return true;
}

void HashTransactionPart::publish(std::uint64_t version) noexcept {
  published_ = true;
  for (Share& share : shares_) share.partition->publish(writes_of(share), version);
  for (const PreparedWrite& write : writes_) {
    if (write.intent.help.staged != nullptr) write.intent.help.staged->take();
  }
}

void HashTransactionPart::finish(std::uint64_t version) noexcept {
  for (Share& share : shares_) share.partition->finish(writes_of(share), version);
  unlock();
}

void HashTransactionPart::unlock() noexcept {
  for (Share& share : shares_) {
    if (!share.locked) continue;
    if (share.prepared && !published_) share.partition->withdraw(writes_of(share));
    share.prepared = false;
    share.unlinked = share.partition->take_retired();
    share.partition->lock.unlock(thread_.holder(), false);
    share.locked = false;
  }
  forget_pairs();
}

// Forgets pairs that were withdrawn with their records: the reclaimer has them.
void HashTransactionPart::forget_pairs() noexcept {
  for (PreparedWrite& write : writes_) {
    if (!std::exchange(write.pair_gone, false)) continue;
    memory::StagedBytes* const pair = std::exchange(write.intent.help.staged, nullptr);
    write.intent.pair = {};
    pair->take();
    staged_.remove_if([pair](const memory::StagedBytes& one) { return &one == pair; });
  }
}

void HashTransactionPart::hand_over() noexcept {
  for (Share& share : shares_) {
    hand_over_retired(map_.services_, std::exchange(share.unlinked, {}), *thread_.elements);
  }
}

void HashTransactionPart::tidy() noexcept {
  hand_over();
  memory::Reclaimer& reclaimer = map_.store().reclaimer;
  if (reclaimer.due()) reclaimer.collect(*thread_.cache);
}

}  // namespace espalier::hash
