// SPDX-License-Identifier: Apache-2.0
#include "bench/run_inference.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/cpu_clock.hpp"
#include "bench/benchmark.hpp"
#include "bench/grouped_queries.hpp"
#include "bench/inference_data.hpp"
#include "bench/inference_model.hpp"
#include "bench/inference_node.hpp"
#include "bench/map_session.hpp"
#include "bench/together.hpp"
#include "engine/helper_pool.hpp"
#include "kinds/embedding/format.hpp"
#include "kinds/embedding/model/model_queries.hpp"
#include "kinds/embedding/query_lists.hpp"
#include "kinds/embedding/review_lists.hpp"

namespace espalier::bench {
namespace {

constexpr std::string_view kTargets[] = {"lines",        "merci",      "embedded",       "node",
                                         "node-many",    "noop",       "reads",          "parse",
                                         "model",        "model-node", "merci-grouped",  "grouped",
                                         "grouped-node", "renumbered", "renumbered-node"};
constexpr std::string_view kAllCategories = "all";

/// A run of one category, or of none.
struct CategoryOptions : InferenceOptions {
  std::string category{};  // empty: none
};
constexpr std::string_view kTypes[] = {"fp32", "fp16", "bf16", "int8"};

/// What a point varies.
struct InferenceSetting {
  InferenceTarget target = InferenceTarget::embedded;
  EmbeddingType type = EmbeddingType::fp32;
  std::uint32_t length = 0;  // 0: as the lists of a category have it
  double ratio = 0;          // of groups
  std::uint32_t threads = 1;
};

bool is_of_model(InferenceTarget target) {
  return target == InferenceTarget::model || target == InferenceTarget::model_node;
}
bool has_one_thread(InferenceTarget target) {
  return is_of_model(target) || target == InferenceTarget::lines ||
         target == InferenceTarget::parse || target == InferenceTarget::noop;
}

bool is_grouped(InferenceTarget target) { return target >= InferenceTarget::merci_grouped; }
bool is_of_merci(InferenceTarget target) {
  return target == InferenceTarget::merci || target == InferenceTarget::merci_grouped;
}
bool is_renumbered(InferenceTarget target) {
  return target == InferenceTarget::renumbered || target == InferenceTarget::renumbered_node;
}
bool is_at_node(InferenceTarget target) {
  return (target >= InferenceTarget::node && target <= InferenceTarget::reads) ||
         target == InferenceTarget::grouped_node || target == InferenceTarget::renumbered_node ||
         target == InferenceTarget::model_node;
}
/// The target whose table it reads: several targets may share one.
InferenceTarget table_of(InferenceTarget target) {
  switch (target) {
    case InferenceTarget::node_many: return InferenceTarget::node;
    case InferenceTarget::renumbered: return InferenceTarget::grouped;
    case InferenceTarget::renumbered_node: return InferenceTarget::grouped_node;
    default: return target;
  }
}

/// The transport to it: for reads one with READs.
NodeTransport way_to_rows(InferenceTarget target, const CategoryOptions& options) {
  const NodeTransport by = options.transport;
  const bool is_roce = by == NodeTransport::roce_udp || by == NodeTransport::roce_udp6 ||
                       by == NodeTransport::roce_memif;
  return target == InferenceTarget::reads && !is_roce ? NodeTransport::shm : by;
}

std::uint32_t rows_of(const CategoryOptions& options) {
  if (options.category.empty()) return options.rows;
  return category_items(options.category, options.scale).value_or(0);
}

/// The tables of a run, each made on first use and kept: a point is measured repeatedly.
class InferenceWorld {
 public:
  explicit InferenceWorld(const CategoryOptions& options)
      : options_(options), shape_{rows_of(options), options.dimension, options.seed} {
    if (!options.category.empty()) reviews_.emplace(shape_);
  }

