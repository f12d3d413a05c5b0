// SPDX-License-Identifier: Apache-2.0
// What the catalogue must know of an object, whatever its kind.
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

/// Numbers that every kind has, each right but not all of one instant.
struct ObjectNumbers {
  std::uint64_t entries = 0;  ///< items of a map, rows of a table
  std::uint64_t memory_bytes = 0;
};

class Object {
 public:
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// The object has lost its name: who still holds it should answer that there is none, and readers
  /// from elsewhere find it dead. Called once, under the catalogue's lock.
  virtual void set_dropped() = 0;
  /// Whether it may be given another name: its handles notice, by the number of the rename.
  [[nodiscard]] virtual bool may_be_renamed() const { return false; }
  /// It has this name now, by the rename of this number; takes the name away. Called under the
  /// catalogue's lock. Requires: may_be_renamed().
  virtual void set_renamed(std::string& name, std::uint32_t rename) noexcept;
  /// What people call its kind; empty: what name() of its number says.
  [[nodiscard]] virtual std::string_view kind_name() const { return {}; }
  /// What it is made of, in the bytes of its kind (docs/formats/objects.md).
  [[nodiscard]] virtual std::string description() const = 0;
  /// Cost: some counters, and a lock of its own.
  [[nodiscard]] virtual ObjectNumbers numbers() const = 0;
  /// Adds its statistics, for whoever shows them without knowing its kind (catalog/samples.hpp).
  /// Each is right, they are not all of one instant. Cost: as numbers(), and their text. Must not
  /// wait.
  virtual void add_samples(SampleList& to) const = 0;
  /// A reader from elsewhere says which parts it has read lately, in the bytes of this kind. They
  /// come from outside, and are a hint: what is none of them is left out. Thread: any.
  virtual void count_reads(std::string_view) const {}

  /// The clock by which transactions may write it; null: none may, for its kind takes no part, or
  /// it keeps no versions.
  [[nodiscard]] virtual memory::VersionClock* transaction_clock() { return nullptr; }
  /// Its part of a transaction, of these steps (catalog/transaction_part.hpp), which outlive it, as
  /// the object does. Errors: key_too_long, value_too_long, wrong_shard, out_of_memory,
  /// too_many_participants; unsupported; std::bad_alloc.
  [[nodiscard]] virtual Result<std::unique_ptr<TransactionPart>> transaction_part(
      std::span<const TransactionStep> steps, TransactionPlaces& places);

  /// Where records of its effects go (catalog/redo_sink.hpp); null: it makes none. Cost: one load.
  [[nodiscard]] RedoSink* redo() const { return redo_; }
  /// Whether its writes are answered, and readers see them, before their records are durable.
  [[nodiscard]] bool is_async() const { return async_; }
  /// Whether what is said of its writes need not wait for the log: they are async, or make no
  /// records.
  [[nodiscard]] bool answers_early() const { return async_ || redo_ == nullptr; }
  /// What a crash may lose of it.
  [[nodiscard]] virtual Durability durability() const;
  /// The sequence of the newest record of what who opens it is told, beyond that it is there; 0:
  /// there is none. Asked after that was read. Thread: any.
  [[nodiscard]] virtual std::uint64_t told_in() const { return 0; }
  /// The sink outlives the object, whose readers see from now on what is durable there (of kinds
  /// with versions or a count that is published). Errors: std::bad_alloc. Requires: no other thread
  /// uses the object; the catalogue does it for those in it.
  virtual void record_to(RedoSink* sink);
  /// The same of an object that was made to promise something itself; nothing: what the sink
  /// promises. One of `none` makes no records.
  void promise(std::optional<Durability> own, RedoSink* sink) {
    own_ = own;
    record_to(own == Durability::none ? nullptr : sink);
  }
  /// Records of what it has done before were lost, and that is accepted: it goes on so that nothing
  /// comes again of which that would be unsafe. Called before anybody uses it. Errors: the sink's.
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
