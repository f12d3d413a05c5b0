// SPDX-License-Identifier: Apache-2.0
#include "tools/shown_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "cmdline/text_codec.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

constexpr NumberLine kMapLines[] = {
    {"items       {items}"},
    {"height      {height} ({leaves} leaves, {interior_nodes} interior nodes)"},
    {"memory      {node_bytes} in nodes, {value_bytes} in values beside them, {retired_bytes} "
     "retired"},
    {"history     {splits} splits, {redistributions} redistributions, {merges} node merges, "
     "{log_merges} log merges"},
    {"versions    {read_version} read, {write_version} written, {snapshots} snapshots"},
    {"feed        {feed_followers} followers, {feed_entries} moves told, {feed_gaps} gaps", true},
};
constexpr NumberLine kTableLines[] = {
    {"rows        {rows} of {row_bytes}"},
    {"memory      {memory_bytes} in {pages} pages"},
    {"queries     {queries_running} running, {queries_waiting} waiting, {queries_ended} ended, "
     "{queries_failed} failed, {queries_refused} refused"},
    {"read        {read_rows} rows, {read_bytes}; sent {sent_rows} rows, {sent_bytes}"},
};
constexpr NumberLine kSequencerLines[] = {
    {"epoch       {epoch}, from {first}, next {next}"},
    {"asked       {requests} times, answered by {adds} adds"},
    {"sealed      its epoch has ended ({sealed})", true},
    {"overwritten it gives no more numbers ({overwritten})", true},
};

/// Of a kind whose samples are shown one by one: none.
std::span<const NumberLine> lines_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::map: return kMapLines;
    case ObjectKind::table: return kTableLines;
    case ObjectKind::sequencer: return kSequencerLines;
    default: return {};
  }
}

}  // namespace

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

std::optional<std::string> filled(
    const NumberLine& line,
    const std::function<const wire::Sample*(std::string_view, std::string_view)>& find) {
  std::string text;
  bool is_news = false;
  for (std::string_view rest = line.text; !rest.empty();) {
    const std::size_t open = rest.find('{');
    text += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open + 1);
    const std::size_t end = rest.find('}');
    const std::string_view wanted = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::size_t colon = wanted.find(':');
    const wire::Sample* const sample =
        find(wanted.substr(0, colon),
             colon == std::string_view::npos ? std::string_view() : wanted.substr(colon + 1));
    if (sample == nullptr) return std::nullopt;
    is_news = is_news || sample->value != 0;
    text += shown_value(*sample);
  }
  if (line.is_news && !is_news) return std::nullopt;
  return text;
}

void print_object(std::ostream& out, const wire::SampledObject& object) {
  // As wide as the names of other objects' numbers are; longer ones move the column.
  std::size_t width = 11;
  std::size_t value_width = 0;
  for (const wire::Sample& sample : object.samples) {
    if (!lines_of(object.kind).empty()) break;
    width = std::max(width, shown_name(sample).size());
    value_width = std::max(value_width, shown_value(sample).size());
  }
  out << fmt::format("{:<{}} {}\n", shown_kind(object), width, cmdline::escaped(object.name));
  if (const auto lines = lines_of(object.kind); !lines.empty()) {
    for (const NumberLine& line : lines) {
      const auto text = filled(line, [&](std::string_view name, std::string_view) {
        return wire::find_sample(object, name);
      });
      if (text) out << *text << '\n';
    }
    return;
  }
  for (const wire::Sample& sample : object.samples) {
    const std::string help = cmdline::escaped(sample.help);
    const std::string value = shown_value(sample);
    out << fmt::format("{:<{}} {:<{}}", shown_name(sample), width, value,
                       help.empty() ? value.size() : value_width);
    out << (help.empty() ? "" : "  ") << help << '\n';
  }
}

}  // namespace espalier::tools
