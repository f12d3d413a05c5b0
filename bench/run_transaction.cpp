// SPDX-License-Identifier: Apache-2.0
#include "bench/run_transaction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "bench/bank_points.hpp"
#include "bench/chain_processes.hpp"
#include "bench/clock_points.hpp"
#include "bench/line_points.hpp"
#include "bench/polled_link.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::string_view, 6> kTransactionExperiments{"line",  "bank",  "ycsb",
                                                                  "clock", "nodes", "failover"};
/// Of a transaction through a chain: its answer must fit into one message.
constexpr std::uint32_t kLineKeysMax = 8;
constexpr std::uint32_t kLineValueMax = 1024;

MeasuredPoint line_point(const LinePoint& measured) {
  const LineSetting& setting = measured.setting;
  MeasuredPoint point;
  point.target = name(measured.way);
  point.workload = fmt::format("{}+{}", measured.reads, measured.writes);
  point.parameters["transport"] = name(setting.transport);
  point.parameters["nodes"] = setting.nodes;
  point.parameters["value_bytes"] = setting.value_bytes;
  point.parameters["pairs"] = setting.pairs;
  point.parameters["hop_ns"] = setting.hop_ns;
  point.parameters["placement"] = fabric::name(setting.placement);
  point.answers = fmt::format("{} of {} bytes", point.workload, setting.value_bytes);
  point.measure = [measured] { return measure_line(measured); };
  return point;
}

std::vector<MeasuredPoint> line_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const NodeTransport transport : options.transports) {
    for (const std::uint32_t nodes : options.nodes) {
      for (const std::uint32_t value_bytes : options.value_bytes) {
        for (const TransactionShape shape : options.shapes) {
          for (const LineWay way : options.ways) {
            for (const fabric::PlacementPolicy placement : options.placements) {
              const LineSetting setting{transport,   nodes,          options.pairs,
                                        value_bytes, options.hop_ns, placement};
              points.push_back(
                  line_point({way, setting, shape.reads, shape.writes, options.ops, options.seed}));
            }
          }
        }
      }
    }
  }
  return points;
}

std::vector<MeasuredPoint> bank_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t threads : options.threads) {
    for (const TransactionTargetKind target : options.targets) {
      const BankSetting setting{target, options.accounts, threads, options.ops, options.seed};
      MeasuredPoint point;
      point.target = name(target);
      point.workload = "smallbank";
      point.parameters["accounts"] = options.accounts;
      point.threads = threads;
      point.answers = fmt::format("smallbank, {} threads", threads);
      point.measure = [setting] { return measure_bank(setting); };
      points.push_back(std::move(point));
    }
  }
  return points;
}

std::vector<MeasuredPoint> ycsb_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t threads : options.threads) {
    for (const TransactionTargetKind target : options.targets) {
      const YcsbTransactionSetting setting{
          target,      options.keys, options.value_bytes.front(), options.length, threads,
          options.ops, options.seed};
      MeasuredPoint point;
      point.target = name(target);
      point.workload = "ycsb-t";
      point.parameters["keys"] = setting.keys;
      point.parameters["value_bytes"] = setting.value_bytes;
      point.parameters["length"] = setting.length;
      point.threads = threads;
      point.answers = fmt::format("ycsb-t, {} threads", threads);
      point.measure = [setting] { return measure_ycsb_transactions(setting); };
      points.push_back(std::move(point));
    }
  }
  return points;
}

std::vector<MeasuredPoint> clock_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t threads : options.threads) {
    for (const bool shared : {false, true}) {
      const ClockSetting setting{shared, options.keys, threads, options.ops, options.seed};
      MeasuredPoint point;
      point.target = "embedded";
      point.workload = "a";
      point.parameters["clock"] = shared ? "shared" : "own";
      point.parameters["keys"] = setting.keys;
      point.threads = threads;
      point.answers = fmt::format("a, {} threads", threads);
      point.measure = [setting] { return measure_clock(setting); };
      points.push_back(std::move(point));
    }
  }
  return points;
}

ChainSetting chain_of(const TransactionBenchOptions& options) {
  ChainSetting setting;
  setting.dir = options.dir.empty() ? std::filesystem::temp_directory_path()
                                    : std::filesystem::path(options.dir);
  setting.etcd = options.etcd;
  setting.fence_ms = options.fence_ms.front();
  return setting;
}

/// One node by itself, and chains of as many as were asked for.
std::vector<MeasuredPoint> nodes_points(const TransactionBenchOptions& options) {
  std::vector<std::uint32_t> counts{1};
  std::ranges::copy_if(options.nodes, std::back_inserter(counts), [](auto n) { return n != 1; });
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t nodes : counts) {
    ChainWrites writes{.setting = chain_of(options),
                       .in_flight = options.in_flight,
                       .value_bytes = options.value_bytes.front(),
                       .ops = options.ops,
                       .seed = options.seed};
    writes.setting.nodes = nodes;
    MeasuredPoint point;
    point.target = nodes == 1 ? "node" : "chain";
    point.workload = "puts";
    point.parameters["nodes"] = nodes;
    point.parameters["value_bytes"] = writes.value_bytes;
    point.parameters["in_flight"] = writes.in_flight;
    point.threads = 1 + nodes;
    point.answers = "puts";
    point.measure = [writes] { return measure_chain_writes(writes); };
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<MeasuredPoint> failover_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t fence_ms : options.fence_ms) {
    ChainSetting setting = chain_of(options);
    setting.fence_ms = fence_ms;
    MeasuredPoint point;
    point.target = "chain";
    point.workload = "count";
    point.parameters["nodes"] = setting.nodes;
    point.parameters["fence_ms"] = fence_ms;
    point.parameters["kept_by"] = setting.etcd.empty() ? "file" : "etcd";
    point.threads = 1 + setting.nodes;
    point.answers = "count";
    point.measure = [setting, puts = options.puts] { return measure_failover(setting, puts); };
    points.push_back(std::move(point));
  }
  return points;
}

