// SPDX-License-Identifier: Apache-2.0
// Points of `espalier-bench table` that end with the result in a client's memory.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/huge_memory.hpp"
#include "bench/probe.hpp"
#include "bench/run_table.hpp"
#include "bench/table_node.hpp"
#include "bench/table_way.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/snapshot_source.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kMergeSeed = 2;

/// The memory of a client's result rows.
HugeBuffer& result_memory(std::uint64_t bytes) {
  static HugeBuffer memory;
  if (memory.bytes() < bytes) {
    memory = HugeBuffer(bytes);
    std::memset(memory.data(), 1, memory.bytes());
  }
  return memory;
}

/// Copies the results of a query; merges partial groups.
class Receiver {
 public:
  Receiver(const table::Pipeline& pipeline, std::span<std::byte> into)
      : pipeline_(pipeline), merge_(pipeline, kMergeSeed), into_(into) {}

  bool take(std::span<const std::byte> rows) {
    if (!merge_.is_streaming()) {
      merge_.take(rows);
      return true;
    }
    const std::size_t bytes = merge_.take(rows) * pipeline_.result.row_bytes();
    if (bytes > into_.size() - used_) throw std::runtime_error("more rows than the table has");
    std::memcpy(into_.data() + used_, rows.data(), bytes);
    used_ += bytes;
    return true;
  }
  std::size_t finish() {
    if (merge_.is_streaming()) return used_;
    const std::size_t row_bytes = pipeline_.result.row_bytes();
    for (std::size_t i = 0; i < merge_.size(); ++i, used_ += row_bytes) {
      std::memcpy(into_.data() + used_, merge_.row(i), row_bytes);
    }
    return used_;
  }

 private:
  const table::Pipeline& pipeline_;
  table::ResultMerge merge_;
  std::span<std::byte> into_;
  std::size_t used_ = 0;
};

wire::QueryNumbers query_node(TableClient& at, std::span<const std::byte> message,
                              std::span<std::byte> into, std::size_t& bytes) {
  const table::Pipeline pipeline = pipeline_of(message, at.table->schema());
  Receiver receiver(pipeline, into);
  static const table::KeyBytes key = TableData::key();
  const auto done =
      at.table->run(message, pipeline.result.row_bytes(),
                    [&](std::span<const std::byte> rows) { return receiver.take(rows); },
                    {.table = pipeline.decrypt ? &key : nullptr, .result = nullptr});
  if (!done) throw std::runtime_error(espalier::message(done.error()));
  bytes = receiver.finish();
  return *done;
}

/// Contiguous rows in memory.
class RowsInMemory final : public table::RowSource {
 public:
  RowsInMemory(std::span<const std::byte> rows, std::uint32_t row_bytes)
      : rows_(rows), row_bytes_(row_bytes) {}
  Result<table::RowSpan> next() override {
    const std::size_t left = (rows_.size() - used_) / row_bytes_;
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(left, 32768));
    const table::RowSpan span{rows_.data() + used_, count, row_bytes_, used_ / row_bytes_};
    used_ += span.bytes();
    return span;
  }

 private:
  std::span<const std::byte> rows_;
  std::uint32_t row_bytes_;
  std::size_t used_ = 0;
};

/// The state of a client and its node while a point is measured.
struct NodeScene {
  std::shared_ptr<const TableNode> node;
  TableClient client;
  wire::QueryNumbers numbers{};
};

std::shared_ptr<NodeScene> open_scene(const std::shared_ptr<const TableData>& data,
                                      NodeTransport transport, Access access = Access::rpc) {
  auto node = TableNode::of(data, transport);
  TableClient client = TableClient::open(node->address(), access);
  return std::make_shared<NodeScene>(NodeScene{std::move(node), std::move(client), {}});
}

TableWay pushed_way(const std::shared_ptr<const TableData>& data, NodeTransport transport,
                    std::vector<std::byte> message) {
  const auto scene = open_scene(data, transport);
  return {[scene, message = std::move(message)](std::span<std::byte> into) {
            std::size_t bytes = 0;
            scene->numbers = query_node(scene->client, message, into, bytes);
            return bytes;
          },
          [scene] { return scene->numbers; }};
}

/// Copies all rows of a node's table to this process, decrypted. Returns their bytes.
std::size_t pull_rows(NodeScene& scene, std::span<std::byte> into) {
  client::RunLimits limits;
  limits.within_call = true;
  const auto rows = scene.client.table->read({}, limits);
  if (!rows) throw std::runtime_error(espalier::message(rows.error()));
  std::size_t used = 0;
  for (;;) {
    const auto piece = (*rows)->next();
    if (!piece) throw std::runtime_error(espalier::message(piece.error()));
    if (piece->empty()) break;
    if (piece->size() > into.size() - used) throw std::runtime_error("more rows than there were");
    std::memcpy(into.data() + used, piece->data(), piece->size());
    used += piece->size();
  }
  scene.numbers = (*rows)->numbers();
  return used;
}

