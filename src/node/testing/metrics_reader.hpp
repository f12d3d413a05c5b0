// SPDX-License-Identifier: Apache-2.0
// Reads what metrics_text() writes, for tests, and more strictly than Prometheus does: all that
// its format and the rules for names ask for is asked for here.
#pragma once

#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "node/config_text.hpp"

namespace espalier::node {

struct ReadSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct ReadMetric {
  std::string type;
  std::string help;
  std::vector<ReadSample> samples;

  /// The sample with exactly these labels. Throws std::out_of_range without one.
  [[nodiscard]] double at(const std::map<std::string, std::string>& labels = {},
                          std::string_view suffix = {}) const {
    for (const ReadSample& sample : samples) {
      if (sample.labels == labels && sample.name.ends_with(suffix)) return sample.value;
    }
    throw std::out_of_range("no such sample");
  }
  [[nodiscard]] double sum() const {
    double sum = 0;
    for (const ReadSample& sample : samples) sum += sample.value;
    return sum;
  }
};
using ReadMetrics = std::map<std::string, ReadMetric>;

/// Throws std::runtime_error, with the line, at the first that is wrong.
class MetricsReader {
 public:
  static ReadMetrics read(std::string_view text) {
    MetricsReader reader;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      reader.line_ = text.substr(0, end);
      reader.want(end != std::string_view::npos, "the last line does not end");
      reader.take_line();
      text.remove_prefix(end + 1);
    }
    reader.end_metric();
    return reader.metrics_;
  }

 private:
  void want(bool good, const std::string& what) const {
    if (!good) throw std::runtime_error(what + ": " + std::string(line_));
  }

  static bool is_name(std::string_view name) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
    for (const char c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
    }
    return !name.starts_with("__");
  }

  void take_line() {
    want(!line_.empty(), "an empty line");
    std::string_view rest = line_;
    if (rest.starts_with("# HELP ")) {
      begin_metric(rest.substr(7));
    } else if (rest.starts_with("# TYPE ")) {
      take_type(rest.substr(7));
    } else {
      want(!rest.starts_with('#'), "a comment");
      take_sample(rest);
    }
  }

  void begin_metric(std::string_view rest) {
    end_metric();
    const std::size_t blank = rest.find(' ');
    want(blank != std::string_view::npos, "no help");
    name_ = rest.substr(0, blank);
    want(is_name(name_), "not a name");
    const auto [at, is_new] = metrics_.emplace(name_, ReadMetric{});
    want(is_new, "a metric twice");
    metric_ = &at->second;
    metric_->help = rest.substr(blank + 1);
    want(!metric_->help.empty() && is_plain(metric_->help), "not a help");
    want(metric_->help.find('\\') == std::string::npos, "an escape in a help");
  }

  void take_type(std::string_view rest) {
    want(metric_ != nullptr && metric_->type.empty(), "a type without a help");
    want(rest.starts_with(name_ + " "), "a type of another metric");
    metric_->type = rest.substr(name_.size() + 1);
    const bool counter = metric_->type == "counter";
    want(counter || metric_->type == "gauge" || metric_->type == "histogram", "not a type");
    want(counter == name_.ends_with("_total"), "_total is for counters");
    for (const char* suffix : {"_count", "_sum", "_bucket"}) {
      want(!name_.ends_with(suffix), "a name that a histogram's line may have");
    }
  }

  void take_sample(std::string_view rest) {
    want(metric_ != nullptr && !metric_->type.empty(), "a sample before its type");
    ReadSample sample;
    const std::size_t end = rest.find_first_of("{ ");
    want(end != std::string_view::npos, "no value");
    sample.name = rest.substr(0, end);
    rest.remove_prefix(end);
    if (rest.front() == '{') take_labels(rest, sample);
    want(rest.starts_with(' '), "no blank before the value");
    const std::string value(rest.substr(1));
    want(!value.empty() && value.find(' ') == std::string::npos, "not one value");
    char* after = nullptr;
    sample.value = std::strtod(value.c_str(), &after);
    want(*after == '\0' && sample.value >= 0, "not a value");
    want(belongs(sample.name), "a sample of another metric");
    std::string key = sample.name;
    for (const auto& [name, text] : sample.labels) key += '\0' + name + '\0' + text;
    want(seen_.insert(key).second, "a sample twice");
    metric_->samples.push_back(sample);
  }

  [[nodiscard]] bool belongs(const std::string& name) const {
    if (metric_->type != "histogram") return name == name_;
    return name == name_ + "_bucket" || name == name_ + "_sum" || name == name_ + "_count";
  }

  void take_labels(std::string_view& rest, ReadSample& sample) const {
    do {
      rest.remove_prefix(1);  // the brace, or a comma
      const std::size_t equals = rest.find("=\"");
      want(equals != std::string_view::npos, "no value of a label");
      const std::string name(rest.substr(0, equals));
      want(is_name(name), "not a label");
      rest.remove_prefix(equals + 2);
      const std::string value = take_quoted(rest);
      want(sample.labels.emplace(name, value).second, "a label twice");
    } while (rest.starts_with(','));
    want(rest.starts_with('}'), "labels without an end");
    rest.remove_prefix(1);
  }

  // Up to the quote that ends it, which goes too.
  std::string take_quoted(std::string_view& rest) const {
    std::string value;
    for (;; rest.remove_prefix(1)) {
      want(!rest.empty(), "a label's value without an end");
      char c = rest.front();
      if (c == '"') break;
      if (c == '\\') {
        rest.remove_prefix(1);
        want(!rest.empty(), "half an escape");
        c = rest.front();
        want(c == '\\' || c == '"' || c == 'n', "not an escape");
        if (c == 'n') c = '\n';
      }
      value += c;
    }
    rest.remove_prefix(1);
    for (std::string_view left = value; !left.empty();) {
      const std::size_t bytes = first_character(left).bytes;
      want(bytes != 0, "not UTF-8");
      left.remove_prefix(bytes);
    }
    return value;
  }

  void end_metric() {
    if (metric_ == nullptr) return;
    want(!metric_->type.empty(), "a metric without a type");
    if (metric_->type == "histogram") check_histogram();
  }

  // For each set of labels: buckets that ascend and add up, the last of them all there is.
  void check_histogram() const {
    struct Series {
      double bound = -1;
      double below = 0;
      bool has_sum = false;
      bool has_count = false;
    };
    std::map<std::map<std::string, std::string>, Series> all;
    for (const ReadSample& sample : metric_->samples) {
      auto labels = sample.labels;
      const bool bucket = sample.name.ends_with("_bucket");
      want(labels.contains("le") == bucket, "a bound is for buckets");
      const std::string le = bucket ? labels.at("le") : "";
      labels.erase("le");
      Series& series = all[labels];
      if (bucket) {
        const double bound = le == "+Inf" ? std::numeric_limits<double>::infinity()
                                          : std::strtod(le.c_str(), nullptr);
        want(bound > series.bound && sample.value >= series.below, "buckets that do not ascend");
        series.bound = bound;
        series.below = sample.value;
      } else if (sample.name.ends_with("_sum")) {
        series.has_sum = true;
      } else {
        series.has_count = true;
        want(series.bound == std::numeric_limits<double>::infinity(), "no bucket for all");
        want(sample.value == series.below, "a count that is not that of all buckets");
      }
    }
    for (const auto& [labels, series] : all) {
      want(series.has_sum && series.has_count, "half a histogram");
    }
  }

  std::string_view line_;
  std::string name_;
  ReadMetric* metric_ = nullptr;
  ReadMetrics metrics_;
  std::set<std::string> seen_;
};

}  // namespace espalier::node
