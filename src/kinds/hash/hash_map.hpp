// SPDX-License-Identifier: Apache-2.0
// A hash map of byte-string keys, without an order, in the memory of a store (docs/design/hash.md).
//
// All operations are linearizable. A read takes no lock and writes nothing that other threads read;
// only after writers forced it to restart kLooksMax times does it take the lock of its key's
// partition. A write holds that lock for some tens of nanoseconds, and returns when its version is
// released. A get costs 3 cache lines, a write of a pair of 64 bytes 5.
//
// Invariant: a refused call has changed nothing.
// Thread: any, each with its own HashThread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/transaction_part.hpp"
#include "espalier/condition.hpp"
#include "espalier/error.hpp"
#include "kinds/hash/hash_store.hpp"
#include "kinds/hash/partition.hpp"
#include "kinds/hash/reading.hpp"
#include "kinds/hash/write.hpp"
#include "memory/staged_bytes.hpp"
#include "memory/version_clock.hpp"
#include "store/clock_member.hpp"

namespace espalier::tree {
struct StarvedWrite;
}

namespace espalier::hash {

struct HashOptions {
  std::uint32_t partitions = 64;  ///< a power of two, 1 to 512; each has one lock
  /// off: faster writes, 32 bytes less for each change in flight; no snapshots
  bool versions = true;
  /// limit on old versions that snapshots hold
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  /// none: random
  std::optional<HashSeed> seed{};
  std::optional<Durability> durability{};  ///< none: that of its store
  std::string group{};                     ///< as MapOptions::group
};

[[nodiscard]] inline HashShape shape_of(const HashOptions& options) {
  HashShape shape{};
  shape.partitions = options.partitions;
  shape.versions = options.versions ? 1 : 0;
  shape.group_bytes = static_cast<std::uint8_t>(options.group.size());
  shape.snapshot_bytes_max = options.snapshot_bytes_max;
  return shape;
}

/// The state of a key at a version. The value is valid while its reader's epoch is exposed.
struct HashAnswer {
  bool found = false;
  std::uint64_t version = 0;       ///< of the record
  std::uint64_t read_version = 0;  ///< at which this holds
  std::string_view value;
};

/// A held version, whose state stays readable. Released by HashMap::drop().
using HashSnapshot = std::list<memory::HeldVersion>::iterator;

class HashMap final : public HashView,
                      public catalog::Object,
                      public memory::VersionedObject,
                      public store::StoredObject {
 public:
  static constexpr ObjectKind kKind = ObjectKind::hash;
  static constexpr bool kAnswersReleased = true;  // catalog/await_records.hpp

  /// Errors: invalid_argument (partitions), out_of_memory, system (no random seed).
  static Result<std::unique_ptr<HashMap>> create(HashStore& store, std::uint32_t id,
                                                 std::string name, const HashOptions& options);
  ~HashMap() override;
  HashMap(const HashMap&) = delete;
  HashMap& operator=(const HashMap&) = delete;

  // --- reading (more by HashReader) --------------------------------------------------------------

  /// The value, if there is one. Cost: 3 lines. Errors: key_too_long; std::bad_alloc.
  Result<std::optional<std::string>> get(HashThread& thread, std::string_view key) const;

  // --- writing -----------------------------------------------------------------------------------
  // Errors of all: key_too_long, value_too_long, out_of_memory; exhausted (keys that were chosen by
  // the seed are in the way of this one).
  // Cost: 4.3 lines of a pair of 64 bytes that is there.

  Result<HashWritten> put(HashThread& thread, std::string_view key, std::string_view value) {
    return write(thread, WriteOp::put, key, value);
  }
  Result<HashWritten> insert(HashThread& thread, std::string_view key, std::string_view value) {
    return write(thread, WriteOp::insert, key, value);
  }
  Result<HashWritten> update(HashThread& thread, std::string_view key, std::string_view value) {
    return write(thread, WriteOp::update, key, value);
  }
  /// Succeeds in a full store.
  Result<HashWritten> erase(HashThread& thread, std::string_view key) {
    return write(thread, WriteOp::erase, key, {});
  }
  /// Any of the above, if a condition holds. Errors: besides, condition_failed.
  Result<HashWritten> write(HashThread& thread, WriteOp op, std::string_view key,
                            std::string_view value, const Condition& condition = {});
  /// The same, without waiting until it may be answered (released()).
  Unreleased<HashWritten> begin(HashThread& thread, WriteOp op, std::string_view key,
                                std::string_view value, const Condition& condition = {},
                                const WriteHelp& help = {});
  /// Reserves a buffer for a pair that is copied before its write: the key is copied, the value not
  /// yet. Errors: key_too_long, value_too_long, out_of_memory. Requires: the pair is longer than
  /// records are; the map, and the source, outlive it.
  Result<memory::StagedBytes> stage(HashThread& thread, std::string_view key,
                                    std::string_view value);
  /// A write that does not wait: it may be answered when `outcome.wait_for` is released. `outcome`
  /// is set if there is no error; returning it by value costs copies that wait for the stores
  /// before them.
  Result<void> begin_write(HashThread& thread, WriteOp op, std::string_view key,
                           std::string_view value, const KeyHash& hashed, WriteOutcome& outcome) {
    WriteIntent intent;
    intent.op = op;
    intent.hash = hashed;
    intent.key = key;
    intent.value = value;
    return carry_out(thread, intent, outcome);
  }
  /// Writes `desired` (none: erases) if the value equals `expected` (none: if there is none).
  /// Errors: besides, condition_failed.
  Result<HashWritten> compare_and_set(HashThread& thread, std::string_view key,
                                      std::optional<std::string_view> expected,
                                      std::optional<std::string_view> desired);
  /// Reads the value, calls `change`, and writes what it returns (none: erases) unless another
  /// write came between; else it retries. `change` may run several times, without a lock; its
  /// exceptions propagate. Errors: besides, std::bad_alloc.
  Result<HashWritten> modify(
      HashThread& thread, std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);
  /// Adds to a little-endian counter of 8 bytes; an absent one is 0. Returns the sum, which wraps
  /// around. Errors: besides, invalid_argument (the value has another length, the detail).
  Result<std::uint64_t> add(HashThread& thread, std::string_view key, std::uint64_t amount);
  /// The same, without waiting until it may be answered. Of `help` it uses `hash` and `waits`.
  Unreleased<HashSummed> begin_add(HashThread& thread, std::string_view key, std::uint64_t amount,
                                   const WriteHelp& help = {});

  /// Whether a write that failed for lack of memory is retried (store/starved_write.hpp).
  [[nodiscard]] bool may_try_again(tree::StarvedWrite& starved) const;
  /// Makes room for its next attempt. Requires: no lock is held; an epoch that the thread exposes
  /// delays reclamation.
  void make_room(HashThread& thread, const tree::StarvedWrite& starved) noexcept;

  /// The newest state of a key, released or not.
  struct Seen {
    RecordStamp stamp;
    std::uint64_t version = 0;  // must be released before this may be answered
    std::optional<std::string_view> value;
  };
  /// Requires: the thread exposes an epoch. The value is valid as long as it does.
  [[nodiscard]] Seen read_newest(HashThread& thread, const KeyHash& hashed,
                                 std::string_view key) const;

  // --- snapshots ---------------------------------------------------------------------------------

  /// Holds the current version. Cost: every partition's lock. Requires: the thread reads nothing.
  /// Errors: unsupported (versions are off), out_of_memory.
  Result<HashSnapshot> hold(HashThread& thread, std::string owner = {});
  void drop(HashSnapshot snapshot) noexcept;

  // --- as an object of its store -----------------------------------------------------------------

  void set_dropped() override;
  void record_to(catalog::RedoSink* sink) override;
  [[nodiscard]] bool is_dropped() const override {
    return dropped_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t memory_bytes() const override;
  void add_values(std::span<std::uint64_t> of_classes) const override;
  /// Its reserve consists of records, in pages shared with others.
  void repack_spares() override {}
  [[nodiscard]] bool refill_reserve(memory::BufferCache&) noexcept override;
  /// A step is a segment, with the long pairs of its keys, or a page of records.
  bool free_some(std::uint32_t steps) override;
  [[nodiscard]] std::uint64_t freed_bytes() const override { return freeing_.bytes; }
  [[nodiscard]] std::string_view kind_name() const override { return "hash"; }
  /// HashShape.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;
  [[nodiscard]] memory::VersionClock* transaction_clock() override {
    return versions ? &clock_ : nullptr;
  }
  [[nodiscard]] Result<std::unique_ptr<catalog::TransactionPart>> transaction_part(
      std::span<const catalog::TransactionStep> steps, catalog::TransactionPlaces& places) override;
  void release_id(std::uint32_t id) noexcept override { retirement_.release(id); }
  void buffer_freed(memory::SizeClass, memory::BufferCache&) noexcept override {}

  [[nodiscard]] HashShape shape() const { return shape_of(options_); }
  [[nodiscard]] const store::ClockMember& group() const { return group_; }
  [[nodiscard]] const HashOptions& options() const { return options_; }
  /// Cost: counters of each partition, and two locks.
  [[nodiscard]] HashNumbers all_numbers() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return services_.map_id; }
  [[nodiscard]] const memory::VersionClock& clock() const { return clock_; }
  [[nodiscard]] memory::VersionClock& clock() { return clock_; }
  /// Whether answers that wait for this version may be sent.
  [[nodiscard]] bool released(std::uint64_t version) {
    return !versions || clock_.released_now() >= version ||
           planted(Bug::acknowledge_before_release);
  }

  /// Waits until they may be sent. False: they never may, because the version will not be released.
  [[nodiscard]] bool wait_for(std::uint64_t version);
  /// The result of a write, once it may be answered. Errors: besides, system (after a restart the
  /// write may be present or not).
  template <class T>
  [[nodiscard]] Result<T> await(Unreleased<T> begun) {
    if (!wait_for(begun.version)) return std::unexpected(catalog::kRecordLost);
    return std::move(begun.answer);
  }

  // For HashMaps.
  /// Takes out links that are ready, hands over retired memory, and gives back the stock.
  void flush(LockHolder& holder) noexcept;
  /// Gives back wholly free pages of records.
  void trim() noexcept { records_.trim(); }
  /// Moves free version links to the reserve for erases until it is full, before other writes take
  /// them: tiny pairs need records of the same length, and erases have nothing else in a full
  /// store.
  void reserve_for_erases() noexcept;
  /// Bytes of records, and of pairs that lie beside them.
  [[nodiscard]] std::uint64_t record_memory() const {
    return records_.numbers().pages * memory::class_bytes(memory::kRecordsClass) + long_bytes();
  }

  // For audits and tests.
  /// Hands retired memory to the reclaimer, gives back the stock, and frees what can be freed.
  /// Cost: every partition's lock, heavy barriers.
  void give_back(HashThread& thread);
  [[nodiscard]] const std::deque<Partition>& partitions() const { return partitions_; }
  [[nodiscard]] const RecordStore& records() const { return records_; }
  [[nodiscard]] RecordStore& records() { return records_; }
  [[nodiscard]] const Retirement& retirement() const { return retirement_; }
  [[nodiscard]] std::size_t spare_links() const;
  [[nodiscard]] HashStore& store() const { return store_; }

 private:
  /// Version links reserved for erases, which must succeed in a full store to free memory.
  static constexpr std::size_t kSpareLinks = 16;

  HashMap(HashStore& store, std::uint32_t id, std::string name, const HashOptions& options,
          store::ClockMember group);
  void begin_freeing();
  [[nodiscard]] std::uint64_t free_step();
  [[nodiscard]] std::uint64_t long_bytes() const {
    return retirement_.long_bytes.load(std::memory_order_relaxed);
  }
  Result<void> make_header(const HashSeed& drawn);
  Result<void> reserve_links();

  // hash_map_write.cpp
  Result<catalog::RedoRoom> record_room(const WriteIntent& intent) const;
  Result<WriteOutcome> outcome_of(HashThread& thread, WriteIntent& intent);
  // The outcome is set if there is no error.
  Result<void> apply(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome);
  Result<void> carry_out(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome);
  Result<void> attempt(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome,
                       std::optional<memory::StagedBytes>& own);
  Result<void> attempt_starved(HashThread& thread, WriteIntent& intent, WriteOutcome& outcome,
                               std::optional<memory::StagedBytes>& own);
  [[nodiscard]] wire::Ref make_live(const memory::StagedBytes& pair);
  Unreleased<HashWritten> answer_of(const Result<WriteOutcome>& outcome) const;
  Unreleased<HashWritten> write_if_equal(HashThread& thread, WriteIntent& intent);
  Result<void> provide(HashThread& thread, Partition& partition, const Shortage& shortage,
                       WriteIntent& intent);
  [[nodiscard]] bool provide_records(HashThread& thread, Partition& partition, RecordClass cls,
                                     bool from_spares);
  Result<memory::StagedBytes> stage(HashThread& thread, const KeyHash& hashed, std::string_view key,
                                    std::string_view value);
  void refill_spare_links() noexcept;
  bool take_spare_link(std::uint64_t& offset);
  Result<WriteOutcome> write_if_seen(HashThread& thread, const KeyHash& hashed,
                                     std::string_view key, const RecordStamp& seen,
                                     std::optional<std::string_view> desired, bool waits);
  [[nodiscard]] Looked look_locked(HashThread& thread, const KeyHash& hash, std::string_view key,
                                   std::uint64_t& version, bool held) const;

  friend class HashReader;
  friend class HashTransactionPart;

  HashStore& store_;
  const std::string name_;
  const HashOptions options_;
  memory::VersionClock own_clock_;
  store::ClockMember group_;
  memory::VersionClock& clock_;  // its own, or that of its group
  RecordStore records_;
  Retirement retirement_;
  HashServices services_;
  std::deque<Partition> partitions_;
  std::atomic<bool> dropped_{false};
  /// Progress of freeing a dropped map's memory.
  struct Freeing {
    bool begun = false;
    std::size_t partition = 0;
    std::uint64_t bytes = 0;
  };
  Freeing freeing_;
  std::mutex snapshot_mutex_;
  mutable std::mutex spare_mutex_;
  std::vector<std::uint64_t> spare_links_;  // guarded by spare_mutex_; with room for all
};

/// Reads of one thread, at the version of its construction or last renewal. Values that it returns
/// are valid until the next renewal.
/// Thread: one at a time; at most one reader of a HashThread at a time.
class HashReader {
 public:
  HashReader(const HashMap& map, HashThread& thread) : map_(map), thread_(thread) {
    thread_.slot.enter();
    load_version();
  }
  /// Reads at the version of a snapshot.
  HashReader(const HashMap& map, HashThread& thread, HashSnapshot snapshot)
      : map_(map), thread_(thread), snapshot_(&*snapshot) {
    thread_.slot.enter();
    version_ = snapshot_->version;
  }
  ~HashReader() { thread_.slot.exit(); }
  HashReader(const HashReader&) = delete;
  HashReader& operator=(const HashReader&) = delete;

