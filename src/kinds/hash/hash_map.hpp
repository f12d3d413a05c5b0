// SPDX-License-Identifier: Apache-2.0
// A hash map: keys of bytes, without an order, in the memory of a store (docs/design/hash.md).
//
// All operations are linearizable. Reads take no locks and write nothing that others read, but for
// one that writers have had begin again kLooksMax times, which takes the lock of its key's
// partition. A write takes that lock for some tens of nanoseconds, and returns when its version is
// released.
//
// Invariant: what a call refuses has changed nothing.
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
  std::uint32_t partitions = 64;  ///< a power of two, 1 to 512: of keys that one lock guards
  /// off: faster writes, 32 bytes less for each change under way; no snapshots
  bool versions = true;
  /// old versions that snapshots may hold
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  /// none: drawn
  std::optional<HashSeed> seed{};
  std::optional<Durability> durability{};  ///< nothing: what its store promises
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

/// What a key is at a version. The value is good as long as its reader is.
struct HashAnswer {
  bool found = false;
  std::uint64_t version = 0;       ///< of the record
  std::uint64_t read_version = 0;  ///< at which this holds
  std::string_view value;
};

/// A version that is held: what was there then can be read. Given back by HashMap::drop().
using HashSnapshot = std::list<memory::HeldVersion>::iterator;

