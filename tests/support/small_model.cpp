// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_model.hpp"

#include <algorithm>

namespace espalier::test {
namespace {

void sort_unique(std::vector<std::string_view>& all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

bool holds(const SlotTest& test, const SmallState& state) {
  const std::uint32_t value = state[test.slot];
  switch (test.is) {
    case SlotTest::Is::absent: return value == 0;
    case SlotTest::Is::present: return value != 0;
    case SlotTest::Is::equal: return value == test.value;
    case SlotTest::Is::other: return value != test.value;
  }
  return false;
}

// Walks the slots [begin, end) and compares what is present with what was delivered.
bool delivers(const CompiledOperation& operation, const SmallState& state, std::uint32_t begin) {
  const std::uint32_t end = std::max(begin, operation.end);
  std::size_t next = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::uint32_t slot = operation.reverse ? end - 1 - (i - begin) : i;
    if (state[slot] == 0) continue;
    if (operation.limit != 0 && next == operation.limit) return true;
    if (next == operation.delivered.size()) return false;
    if (operation.delivered[next] != std::pair(slot, state[slot])) return false;
    ++next;
  }
  return next == operation.delivered.size();
}

bool counts(const CompiledOperation& operation, const SmallState& state) {
  std::uint64_t items = 0;
  for (std::uint32_t i = operation.begin; i < operation.end; ++i) items += state[i] != 0 ? 1 : 0;
  return items == operation.counted;
}

}  // namespace

SmallModel::SmallModel(const History& history) {
  for (const auto& [key, value] : history.initial) {
    keys_.push_back(key);
    values_.push_back(value);
  }
  for (const Operation& operation : history.operations) collect(operation);
  sort_unique(keys_);
  sort_unique(values_);
  initial_.resize(keys_.size());
  for (const auto& [key, value] : history.initial) initial_[slot(key)] = number(value);
  compiled_.reserve(history.operations.size());
  for (const Operation& operation : history.operations) compiled_.push_back(compile(operation));
}

void SmallModel::collect(const Operation& operation) {
  const bool names_a_key = operation.kind != Kind::scan && operation.kind != Kind::count &&
                           operation.kind != Kind::batch && operation.kind != Kind::snapshot;
  if (names_a_key) keys_.push_back(operation.key);
  if (operation.value) values_.push_back(*operation.value);
  if (operation.seen) values_.push_back(*operation.seen);
  for (const ReadItem& item : operation.items) {
    keys_.push_back(item.key);
    values_.push_back(item.value);
  }
  for (const auto& write : operation.writes) {
    keys_.push_back(write.key);
    values_.push_back(write.value);
  }
  for (const auto& check : operation.conditions) {
    keys_.push_back(check.key);
    values_.push_back(check.value);
  }
}

std::uint32_t SmallModel::slot(std::string_view key) const {
  return static_cast<std::uint32_t>(std::lower_bound(keys_.begin(), keys_.end(), key) -
                                    keys_.begin());
}

std::uint32_t SmallModel::slot_above(std::string_view key) const {
  return static_cast<std::uint32_t>(std::upper_bound(keys_.begin(), keys_.end(), key) -
                                    keys_.begin());
}

std::uint32_t SmallModel::number(std::string_view value) const {
  return 1 + static_cast<std::uint32_t>(std::lower_bound(values_.begin(), values_.end(), value) -
                                        values_.begin());
}

void SmallModel::compile_batch(const Operation& operation, CompiledOperation& out) const {
  const auto test_of = [&](const WriteBatch::Check& check) {
    using Is = SlotTest::Is;
    constexpr Is kTests[] = {Is::absent, Is::absent, Is::present, Is::equal, Is::equal};
    return SlotTest{slot(check.key), kTests[static_cast<std::size_t>(check.kind)],
                    number(check.value)};
  };
  if (operation.failed_condition) {
    const WriteBatch::Check& check = operation.conditions[*operation.failed_condition];
    if (check.kind == ConditionKind::version) return;  // may fail for no visible reason
    SlotTest test = test_of(check);
    using Is = SlotTest::Is;
    constexpr Is kOpposites[] = {Is::present, Is::absent, Is::other, Is::equal};
    test.is = kOpposites[static_cast<std::size_t>(test.is)];
    out.tests.push_back(test);
    return;
  }
  for (const auto& check : operation.conditions) out.tests.push_back(test_of(check));
  if (operation.applied) return;
  for (const auto& write : operation.writes) {
    if (write.erase) {
      out.tests.push_back({slot(write.key), SlotTest::Is::absent, 0});
    } else {  // a batch that puts cannot fail to apply: two tests that no state passes
      out.tests.push_back({slot(write.key), SlotTest::Is::absent, 0});
      out.tests.push_back({slot(write.key), SlotTest::Is::present, 0});
    }
  }
}

void SmallModel::compile_range(const Operation& operation, CompiledOperation& out) const {
  using Reads = CompiledOperation::Reads;
  const bool floor = operation.kind == Kind::floor;
  const bool from_floor = floor || operation.options.from_floor;
  out.reads = from_floor ? Reads::from_floor : Reads::range;
  if (operation.kind == Kind::count) out.reads = Reads::count;
  out.begin = floor ? slot_above(operation.key) : slot(operation.key);
  out.floor_end = slot_above(operation.key);
  out.end = static_cast<std::uint32_t>(keys_.size());
  if (floor) {
    out.end = out.floor_end;
  } else if (!operation.high.empty()) {
    out.end = from_floor ? slot_above(operation.high) : slot(operation.high);
  }
  out.reverse = operation.options.reverse;
  out.limit = operation.options.limit;
  out.counted = operation.counted;
  for (const ReadItem& item : operation.items) {
    out.delivered.emplace_back(slot(item.key), number(item.value));
  }
}

CompiledOperation SmallModel::compile(const Operation& operation) const {
  CompiledOperation out;
  using Is = SlotTest::Is;
  switch (operation.kind) {
    case Kind::get:
      out.tests.push_back(operation.items.empty() ? SlotTest{slot(operation.key), Is::absent, 0}
                                                  : SlotTest{slot(operation.key), Is::equal,
                                                             number(operation.items[0].value)});
      break;
    case Kind::scan:
    case Kind::floor:
    case Kind::count: compile_range(operation, out); break;
    case Kind::batch: compile_batch(operation, out); break;
    case Kind::snapshot: break;
    default:
      out.tests.push_back({slot(operation.key), operation.existed ? Is::present : Is::absent, 0});
      if (operation.seen) {
        out.tests.push_back({slot(operation.key), Is::equal, number(*operation.seen)});
      }
      break;
  }
  for (const Effect& effect : effects(operation)) {
    out.assignments.emplace_back(slot(effect.key), effect.value ? number(*effect.value) : 0);
  }
  return out;
}

bool possible(const CompiledOperation& operation, const SmallState& state) {
  for (const SlotTest& test : operation.tests) {
    if (!holds(test, state)) return false;
  }
  switch (operation.reads) {
    case CompiledOperation::Reads::nothing: return true;
    case CompiledOperation::Reads::range: return delivers(operation, state, operation.begin);
    case CompiledOperation::Reads::count: return counts(operation, state);
    case CompiledOperation::Reads::from_floor: break;
  }
  std::uint32_t begin = operation.begin;
  for (std::uint32_t i = operation.floor_end; i-- > 0;) {
    if (state[i] == 0) continue;
    begin = i;
    break;
  }
  return delivers(operation, state, begin);
}

}  // namespace espalier::test
