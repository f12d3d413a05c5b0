// SPDX-License-Identifier: Apache-2.0
#include "tools/shown_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cmdline/text_codec.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {

std::string shown_kind(ObjectKind kind, std::string_view kind_name) {
  if (!kind_name.empty()) return cmdline::escaped(kind_name);
  return fmt::format("kind {}", static_cast<int>(kind));
}

std::string shown_name(const wire::Sample& sample) {
  std::string shown = cmdline::escaped(sample.name);
  char before = '{';
  for (const wire::SampleLabel& label : sample.labels) {
    shown += std::exchange(before, ',');
    shown.append(cmdline::escaped(label.name)).append("=").append(cmdline::escaped(label.value));
  }
  if (!sample.labels.empty()) shown += '}';
  return shown;
}

std::string shown_value(const wire::Sample& sample) {
  if (sample.unit == "bytes") return format_bytes(sample.value);
  if (sample.unit == "nanoseconds") return format_nanoseconds(static_cast<double>(sample.value));
  return format_count(sample.value);
}

nlohmann::ordered_json sample_json(const wire::Sample& sample) {
  nlohmann::ordered_json json;
  set_bytes(json, "name", sample.name);
  json["type"] = sample.type == wire::SampleType::counter ? "counter" : "gauge";
  if (!sample.unit.empty()) set_bytes(json, "unit", sample.unit);
  set_bytes(json, "help", sample.help);
  if (!sample.labels.empty()) {
    auto& labels = json["labels"] = nlohmann::ordered_json::object();
    for (const wire::SampleLabel& label : sample.labels)
      set_bytes(labels, cmdline::escaped(label.name), label.value);
  }
  json["value"] = sample.value;
  return json;
}

nlohmann::ordered_json object_json(const wire::SampledObject& object) {
  nlohmann::ordered_json json;
  json["kind"] = shown_kind(object);
  set_bytes(json, "name", object.name);
  json["id"] = object.id;
  json["samples"] = nlohmann::ordered_json::array();
  for (const wire::Sample& sample : object.samples) json["samples"].push_back(sample_json(sample));
  return json;
}

void print_object(std::ostream& out, const wire::SampledObject& object) {
  // As wide as the names of other objects' numbers are; longer ones move the column.
  std::size_t width = 11;
  std::size_t value_width = 0;
  for (const wire::Sample& sample : object.samples) {
    width = std::max(width, shown_name(sample).size());
    value_width = std::max(value_width, shown_value(sample).size());
  }
  out << fmt::format("{:<{}} {}\n", shown_kind(object), width, cmdline::escaped(object.name));
  for (const wire::Sample& sample : object.samples) {
    const std::string help = cmdline::escaped(sample.help);
    const std::string value = shown_value(sample);
    out << fmt::format("{:<{}} {:<{}}", shown_name(sample), width, value,
                       help.empty() ? value.size() : value_width);
    out << (help.empty() ? "" : "  ") << help << '\n';
  }
}

}  // namespace espalier::tools
