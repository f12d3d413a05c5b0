// SPDX-License-Identifier: Apache-2.0
#include "node/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "node/metric_lines.hpp"
#include "node/node_number.hpp"
#include "node/sample_metrics.hpp"

namespace espalier::node {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr std::string_view kNanoseconds = "_nanoseconds";

bool is_of(const wire::Sample& sample, std::string_view name, std::string_view label_value) {
  if (sample.name != name) return false;
  return sample.labels.empty() ? label_value.empty() : sample.labels.front().value == label_value;
}

// For names in this program: an unknown one is a bug.
const NodeNumber& row_of(std::string_view name, std::string_view label_value) {
  const auto row = std::ranges::find_if(node_numbers(), [&](const NodeNumber& number) {
    return number.name == name && number.label_value == label_value && number.read != nullptr;
  });
  ESPALIER_ASSERT(row != node_numbers().end());
  return *row;
}

void write_sample(MetricLines& lines, const NodeNumber& number, std::uint64_t value) {
  const bool is_time = number.name.ends_with(kNanoseconds);
  const double seconds = static_cast<double>(value) / kNsPerSecond;
  if (number.labels.empty()) return is_time ? lines.add(seconds) : lines.add(value);
  lines.add(value, {{number.labels, number.label_value}});
}

}  // namespace

const wire::Sample* NodeNumbers::sample(std::string_view name, std::string_view label_value) const {
  const auto found = std::ranges::find_if(
      samples, [&](const wire::Sample& sample) { return is_of(sample, name, label_value); });
  return found == samples.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> NodeNumbers::find(std::string_view name,
                                               std::string_view label_value) const {
  const wire::Sample* const found = sample(name, label_value);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::uint64_t NodeNumbers::value(std::string_view name, std::string_view label_value) const {
  static_cast<void>(row_of(name, label_value));
  return find(name, label_value).value_or(0);
}

void NodeNumbers::set(std::string_view name, std::uint64_t value, std::string_view label_value) {
  wire::Sample made = sample_of(row_of(name, label_value), value);
  std::erase_if(samples,
                [&](const wire::Sample& other) { return is_of(other, name, label_value); });
  samples.push_back(std::move(made));
}

std::string metric_name(const NodeNumber& number) {
  std::string name = "espalier_" + std::string(number.name);
  if (number.name.ends_with(kNanoseconds)) {
    name.resize(name.size() - kNanoseconds.size());
    name += "_seconds";
  }
  return number.type == "counter" ? name + "_total" : name;
}

wire::Sample sample_of(const NodeNumber& number, std::uint64_t value) {
  wire::Sample sample;
  sample.name = number.name;
  for (const std::string_view unit : {"bytes", "nanoseconds"}) {
    if (wire::ends_with_unit(number.name, unit)) sample.unit = unit;
  }
  sample.help = number.help.substr(0, wire::kSampleTextBytesMax);
  sample.type = number.type == "counter" ? wire::SampleType::counter : wire::SampleType::gauge;
  if (!number.label_value.empty()) {
    sample.labels.push_back({std::string(number.labels), std::string(number.label_value)});
  }
  sample.value = value;
  return sample;
}

std::string metrics_text(const NodeNumbers& numbers) {
  std::string text;
  std::string_view last;
  for (const NodeNumber& number : node_numbers()) {
    const std::string name = metric_name(number);
    if (number.name != last) {
      text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, number.help, name, number.type);
    }
    last = number.name;
    MetricLines lines(text, name);
    if (number.write != nullptr) {
      number.write(lines, numbers);
    } else if (const auto value = numbers.find(number.name, number.label_value)) {
      write_sample(lines, number, *value);
    }
  }
  append_sample_metrics(text, numbers.sampled);
  return text;
}

}  // namespace espalier::node
