// SPDX-License-Identifier: Apache-2.0
// One object's part of a transaction: the steps of it that name its keys. The code that runs the
// transaction (store/transaction.hpp) calls these on all parts, in this order:
//
//   record    what it writes, for the one record of the whole          may fail
//   fetch     memory that an earlier round lacked; no lock is held     may fail
//   enter     locks in which threads block, and memory                 may fail
//   lock      the keys of all its steps                                may fail
//   is_dropped                         nothing is written then
//   holds, read                                                        its newest state
//   look      at what prepare needs; or: another round, from fetch on
//   prepare   all else that may fail; or: another round, from fetch on
//   fill      writes that no reader sees yet
//   publish   under a version that all parts share
//   finish    once that is done
//   tidy      what is left, when no part holds a lock any more
//
// Each call is made on all parts before the next one, by ascending rank and, within a rank, by
// ascending ids: so two transactions never deadlock. unlock() ends a round that has not published;
// then nothing has changed. The destructor releases what a part holds.
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

/// What a step does with its key. The numbers are part of the protocol: never reused.
enum class StepKind : std::uint8_t {
  invalid = 0,
  get = 1,    ///< reads the state before the transaction's writes
  check = 2,  ///< a condition; if it fails, nothing is written
  put = 3,
  erase = 4,
};

/// One step on one key. Points into memory that its caller keeps.
struct TransactionStep {
  StepKind kind = StepKind::invalid;
  std::string_view key;
  std::string_view value{};  ///< of a put
  Condition condition{};     ///< of a check
};

/// The result of a get.
struct StepFound {
  bool found = false;
  std::uint64_t version = 0;
  std::string value;
};

/// State that the parts of one kind share in one transaction: a thread's place in the store.
class TransactionPlace {
 public:
  TransactionPlace() = default;
  virtual ~TransactionPlace() = default;
  TransactionPlace(const TransactionPlace&) = delete;
  TransactionPlace& operator=(const TransactionPlace&) = delete;
};

/// The places of a transaction; they outlive its parts.
class TransactionPlaces : public base::TypedSlots<TransactionPlace> {};

class TransactionPart {
 public:
  TransactionPart() = default;
  virtual ~TransactionPart() = default;
  TransactionPart(const TransactionPart&) = delete;
  TransactionPart& operator=(const TransactionPart&) = delete;

  /// The rank of its kind in the lock order.
  [[nodiscard]] virtual std::uint32_t rank() const = 0;

  /// Bytes of its records, a multiple of 8; 0: it writes nothing.
  [[nodiscard]] virtual std::size_t record_bytes() const = 0;
  /// Writes them without the version into so many bytes, which are zeros.
  virtual void write_record(std::span<std::byte> to) const = 0;
  /// Sets their version.
  virtual void stamp_record(std::span<std::byte> records, std::uint64_t version) const noexcept = 0;

  // Errors of these: out_of_memory, exhausted (see HashMap); std::bad_alloc.
  virtual Result<void> fetch() = 0;
  virtual Result<void> enter() = 0;
  virtual Result<void> lock() = 0;
  /// Whether its object was dropped.
  [[nodiscard]] virtual bool is_dropped() const = 0;
  /// Whether the condition of a step holds; `step`: an index into its own steps.
  [[nodiscard]] virtual bool holds(std::size_t step) = 0;
  /// Bytes of the value that a get finds.
  [[nodiscard]] virtual std::size_t found_bytes(std::size_t step) = 0;
  virtual void read(std::size_t step, StepFound& to) = 0;
  /// Whether it has what prepare() needs, as far as that is known beforehand; changes nothing.
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
