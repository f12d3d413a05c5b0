// SPDX-License-Identifier: Apache-2.0
#include "tests/support/history.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace espalier::test {
namespace {

constexpr const char* kNames[] = {"get",   "put",  "insert", "update", "erase",   "modify",
                                  "batch", "scan", "floor",  "count",  "snapshot"};

std::string describe_batch(const Operation& operation) {
  std::string text;
  for (const auto& check : operation.conditions) {
    constexpr const char* kConditions[] = {"?", "absent", "present", "value", "version"};
    text += fmt::format(" if {} {}", test::quoted(check.key),
                        kConditions[static_cast<std::size_t>(check.kind)]);
    if (check.kind == ConditionKind::value) text += " " + test::quoted(check.value);
    if (check.kind == ConditionKind::version) text += fmt::format(" {}", check.version);
  }
  for (const auto& write : operation.writes) {
    text += write.erase
                ? fmt::format(" erase {}", test::quoted(write.key))
                : fmt::format(" put {}={}", test::quoted(write.key), test::quoted(write.value));
  }
  if (operation.failed_condition) text += fmt::format(", {} failed", *operation.failed_condition);
  return text;
}

std::string describe_question(const Operation& operation) {
  switch (operation.kind) {
    case Kind::batch: return describe_batch(operation);
    case Kind::snapshot: return {};
    case Kind::scan:
    case Kind::count: {
      const ScanOptions& options = operation.options;
      return fmt::format(" [{}, {}{}{}{}{}", test::quoted(operation.key),
                         test::quoted(operation.high), options.from_floor ? "] from floor" : ")",
                         options.reverse ? " reverse" : "", options.limit != 0 ? " limit " : "",
                         options.limit != 0 ? std::to_string(options.limit) : "");
    }
    default: break;
  }
  std::string text = " " + test::quoted(operation.key);
  if (operation.value) text += "=" + test::quoted(*operation.value);
  return text;
}

std::string describe_answer(const Operation& operation) {
  if (operation.refused) return "refused";
  switch (operation.kind) {
    case Kind::get:
    case Kind::floor:
    case Kind::scan: {
      if (operation.items.empty()) return "nothing";
      std::string text;
      for (const ReadItem& item : operation.items) {
        text += fmt::format("{}{}={}@{}", text.empty() ? "" : " ", test::quoted(item.key),
                            test::quoted(item.value), item.version);
      }
      return text;
    }
    case Kind::count: return std::to_string(operation.counted);
    case Kind::snapshot: return "taken";
    default: break;
  }
  std::string text = operation.applied ? fmt::format("applied @{}", operation.version)
                                       : std::string("not applied");
  if (operation.kind != Kind::batch && operation.existed) text += ", existed";
  if (operation.kind == Kind::modify) {
    text += ", saw " + (operation.seen ? test::quoted(*operation.seen) : std::string("nothing"));
  }
  return text;
}

// Items must ascend or descend within their range; the floor of a scan may lie below it.
std::optional<std::string> malformed_scan(const Operation& operation) {
  const ScanOptions& options = operation.options;
  if (options.limit != 0 && operation.items.size() > options.limit) {
    return "delivered more items than the limit";
  }
  for (std::size_t i = 0; i < operation.items.size(); ++i) {
    const std::string& key = operation.items[i].key;
    if (i > 0) {
      const std::string& before = operation.items[i - 1].key;
      if (options.reverse ? before <= key : before >= key) return "delivered items out of order";
    }
    if (!options.from_floor && key < operation.key) return "delivered an item below the range";
    const bool above = options.from_floor ? key > operation.high : key >= operation.high;
    if (!operation.high.empty() && above) return "delivered an item above the range";
  }
  if (options.from_floor) {
    const auto below = std::count_if(operation.items.begin(), operation.items.end(),
                                     [&](const ReadItem& i) { return i.key < operation.key; });
    if (below > 1) return "delivered two items below the low end";
  }
  return std::nullopt;
}

std::optional<std::string> malformed_write(const Operation& operation) {
  if (!operation.applied && operation.version != 0) return "has a version without having applied";
  if (operation.kind == Kind::batch) {
    if (operation.applied && operation.failed_condition) return "applied though a condition failed";
    if (operation.failed_condition && *operation.failed_condition >= operation.conditions.size()) {
      return "names a condition that was not given";
    }
    return std::nullopt;
  }
  switch (operation.kind) {
    case Kind::put:
      if (!operation.applied) return "a put did not apply";
      break;
    case Kind::insert:
      if (operation.applied == operation.existed) return "an insert applies if its key is absent";
      break;
    case Kind::update:
    case Kind::erase:
      if (operation.applied != operation.existed) return "applies only if its key is present";
      break;
    case Kind::modify:
      if (operation.existed != operation.seen.has_value()) return "existed and seen differ";
      if (operation.applied != (operation.value || operation.seen)) {
        return "a modify applies unless it leaves an absent key absent";
      }
      break;
    default: break;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Effect> effects(const Operation& operation) {
  std::vector<Effect> all;
  if (!operation.applied || operation.refused) return all;
  switch (operation.kind) {
    case Kind::put:
    case Kind::insert:
    case Kind::update:
    case Kind::modify: all.push_back({operation.key, operation.value}); break;
    case Kind::erase: all.push_back({operation.key, std::nullopt}); break;
    case Kind::batch:
      for (const auto& write : operation.writes) {
        const auto same = std::find_if(all.begin(), all.end(),
                                       [&](const Effect& e) { return e.key == write.key; });
        Effect& effect = same == all.end() ? all.emplace_back() : *same;
        effect.key = write.key;
        effect.value = write.erase ? std::nullopt : std::optional<std::string_view>(write.value);
      }
      break;
    default: break;
  }
  return all;
}

std::optional<std::string> malformed(const Operation& operation) {
  if (operation.invoked >= operation.responded) return "ended before it began";
  if (operation.refused) return std::nullopt;
  switch (operation.kind) {
    case Kind::get:
      if (operation.items.size() > 1) return "a get returned several items";
      if (!operation.items.empty() && operation.items[0].key != operation.key) {
        return "a get returned another key";
      }
      return std::nullopt;
    case Kind::floor:
      if (operation.items.size() > 1) return "a floor returned several items";
      if (!operation.items.empty() && operation.items[0].key > operation.key) {
        return "a floor returned a key above";
      }
      return std::nullopt;
    case Kind::scan: return malformed_scan(operation);
    case Kind::count:
    case Kind::snapshot: return std::nullopt;
    default: return malformed_write(operation);
  }
}

std::string quoted(std::string_view bytes) {
  constexpr std::size_t kShown = 24;
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  text += '"';
  if (bytes.size() > kShown) text += fmt::format("..({} bytes)", bytes.size());
  return text;
}

std::string describe(const Operation& operation) {
  std::string text =
      fmt::format("[{}, {}] thread {}: {}{} -> {}", operation.invoked, operation.responded,
                  operation.thread, kNames[static_cast<std::size_t>(operation.kind)],
                  describe_question(operation), describe_answer(operation));
  if (operation.read_version) {
    text += fmt::format(" at {}{}", *operation.read_version, operation.pinned ? " (pinned)" : "");
  }
  return text;
}

}  // namespace espalier::test