  PointSample measure(const InferenceSetting& setting) {
    const std::uint64_t bags = options_.ops * (is_of_model(setting.target) ? kModelBags : 1);
    const QuerySet queries =
        reviews_ ? reviews_->queries(bags) : uniform_queries(shape_, bags, setting.length);
    switch (setting.target) {
      case InferenceTarget::lines: return measure_lines(queries, setting);
      case InferenceTarget::parse: return measure_parse(queries, setting);
      case InferenceTarget::noop:
        return measure_noops(options_.transport, options_.ops, options_.in_flight);
      case InferenceTarget::model:
      case InferenceTarget::model_node: return measure_model(queries, setting);
      case InferenceTarget::merci: return measure_merci(queries, setting);
      case InferenceTarget::merci_grouped: return measure_merci_grouped(queries, setting);
      default: return measure_table(queries, setting);
    }
  }

 private:
  static void add(std::uint64_t& checksum, std::span<const float> sums) {
    // A sum of zeros is 0 or -0, depending on the order.
    for (const float sum : sums) checksum = checksum * 31 + std::bit_cast<std::uint32_t>(sum + 0);
  }
  void took(PointSample& sample, double seconds, const QuerySet& queries,
            const InferenceSetting& setting, const embedding::ReadRows& read = {}) const {
    sample.took(queries.ends.size(), seconds);
    const double rows = static_cast<double>(queries.ids.size()) / seconds;
    const std::uint32_t row_bytes = row_bytes_of(setting);
    sample.numbers.emplace_back("rows_per_s", rows);
    sample.numbers.emplace_back("gb_per_s", rows * row_bytes * 1e-9);
    if (!is_grouped(setting.target)) return;
    // Of MERCI's way ids are renumbered, too, before it is measured.
    const bool renumbered = is_renumbered(setting.target) || is_of_merci(setting.target);
    sample.numbers.emplace_back("rows_saved", read.saved());
    sample.numbers.emplace_back("lines_saved",
                                read.lines_saved(row_bytes, options_.dimension, renumbered));
    const auto& groups = groups_of(setting);
    sample.numbers.emplace_back("sums", static_cast<double>(groups.sums()));
  }
  const embedding::GroupLists& groups_of(const InferenceSetting& setting) const {
    return reviews_->groups(setting.ratio, row_bytes_of(setting));
  }
  [[nodiscard]] std::uint32_t row_bytes_of(const InferenceSetting& setting) const {
    return embedding::row_bytes_of(setting.type, options_.dimension);
  }

  PointSample measure_lines(const QuerySet& queries, const InferenceSetting& setting) {
    const std::uint32_t row_bytes = row_bytes_of(setting);
    const std::size_t bytes = std::size_t{shape_.rows} * row_bytes + 64;
    if (lines_.bytes() < bytes) {
      lines_ = HugeBuffer(bytes);
      std::memset(lines_.data(), 1, lines_.bytes());  // zeros may be one page
    }
    const LineRate rate = line_rate(lines_, queries.ids, row_bytes);
    PointSample sample;
    took(sample, rate.seconds, queries, setting);
    sample.numbers.emplace_back("lines_per_s", rate.lines_per_s);
    sample.numbers.emplace_back("best_hint", rate.hint);
    sample.numbers.emplace_back("best_ahead", static_cast<double>(rate.ahead));
    sample.checksum = rate.checksum;
    return sample;
  }

  /// As many queries at a time as a request has, each by a helper of a node's kind, that sleeps.
  /// Its share of a core is how much of one it takes beside another that gathers the same queries'
  /// rows without a pause.
  PointSample measure_parse(const QuerySet& queries, const InferenceSetting& setting) {
    std::vector<std::string> requests;
    for (std::uint64_t bag = 0; bag < queries.ends.size(); ++bag) {
      if (bag % options_.bags == 0) requests.emplace_back();
      requests.back() += "0 |";
      for (const std::uint32_t id : queries.bag(bag)) requests.back() += " " + std::to_string(id);
      requests.back() += "\n";
    }
    const embedding::ModelShape shape{1, 1, options_.dimension, 1};
    PointSample sample;
    offload::HelperPool helpers;
    std::uint64_t took_ns = 0;    // of this thread to wake the helper, and of the helper
    std::uint64_t before_ns = 0;  // of the helper, after the previous ones
    for (const std::string& request : requests) {
      const base::Stopwatch watch;
      std::atomic<bool> over{false};
      std::uint64_t ids = 0;
      std::uint64_t helper_ns = 0;
      const std::uint64_t waking_ns = base::thread_cpu_ns();
      helpers.run([&] {
        const auto parsed = embedding::parse_queries(shape, request);
        if (parsed) ids = parsed->tables.front().ids.size();
        helper_ns = base::thread_cpu_ns();
        over = true;
      });
      took_ns += base::thread_cpu_ns() - waking_ns;
      while (!over) std::this_thread::yield();
      if (ids == 0) throw std::runtime_error("cannot parse queries");
      took_ns += helper_ns - std::exchange(before_ns, helper_ns);
      sample.latencies.record(watch.elapsed_ns());
      sample.checksum += ids;
    }
    took(sample, static_cast<double>(took_ns) * 1e-9, queries, setting);
    const InferenceSetting gather{InferenceTarget::embedded, setting.type, setting.length};
    sample.numbers.emplace_back("share_of_core",
                                sample.seconds / measure_table(queries, gather).seconds);
    return sample;
  }