PointSample measure_way(const TableOptions& options, const TableQuery& query, const WayMaker& make,
                        bool is_short) {
  const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
  const HugeBuffer& memory = result_memory(data->bytes());
  const std::span<std::byte> into(memory.data(), memory.bytes());
  const TableWay way = make(data);
  PointSample sample;
  run_pinned([&] {
    std::size_t bytes = way.ask(into);  // touches all memory
    const std::uint64_t queries = is_short ? options.short_queries : 1;
    const base::Stopwatch watch;
    for (std::uint64_t i = 0; i < queries; ++i) {
      const base::Stopwatch one;
      bytes = way.ask(into);
      sample.latencies.record(one.elapsed_ns());
    }
    sample.took(is_short ? queries : data->rows(), static_cast<double>(watch.elapsed_ns()) * 1e-9);
    const table::Pipeline pipeline = pipeline_of(message_of(query), data->table()->schema());
    const std::size_t row_bytes = pipeline.result.row_bytes();
    sample.checksum = hash_of_rows(into.first(bytes), row_bytes);
    sample.numbers.emplace_back("result_rows", static_cast<double>(bytes / row_bytes));
  });
  const double rate = static_cast<double>(data->bytes()) / sample.seconds * 1e-9;
  if (!is_short) sample.numbers.emplace_back("gb_per_s", rate);
  if (!way.numbers) return sample;
  const wire::QueryNumbers numbers = way.numbers();
  const double per_op = is_short ? 1 : 1 / static_cast<double>(data->rows());
  sample.numbers.emplace_back("round_trips_per_op", per_op);
  sample.numbers.emplace_back("bytes_per_op", static_cast<double>(numbers.bytes_sent) * per_op);
  sample.numbers.emplace_back("node_busy_ms", static_cast<double>(numbers.busy_ns) * 1e-6);
  return sample;
}

/// The results of a query if they are only counted.
struct Arrival {
  wire::QueryNumbers numbers{};
  std::uint64_t rows = 0;
  std::uint64_t hash = 0;
  std::uint64_t buffer_bytes = 0;
};

Arrival await_rows(TableClient& at, std::span<const std::byte> message, std::size_t row_bytes,
                   bool into_buffers, bool looks) {
  client::RunLimits limits;
  limits.within_call = true;
  limits.into_buffers = into_buffers;
  const auto run = at.table->begin(message, row_bytes, limits);
  if (!run) throw std::runtime_error(espalier::message(run.error()));
  Arrival arrival;
  for (;;) {
    const auto rows = (*run)->next();
    if (!rows) throw std::runtime_error(espalier::message(rows.error()));
    if (rows->empty()) break;
    arrival.rows += rows->size() / row_bytes;
    if (looks) arrival.hash += hash_of_rows(*rows, row_bytes);
  }
  arrival.numbers = (*run)->numbers();
  arrival.buffer_bytes = (*run)->buffer_bytes();
  return arrival;
}

/// `transport`: empty for none.
MeasuredPoint asking_point(const TableOptions& options, const std::string& target,
                           const std::string& transport, const TableQuery& query) {
  Json parameters = query.parameters;
  parameters["table_bytes"] = options.table_bytes;
  if (!transport.empty()) parameters["transport"] = transport;
  return {.target = target,
          .workload = query.workload,
          .parameters = std::move(parameters),
          .answers = query.workload + " " + query.parameters.dump()};
}

MeasuredPoint arrival_point(const TableOptions& options, NodeTransport transport,
                            const TableQuery& query, bool into_buffers) {
  MeasuredPoint point = asking_point(options, into_buffers ? "buffers" : "chunks",
                                     std::string(name(transport)), query);
  point.threads = 3;
  point.measure = [=] {
    const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
    const auto scene = open_scene(data, transport);
    const auto message = message_of(query);
    const table::Pipeline pipeline = pipeline_of(message, data->table()->schema());
    const std::size_t row_bytes = pipeline.result.row_bytes();
    PointSample sample;
    run_pinned([&] {
      // One run reads every row; it is not in the rate.
      const Arrival hashed = await_rows(scene->client, message, row_bytes, into_buffers, true);
      const base::Stopwatch watch;
      const Arrival timed = await_rows(scene->client, message, row_bytes, into_buffers, false);
      sample.took(data->rows(), static_cast<double>(watch.elapsed_ns()) * 1e-9);
      if (timed.rows != hashed.rows) throw std::runtime_error("two runs give different rows");
      sample.checksum = hashed.hash;
      const auto rows = static_cast<double>(data->rows());
      sample.numbers.emplace_back("result_rows", static_cast<double>(timed.rows));
      sample.numbers.emplace_back("gb_per_s",
                                  static_cast<double>(data->bytes()) / sample.seconds * 1e-9);
      sample.numbers.emplace_back("bytes_per_op",
                                  static_cast<double>(timed.numbers.bytes_sent) / rows);
      sample.numbers.emplace_back("buffer_bytes_per_op",
                                  static_cast<double>(timed.buffer_bytes) / rows);
      sample.numbers.emplace_back("node_busy_ms",
                                  static_cast<double>(timed.numbers.busy_ns) * 1e-6);
    });
    return sample;
  };
  return point;
}

