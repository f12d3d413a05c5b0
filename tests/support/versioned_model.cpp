// SPDX-License-Identifier: Apache-2.0
#include "tests/support/versioned_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace espalier::test {
namespace {

template <class Changes>
auto last_change(const Changes& changes, Version version) {
  return std::partition_point(changes.begin(), changes.end(),
                              [&](const auto& c) { return c.version <= version; });
}

template <class Changes>
std::optional<std::string_view> value_at(const Changes& changes, Version version) {
  const auto after = last_change(changes, version);
  return after == changes.begin() ? std::nullopt : std::prev(after)->value;
}

}  // namespace

// Walks the keys of a range at one version.
class VersionedModel::Cursor {
 public:
  Cursor(const VersionedModel& model, const Operation& scan, Version version)
      : version_(version), reverse_(scan.options.reverse) {
    const Keys& keys = model.keys_;
    begin_ = keys.lower_bound(std::string_view(scan.key));
    end_ = keys.end();
    if (scan.options.from_floor) {
      const auto floor = model.floor_at(scan.key, version);
      if (floor != keys.end()) begin_ = floor;
    }
    if (!scan.high.empty()) {
      end_ = scan.options.from_floor ? keys.upper_bound(std::string_view(scan.high))
                                     : keys.lower_bound(std::string_view(scan.high));
    }
    // A range that is upside down is empty.
    const bool upside_down =
        begin_ == keys.end() || (end_ != keys.end() && end_->first <= begin_->first);
    if (upside_down) end_ = begin_;
    apply_pending();
  }

  [[nodiscard]] bool done() const { return begin_ == end_; }
  [[nodiscard]] std::string_view key() const { return here()->first; }
  void next() {
    drop();
    apply_pending();
  }

 private:
  [[nodiscard]] Keys::const_iterator here() const { return reverse_ ? std::prev(end_) : begin_; }
  void drop() { reverse_ ? static_cast<void>(--end_) : static_cast<void>(++begin_); }
  void apply_pending() {
    while (!done() && !value_at(here()->second, version_)) drop();
  }

  Keys::const_iterator begin_;
  Keys::const_iterator end_;
  Version version_;
  bool reverse_;
};

VersionedModel::VersionedModel(const History& history) {
  for (const auto& [key, value] : history.initial) {
    keys_[key].push_back({0, std::string_view(value)});
  }
  std::vector<const Operation*> writes;
  for (const Operation& operation : history.operations) {
    if (operation.applied && !operation.refused) writes.push_back(&operation);
  }
  std::sort(writes.begin(), writes.end(),
            [](const Operation* a, const Operation* b) { return a->version < b->version; });
  for (const Operation* write : writes) {
    for (const Effect& effect : effects(*write)) {
      keys_[effect.key].push_back({write->version, effect.value});
    }
    versions_.push_back(write->version);
  }
}

VersionedModel::State VersionedModel::at(std::string_view key, Version version) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return {};
  const auto after = last_change(found->second, version);
  if (after == found->second.begin()) return {};
  return {std::prev(after)->value, std::prev(after)->version};
}

Version VersionedModel::next_change(std::string_view key, Version version) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return kNever;
  const auto after = last_change(found->second, version);
  return after == found->second.end() ? kNever : after->version;
}

Fit VersionedModel::fit_item(const ReadItem& item, Version version) const {
  const State state = at(item.key, version);
  if (state.value != item.value) return Fit::not_before(next_change(item.key, version));
  if (item.version == 0) return Fit::yes();
  if (item.version > version) return Fit::not_before(item.version);
  // The item claims to be older than its value: no later version can make that right.
  return item.version < state.since ? Fit::not_before(kNever) : Fit::yes();
}

Fit VersionedModel::fit_presence(std::string_view key, bool present, Version version) const {
  if (at(key, version).value.has_value() == present) return Fit::yes();
  return Fit::not_before(next_change(key, version));
}

VersionedModel::Keys::const_iterator VersionedModel::floor_at(std::string_view key,
                                                              Version version) const {
  auto it = keys_.upper_bound(key);
  while (it != keys_.begin()) {
    --it;
    if (value_at(it->second, version)) return it;
  }
  return keys_.end();
}

Fit VersionedModel::fit_get(const Operation& operation, Version version) const {
  if (operation.items.empty()) return fit_presence(operation.key, false, version);
  return fit_item(operation.items[0], version);
}

// Of two different floors the larger one decides: as long as its state is what it is, the answer
// cannot become right.
Fit VersionedModel::fit_floor(const Operation& operation, Version version) const {
  const auto floor = floor_at(operation.key, version);
  if (operation.items.empty()) {
    return floor == keys_.end() ? Fit::yes() : Fit::not_before(next_change(floor->first, version));
  }
  const ReadItem& item = operation.items[0];
  if (floor != keys_.end() && floor->first > item.key) {
    return Fit::not_before(next_change(floor->first, version));
  }
  return fit_item(item, version);
}