  PointSample measure_model(const QuerySet& queries, const InferenceSetting& setting) {
    std::optional<RankingModel>& model = models_[setting.target];
    if (!model) {
      LoadedTable& loaded = loaded_of(setting);
      model.emplace(make_bench_model(loaded.store(), loaded.table().name(), options_.dimension));
    }
    PointSample sample = rank_queries(*model, queries, options_.bags);
    sample.numbers.emplace_back("rows_per_s",
                                static_cast<double>(queries.ids.size()) / sample.seconds);
    return sample;
  }

  /// The bags of one thread, in whole requests.
  std::pair<std::uint64_t, std::uint64_t> share_of(const QuerySet& queries,
                                                   const InferenceSetting& setting,
                                                   std::uint32_t thread) const {
    const std::uint64_t bags = queries.ends.size();
    const std::uint64_t requests = base::divide_up(bags, std::uint64_t{options_.bags});
    const auto begin = [&](std::uint64_t i) {
      return std::min(bags, requests * i / setting.threads * options_.bags);
    };
    return {begin(thread), begin(thread + 1)};
  }

  /// Runs queries one by one, each into a vector of its own; `sum` is made for each thread, and
  /// returns how many rows it read.
  template <class Sum>
  PointSample measure_each(const QuerySet& queries,
                           const std::vector<std::vector<std::uint32_t>>& lists,
                           const InferenceSetting& setting, const Sum& sum) {
    std::vector<std::vector<float>> sums(lists.size(), std::vector<float>(options_.dimension));
    std::atomic<std::uint64_t> rows_read = 0;
    const double seconds = run_together(
        setting.threads, [](std::uint32_t) {},
        [&](std::uint32_t thread) {
          const auto [begin, end] = share_of(queries, setting, thread);
          Sum own = sum;
          std::uint64_t read = 0;
          for (std::uint64_t i = begin; i < end; ++i) read += own(lists[i], sums[i]);
          rows_read += read;
        });
    PointSample sample;
    took(sample, seconds, queries, setting, {queries.ids.size(), rows_read, 0});
    for (const std::vector<float>& of_bag : sums) add(sample.checksum, of_bag);
    return sample;
  }

  PointSample measure_merci(const QuerySet& queries, const InferenceSetting& setting) {
    if (merci_.empty()) merci_ = merci_table(shape_);
    std::vector<std::vector<std::uint32_t>> lists(queries.ends.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      lists[i].assign(queries.bag(i).begin(), queries.bag(i).end());
    }
    return measure_each(queries, lists, setting, [this](const auto& ids, auto& sum) {
      merci_sum(merci_, ids, sum);
      return ids.size();
    });
  }

  PointSample measure_merci_grouped(const QuerySet& queries, const InferenceSetting& setting) {
    std::unique_ptr<MerciGrouped>& table = merci_grouped_[setting.ratio];
    if (table == nullptr) table = std::make_unique<MerciGrouped>(shape_, groups_of(setting));
    std::vector<std::vector<std::uint32_t>> lists(queries.ends.size());
    for (std::size_t i = 0; i < lists.size(); ++i) lists[i] = table->renumbered(queries.bag(i));
    return measure_each(
        queries, lists, setting,
        [&table, buffer = MerciGrouped::Buffer()](const auto& ids, auto& sum) mutable {
          return table->sum(ids, sum, buffer);
        });
  }

