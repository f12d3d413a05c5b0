// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference_map.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace espalier::test {

const std::string* ReferenceMap::find(const std::string& key) const {
  const auto found = contents_.find(key);
  return found == contents_.end() ? nullptr : &found->second;
}

ReferenceMap::Range ReferenceMap::range(const Operation& operation) const {
  const bool from_floor = operation.kind == Kind::scan && operation.options.from_floor;
  Range range{contents_.lower_bound(operation.key), contents_.end()};
  if (from_floor) {
    const auto above = contents_.upper_bound(operation.key);
    range.begin = above == contents_.begin() ? above : std::prev(above);
  }
  if (!operation.high.empty()) {
    range.end =
        from_floor ? contents_.upper_bound(operation.high) : contents_.lower_bound(operation.high);
  }
  const bool empty = range.begin == contents_.end() ||
                     (range.end != contents_.end() && range.end->first <= range.begin->first);
  if (empty) range.end = range.begin;
  return range;
}

void ReferenceMap::answer_scan(Operation& operation) const {
  const Range all = range(operation);
  for (auto it = all.begin; it != all.end; ++it) {
    operation.items.push_back({it->first, it->second, 0});
  }
  if (operation.options.reverse) std::reverse(operation.items.begin(), operation.items.end());
  const std::uint64_t limit = operation.options.limit;
  if (limit != 0 && operation.items.size() > limit) operation.items.resize(limit);
}

bool ReferenceMap::holds(const WriteBatch::Check& check) const {
  const std::string* value = find(check.key);
  switch (check.kind) {
    case ConditionKind::none: return true;
    case ConditionKind::absent: return value == nullptr;
    case ConditionKind::present: return value != nullptr;
    case ConditionKind::value:
    case ConditionKind::version: return value != nullptr && *value == check.value;
  }
  return false;
}

// Of several conditions that fail, any may be named.
void ReferenceMap::answer_batch(Operation& operation) const {
  if (operation.failed_condition && !holds(operation.conditions[*operation.failed_condition])) {
    return;
  }
  operation.failed_condition.reset();
  for (std::uint32_t i = 0; i < operation.conditions.size(); ++i) {
    if (holds(operation.conditions[i])) continue;
    operation.failed_condition = i;
    break;
  }
  operation.applied = !operation.failed_condition;
}

Operation ReferenceMap::answered(Operation question) const {
  Operation& operation = question;
  operation.items.clear();
  operation.seen.reset();
  const std::string* value = find(operation.key);
  operation.existed = false;
  operation.applied = false;
  operation.version = 0;
  const bool writes_key = operation.kind == Kind::put || operation.kind == Kind::insert ||
                          operation.kind == Kind::update || operation.kind == Kind::erase ||
                          operation.kind == Kind::modify;
  if (writes_key) operation.existed = value != nullptr;
  switch (operation.kind) {
    case Kind::get:
      if (value != nullptr) operation.items.push_back({operation.key, *value, 0});
      break;
    case Kind::put: operation.applied = true; break;
    case Kind::insert: operation.applied = value == nullptr; break;
    case Kind::update:
    case Kind::erase: operation.applied = value != nullptr; break;
    case Kind::modify:
      if (value != nullptr) operation.seen = *value;
      operation.applied = operation.value || operation.seen;
      break;
    case Kind::batch: answer_batch(operation); break;
    case Kind::scan: answer_scan(operation); break;
    case Kind::floor: {
      const auto above = contents_.upper_bound(operation.key);
      if (above == contents_.begin()) break;
      const auto& [key, found] = *std::prev(above);
      operation.items.push_back({key, found, 0});
      break;
    }
    case Kind::count: {
      const Range all = range(operation);
      operation.counted = static_cast<std::uint64_t>(std::distance(all.begin, all.end));
      break;
    }
    case Kind::snapshot: break;
  }
  return question;
}

void ReferenceMap::apply(const Operation& operation) {
  for (const Effect& effect : effects(operation)) {
    std::string key(effect.key);
    if (effect.value) {
      contents_[std::move(key)] = std::string(*effect.value);
    } else {
      contents_.erase(key);
    }
  }
}

std::optional<std::string> ReferenceMap::follow(const Operation& operation) {
  if (operation.refused) return describe(operation) + "\n  was refused";
  const Operation right = answered(operation);
  // A condition on a version may fail for no visible reason.
  const bool spurious =
      operation.failed_condition &&
      operation.conditions.at(*operation.failed_condition).kind == ConditionKind::version;
  if (!spurious && !same_answer(operation, right)) {
    return describe(operation) + "\n  should be\n  " + describe(right);
  }
  apply(operation);
  return std::nullopt;
}

bool same_answer(const Operation& a, const Operation& b) {
  const auto same_item = [](const ReadItem& x, const ReadItem& y) {
    return x.key == y.key && x.value == y.value;
  };
  return a.refused == b.refused && a.applied == b.applied && a.existed == b.existed &&
         a.seen == b.seen && a.failed_condition == b.failed_condition && a.counted == b.counted &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_item);
}

}  // namespace espalier::test
