// SPDX-License-Identifier: Apache-2.0
// Several clients that ask a node at a time, each with the distinct query, and gets of a map beside
// them: what one client's query takes from the others'. [Farview Fig. 12]
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bench/map_session.hpp"
#include "bench/run_table.hpp"
#include "bench/table_node.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kMapKeys = 1000;
constexpr const char* kMapName = "beside";
constexpr double kIdleSeconds = 0.5;

std::string key_of(std::uint64_t number) { return fmt::format("{:08}", number); }

Map fill_map(Store& store) {
  if (auto made = store.open_map(kMapName)) return *made;
  Map map = value_or_throw(store.create_map(kMapName), "cannot make a map");
  for (std::uint64_t i = 0; i < kMapKeys; ++i) {
    value_or_throw(map.put(key_of(i), "12345678"), "cannot fill the map");
  }
  return map;
}

/// Gets, one at a time, until it is told to end.
class GetsBeside {
 public:
  explicit GetsBeside(const std::string& address)
      : store_(value_or_throw(Store::connect(address), "cannot connect to the node")),
        map_(fill_map(store_)) {}

  template <class Until>
  base::Histogram measure(Until&& until) {
    base::Histogram latencies;
    std::string value;
    for (std::uint64_t i = 0; !until(); ++i) {
      const base::Stopwatch one;
      if (!value_or_throw(map_.get(key_of(i % kMapKeys), value), "cannot get")) {
        throw std::runtime_error("a key of the map is gone");
      }
      latencies.record(one.elapsed_ns());
    }
    return latencies;
  }

 private:
  Store store_;
  Map map_;
};

/// One client's query, and how long it took.
struct Asked {
  double seconds = 0;
  std::uint64_t hash = 0;
  std::uint64_t rows = 0;
};

Asked ask_one(TableClient& at, const std::vector<std::byte>& message) {
  const std::size_t row_bytes = 8;  // of distinct values of one column
  Asked asked;
  const base::Stopwatch watch;
  const auto done = at.table->run(message, row_bytes, [&](auto rows) {
    asked.hash += hash_of_rows(rows, row_bytes);
    asked.rows += rows.size() / row_bytes;
    return true;
  });
  if (!done) throw std::runtime_error(espalier::message(done.error()));
  asked.seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  return asked;
}

/// All clients begin together. Errors: rethrows what one of them threw.
std::vector<Asked> ask_together(std::vector<TableClient>& clients, std::size_t count,
                                const std::vector<std::byte>& message) {
  std::vector<Asked> asked(count);
  std::exception_ptr error;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  std::atomic<std::size_t> ready{0};
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        ready.fetch_add(1);
        while (ready.load() < count) std::this_thread::yield();
        asked[i] = ask_one(clients[i], message);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        error = std::current_exception();
      }
    });
  }
  threads.clear();
  if (error) std::rethrow_exception(error);
  return asked;
}

double slowest(const std::vector<Asked>& asked) {
  return std::ranges::max_element(asked, {}, &Asked::seconds)->seconds;
}

PointSample measure_clients(const TableOptions& options, const TableQuery& query,
                            NodeTransport transport, std::uint32_t count) {
  const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
  const auto node = TableNode::of(data, transport);
  const auto message = message_of(query);
  std::vector<TableClient> clients;
  for (std::uint32_t i = 0; i < count; ++i) clients.push_back(TableClient::open(node->address()));
  GetsBeside gets(node->address());

  static_cast<void>(ask_together(clients, 1, message));  // so that all was touched
  const std::vector<Asked> alone = ask_together(clients, 1, message);
  const std::vector<Asked> together = ask_together(clients, count, message);
  const double seconds = slowest(together);

  // The same once more, with gets beside them; and before, while all clients ask nothing.
  const base::Stopwatch idle;
  const base::Histogram before = gets.measure([&] {
    return static_cast<double>(idle.elapsed_ns()) * 1e-9 >= std::min(kIdleSeconds, 4 * seconds);
  });
  std::atomic<bool> over{false};
  base::Histogram beside;
  {
    std::exception_ptr error;
    std::jthread asking([&] {
      try {
        static_cast<void>(ask_together(clients, count, message));
      } catch (...) {
        error = std::current_exception();
      }
      over.store(true);
    });
    beside = gets.measure([&] { return over.load(); });
    asking.join();
    if (error) std::rethrow_exception(error);
  }

  PointSample sample;
  sample.took(data->rows() * count, seconds);
  for (const Asked& one : together) sample.checksum = one.hash;
  for (const Asked& one : together) {
    if (one.hash != alone[0].hash) throw std::runtime_error("clients' answers differ");
    sample.latencies.record(static_cast<std::uint64_t>(one.seconds * 1e9));
  }
  const double fastest = std::ranges::min_element(together, {}, &Asked::seconds)->seconds;
  const double total = static_cast<double>(data->bytes()) * count / seconds;
  sample.numbers.emplace_back("gb_per_s", total * 1e-9);
  sample.numbers.emplace_back("of_one",
                              total / (static_cast<double>(data->bytes()) / alone[0].seconds));
  sample.numbers.emplace_back("slowest_to_fastest", seconds / fastest);
  const auto p99 = [](const base::Histogram& of) {
    return of.count() == 0 ? 0.0 : static_cast<double>(of.percentile(0.99));
  };
  sample.numbers.emplace_back("get_ns_p99_idle", p99(before));
  sample.numbers.emplace_back("get_ns_p99_beside", p99(beside));
  return sample;
}

}  // namespace

std::vector<MeasuredPoint> client_points(const TableOptions& options) {
  std::vector<MeasuredPoint> points;
  if (!is_chosen(options.targets, "pushed")) return points;
  TableOptions one = options;
  one.groups = {options.groups[std::min<std::size_t>(1, options.groups.size() - 1)]};
  const TableQuery query = table_queries(one, "distinct").front();
  for (const NodeTransport transport : options.transports) {
    for (const std::uint32_t count : options.clients) {
      MeasuredPoint point;
      point.target = "pushed";
      point.workload = query.workload;
      point.parameters = query.parameters;
      point.parameters["table_bytes"] = options.table_bytes;
      point.parameters["transport"] = name(transport);
      point.parameters["clients"] = count;
      point.threads = count + 2;  // clients, the node's worker, and its helper
      point.answers = "distinct";
      point.measure = [=] { return measure_clients(options, query, transport, count); };
      points.push_back(std::move(point));
    }
  }
  return points;
}

}  // namespace espalier::bench
