// SPDX-License-Identifier: Apache-2.0
#include "bench/run_transaction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <utility>

#include "bench/bank_points.hpp"
#include "bench/benchmark.hpp"
#include "bench/chain_processes.hpp"
#include "bench/clock_points.hpp"
#include "bench/line_points.hpp"
#include "bench/polled_link.hpp"

namespace espalier::bench {
namespace {

/// Limit of a transaction through a chain: its answer must fit into one message.
constexpr std::uint32_t kLineKeysMax = 8;
constexpr std::uint32_t kLineValueMax = 1024;

MeasuredPoint line_point(const LinePoint& measured) {
  const LineSetting& setting = measured.setting;
  const std::string workload = fmt::format("{}+{}", measured.reads, measured.writes);
  return {.target = std::string(name(measured.way)),
          .workload = workload,
          .parameters = {{"transport", name(setting.transport)},
                         {"nodes", setting.nodes},
                         {"value_bytes", setting.value_bytes},
                         {"pairs", setting.pairs},
                         {"hop_ns", setting.hop_ns},
                         {"placement", fabric::name(setting.placement)}},
          .answers = fmt::format("{} of {} bytes", workload, setting.value_bytes),
          .measure = [measured] { return measure_line(measured); }};
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
      points.push_back({.target = std::string(name(target)),
                        .workload = "smallbank",
                        .parameters = {{"accounts", options.accounts}},
                        .threads = threads,
                        .answers = fmt::format("smallbank, {} threads", threads),
                        .measure = [setting] { return measure_bank(setting); }});
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
      points.push_back({.target = std::string(name(target)),
                        .workload = "ycsb-t",
                        .parameters = {{"keys", setting.keys},
                                       {"value_bytes", setting.value_bytes},
                                       {"length", setting.length}},
                        .threads = threads,
                        .answers = fmt::format("ycsb-t, {} threads", threads),
                        .measure = [setting] { return measure_ycsb_transactions(setting); }});
    }
  }
  return points;
}

std::vector<MeasuredPoint> clock_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t threads : options.threads) {
    for (const bool shared : {false, true}) {
      const ClockSetting setting{shared, options.keys, threads, options.ops, options.seed};
      points.push_back(
          {.target = "embedded",
           .workload = "a",
           .parameters = {{"clock", shared ? "shared" : "own"}, {"keys", setting.keys}},
           .threads = threads,
           .answers = fmt::format("a, {} threads", threads),
           .measure = [setting] { return measure_clock(setting); }});
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
    points.push_back({.target = nodes == 1 ? "node" : "chain",
                      .workload = "puts",
                      .parameters = {{"nodes", nodes},
                                     {"value_bytes", writes.value_bytes},
                                     {"in_flight", writes.in_flight}},
                      .threads = 1 + nodes,
                      .answers = "puts",
                      .measure = [writes] { return measure_chain_writes(writes); }});
  }
  return points;
}

std::vector<MeasuredPoint> failover_points(const TransactionBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t fence_ms : options.fence_ms) {
    ChainSetting setting = chain_of(options);
    setting.fence_ms = fence_ms;
    points.push_back(
        {.target = "chain",
         .workload = "count",
         .parameters = {{"nodes", setting.nodes},
                        {"fence_ms", fence_ms},
                        {"kept_by", setting.etcd.empty() ? "file" : "etcd"}},
         .threads = 1 + setting.nodes,
         .answers = "count",
         .measure = [setting, puts = options.puts] { return measure_failover(setting, puts); }});
  }
  return points;
}

bool is_shape(const TransactionShape& shape) {
  return shape.reads + shape.writes >= 1 && shape.reads <= kLineKeysMax &&
         shape.writes <= kLineKeysMax;
}

/// Whether its request, its record and its answer fit into messages.
bool fits(const TransactionShape& shape, std::uint32_t value_bytes) {
  constexpr std::uint32_t kOfKey = 128;  // with its overhead
  const std::uint32_t most = std::max(shape.reads, shape.writes);
  return shape.reads * kOfKey + most * (value_bytes + kOfKey) <= PolledLink::kMessageBytesMax;
}

