// SPDX-License-Identifier: Apache-2.0
// Transactions over several ordered maps and hash maps of one store or node.
//
//   Transaction move;
//   move.only_if_value("accounts", "ann", "70").put("accounts", "ann", "60")
//       .put("ledger", "2026-11-29/1", "ann pays bob 10").get("accounts", "bob");
//   auto done = store.transact(move);   // a Result<Transacted>
//
// Transactions name their maps, because a node knows none of this process's handles. For each key,
// reads and conditions come before writes, in whatever order they were added; the last of several
// writes of a key counts. Ranges cannot be read.
//
// On a node a transaction takes effect exactly once, even if the connection is lost: the store
// numbers each writing transaction, and retries it by its number if no answer arrived. A program
// that must know after its own restart whether a transaction was done assigns the numbers itself:
//
//   NumberedClient client = *store.make_numbered_client();  // once; persists client.id
//   ...                                                     // persists client.next and move
//   auto done = store.transact(move, client);
//
// After a restart it retries the same transaction by the same number, and gets the first answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/condition.hpp"
#include "espalier/map.hpp"

namespace espalier {

/// The steps of a transaction.
/// Cost: copies its arguments.
/// Thread: one at a time.
class Transaction {
 public:
  /// Reads a key as it is before the transaction's writes; the result is in Transacted::found.
  Transaction& get(std::string_view map, std::string_view key);
  Transaction& put(std::string_view map, std::string_view key, std::string_view value);
  Transaction& erase(std::string_view map, std::string_view key);

  // Conditions: if one fails, nothing is read or written.
  Transaction& only_if_absent(std::string_view map, std::string_view key);
  Transaction& only_if_present(std::string_view map, std::string_view key);
  Transaction& only_if_value(std::string_view map, std::string_view key, std::string_view value);
  /// May fail spuriously on an ordered map: WriteBatch::only_if_version.
  Transaction& only_if_version(std::string_view map, std::string_view key, Version version);

  void clear();

  enum class StepKind : std::uint8_t { get = 1, check = 2, put = 3, erase = 4 };
  struct Step {
    StepKind kind = StepKind::get;
    std::uint8_t map = 0;  // index into maps()
    ConditionKind condition = ConditionKind::none;
    Version version = 0;
    std::string key;
    std::string value;  // for a put or a condition
  };
  /// The maps that it names, in the order of first use.
  [[nodiscard]] const std::vector<std::string>& maps() const { return maps_; }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// Whether it names more maps than a transaction may have keys; such a transaction is refused.
  [[nodiscard]] bool too_many_maps() const { return too_many_maps_; }

 private:
  Step& add(StepKind kind, std::string_view map, std::string_view key);

  std::vector<std::string> maps_;
  std::vector<Step> steps_;
  bool too_many_maps_ = false;
};

/// The result of a transaction.
struct Transacted {
  Version version = 0;  ///< the version of all its writes; 0: it has none
  /// Results of its gets, in the order in which they were added.
  std::vector<std::optional<Found>> found{};
  /// False: the transaction was done by an earlier request, and what it read then is no longer
  /// kept, because it exceeded 4 KiB or the space for its clients' answers; `found` is empty.
  bool found_is_known = true;
};

/// A client whose transactions are numbered; each number is done at most once. A program may
/// persist both fields over its restart. A node keeps the answers of 256 numbers until they are
/// acknowledged, also over its own restart and in a chain; each next number acknowledges the
/// previous ones. A node keeps 128 clients for each principal, and evicts the least recently used
/// one for a new one.
struct NumberedClient {
  /// Assigned by the store. It is a capability: any client that knows it can request its answers.
  std::uint64_t id = 0;
  /// The number of the next transaction: increases by one with each answer.
  std::uint64_t next = 1;
};

}  // namespace espalier