  /// The state of a key. Not older than the last renewal; that of the snapshot, unless expired().
  [[nodiscard]] HashAnswer get(std::string_view key) { return get(key, map_.hash(key)); }
  [[nodiscard]] HashAnswer get(std::string_view key, const KeyHash& hash) {
    return get_at(map_, thread_, key, hash, version_, snapshot_ != nullptr || !map_.versions);
  }
  /// The current state of a key, for a thread that has exposed an epoch itself.
  [[nodiscard]] static HashAnswer get_exposed(const HashMap& map, HashThread& thread,
                                              std::string_view key, const KeyHash& hash) {
    std::uint64_t version = version_of(map);
    return get_at(map, thread, key, hash, version, !map.versions);
  }
  /// The same, with the hint of a look-ahead. Requires: besides, the key is not empty.
  [[nodiscard]] static HashAnswer get_exposed(const HashMap& map, HashThread& thread,
                                              std::string_view key, const KeyHash& hash,
                                              const KeyHint& hint) {
    const std::uint64_t version = version_of(map);
    const Slot slot = confirm(map, hint, key, version);
    if (slot.empty()) [[unlikely]]
      return get_hinted(map, thread, key, hash, hint);
    const RecordView record(map.image, slot);
    return {true, record.version(), version, record.value_beside(key.size())};
  }
  /// Whether the snapshot has lost states that it held: then earlier answers may be wrong.
  [[nodiscard]] bool expired() const { return snapshot_ != nullptr && snapshot_->has_expired(); }
  /// Exposes a newer epoch and version, so that later writes are seen, and retired memory is freed.
  void renew() {
    thread_.slot.expose(thread_.slot.now());
    if (snapshot_ == nullptr) load_version();
  }