MeasuredPoint way_point(const TableOptions& options, const std::string& target,
                        const std::string& transport, const TableQuery& query, bool is_short,
                        WayMaker make) {
  MeasuredPoint point = asking_point(options, target, transport, query);
  // The client; the serving process; a node's helper, in addition to its worker.
  point.threads = target == "local" ? 1 : target == "remote" ? 2 : 3;
  point.measure = [=] { return measure_way(options, query, make, is_short); };
  return point;
}

}  // namespace

TableWay local_way(const std::shared_ptr<const TableData>& data, std::vector<std::byte> message) {
  return {[=, message = std::move(message)](std::span<std::byte> into) {
            table::SnapshotSource source(data->table());
            return run_locally(*data, source, message, into);
          },
          {}};
}

TableWay remote_way(const std::shared_ptr<const TableData>& data,
                    const std::vector<std::byte>& message) {
  const auto server = std::make_shared<const KeepingServer>(data->spec(), message);
  return {[server](std::span<std::byte> into) { return server->ask(into); }, {}};
}

TableWay pull_way(const std::shared_ptr<const TableData>& data, NodeTransport transport,
                  std::vector<std::byte> message) {
  const Access access = has_reads(transport) ? Access::one_sided : Access::rpc;
  const auto scene = open_scene(data, transport, access);
  if (data->table()->encrypted()) {
    const table::KeyBytes bytes = TableData::key();
    const auto key = TableKey::make(bytes);
    if (!key) throw std::runtime_error(espalier::message(key.error()));
    const auto used = scene->client.table->use({.key = *key});
    if (!used) throw std::runtime_error(espalier::message(used.error()));
  }
  const auto pulled = std::make_shared<HugeBuffer>(data->bytes());
  return {[data, scene, pulled, message = std::move(message)](std::span<std::byte> into) {
            const std::size_t bytes = pull_rows(*scene, {pulled->data(), pulled->bytes()});
            RowsInMemory source({pulled->data(), bytes}, data->table()->schema().row_bytes());
            return run_locally(*data, source, message, into);
          },
          [scene] { return scene->numbers; }};
}

std::vector<MeasuredPoint> way_points(const TableOptions& options, std::string_view experiment) {
  std::vector<MeasuredPoint> points;
  const bool is_short = experiment == "response";
  // Nothing is merged, so each row arrives once.
  const bool comes_as_it_is = experiment == "project" || experiment == "select";
  const auto wants = [&](std::string_view target) { return is_chosen(options.targets, target); };
  const std::vector<TableQuery> queries = table_queries(options, experiment);
  for (const TableQuery& query : queries) {
    const auto message = message_of(query);
    if (wants("local")) {
      points.push_back(way_point(options, "local", "", query, is_short,
                                 [=](const auto& data) { return local_way(data, message); }));
    }
    if (wants("remote")) {
      points.push_back(way_point(options, "remote", "", query, is_short,
                                 [=](const auto& data) { return remote_way(data, message); }));
    }
  }
  for (const NodeTransport transport : options.transports) {
    const std::string by(name(transport));
    for (const TableQuery& query : queries) {
      const auto message = message_of(query);
      if (wants("pull") && !is_short) {
        const auto plain = message_of(query, true);
        points.push_back(way_point(options, "pull", by, query, is_short, [=](const auto& data) {
          return pull_way(data, transport, plain);
        }));
      }
      if (wants("pushed")) {
        points.push_back(way_point(options, "pushed", by, query, is_short, [=](const auto& data) {
          return pushed_way(data, transport, message);
        }));
      }
      if (!comes_as_it_is) continue;
      if (wants("chunks")) points.push_back(arrival_point(options, transport, query, false));
      if (wants("buffers") && transport == NodeTransport::shm) {
        points.push_back(arrival_point(options, transport, query, true));
      }
    }
  }
  return points;
}

}  // namespace espalier::bench