template <class T>
bool outside(const std::vector<T>& values, T least, T most) {
  return values.empty() ||
         std::ranges::any_of(values, [=](T value) { return value < least || value > most; });
}

bool is_shape(const TransactionShape& shape) {
  return shape.reads + shape.writes >= 1 && shape.reads <= kLineKeysMax &&
         shape.writes <= kLineKeysMax;
}

/// Whether its request, its record and its answer fit into messages.
bool fits(const TransactionShape& shape, std::uint32_t value_bytes) {
  constexpr std::uint32_t kOfKey = 128;  // with all that stands beside a value
  const std::uint32_t most = std::max(shape.reads, shape.writes);
  return shape.reads * kOfKey + most * (value_bytes + kOfKey) <= PolledLink::kMessageBytesMax;
}

std::optional<std::string> problem_of_line(const TransactionBenchOptions& options) {
  if (options.ways.empty()) return "--way: one-request, one-by-one";
  if (options.placements.empty()) return "--placement: adaptive, cache, memory";
  if (options.transports.empty() || !std::ranges::all_of(options.transports, has_polled_link)) {
    return "--transport: shm, roce-memif, roce-udp";
  }
  if (outside(options.nodes, 1U, 8U)) return "--nodes must be 1 to 8";
  if (outside(options.value_bytes, 8U, kLineValueMax)) return "--value-bytes must be 8 to 1024";
  if (options.shapes.empty() || !std::ranges::all_of(options.shapes, is_shape)) {
    return "--shape: READS+WRITES, 8 of each at most";
  }
  for (const TransactionShape& shape : options.shapes) {
    for (const std::uint32_t value_bytes : options.value_bytes) {
      if (!fits(shape, value_bytes)) return "--shape: so many values fit into no message";
    }
  }
  if (options.hop_ns > 1'000'000'000) return "--hop-ns must be 0 to 1000000000";
  if (options.pairs < 64 || options.pairs > 100'000'000) return "--pairs must be 64 to 100000000";
  return std::nullopt;
}

}  // namespace

std::optional<TransactionShape> parse_shape(std::string_view text) {
  const std::size_t plus = text.find('+');
  if (plus == std::string_view::npos) return std::nullopt;
  TransactionShape shape;
  const auto number = [](std::string_view digits, std::uint32_t& to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  if (!number(text.substr(0, plus), shape.reads)) return std::nullopt;
  if (!number(text.substr(plus + 1), shape.writes)) return std::nullopt;
  return shape;
}

std::string transaction_experiment_names() {
  return fmt::format("{}", fmt::join(kTransactionExperiments, ", "));
}

std::optional<std::string> problem_of(const TransactionBenchOptions& options) {
  if (auto problem = problem_of_experiments(options.experiments, kTransactionExperiments)) {
    return problem;
  }
  if (auto problem = problem_of_line(options)) return problem;
  if (options.targets.empty()) return "--target: embedded, rocksdb";
  if (options.accounts < 64 || options.accounts > 100'000'000) {
    return "--accounts must be 64 to 100000000";
  }
  if (options.length < 2 || options.length > 32) return "--length must be 2 to 32";
  if (outside(options.threads, 1U, 256U)) return "--threads must be 1 to 256";
  if (options.keys < 1000 || options.keys > 1'000'000'000)
    return "--keys must be 1000 to 1000000000";
  if (options.in_flight < 1 || options.in_flight > 256) return "--in-flight must be 1 to 256";
  if (outside(options.fence_ms, 100U, 60'000U)) return "--fence-ms must be 100 to 60000";
  if (options.puts < 2 || options.puts > 1'000'000'000) return "--puts must be 2 to 1000000000";
  if (options.ops < 1 || options.ops > 1'000'000'000) return "--ops must be 1 to 1000000000";
  if (options.repeats < 1 || options.repeats > 1000) return "--repeat must be 1 to 1000";
  return std::nullopt;
}

int run_transaction(const TransactionBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("transaction", options, output);
  if (is_chosen(options.experiments, "line")) run.run("line", line_points(options));
  if (is_chosen(options.experiments, "bank")) run.run("bank", bank_points(options));
  if (is_chosen(options.experiments, "ycsb")) run.run("ycsb", ycsb_points(options));
  if (is_chosen(options.experiments, "clock")) run.run("clock", clock_points(options));
  if (is_chosen(options.experiments, "nodes")) run.run("nodes", nodes_points(options));
  if (is_chosen(options.experiments, "failover")) run.run("failover", failover_points(options));
  return run.finish();
}

}  // namespace espalier::bench
