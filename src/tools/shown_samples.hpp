// SPDX-License-Identifier: Apache-2.0
// Formats samples of objects (wire/samples.hpp) for commands, independently of their kind.
//
// Invariant: every byte that comes from a node is made printable here, or JSON.
// Thread: any.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "wire/samples.hpp"

namespace espalier::tools {

/// "hash", or "kind 200" for one without a name: a later version's.
[[nodiscard]] std::string shown_kind(ObjectKind kind, std::string_view kind_name);
[[nodiscard]] inline std::string shown_kind(const wire::SampledObject& object) {
  return shown_kind(object.kind, object.kind_name);
}

/// "lookups", or "queued_bytes{queue=in}".
[[nodiscard]] std::string shown_name(const wire::Sample& sample);

/// With its unit: "12.0 KiB", "1,234".
[[nodiscard]] std::string shown_value(const wire::Sample& sample);

[[nodiscard]] nlohmann::ordered_json sample_json(const wire::Sample& sample);
[[nodiscard]] nlohmann::ordered_json object_json(const wire::SampledObject& object);

/// A line of text with numbers. Names stand between braces, with a label's value after a colon.
struct NumberLine {
  std::string_view text;
  bool is_news = false;  ///< omitted if all its numbers are 0
};

/// Nullopt if a number is missing, or the line is omitted. `find`: the sample with this name and
/// label value, or null.
[[nodiscard]] std::optional<std::string> filled(
    const NumberLine& line,
    const std::function<const wire::Sample*(std::string_view, std::string_view)>& find);

/// Kind and name, and the lines of its kind; for another kind a line for each sample: name, value,
/// help.
void print_object(std::ostream& out, const wire::SampledObject& object);

}  // namespace espalier::tools
