// SPDX-License-Identifier: Apache-2.0
// Histories written by hand, one line per operation, for tests of the checkers.
//
// Each call adds an operation that takes the time from `from` to `to`; the returned reference
// (valid until the next call) sets the fields that the line does not. Stamps must differ, as a
// clock's do.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/history.hpp"

namespace espalier::test {

struct Time {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

class Script {
 public:
  Operation& put(Time time, const char* key, const char* value, Version version,
                 bool existed = false) {
    return write(Kind::put, time, key, value, version, true, existed);
  }
  Operation& insert(Time time, const char* key, const char* value, Version version) {
    return write(Kind::insert, time, key, value, version, version != 0, version == 0);
  }
  Operation& update(Time time, const char* key, const char* value, Version version) {
    return write(Kind::update, time, key, value, version, version != 0, version != 0);
  }
  Operation& erase(Time time, const char* key, Version version) {
    return write(Kind::erase, time, key, std::nullopt, version, version != 0, version != 0);
  }
  Operation& modify(Time time, const char* key, std::optional<std::string> seen,
                    std::optional<std::string> value, Version version) {
    const bool existed = seen.has_value();
    Operation& operation =
        write(Kind::modify, time, key, std::move(value), version, version != 0, existed);
    operation.seen = std::move(seen);
    return operation;
  }
  Operation& batch(Time time, const WriteBatch& batch, Version version) {
    Operation& operation = add(Kind::batch, time, "");
    operation.writes = batch.writes();
    operation.conditions = batch.conditions();
    operation.version = version;
    operation.applied = version != 0;
    return operation;
  }

  /// `value` nullptr: nothing was found.
  Operation& get(Time time, const char* key, const char* value, Version version = 0) {
    return deliver(add(Kind::get, time, key), value == nullptr ? "" : key, value, version);
  }
  /// `found` nullptr: there is no floor.
  Operation& floor(Time time, const char* key, const char* found, const char* value) {
    return deliver(add(Kind::floor, time, key), found, value, 0);
  }
  using Items = std::initializer_list<std::pair<const char*, const char*>>;
  Operation& scan(Time time, const char* low, const char* high, Items items,
                  ScanOptions options = {}) {
    Operation& operation = add(Kind::scan, time, low);
    operation.high = high;
    operation.options = options;
    for (const auto& [key, value] : items) operation.items.push_back({key, value, 0});
    return operation;
  }
  Operation& count(Time time, const char* low, const char* high, std::uint64_t counted) {
    Operation& operation = add(Kind::count, time, low);
    operation.high = high;
    operation.counted = counted;
    return operation;
  }
  Operation& snapshot(Time time, Version version) {
    Operation& operation = add(Kind::snapshot, time, "");
    operation.read_version = version;
    return operation;
  }

  History history;

 private:
  Operation& add(Kind kind, Time time, const char* key) {
    Operation& operation = history.operations.emplace_back();
    operation.kind = kind;
    operation.thread = static_cast<std::uint32_t>(history.operations.size());
    operation.key = key;
    operation.invoked = time.from;
    operation.responded = time.to;
    return operation;
  }
  Operation& write(Kind kind, Time time, const char* key, std::optional<std::string> value,
                   Version version, bool applied, bool existed) {
    Operation& operation = add(kind, time, key);
    operation.value = std::move(value);
    operation.version = version;
    operation.applied = applied;
    operation.existed = existed;
    return operation;
  }
  static Operation& deliver(Operation& operation, const char* key, const char* value,
                            Version version) {
    if (value != nullptr) operation.items.push_back({key, value, version});
    return operation;
  }
};

}  // namespace espalier::test
