// SPDX-License-Identifier: Apache-2.0
// Transactions: reads, conditions and writes of several objects of a store, atomic and strictly
// serialisable (docs/design/transactions.md).
//
//   lock all keys, in one order for all | check conditions, read | one version | publish | done
//
// Its objects share a clock, so one store of one word releases all its writes: a plain reader that
// sees one of them sees all. From the first lock to the version it waits for no reader, no disk and
// no memory. Another writer of one of its keys, plain or not, waits for the key's lock.
//
// Thread: any. It exposes epochs of its own, so an engine may run it while its walks expose theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/object.hpp"
#include "catalog/transaction_part.hpp"
#include "espalier/error.hpp"

namespace espalier::tree {
struct StoreCore;
}

namespace espalier::catalog {
class RedoSink;
}

namespace espalier::store {

class ClientTurn;
struct KeptAnswer;

/// Keys that a transaction may name.
inline constexpr std::size_t kTransactionKeysMax = 64;
/// Steps that it may have: a read, a condition and a write of each key, and some spare.
inline constexpr std::size_t kTransactionStepsMax = 4 * kTransactionKeysMax;
/// Bytes of keys and values that it may name, and of values that it may read.
inline constexpr std::size_t kTransactionBytesMax = std::size_t{1} << 20;

/// An object and its steps, with the number of each step in the transaction.
struct ObjectSteps {
  std::shared_ptr<catalog::Object> object;
  std::uint32_t id = 0;
  std::vector<catalog::TransactionStep> steps{};
  std::vector<std::uint32_t> numbers{};
};

/// The outcome of a transaction; to be sent only once `wait_for` is released (rule 6).
struct Transacted {
  std::uint64_t version = 0;  // of its writes; 0: none, or a condition failed
  std::uint64_t wait_for = 0;
  /// Of a numbered one that wrote nothing: the record of its answer, which must become durable.
  std::uint64_t sequence = 0;
  /// It would exceed the limits of TransactTerms::briefly; nothing was done.
  bool too_long = false;
  /// A refusal that reveals what was found: value_too_long (of a value read), exhausted (see
  /// HashMap). Nothing was written.
  std::optional<Error> refused{};
  /// The first step whose condition failed; then nothing was read or written.
  std::optional<std::uint32_t> failed_step{};
  std::vector<catalog::StepFound> found{};  // of its gets, in the order of steps
};

/// How one is run.
struct TransactTerms {
  /// In a full store, waits for memory as other writes do (store/starved_write.hpp); else it is
  /// refused immediately.
  bool waits = true;
  /// Ends with Transacted::too_long if it names or reads more than 64 KiB, has more than 16 erases
  /// (which may leave leaves to merge), or lacks memory after 8 rounds.
  bool briefly = false;
  /// Where the bytes of its answer go (found_bytes) instead of Transacted::found; built before
  /// anything is written. Null: nowhere.
  std::string* answer = nullptr;
  /// The turn of a numbered transaction; null: unnumbered. The outcome is kept in one step with the
  /// writes. transact() uses the turn when the transaction is done or a condition has failed; after
  /// a refusal the caller must end it. Requires: `answer`.
  ClientTurn* turn = nullptr;
};

/// The clock of all these objects. Errors: unsupported (detail: the index of an object that has
/// another clock, or none).
[[nodiscard]] Result<memory::VersionClock*> clock_of(std::span<const ObjectSteps> objects);

/// Whether all its writes are erases.
[[nodiscard]] bool only_erases(std::span<const ObjectSteps> objects);

/// Runs a transaction. No error is returned after it was done: the answer is built before.
/// Cost: of each key what its write costs; the structure locks of ordered maps.
/// Errors: clock_of()'s, key_too_long, value_too_long, wrong_shard, not_found (an object was
/// dropped; detail: its index), exhausted (see HashMap), out_of_memory, too_many_participants, busy
/// (other threads took its memory repeatedly), those of the sink. An error means that nothing was
/// changed, and reveals nothing of what was found; Transacted::refused does.
/// Requires: the limits above; the objects are of this store, in any order, each once.
Result<Transacted> transact(tree::StoreCore& store, std::span<ObjectSteps> objects,
                            const TransactTerms& terms = {}) noexcept;

/// Waits until the outcome may be sent. False: it never may.
[[nodiscard]] bool wait_for_release(memory::VersionClock& clock, std::uint64_t version);
/// The same for a kept answer. `sink`: of its record.
[[nodiscard]] bool wait_for_release(const KeptAnswer& answer, catalog::RedoSink* sink);

}  // namespace espalier::store
