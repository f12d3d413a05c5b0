// SPDX-License-Identifier: Apache-2.0
#include "node/sample_metrics.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "node/config_text.hpp"
#include "node/metrics.hpp"
#include "node/node_number.hpp"

namespace espalier::node {
namespace {

struct Family {
  wire::SampleType type = wire::SampleType::invalid;
  std::string help;
  std::map<std::string, std::uint64_t> values;  // by labels, as printed
};

// Help text ends with its line, and a backslash begins an escape.
std::string help_text(std::string_view help) {
  std::string text;
  for (const char c : printable(help)) {
    if (c == '\\') text += c;
    text += c;
  }
  return text.empty() ? "A number that its kind does not explain." : text;
}

void append_label(std::string& to, std::string_view name, std::string_view value) {
  if (!to.empty()) to += ',';
  to.append(name).append("=\"");
  append_escaped(to, shown_name(value));
  to += '"';
}

bool is_of_the_table(const std::string& name) {
  static const std::set<std::string> kNames = [] {
    std::set<std::string> names;
    for (const NodeNumber& number : node_numbers()) names.insert(metric_name(number));
    return names;
  }();
  return kNames.contains(name);
}

}  // namespace

std::string metric_name(const wire::Sample& sample, std::string_view kind_word) {
  const bool is_of_feed = kind_word == name(ObjectKind::map) && sample.name.starts_with("feed_");
  return fmt::format("espalier_{}{}{}", is_of_feed ? "" : std::string(kind_word) + '_', sample.name,
                     sample.type == wire::SampleType::counter ? "_total" : "");
}

void append_sample_metrics(std::string& page, const wire::SampledObjects& sampled) {
  std::map<std::string, Family> families;
  for (const wire::SampledObject& object : sampled.objects) {
    const std::string word = wire::kind_word(object);
    for (const wire::Sample& sample : object.samples) {
      const std::string name = metric_name(sample, word);
      if (is_of_the_table(name)) continue;
      const auto [at, is_new] = families.try_emplace(name);
      Family& family = at->second;
      if (is_new) {
        family.type = sample.type;
        family.help = help_text(sample.help);
      }
      std::string labels;
      append_label(labels, word, object.name);
      for (const wire::SampleLabel& label : sample.labels) {
        append_label(labels, label.name, label.value);
      }
      family.values.try_emplace(std::move(labels), sample.value);
    }
  }
  for (const auto& [name, family] : families) {
    page += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family.help, name,
                        family.type == wire::SampleType::counter ? "counter" : "gauge");
    for (const auto& [labels, value] : family.values) {
      page += fmt::format("{}{{{}}} {}\n", name, labels, value);
    }
  }
}

}  // namespace espalier::node
