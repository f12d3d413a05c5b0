// SPDX-License-Identifier: Apache-2.0
// The writes and conditions of a batch as a message carries them: each is a BatchEntry followed by
// its key and its value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "espalier/types.hpp"
#include "wire/message.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::tree {

/// One write or condition. Views point into the message or into the caller's memory.
struct BatchStep {
  wire::BatchKind kind = wire::BatchKind::invalid;
  std::string_view key{};
  std::string_view value{};  ///< of a put
  Condition condition{};     ///< of a check
};

/// Appends a step. Requires: its lengths are within a map's limits.
inline void append_step(std::string& to, const BatchStep& step) {
  const bool checks = step.kind == wire::BatchKind::check;
  const std::string_view value = checks ? step.condition.value : step.value;
  wire::BatchEntry entry{};
  entry.version = step.condition.version;
  entry.value_bytes = static_cast<std::uint32_t>(value.size());
  entry.key_bytes = static_cast<std::uint16_t>(step.key.size());
  entry.kind = static_cast<std::uint8_t>(step.kind);
  entry.condition = static_cast<std::uint8_t>(step.condition.kind);
  to += base::bytes_of(entry);
  to += step.key;
  to += value;
}

/// Takes the next step. Returns nothing if the rest is too short, the kind is unknown, or the
/// condition does not belong to the kind.
[[nodiscard]] inline std::optional<BatchStep> take_step(wire::PayloadReader& reader) {
  const auto entry = reader.take<wire::BatchEntry>();
  BatchStep step;
  step.kind = static_cast<wire::BatchKind>(entry.kind);
  step.key = reader.text(entry.key_bytes);
  step.value = reader.text(entry.value_bytes);
  const auto condition = wire::condition_kind(entry.condition);
  const bool known = entry.kind >= static_cast<std::uint8_t>(wire::BatchKind::check) &&
                     entry.kind <= static_cast<std::uint8_t>(wire::BatchKind::erase);
  if (!reader.good() || !condition || !known) return std::nullopt;
  const bool checks = step.kind == wire::BatchKind::check;
  if (checks == (*condition == ConditionKind::none)) return std::nullopt;
  if (checks) step.condition = {*condition, entry.version, step.value};
  return step;
}

}  // namespace espalier::tree