class HashMap final : public HashView,
                      public catalog::Object,
                      public memory::VersionedObject,
                      public store::StoredObject {
 public:
  static constexpr ObjectKind kKind = ObjectKind::hash;
  static constexpr bool kAnswersReleased = true;  // catalog/await_records.hpp

  /// Errors: invalid_argument (partitions), out_of_memory, system (there is no seed to be drawn).
  static Result<std::unique_ptr<HashMap>> create(HashStore& store, std::uint32_t id,
                                                 std::string name, const HashOptions& options);
  ~HashMap() override;
  HashMap(const HashMap&) = delete;
  HashMap& operator=(const HashMap&) = delete;

  // --- reading (more by HashReader) --------------------------------------------------------------

  /// The value, if there is one. Cost: 3 lines. Errors: key_too_long; std::bad_alloc.
  Result<std::optional<std::string>> get(HashThread& thread, std::string_view key) const;

  // --- writing -----------------------------------------------------------------------------------
  // Errors of all: key_too_long, value_too_long, out_of_memory; exhausted (other keys are in the
  // way of this one: only keys that were made for it come to that).
  // Cost: 5 lines of a pair of 64 bytes.

  Result<HashWritten> put(HashThread& thread, std::string_view key, std::string_view value) {
    return write(thread, WriteOp::put, key, value);
  }
  Result<HashWritten> insert(HashThread& thread, std::string_view key, std::string_view value) {
    return write(thread, WriteOp::insert, key, value);
  }
  Result<HashWritten> update(HashThread& thread, std::string_view key, std::string_view value) {
    return write(thread, WriteOp::update, key, value);
  }
  /// Works in a full store.
  Result<HashWritten> erase(HashThread& thread, std::string_view key) {
    return write(thread, WriteOp::erase, key, {});
  }
  /// Any of them, if a condition holds. Errors: besides, condition_failed.
  Result<HashWritten> write(HashThread& thread, WriteOp op, std::string_view key,
                            std::string_view value, const Condition& condition = {});
  /// The same, and does not wait until it may be answered (released()).
  Unreleased<HashWritten> begin(HashThread& thread, WriteOp op, std::string_view key,
                                std::string_view value, const Condition& condition = {},
                                const WriteHelp& help = {});
  /// Room for a pair that is copied before its write; its key is there, its value is yet to be
  /// copied. Errors: key_too_long, value_too_long, out_of_memory. Requires: the pair is longer than
  /// records are; the map, and what is copied, outlive it.
  Result<memory::StagedBytes> stage(HashThread& thread, std::string_view key,
                                    std::string_view value);
  /// A write that does not wait: its answer may be given when `outcome.wait_for` is released.
  /// `outcome`: there if nothing is wrong; what is returned by value costs copies that wait for the
  /// stores before them.
  Result<void> begin_write(HashThread& thread, WriteOp op, std::string_view key,
                           std::string_view value, const KeyHash& hashed, WriteOutcome& outcome) {
    WriteIntent intent;
    intent.op = op;
    intent.hash = hashed;
    intent.key = key;
    intent.value = value;
    return carry_out(thread, intent, outcome);
  }
  /// Writes `desired` (none: erases) if the value is `expected` (none: if there is none).
  /// Errors: besides, condition_failed.
  Result<HashWritten> compare_and_set(HashThread& thread, std::string_view key,
                                      std::optional<std::string_view> expected,
                                      std::optional<std::string_view> desired);
  /// Reads the value, calls `change`, and writes what it returns (none: erases) if nothing came
  /// between; else starts again. `change` may run several times, holding no lock; what it throws is
  /// passed on. Errors: besides, std::bad_alloc.
  Result<HashWritten> modify(
      HashThread& thread, std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);
  /// Adds to a counter of 8 bytes, little-endian; an absent one is 0. Returns the sum, which wraps
  /// round. Errors: besides, invalid_argument (the value has another length, the detail).
  Result<std::uint64_t> add(HashThread& thread, std::string_view key, std::uint64_t amount);
  /// The same, and does not wait until it may be answered. Of the help `hash` and `waits` count.
  Unreleased<HashSummed> begin_add(HashThread& thread, std::string_view key, std::uint64_t amount,
                                   const WriteHelp& help = {});

  /// Whether a write that has found no memory tries again (store/starved_write.hpp).
  [[nodiscard]] bool may_try_again(tree::StarvedWrite& starved) const;
  /// What is done for its next attempt.
  /// Requires: no lock is held; what the thread exposes holds back what waits.
  void make_room(HashThread& thread, const tree::StarvedWrite& starved) noexcept;

  /// A key's newest state, released or not.
  struct Seen {
    RecordStamp stamp;
    std::uint64_t version = 0;  // which is released when this may be told
    std::optional<std::string_view> value;
  };
  /// Requires: the thread exposes an epoch. The value is good as long as it does.
  [[nodiscard]] Seen read_newest(HashThread& thread, const KeyHash& hashed,
                                 std::string_view key) const;

  // --- snapshots ---------------------------------------------------------------------------------

  /// Holds the present version. Cost: every partition's lock. Requires: the thread reads nothing.
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
  /// What it has in reserve are records, in pages with others.
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
  /// What it was made with.
  [[nodiscard]] const HashOptions& options() const { return options_; }
  /// Cost: counters of each partition, and two locks.
  [[nodiscard]] HashNumbers all_numbers() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return services_.map_id; }
  [[nodiscard]] const memory::VersionClock& clock() const { return clock_; }
  [[nodiscard]] memory::VersionClock& clock() { return clock_; }
  /// Whether answers that wait for this version may be given.
  [[nodiscard]] bool released(std::uint64_t version) {
    return !versions || clock_.released_now() >= version ||
           planted(Bug::acknowledge_before_release);
  }

  /// Waits until they may. False: they never may, for the version will not be released.
  [[nodiscard]] bool wait_for(std::uint64_t version);
  /// What a write has come to, once it may be answered. Errors: besides, system (it may be there
  /// after a restart, or not).
  template <class T>
  [[nodiscard]] Result<T> await(Unreleased<T> begun) {
    if (!wait_for(begun.version)) return std::unexpected(catalog::kRecordLost);
    return std::move(begun.answer);
  }

  // For HashMaps.
  /// Takes out what is ready, hands over what was retired, and gives back what is in stock.
  void flush(LockHolder& holder) noexcept;
  /// Gives back pages of records that are wholly free.
  void trim() noexcept { records_.trim(); }
  /// Version links that are free go to those in reserve for erases, until there are enough: before
  /// others take them, for tiny pairs are as long, and erases have nothing else once a store is
  /// full.
  void reserve_for_erases() noexcept;
  /// Bytes of records, and of pairs that lie beside them.
  [[nodiscard]] std::uint64_t record_memory() const {
    return records_.numbers().pages * memory::class_bytes(memory::kRecordsClass) + long_bytes();
  }

  // For audits and tests.
  /// Hands what waits to be handed over to the reclaimer, gives back what is in stock, and frees
  /// what can be freed. Cost: every partition's lock, heavy barriers.
  void give_back(HashThread& thread);
  [[nodiscard]] const std::deque<Partition>& partitions() const { return partitions_; }
  [[nodiscard]] const RecordStore& records() const { return records_; }
  [[nodiscard]] RecordStore& records() { return records_; }
  [[nodiscard]] const Retirement& retirement() const { return retirement_; }
  [[nodiscard]] std::size_t spare_links() const;
  [[nodiscard]] HashStore& store() const { return store_; }

 private:
  /// Version links reserved for erases, which must succeed in a full store: they make room.
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
  // The outcome is there if nothing is wrong.
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
  /// Where giving back the memory of a dropped map has come to.
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

