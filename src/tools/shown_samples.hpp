// SPDX-License-Identifier: Apache-2.0
// Samples of objects (wire/samples.hpp) as commands show them, of whatever kind they are: nothing
// here knows one.
//
// Invariant: every byte that comes from a node is made printable here, or JSON.
// Thread: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

/// Kind and name, and a line for each sample: name, value, help.
void print_object(std::ostream& out, const wire::SampledObject& object);

}  // namespace espalier::tools
