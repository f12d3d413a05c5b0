// SPDX-License-Identifier: Apache-2.0
// The history of a map as its clients saw it: operations with their arguments, answers, and times
// of invocation and response.
//
// A history carries all that a checker needs and nothing of the map that it came from, so checkers
// can be tested with histories written by hand.
//
// Time is a counter that all threads share. An operation is stamped before its call (`invoked`) and
// after its return (`responded`): operation a precedes b in real time if a.responded < b.invoked.
// An order that such stamps show did happen; others that happened may be missed, so a checker may
// accept too much because of that, but never refuses a correct history.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "espalier/map.hpp"

namespace espalier::test {

enum class Kind : std::uint8_t {
  get,
  put,
  insert,
  update,
  erase,
  modify,
  batch,
  scan,
  floor,
  count,
  snapshot,  ///< taking one: has only a read version
};

/// An item that a read returned.
struct ReadItem {
  std::string key;
  std::string value;
  Version version = 0;  ///< 0: the call does not return it

  friend bool operator==(const ReadItem&, const ReadItem&) = default;
};

/// One operation with its answer.
struct Operation {
  Kind kind = Kind::get;
  std::uint32_t thread = 0;
  std::uint64_t invoked = 0;
  std::uint64_t responded = 0;

  // The request.
  std::string key;                        ///< scan, count: the low end
  std::string high;                       ///< scan, count
  std::optional<std::string> value;       ///< written; modify: what `change` returned last
  ScanOptions options;                    ///< scan
  std::vector<WriteBatch::Write> writes;  ///< batch
  /// batch; a condition on a version has in `value` what was read with that version
  std::vector<WriteBatch::Check> conditions;

  // The answer.
  bool refused = false;  ///< an error that promises that nothing was changed, e.g. out_of_memory
  bool applied = false;
  bool existed = false;                           ///< single-key writes
  std::optional<std::string> seen;                ///< modify: the last input of `change`
  std::optional<std::uint32_t> failed_condition;  ///< batch
  std::vector<ReadItem> items;                    ///< get, floor: none or one; scan
  std::uint64_t counted = 0;                      ///< count
  Version version = 0;                            ///< of the write; 0 if nothing was applied
  std::optional<Version> read_version;            ///< of reads, if the call returns it
  bool pinned = false;  ///< read from a snapshot: right at read_version, at any time
};

using Contents = std::map<std::string, std::string>;

/// A history and the map's content before it.
struct History {
  Contents initial;
  Version initial_version = 0;
  std::vector<Operation> operations;
};

/// The effect of an operation on one key: its new value, or an erase.
struct Effect {
  std::string_view key;
  std::optional<std::string_view> value;
};

/// The effects of an operation, one for each key; empty if it applied nothing. They point into it.
std::vector<Effect> effects(const Operation& operation);

/// Whether two operations are ordered by real time.
[[nodiscard]] inline bool precedes(const Operation& a, const Operation& b) {
  return a.responded < b.invoked;
}

/// What is wrong with an operation by itself, whatever the map's content: items out of order or
/// outside the range, a version without an effect, an answer of another operation.
std::optional<std::string> malformed(const Operation& operation);

/// One line for people, with long and binary strings shortened.
std::string describe(const Operation& operation);
/// A key or value for people: printable, quoted, at most about 24 characters.
std::string quoted(std::string_view bytes);

}  // namespace espalier::test
