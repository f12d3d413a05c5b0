// SPDX-License-Identifier: Apache-2.0
// Transactions: reads, conditions and writes of several objects of a store at one moment, all of
// them or none (docs/design/transactions.md).
//
//   lock all keys, in one order for all | look at conditions, read | one version | publish | done
//
// Its objects share a clock, so one version is released for all of them at once: a plain reader who
// sees one of its writes sees all. From the first lock to the version it waits for no reader, no
// disk and no memory; who wants a key of it meanwhile, a plain write too, waits for that lock.
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
/// Steps that it may have: of each key a read, a condition and a write, and some to spare.
inline constexpr std::size_t kTransactionStepsMax = 4 * kTransactionKeysMax;
/// Bytes of keys and values that it may name, and of values that it may read.
inline constexpr std::size_t kTransactionBytesMax = std::size_t{1} << 20;

/// An object and its steps, and which of the transaction's steps each of them is.
struct ObjectSteps {
  std::shared_ptr<catalog::Object> object;
  std::uint32_t id = 0;
  std::vector<catalog::TransactionStep> steps{};
  std::vector<std::uint32_t> numbers{};
};

/// What a transaction has come to, to be told once `wait_for` is released (rule 6).
struct Transacted {
  std::uint64_t version = 0;  // of its writes; 0: it has none, or a condition failed
  std::uint64_t wait_for = 0;
  /// Of a numbered one that has written nothing: the record of its answer, which is to be durable.
  std::uint64_t sequence = 0;
  /// It takes longer than its terms allow, and nothing was done.
  bool too_long = false;
  /// What it was refused for that tells of what it has found: value_too_long (of what it reads),
  /// exhausted (see HashMap). Nothing was written.
  std::optional<Error> refused{};
  /// The step whose condition failed, of several the first; then nothing was read or written.
  std::optional<std::uint32_t> failed_step{};
  std::vector<catalog::StepFound> found{};  // of its gets, in the order of steps
};

/// How one is run.
struct TransactTerms {
  /// Finds memory in a full store as other writes do (store/starved_write.hpp); else it is refused
  /// at once.
  bool waits = true;
  /// Ends with Transacted::too_long where it names or reads more than 64 KiB, has more than 16
  /// erases, which may leave leaves to merge, or has not got its memory in 8 rounds.
  bool briefly = false;
  /// Where the bytes of its answer go (found_bytes) instead of Transacted::found; they are made
  /// before anything is written. Null: nowhere.
  std::string* answer = nullptr;
  /// Its number, of a client's: what it comes to is kept, in one step with what it does. A turn is
  /// used once it is done, or a condition has failed; with what it is refused for its caller ends
  /// it. Null: it has none. Requires: `answer`.
  ClientTurn* turn = nullptr;
};

/// The clock of all these objects. Errors: unsupported (detail: the number, among the objects, of
/// one that is of another clock or of none).
[[nodiscard]] Result<memory::VersionClock*> clock_of(std::span<const ObjectSteps> objects);

/// Whether all that it writes is to be erased.
[[nodiscard]] bool only_erases(std::span<const ObjectSteps> objects);

/// Runs one. What fails after it was done fails in no way: its answer is made before.
/// Cost: of each key what its write costs; the structure locks of ordered maps.
/// Errors: clock_of()'s, key_too_long, value_too_long, wrong_shard, not_found (an object was
/// dropped; detail: its number among them), exhausted (see HashMap), out_of_memory,
/// too_many_participants, busy (others took its memory time and again), those of the sink. None of
/// them has changed anything, and none tells of what it has found: for that see Transacted.
/// Requires: the limits above; the objects are of this store. Objects are in no order, each once.
Result<Transacted> transact(tree::StoreCore& store, std::span<ObjectSteps> objects,
                            const TransactTerms& terms = {}) noexcept;

/// The same by a thread that may block: each attempt once no transaction that arrived before it has
/// a key of it (store/key_queues.hpp).
Result<Transacted> transact_in_order(tree::StoreCore& store, std::span<ObjectSteps> objects,
                                     const TransactTerms& terms = {}) noexcept;

/// Waits until what was done may be told. False: it never may.
[[nodiscard]] bool wait_for_release(memory::VersionClock& clock, std::uint64_t version);
/// The same of what a number came to before. `sink`: of its record.
[[nodiscard]] bool wait_for_release(const KeptAnswer& answer, catalog::RedoSink* sink);

}  // namespace espalier::store
