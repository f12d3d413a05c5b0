// SPDX-License-Identifier: Apache-2.0
#include "bench/run_inference.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/inference_data.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::bench {
namespace {

constexpr std::string_view kTargets[] = {"lines", "merci", "embedded", "node"};
constexpr std::string_view kTypes[] = {"fp32", "fp16", "bf16", "int8"};

/// What a point varies.
struct InferenceSetting {
  InferenceTarget target = InferenceTarget::embedded;
  EmbeddingType type = EmbeddingType::fp32;
  std::uint32_t length = 0;
};

/// The tables of a run, each made when it is first measured and kept: a point is measured again and
/// again.
class InferenceWorld {
 public:
  explicit InferenceWorld(const InferenceOptions& options)
      : options_(options), shape_{options.rows, options.dimension, options.seed} {}

  PointSample measure(const InferenceSetting& setting) {
    const std::vector<std::uint32_t> ids = draw_ids(shape_, options_.ops * setting.length);
    switch (setting.target) {
      case InferenceTarget::lines: return measure_lines(ids, setting);
      case InferenceTarget::merci: return measure_merci(ids, setting);
      case InferenceTarget::embedded: break;
      case InferenceTarget::node: break;
    }
    return measure_table(ids, setting);
  }

 private:
  static void add(std::uint64_t& checksum, std::span<const float> sums) {
    for (const float sum : sums) checksum = checksum * 31 + std::bit_cast<std::uint32_t>(sum);
  }
  void took(PointSample& sample, double seconds, const InferenceSetting& setting) const {
    sample.took(options_.ops, seconds);
    const double rows = static_cast<double>(options_.ops) * setting.length / seconds;
    const std::uint32_t row_bytes = embedding::row_bytes_of(setting.type, options_.dimension);
    sample.numbers.emplace_back("rows_per_s", rows);
    sample.numbers.emplace_back("gb_per_s", rows * row_bytes * 1e-9);
  }

  PointSample measure_lines(std::span<const std::uint32_t> ids, const InferenceSetting& setting) {
    const std::uint32_t row_bytes = embedding::row_bytes_of(setting.type, options_.dimension);
    const std::size_t bytes = std::size_t{options_.rows} * row_bytes + 64;
    if (lines_.bytes() < bytes) {
      lines_ = HugeBuffer(bytes);
      std::memset(lines_.data(), 1, lines_.bytes());  // zeros may be one page
    }
    const LineRate rate = line_rate(lines_, ids, row_bytes);
    PointSample sample;
    took(sample, rate.seconds, setting);
    sample.checksum = rate.checksum;
    return sample;
  }

  PointSample measure_merci(std::span<const std::uint32_t> ids, const InferenceSetting& setting) {
    if (merci_.empty()) merci_ = merci_table(shape_);
    std::vector<std::vector<std::uint32_t>> queries(options_.ops);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const auto query = ids.subspan(i * setting.length, setting.length);
      queries[i].assign(query.begin(), query.end());
    }
    std::vector<std::vector<float>> sums(options_.ops, std::vector<float>(options_.dimension));
    const base::Stopwatch watch;
    for (std::size_t i = 0; i < queries.size(); ++i) merci_sum(merci_, queries[i], sums[i]);
    PointSample sample;
    took(sample, static_cast<double>(watch.elapsed_ns()) * 1e-9, setting);
    for (const std::vector<float>& sum : sums) add(sample.checksum, sum);
    return sample;
  }

  const EmbeddingTable& table_of(const InferenceSetting& setting) {
    const bool at_node = setting.target == InferenceTarget::node;
    std::unique_ptr<LoadedTable>& loaded = tables_[{setting.target, setting.type}];
    if (loaded == nullptr) {
      const std::optional<NodeTransport> by =
          at_node ? std::optional(options_.transport) : std::nullopt;
      loaded = std::make_unique<LoadedTable>(shape_, setting.type, by);
    }
    return loaded->table();
  }

  PointSample measure_table(std::span<const std::uint32_t> ids, const InferenceSetting& setting) {
    const EmbeddingTable& table = table_of(setting);
    std::vector<std::uint32_t> offsets(options_.bags);
    for (std::uint32_t b = 0; b < options_.bags; ++b) offsets[b] = b * setting.length;
    std::vector<float> sums(options_.ops * options_.dimension);
    PointSample sample;
    const base::Stopwatch all;
    for (std::uint64_t bag = 0; bag < options_.ops; bag += options_.bags) {
      const std::uint64_t count = std::min<std::uint64_t>(options_.bags, options_.ops - bag);
      const base::Stopwatch watch;
      const auto reduced = table.reduce_into(
          std::span(sums).subspan(bag * options_.dimension, count * options_.dimension),
          Reduction::sum,
          {ids.subspan(bag * setting.length, count * setting.length),
           std::span(offsets).first(count)});
      if (!reduced) throw std::runtime_error("cannot reduce: " + message(reduced.error()));
      sample.latencies.record(watch.elapsed_ns());
    }
    took(sample, static_cast<double>(all.elapsed_ns()) * 1e-9, setting);
    add(sample.checksum, sums);
    return sample;
  }