Fit VersionedModel::fit_scan(const Operation& operation, Version version) const {
  Cursor cursor(*this, operation, version);
  // If the floor is above the high end, nothing is in the range, so a change of any key may make
  // the answer right.
  if (operation.options.from_floor && !operation.high.empty() && operation.high < operation.key) {
    return fit_upside_down(operation, version, cursor);
  }
  for (const ReadItem& item : operation.items) {
    if (!cursor.done() && cursor.key() != item.key) {
      // The key that comes first in the scan's order must change; up to the low end, where only a
      // floor can be, that is always the larger one.
      const bool floors = operation.options.from_floor && cursor.key() <= operation.key &&
                          item.key <= operation.key;
      const bool descending = operation.options.reverse || floors;
      const bool expected_first = descending ? cursor.key() > item.key : cursor.key() < item.key;
      if (expected_first) return Fit::not_before(next_change(cursor.key(), version));
      return Fit::not_before(next_change(item.key, version));
    }
    const Fit fit = fit_item(item, version);
    if (!fit.fits) return fit;
    if (cursor.done()) return Fit::not_before(next_write(version));
    cursor.next();
  }
  const bool limited =
      operation.options.limit != 0 && operation.items.size() == operation.options.limit;
  if (limited || cursor.done()) return Fit::yes();
  return Fit::not_before(next_change(cursor.key(), version));
}

Fit VersionedModel::fit_upside_down(const Operation& operation, Version version,
                                    Cursor& cursor) const {
  for (const ReadItem& item : operation.items) {
    const bool same = !cursor.done() && cursor.key() == item.key && fit_item(item, version).fits;
    if (!same) return Fit::not_before(next_write(version));
    cursor.next();
  }
  return cursor.done() ? Fit::yes() : Fit::not_before(next_write(version));
}

Version VersionedModel::next_write(Version version) const {
  const auto next = std::upper_bound(versions_.begin(), versions_.end(), version);
  return next == versions_.end() ? kNever : *next;
}

Fit VersionedModel::fit_count(const Operation& operation, Version version) const {
  std::uint64_t items = 0;
  for (Cursor cursor(*this, operation, version); !cursor.done(); cursor.next()) ++items;
  return items == operation.counted ? Fit::yes() : Fit::not_before(next_write(version));
}

bool VersionedModel::holds(const WriteBatch::Check& check, Version version) const {
  const State state = at(check.key, version);
  switch (check.kind) {
    case ConditionKind::none: return true;
    case ConditionKind::absent: return !state.value;
    case ConditionKind::present: return state.value.has_value();
    case ConditionKind::value: return state.value == check.value;
    case ConditionKind::version: return state.value == check.value && state.since <= check.version;
  }
  return false;
}

Fit VersionedModel::fit_batch(const Operation& operation, Version version) const {
  if (operation.failed_condition) {
    const WriteBatch::Check& check = operation.conditions[*operation.failed_condition];
    // A condition on a version may fail for no reason that a client can see.
    if (check.kind == ConditionKind::version || !holds(check, version)) return Fit::yes();
    return Fit::not_before(next_change(check.key, version));
  }
  // Nothing failed and nothing was applied: there was nothing to do.
  for (const WriteBatch::Check& check : operation.conditions) {
    if (!holds(check, version)) return Fit::not_before(next_change(check.key, version));
  }
  for (const WriteBatch::Write& write : operation.writes) {
    if (!write.erase) return Fit::not_before(kNever);
    const Fit fit = fit_presence(write.key, false, version);
    if (!fit.fits) return fit;
  }
  return Fit::yes();
}

Fit VersionedModel::fit(const Operation& operation, Version version) const {
  switch (operation.kind) {
    case Kind::get: return fit_get(operation, version);
    case Kind::floor: return fit_floor(operation, version);
    case Kind::scan: return fit_scan(operation, version);
    case Kind::count: return fit_count(operation, version);
    case Kind::batch: return fit_batch(operation, version);
    case Kind::snapshot: return Fit::yes();
    default: return fit_presence(operation.key, operation.existed, version);
  }
}

std::optional<std::string> VersionedModel::wrong_before(const Operation& write) const {
  const Version before = write.version - 1;
  if (write.kind == Kind::batch) {
    for (const WriteBatch::Check& check : write.conditions) {
      if (!holds(check, before)) {
        return fmt::format("its condition on {} did not hold", test::quoted(check.key));
      }
    }
    return std::nullopt;
  }
  const State state = at(write.key, before);
  if (state.value.has_value() != write.existed) {
    return fmt::format("its key was {} before", state.value ? "present" : "absent");
  }
  if (write.kind == Kind::modify && state.value != write.seen) {
    return fmt::format("its key had the value {} before",
                       state.value ? test::quoted(*state.value) : std::string("none"));
  }
  return std::nullopt;
}

}  // namespace espalier::test
