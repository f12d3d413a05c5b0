// SPDX-License-Identifier: Apache-2.0
// Transactions over several ordered maps and hash maps of one store or node.
//
//   Transaction move;
//   move.only_if_value("accounts", "ann", "70").put("accounts", "ann", "60")
//       .put("ledger", "2026-11-29/1", "ann pays bob 10").get("accounts", "bob");
//   auto done = store.transact(move);   // a Result<Transacted>
//
// Maps are named, for a transaction may go to a node that has none of this process's handles. Of a
// key reads and conditions come before writes, in whatever order they were added; the last of
// several writes of a key counts. Ranges cannot be read.
//
// On a node a transaction is done once, whatever becomes of the connection: a store numbers those
// that write, and asks for one again by its number where it got no answer. A program that is to
// know after its own restart whether a transaction was done numbers them itself:
//
//   NumberedClient client = *store.make_numbered_client();  // once; keeps client.id
//   ...                                                     // keeps client.next, and what it does
//   auto done = store.transact(move, client);
//
// After a restart it asks for the same again by the same number, and gets the first answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/condition.hpp"
#include "espalier/map.hpp"

namespace espalier {

/// What a transaction is to do. Cost: copies what it is given.
/// Thread: one at a time.
class Transaction {
 public:
  /// Reads a key as it is before the transaction's writes: Transacted::found.
  Transaction& get(std::string_view map, std::string_view key);
  Transaction& put(std::string_view map, std::string_view key, std::string_view value);
  Transaction& erase(std::string_view map, std::string_view key);

  // Conditions: if one fails nothing is read or written.
  Transaction& only_if_absent(std::string_view map, std::string_view key);
  Transaction& only_if_present(std::string_view map, std::string_view key);
  Transaction& only_if_value(std::string_view map, std::string_view key, std::string_view value);
  /// May fail spuriously on an ordered map: WriteBatch::only_if_version.
  Transaction& only_if_version(std::string_view map, std::string_view key, Version version);

  void clear();

  enum class StepKind : std::uint8_t { get = 1, check = 2, put = 3, erase = 4 };
  struct Step {
    StepKind kind = StepKind::get;
    std::uint8_t map = 0;  // which of maps()
    ConditionKind condition = ConditionKind::none;
    Version version = 0;
    std::string key;
    std::string value;  // of a put, or of a condition
  };
  /// The maps that it names, in the order in which they were first named.
  [[nodiscard]] const std::vector<std::string>& maps() const { return maps_; }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// Whether it names more maps than a transaction may have keys: then it is refused.
  [[nodiscard]] bool too_many_maps() const { return too_many_maps_; }

 private:
  Step& add(StepKind kind, std::string_view map, std::string_view key);

  std::vector<std::string> maps_;
  std::vector<Step> steps_;
  bool too_many_maps_ = false;
};

/// What a transaction has done.
struct Transacted {
  Version version = 0;  ///< of its writes, which is that of each of them; 0: it has none
  /// Of each of its gets, in the order in which they were added.
  std::vector<std::optional<Found>> found{};
  /// False: it was done when it was asked for before, and what it had read then is not known any
  /// more, for that had more than 4 KiB, or its clients have too much of it; `found` is of nothing.
  bool found_is_known = true;
};

/// A client whose transactions have numbers, each of which is done once. A program may keep both
/// over its restart. A node keeps the answers of 256 numbers until they are acknowledged, also over
/// its own restart and in a chain: here that is done by the next number. It knows 128 clients of
/// those who ask under one name, and forgets the one that was heard of least lately for a new one.
struct NumberedClient {
  /// As the store gave it. Who knows it can ask for its answers.
  std::uint64_t id = 0;
  /// The number of the next transaction: one more with each that was answered.
  std::uint64_t next = 1;
};

}  // namespace espalier