  LoadedTable& loaded_of(const InferenceSetting& setting) {
    std::unique_ptr<LoadedTable>& loaded =
        tables_[{table_of(setting.target), setting.type, setting.ratio}];
    if (loaded == nullptr) {
      const std::optional<NodeTransport> by =
          is_at_node(setting.target) ? std::optional(way_to_rows(setting.target, options_))
                                     : std::nullopt;
      const bool reads = setting.target == InferenceTarget::reads;
      loaded = std::make_unique<LoadedTable>(
          shape_, setting.type, by,
          is_grouped(setting.target) ? groups_of(setting).get() : RowGroups{},
          reads ? Access::one_sided : Access::rpc);
    }
    return *loaded;
  }

  PointSample measure_table(QuerySet queries, const InferenceSetting& setting) {
    const EmbeddingTable& table = loaded_of(setting).table();
    const std::uint32_t grouping = is_renumbered(setting.target) ? renumber(table, queries) : 0;
    std::vector<float> sums(queries.ends.size() * options_.dimension);
    const EmbeddingStats before = numbers_of(table);
    std::vector<base::Histogram> latencies(setting.threads);
    const double seconds = run_together(
        setting.threads, [](std::uint32_t) {},
        [&](std::uint32_t thread) {
          const auto share = share_of(queries, setting, thread);
          if (setting.target == InferenceTarget::node_many) {
            return reduce_many_bags(table, queries, share, options_.bags, options_.in_flight, sums,
                                    latencies[thread]);
          }
          reduce_bags(table, queries, grouping, share, sums, latencies[thread]);
        });
    PointSample sample;
    for (const base::Histogram& each : latencies) sample.latencies.merge(each);
    const EmbeddingStats now = numbers_of(table);
    took(sample, seconds, queries, setting,
         {queries.ids.size(), now.rows_gathered - before.rows_gathered,
          now.sums_gathered - before.sums_gathered});
    add(sample.checksum, sums);
    return sample;
  }

  /// As clients that renumber their ids once send them, like MERCI's: the ids of each bag ascend.
  static std::uint32_t renumber(const EmbeddingTable& table, QuerySet& queries) {
    const auto grouping = table.renumber(queries.ids);
    if (!grouping) throw std::runtime_error("cannot renumber: " + message(grouping.error()));
    for (std::uint64_t bag = 0; bag < queries.ends.size(); ++bag) {
      std::ranges::sort(std::span(queries.ids)
                            .subspan(queries.begin(bag), queries.ends[bag] - queries.begin(bag)));
    }
    return *grouping;
  }

  void reduce_bags(const EmbeddingTable& table, const QuerySet& queries, std::uint32_t grouping,
                   std::pair<std::uint64_t, std::uint64_t> share, std::span<float> sums,
                   base::Histogram& latencies) const {
    std::vector<std::uint32_t> offsets;
    for (std::uint64_t bag = share.first; bag < share.second; bag += options_.bags) {
      const std::uint64_t count = std::min<std::uint64_t>(options_.bags, share.second - bag);
      const std::uint64_t first = queries.begin(bag);
      const base::Stopwatch watch;
      offsets.clear();
      for (std::uint64_t i = bag; i < bag + count; ++i) {
        offsets.push_back(static_cast<std::uint32_t>(queries.begin(i) - first));
      }
      const auto reduced = table.reduce_into(
          sums.subspan(bag * options_.dimension, count * options_.dimension), Reduction::sum,
          {std::span(queries.ids).subspan(first, queries.ends[bag + count - 1] - first),
           offsets,
           {},
           grouping});
      if (!reduced) throw std::runtime_error("cannot reduce: " + message(reduced.error()));
      latencies.record(watch.elapsed_ns());
    }
  }

  static EmbeddingStats numbers_of(const EmbeddingTable& table) {
    return value_or_throw(table.stats(), "cannot read numbers of a table");
  }

