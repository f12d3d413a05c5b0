// SPDX-License-Identifier: Apache-2.0
// Interface of an object as the catalogue sees it, whatever its kind.
//
// A kind is a class derived from Object with its number as `kKind`, beside the data structure, and
// a function that makes one in a catalogue (kinds/map/write/map_object.hpp,
// kinds/table/table_object.hpp).
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "espalier/kind.hpp"

namespace espalier::memory {
class VersionClock;
}

namespace espalier::catalog {

class RedoSink;
class SampleList;
class TransactionPart;
class TransactionPlaces;
struct TransactionStep;

/// Numbers that every kind has; each is correct, but they are not of one instant.
struct ObjectNumbers {
  std::uint64_t entries = 0;  ///< items of a map, rows of a table
  std::uint64_t memory_bytes = 0;
};

class Object {
 public:
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// Marks the object as dropped: its holders should answer that it does not exist, and remote
  /// readers find it marked. Called once, under the catalogue's lock.
  virtual void set_dropped() = 0;
  /// Whether it may be renamed: its handles detect that by the number of the rename.
  [[nodiscard]] virtual bool may_be_renamed() const { return false; }
  /// Sets its name, from the rename with this number; takes the content of `name`. Called under the
  /// catalogue's lock. Requires: may_be_renamed().
  virtual void set_renamed(std::string& name, std::uint32_t rename) noexcept;
  /// The kind's name for people; empty: name() of its number.
  [[nodiscard]] virtual std::string_view kind_name() const { return {}; }
  /// What it is made of, in bytes of its kind (docs/formats/objects.md).
  [[nodiscard]] virtual std::string description() const = 0;
  /// Cost: some counters, and a lock of its own.
  [[nodiscard]] virtual ObjectNumbers numbers() const = 0;
  /// Adds its statistics, for callers that show them without knowing its kind
  /// (catalog/samples.hpp). Each is correct, but they are not of one instant. Must not wait. Cost:
  /// as numbers(), and the text.
  virtual void add_samples(SampleList& to) const = 0;
  /// Counts the parts that a remote reader reports to have read, in bytes of this kind. The bytes
  /// are foreign, and a hint: invalid parts are ignored. Thread: any.
  virtual void count_reads(std::string_view) const {}

  /// The clock of transactions that write it; null: none may, since its kind takes no part or it
  /// keeps no versions.
  [[nodiscard]] virtual memory::VersionClock* transaction_clock() { return nullptr; }
  /// Its part of a transaction (catalog/transaction_part.hpp); the object and `steps` must outlive
  /// it. Errors: key_too_long, value_too_long, wrong_shard, out_of_memory, too_many_participants;
  /// unsupported; std::bad_alloc.
  [[nodiscard]] virtual Result<std::unique_ptr<TransactionPart>> transaction_part(
      std::span<const TransactionStep> steps, TransactionPlaces& places);

  /// The sink of its records (catalog/redo_sink.hpp); null: it makes none. Cost: one load.
  [[nodiscard]] RedoSink* redo() const { return redo_; }
  /// Whether its writes are answered, and visible to readers, before their records are durable.
  [[nodiscard]] bool is_async() const { return async_; }
  /// Whether answers about its writes need not wait for the log: the object is async, or makes no
  /// records.
  [[nodiscard]] bool answers_early() const { return async_ || redo_ == nullptr; }
  /// Its durability: what a crash may lose.
  [[nodiscard]] virtual Durability durability() const;
  /// The sequence of the newest record of what an opening reports, beyond that it is there; 0:
  /// there is none. Asked after that was read. Thread: any.
  [[nodiscard]] virtual std::uint64_t told_in() const { return 0; }
  /// Sets the sink, which must outlive the object. From now on readers see what is durable there
  /// (in kinds with versions or a published count). Errors: std::bad_alloc. Requires: no other
  /// thread uses the object. The catalogue calls it for its objects.
  virtual void record_to(RedoSink* sink);
  /// The same for an object that was made with the durability `own`; nothing: the sink's. An object
  /// of durability `none` makes no records.
  void promise(std::optional<Durability> own, RedoSink* sink) {
    own_ = own;
    record_to(own == Durability::none ? nullptr : sink);
  }
  /// Records of its earlier effects were lost, and that is accepted: the object continues so that
  /// nothing is reissued for which that would be unsafe. Called before the object is used. Errors:
  /// the sink's.
  virtual Result<void> go_on_after_loss() { return {}; }

 protected:
  Object();

  /// Whether no more is promised of it in this sink than async. Of a kind whose readers may see
  /// what a crash loses; answer_early() has to follow before readers can look.
  [[nodiscard]] bool promises_async(const RedoSink* sink) const;
  /// From now on is_async(). Versions that a crash loses do not come again: each run of a store has
  /// its own (engine/redo_target.hpp).
  void answer_early() { async_ = true; }

 private:
  RedoSink* redo_ = nullptr;
  std::optional<Durability> own_;
  bool async_ = false;
};

/// A class of objects of one kind.
template <class T>
concept ObjectOfKind = std::derived_from<T, Object> && requires {
  { T::kKind } -> std::convertible_to<ObjectKind>;
};

}  // namespace espalier::catalog