  const InferenceOptions options_;
  const InferenceShape shape_;
  HugeBuffer lines_;
  MerciTable merci_;
  std::map<std::pair<InferenceTarget, EmbeddingType>, std::unique_ptr<LoadedTable>> tables_;
};

std::vector<MeasuredPoint> inference_points(const InferenceOptions& options,
                                            const std::shared_ptr<InferenceWorld>& world) {
  std::vector<MeasuredPoint> points;
  for (const EmbeddingType type : options.types) {
    for (const std::uint32_t length : options.lengths) {
      for (const InferenceTarget target : options.targets) {
        if (target == InferenceTarget::merci && type != EmbeddingType::fp32) continue;
        MeasuredPoint point;
        point.target = name(target);
        point.workload = target == InferenceTarget::lines ? "read" : "sum";
        point.parameters["type"] = name(type);
        point.parameters["length"] = length;
        point.parameters["rows"] = options.rows;
        point.parameters["dimension"] = options.dimension;
        point.parameters["bags"] = options.bags;
        if (target == InferenceTarget::node) {
          point.parameters["transport"] = name(options.transport);
        }
        point.threads = target == InferenceTarget::node ? 2 : 1;
        point.answers = std::string(target == InferenceTarget::lines ? "lines " : "sums ") +
                        std::string(name(type)) + " " + std::to_string(length);
        const InferenceSetting setting{target, type, length};
        point.measure = [world, setting] { return world->measure(setting); };
        points.push_back(std::move(point));
      }
    }
  }
  return points;
}

}  // namespace

std::string_view name(InferenceTarget target) { return kTargets[static_cast<std::size_t>(target)]; }

std::optional<InferenceTarget> parse_inference_target(std::string_view text) {
  const auto* const found = std::ranges::find(kTargets, text);
  if (found == std::end(kTargets)) return std::nullopt;
  return static_cast<InferenceTarget>(found - kTargets);
}

std::string_view name(EmbeddingType type) { return kTypes[static_cast<std::size_t>(type) - 1]; }

std::optional<EmbeddingType> parse_embedding_type(std::string_view text) {
  const auto* const found = std::ranges::find(kTypes, text);
  if (found == std::end(kTypes)) return std::nullopt;
  return static_cast<EmbeddingType>(found - kTypes + 1);
}

// All ids and all sums of a measurement are in memory: 4 GB of each at most.
std::optional<std::string> problem_of(const InferenceOptions& options) {
  constexpr std::uint64_t kNumbersMax = 1'000'000'000;
  const auto wrong_length = [](std::uint32_t length) { return length == 0 || length > 100'000; };
  if (options.targets.empty()) return "--target: lines, merci, embedded, node";
  if (options.types.empty()) return "--type: fp32, fp16, bf16, int8";
  if (options.lengths.empty() || std::ranges::any_of(options.lengths, wrong_length)) {
    return "--length must be 1 to 100000";
  }
  if (options.rows == 0) return "--rows must be 1 or more";
  if (!embedding::is_shape(embedding::shape_of({options.dimension, EmbeddingType::fp32}))) {
    return "--dimension must be a multiple of 8, up to 1024";
  }
  if (options.bags == 0 || options.bags > 10'000) return "--bags must be 1 to 10000";
  if (options.ops == 0 || options.ops > 10'000'000) return "--ops must be 1 to 10000000";
  if (options.ops * std::ranges::max(options.lengths) > kNumbersMax) {
    return "--ops times --length must be at most 1000000000";
  }
  if (options.ops * options.dimension > kNumbersMax) {
    return "--ops times --dimension must be at most 1000000000";
  }
  if (options.repeats < 1 || options.repeats > 1000) return "--repeat must be 1 to 1000";
  if (inference_points(options, nullptr).empty()) return "merci has rows of fp32 alone";
  return std::nullopt;
}

int run_inference(const InferenceOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("inference", options, output);
  run.run("sum", inference_points(options, std::make_shared<InferenceWorld>(options)));
  return run.finish();
}

}  // namespace espalier::bench
