// SPDX-License-Identifier: Apache-2.0
// Samples of objects (wire/samples.hpp) as commands show them, of whatever kind they are: nothing
// here knows one.
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

/// A line of text with numbers in it. Between braces stand their names, of those with a label the
/// label's value behind a colon.
struct NumberLine {
  std::string_view text;
  bool is_news = false;  ///< it is left out where all its numbers are 0
};

/// Nothing where not all its numbers are told, or they are no news. `find`: the sample with this
/// name and value of a label, or null.
[[nodiscard]] std::optional<std::string> filled(
    const NumberLine& line,
    const std::function<const wire::Sample*(std::string_view, std::string_view)>& find);

/// Kind and name, and lines as those of its kind have them; of another kind a line for each sample:
/// name, value, help.
void print_object(std::ostream& out, const wire::SampledObject& object);

}  // namespace espalier::tools