  const CategoryOptions options_;
  const InferenceShape shape_;
  HugeBuffer lines_;
  MerciTable merci_;
  mutable std::optional<ReviewData> reviews_;  // makes groups on first use
  std::map<double, std::unique_ptr<MerciGrouped>> merci_grouped_;
  std::map<std::tuple<InferenceTarget, EmbeddingType, double>, std::unique_ptr<LoadedTable>>
      tables_;
  std::map<InferenceTarget, std::optional<RankingModel>> models_;
};

MeasuredPoint point_of(const CategoryOptions& options, const InferenceSetting& setting,
                       const std::shared_ptr<InferenceWorld>& world) {
  MeasuredPoint point;
  const bool lines = setting.target == InferenceTarget::lines;
  const bool parse = setting.target == InferenceTarget::parse;
  const bool noop = setting.target == InferenceTarget::noop;
  point.target = name(setting.target);
  const bool model = is_of_model(setting.target);
  point.workload = lines ? "read" : parse ? "parse" : model ? "rank" : noop ? "noop" : "sum";
  point.parameters["type"] = name(setting.type);
  if (options.category.empty()) {
    point.parameters["length"] = setting.length;
  } else {
    point.parameters["category"] = options.category;
  }
  point.parameters["rows"] = rows_of(options);
  point.parameters["dimension"] = options.dimension;
  point.parameters["bags"] = options.bags;
  if (is_grouped(setting.target)) point.parameters["ratio"] = setting.ratio;
  if (is_at_node(setting.target)) {
    point.parameters["transport"] = name(way_to_rows(setting.target, options));
  }
  if (noop || setting.target == InferenceTarget::node_many) {
    point.parameters["in_flight"] = options.in_flight;
  }
  point.parameters["reducing"] = setting.threads;
  point.threads = setting.threads + (is_at_node(setting.target) ? 1 : 0);
  point.answers = std::string(lines   ? "lines "
                              : parse ? "ids "
                              : model ? "ranks "
                              : noop  ? "noops "
                                      : "sums ") +
                  std::string(name(setting.type)) + " " + std::to_string(setting.length) +
                  options.category;
  // Values of int8 rows are not whole 256ths: their sums depend on the order.
  if (is_grouped(setting.target) && setting.type == EmbeddingType::int8) {
    point.answers += " grouped " + std::to_string(setting.ratio);
  }
  point.measure = [world, setting] { return world->measure(setting); };
  return point;
}

std::vector<MeasuredPoint> inference_points(const CategoryOptions& options,
                                            const std::shared_ptr<InferenceWorld>& world) {
  std::vector<MeasuredPoint> points;
  const bool uniform = options.category.empty();
  const std::vector<std::uint32_t> by_category = {0};
  const std::vector<double> no_ratio = {0};
  const std::vector<std::uint32_t> one_thread = {1};
  for (const EmbeddingType type : options.types) {
    for (const std::uint32_t length : uniform ? options.lengths : by_category) {
      for (const InferenceTarget target : options.targets) {
        const bool has_types = !is_of_merci(target) && !is_of_model(target) &&
                               target != InferenceTarget::parse && target != InferenceTarget::noop;
        if (!has_types && type != EmbeddingType::fp32) continue;
        if (is_grouped(target) && uniform) continue;  // no rows occur together
        for (const double ratio : is_grouped(target) ? options.ratios : no_ratio) {
          for (const std::uint32_t threads :
               has_one_thread(target) ? one_thread : options.threads) {
            points.push_back(point_of(options, {target, type, length, ratio, threads}, world));
          }
        }
      }
    }
  }
  return points;
}

constexpr std::uint64_t kNumbersMax = 1'000'000'000;

/// Each of the categories, or a single empty one.
std::vector<std::string> categories_of(const InferenceOptions& options) {
  if (options.categories.empty()) return {""};
  if (options.categories != std::vector<std::string>{std::string(kAllCategories)}) {
    return options.categories;
  }
  std::vector<std::string> all;
  for (const auto& category : embedding::review_categories()) all.emplace_back(category.name);
  return all;
}

/// What is wrong with the options of models.
std::optional<std::string> problem_of_models(const InferenceOptions& options) {
  if (std::ranges::none_of(options.targets, is_of_model)) return std::nullopt;
  if (!options.categories.empty()) return "models have bags of --length rows, of no category";
  const std::uint32_t longest = options.lengths.empty() ? 1 : std::ranges::max(options.lengths);
  if (model_query_bytes(options.bags, longest) > embedding::kQueryBytesMax ||
      options.bags > embedding::kQueriesMax) {
    return "--bags: requests of models come to more than 1 MiB";
  }
  return std::nullopt;
}

/// What is wrong with the queries.
std::optional<std::string> problem_of_queries(const InferenceOptions& options) {
  if (options.categories.empty()) {
    const bool models = std::ranges::any_of(options.targets, is_of_model);
    const std::uint64_t bags = options.ops * (models ? kModelBags : 1);
    if (bags * std::ranges::max(options.lengths) <= kNumbersMax) return std::nullopt;
    return "--ops times --length must be at most 1000000000";
  }
  if (!(options.scale > 0 && options.scale <= 1)) return "--scale must be above 0, up to 1";
  for (const std::string& category : categories_of(options)) {
    const auto items = category_items(category, options.scale);
    if (!items) {
      return "--category: sports, clothing, electronics, home-kitchen, office, books, or all";
    }
    if (*items < 256) return "--scale is too small: a category has 256 items at least";
  }
  const auto wrong_ratio = [](double ratio) { return !(ratio >= 0 && ratio <= 100); };
  if (options.ratios.empty() || std::ranges::any_of(options.ratios, wrong_ratio)) {
    return "--ratio must be 0 to 100";
  }
  return std::nullopt;
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

// All ids and all sums of a measurement are in memory: at most 4 GB of each.
void InferenceOptions::declare(OptionRows& list) {
  list.choices("--target", targets, parse_inference_target,
               "lines, merci, embedded, node, node-many, noop, reads, parse, model, model-node, "
               "merci-grouped, grouped, grouped-node, renumbered, renumbered-node; by default all "
               "but node-many, noop, reads, parse and models");
  list.texts("--category", categories,
             "of reviews: sports, office, books ..., or all of the six");
  list.number("--scale", scale, {}, "part of the category's items, up to 1");
  list.numbers("--ratio", ratios, {}, "memory of groups, of rows");
  list.choices("--type", types, parse_embedding_type, "fp32, fp16, bf16, int8; fp32 by default");
  list.numbers("--length", lengths, {1, 100'000}, "rows of a bag");
  list.number("--rows", rows, {1}, "of the table");
  list.number("--dimension", dimension, {}, "values of a row");
  list.require(embedding::is_shape(embedding::shape_of({dimension, EmbeddingType::fp32})),
               "--dimension must be a multiple of 8, up to 1024");
  list.number("--bags", bags, {1, 10'000}, "of one request; of a model queries");
  list.numbers("--threads", threads, {1, 256}, "that reduce bags");
  list.number("--in-flight", in_flight, {1, 256}, "requests on their way (node-many, noop)");
  list.number("--ops", ops, {1, 10'000'000}, "bags of a measurement; of a model queries");
  list.of_points(*this);
  if (!list.checks() || list.problem()) return;
  const bool parses = std::ranges::count(targets, InferenceTarget::parse) != 0;
  list.require(!parses || bags <= embedding::kQueriesMax,
               "--bags must be 1 to 1024 for parse, as many as a request has");
  list.require_none(problem_of_models(*this));
  list.require_none(problem_of_queries(*this));
  list.require(ops * dimension <= kNumbersMax,
               "--ops times --dimension must be at most 1000000000");
  if (list.problem()) return;
  list.require(!inference_points({*this, categories_of(*this).front()}, nullptr).empty(),
               "merci has rows of fp32 alone, and groups are of a category");
}

std::vector<ExperimentRow> InferenceOptions::experiment_rows() const {
  const auto measure = [this](Report& report) {
    PointRun run(*this, report);
    // One world at a time: their tables would not fit beside each other.
    for (std::string& category : categories_of(*this)) {
      const CategoryOptions of{*this, std::move(category)};
      run.run("sum", inference_points(of, std::make_shared<InferenceWorld>(of)));
    }
  };
  return {{.name = "sum", .lines = measure}};
}

}  // namespace espalier::bench