/// Reads of one thread, as of the moment when it began or was renewed. The values that it answers
/// are good until then.
/// Thread: one at a time; of a HashThread there is one at a time.
class HashReader {
 public:
  HashReader(const HashMap& map, HashThread& thread) : map_(map), thread_(thread) {
    thread_.slot.enter();
    load_version();
  }
  /// Reads as of a snapshot.
  HashReader(const HashMap& map, HashThread& thread, HashSnapshot snapshot)
      : map_(map), thread_(thread), snapshot_(&*snapshot) {
    thread_.slot.enter();
    version_ = snapshot_->version;
  }
  ~HashReader() { thread_.slot.exit(); }
  HashReader(const HashReader&) = delete;
  HashReader& operator=(const HashReader&) = delete;

  /// What the key is. Not older than the last renewal; of a snapshot as of it, unless expired().
  [[nodiscard]] HashAnswer get(std::string_view key) { return get(key, map_.hash(key)); }
  [[nodiscard]] HashAnswer get(std::string_view key, const KeyHash& hash) {
    return get_at(map_, thread_, key, hash, version_, snapshot_ != nullptr || !map_.versions);
  }
  /// What a key is now, for a thread that has exposed an epoch itself.
  [[nodiscard]] static HashAnswer get_exposed(const HashMap& map, HashThread& thread,
                                              std::string_view key, const KeyHash& hash) {
    std::uint64_t version = version_of(map);
    return get_at(map, thread, key, hash, version, !map.versions);
  }
  /// The same, with what a look ahead has found. Requires: besides, the key is not empty.
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
  /// Whether the snapshot has lost what it held: then what was answered may be wrong.
  [[nodiscard]] bool expired() const { return snapshot_ != nullptr && snapshot_->has_expired(); }
  /// Begins again, so that what others wrote meanwhile is seen, and what waits can be freed.
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

/// What a map of this shape is made by.
[[nodiscard]] inline HashOptions options_of(const HashShape& shape, std::string_view group) {
  HashOptions options;
  options.group = group;
  options.partitions = shape.partitions;
  options.versions = shape.versions != 0;
  options.snapshot_bytes_max = shape.snapshot_bytes_max;
  return options;
}

/// For a catalogue: HashMap::create(), of a map whose memory waits for readers elsewhere when it
/// was dropped and its last holder has let go.
Result<std::shared_ptr<HashMap>> make_hash_map(HashStore& store, std::uint32_t id, std::string name,
                                               const HashOptions& options);
/// Makes an empty map with a name in its store, which must outlive it.
/// Errors: those of Catalog::create and HashMap::create, unsupported (without versions, where it
/// must be durable; those of tree::agreed_durability()).
Result<std::shared_ptr<HashMap>> create_hash_map(HashStore& store, std::string_view name,
                                                 HashOptions options = {});

}  // namespace espalier::hash