 private:
  [[nodiscard]] static std::uint64_t version_of(const HashMap& map) {
    return map.versions ? map.clock_.released() : kAnyVersion;
  }
  void load_version() { version_ = version_of(map_); }
  [[gnu::noinline]] static HashAnswer get_hinted(const HashMap& map, HashThread& thread,
                                                 std::string_view key, const KeyHash& hash,
                                                 const KeyHint& hint);
  static HashAnswer get_at(const HashMap& map, HashThread& thread, std::string_view key,
                           const KeyHash& hash, std::uint64_t& version, bool held);
  [[gnu::noinline]] static Looked look_again(const HashMap& map, HashThread& thread,
                                             std::string_view key, const KeyHash& hash,
                                             std::uint64_t& version, bool held, Looked looked);

  const HashMap& map_;
  HashThread& thread_;
  const memory::HeldVersion* snapshot_ = nullptr;
  std::uint64_t version_ = 0;
};

/// The options that create a map of this shape.
[[nodiscard]] inline HashOptions options_of(const HashShape& shape, std::string_view group) {
  HashOptions options;
  options.group = group;
  options.partitions = shape.partitions;
  options.versions = shape.versions != 0;
  options.snapshot_bytes_max = shape.snapshot_bytes_max;
  return options;
}

/// HashMap::create() for a catalogue: after the map was dropped and its last holder has released
/// it, its memory waits for remote readers.
Result<std::shared_ptr<HashMap>> make_hash_map(HashStore& store, std::uint32_t id, std::string name,
                                               const HashOptions& options);
/// Makes an empty map with a name in its store, which must outlive it.
/// Errors: those of Catalog::create and HashMap::create, unsupported (without versions, where it
/// must be durable; those of tree::agreed_durability()).
Result<std::shared_ptr<HashMap>> create_hash_map(HashStore& store, std::string_view name,
                                                 HashOptions options = {});

}  // namespace espalier::hash