std::optional<LineWay> parse_line_way(std::string_view text) {
  for (const LineWay way : {LineWay::one_request, LineWay::one_by_one}) {
    if (text == name(way)) return way;
  }
  return std::nullopt;
}

void declare_line(OptionRows& rows, TransactionBenchOptions& options) {
  rows.choices("--way", options.ways, parse_line_way,
               "one-request, one-by-one; both by default (line)");
  rows.choices("--transport", options.transports, parse_node_transport,
               "shm, roce-memif, roce-udp; shm,roce-memif by default (line)");
  rows.require(std::ranges::all_of(options.transports, has_polled_link),
               "--transport: shm, roce-memif, roce-udp");
  rows.numbers("--nodes", options.nodes, {1, 8}, "of the chain (line, nodes)");
  rows.numbers("--value-bytes", options.value_bytes, {8, kLineValueMax},
               "of each value (line; ycsb, nodes: the first)");
  rows.choices("--shape", options.shapes, parse_shape,
               "READS+WRITES of a transaction; 0+1,4+2 by default (line)");
  rows.require(std::ranges::all_of(options.shapes, is_shape),
               "--shape: READS+WRITES, 8 of each at most");
  for (const TransactionShape& shape : options.shapes) {
    for (const std::uint32_t value_bytes : options.value_bytes) {
      rows.require(fits(shape, value_bytes), "--shape: so many values fit into no message");
    }
  }
  rows.choices("--placement", options.placements, fabric::parse_placement_policy,
               "of records in persistent memory of the next replica: adaptive, cache, memory; "
               "adaptive by default (line)");
  rows.number("--hop-ns", options.hop_ns, {0, 1'000'000'000},
              "modelled nanoseconds of each hop, besides what its transport takes (line)");
  rows.number("--pairs", options.pairs, {64, 100'000'000}, "that the chain has (line)");
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

void TransactionBenchOptions::declare(OptionRows& rows) {
  declare_line(rows, *this);
  rows.choices("--target", targets, parse_transaction_target,
               "embedded, rocksdb; both by default (bank, ycsb)");
  rows.number("--accounts", accounts, {64, 100'000'000}, "of the bank (bank)");
  rows.number("--keys", keys, {1000, 1'000'000'000}, "of the store (ycsb); of each map (clock)");
  rows.number("--length", length, {2, 32}, "keys of the longest transactions (ycsb)");
  rows.numbers("--threads", threads, {1, 256}, "(bank, ycsb, clock)");
  rows.number("--ops", ops, {1, 1'000'000'000},
              "transactions of a measurement; requests (clock), puts (nodes)");
  rows.text("--dir", dir, kFolderHelp);
  rows.text("--etcd", etcd,
            "endpoints that keep chains, HOST:PORT,HOST:PORT; by default files do (nodes, "
            "failover)");
  rows.number("--in-flight", in_flight, {1, 256}, "puts of the client (nodes)");
  rows.numbers("--fence-ms", fence_ms, {100, 60'000},
               "after so long a silent member is left out (failover; nodes: the first)");
  rows.number("--puts", puts, {2, 1'000'000'000},
              "of the client that counts; the head is killed after half of them (failover)");
  rows.of_points(*this);
}

std::vector<ExperimentRow> TransactionBenchOptions::experiment_rows() const {
  using Points = std::vector<MeasuredPoint> (*)(const TransactionBenchOptions&);
  const auto of = [this](Points points) {
    return [this, points](Report&) { return points(*this); };
  };
  return {{"line", of(line_points)},   {"bank", of(bank_points)},
          {"ycsb", of(ycsb_points)},   {"clock", of(clock_points)},
          {"nodes", of(nodes_points)}, {"failover", of(failover_points)}};
}

}  // namespace espalier::bench
