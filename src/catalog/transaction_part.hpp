// SPDX-License-Identifier: Apache-2.0
// What one object does of a transaction over several: the steps of it that name its keys. Who runs
// the transaction (store/transaction.hpp) takes all parts through these in order:
//
//   record    what it writes, for the one record of the whole          may fail
//   fetch     memory that an earlier round lacked; no lock is held     may fail
//   enter     locks in which threads block, and memory                 may fail
//   lock      the keys of all its steps                                may fail
//   is_dropped                         nothing is written then
//   holds, read                                                        its newest state
//   look      at what prepare needs; or: another round, from fetch on
//   prepare   all else that may fail; or: another round, from fetch on
//   fill      writes what nobody sees yet
//   publish   under a version that all parts share
//   finish    once that is done
//   tidy      what is left, when no part holds a lock any more
//
// A round goes by all parts at a time, those of lower ranks first and of one rank by ascending ids:
// so two transactions never wait for each other. unlock() ends a round that has not published; then
// nothing has changed. A part that goes lets go of what it holds.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/typed_slots.hpp"
#include "espalier/condition.hpp"
#include "espalier/error.hpp"

namespace espalier::catalog {

/// What a step does with its key. The numbers are the protocol's: never reused.
enum class StepKind : std::uint8_t {
  invalid = 0,
  get = 1,    ///< what it is before the transaction's writes
  check = 2,  ///< a condition that must hold, or nothing is written
  put = 3,
  erase = 4,
};

/// One step on one key. Points into what its caller keeps.
struct TransactionStep {
  StepKind kind = StepKind::invalid;
  std::string_view key;
  std::string_view value{};  ///< of a put
  Condition condition{};     ///< of a check
};

/// What a get has found.
struct StepFound {
  bool found = false;
  std::uint64_t version = 0;
  std::string value;
};

/// What the parts of one kind keep together for one transaction: a thread's place in the store.
class TransactionPlace {
 public:
  TransactionPlace() = default;
  virtual ~TransactionPlace() = default;
  TransactionPlace(const TransactionPlace&) = delete;
  TransactionPlace& operator=(const TransactionPlace&) = delete;
};

/// Those of a transaction, which outlive its parts.
class TransactionPlaces : public base::TypedSlots<TransactionPlace> {};

class TransactionPart {
 public:
  TransactionPart() = default;
  virtual ~TransactionPart() = default;
  TransactionPart(const TransactionPart&) = delete;
  TransactionPart& operator=(const TransactionPart&) = delete;

  /// The place of its kind in the order of locks.
  [[nodiscard]] virtual std::uint32_t rank() const = 0;

  /// Bytes of its records, a multiple of 8; 0: it writes nothing.
  [[nodiscard]] virtual std::size_t record_bytes() const = 0;
  /// Writes them, but for the version, into so many bytes, which are zeros.
  virtual void write_record(std::span<std::byte> to) const = 0;
  /// Sets the version in them.
  virtual void stamp_record(std::span<std::byte> records, std::uint64_t version) const noexcept = 0;

  // Errors, of all: out_of_memory, exhausted (see HashMap); std::bad_alloc.
  virtual Result<void> fetch() = 0;
  virtual Result<void> enter() = 0;
  virtual Result<void> lock() = 0;
  /// Whether its object has lost its name.
  [[nodiscard]] virtual bool is_dropped() const = 0;
  /// Whether the condition of one of its steps, by its number among them, holds.
  [[nodiscard]] virtual bool holds(std::size_t step) = 0;
  /// Bytes of the value that a get finds.
  [[nodiscard]] virtual std::size_t found_bytes(std::size_t step) = 0;
  virtual void read(std::size_t step, StepFound& to) = 0;
  /// Whether it has what prepare() needs, as far as that is known before; nothing is changed.
  /// False: another round fetches all of it.
  virtual bool look() noexcept { return true; }
  /// False: another round.
  virtual Result<bool> prepare() = 0;
  virtual void fill() noexcept = 0;
  virtual void publish(std::uint64_t version) noexcept = 0;
  virtual void finish(std::uint64_t version) noexcept = 0;
  virtual void unlock() noexcept = 0;
  virtual void tidy() noexcept = 0;
};

}  // namespace espalier::catalog
