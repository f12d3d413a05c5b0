// SPDX-License-Identifier: Apache-2.0
// Several concurrent clients of a node, each with the distinct query, and gets of a map beside
// them: the effect of one client's query on others. [Farview Fig. 12]
#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
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
#include "bench/table_way.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kMapKeys = 1000;
constexpr const char* kMapName = "beside";
constexpr double kIdleSeconds = 0.5;
constexpr std::size_t kResultRowBytes = 8;  // of distinct values of one column
constexpr std::size_t kAnswerBytesMax = kResultRowBytes << 20;

std::string key_of(std::uint64_t number) { return fmt::format("{:08}", number); }

Map fill_map(Store& store) {
  if (auto made = store.open_map(kMapName)) return *made;
  Map map = value_or_throw(store.create_map(kMapName), "cannot make a map");
  for (std::uint64_t i = 0; i < kMapKeys; ++i) {
    value_or_throw(map.put(key_of(i), "12345678"), "cannot fill the map");
  }
  return map;
}

/// Gets, one at a time, until end().
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

/// One client's query, and its time.
struct Asked {
  double seconds = 0;
  std::uint64_t hash = 0;
  std::uint64_t rows = 0;
};

Asked ask_one(TableClient& at, const std::vector<std::byte>& message) {
  Asked asked;
  const base::Stopwatch watch;
  const auto done = at.table->run(message, kResultRowBytes, [&](auto rows) {
    asked.hash += hash_of_rows(rows, kResultRowBytes);
    asked.rows += rows.size() / kResultRowBytes;
    return true;
  });
  if (!done) throw std::runtime_error(espalier::message(done.error()));
  asked.seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  return asked;
}

/// All clients begin together, each on its own thread. Errors: rethrows an exception of one of
/// them.
template <class AskOne>
std::vector<Asked> ask_together(std::size_t count, AskOne&& ask) {
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
        asked[i] = ask(i);
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

std::vector<Asked> ask_together(std::vector<TableClient>& clients, std::size_t count,
                                const std::vector<std::byte>& message) {
  return ask_together(count, [&](std::size_t i) { return ask_one(clients[i], message); });
}

double slowest(const std::vector<Asked>& asked) {
  return std::ranges::max_element(asked, {}, &Asked::seconds)->seconds;
}

/// The rates of all clients compared with those of one.
void add_rates(PointSample& sample, const TableData& data, const std::vector<Asked>& alone,
               const std::vector<Asked>& together) {
  const double seconds = slowest(together);
  sample.took(data.rows() * together.size(), seconds);
  for (const Asked& one : together) sample.checksum = one.hash;
  for (const Asked& one : together) {
    if (one.hash != alone[0].hash) throw std::runtime_error("clients' answers differ");
    sample.latencies.record(static_cast<std::uint64_t>(one.seconds * 1e9));
  }
  const double fastest = std::ranges::min_element(together, {}, &Asked::seconds)->seconds;
  const auto bytes = static_cast<double>(data.bytes());
  const double total = bytes * static_cast<double>(together.size()) / seconds;
  sample.numbers.emplace_back("gb_per_s", total * 1e-9);
  sample.numbers.emplace_back("of_one", total / (bytes / alone[0].seconds));
  sample.numbers.emplace_back("slowest_to_fastest", seconds / fastest);
}

/// Each client uses a way of its own.
PointSample measure_ways(const TableOptions& options, const TableQuery& query, const WayMaker& make,
                         std::uint32_t count) {
  const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
  std::vector<TableWay> ways;
  for (std::uint32_t i = 0; i < count; ++i) ways.push_back(make(data));
  std::vector<std::vector<std::byte>> answers(count, std::vector<std::byte>(kAnswerBytesMax));
  const auto ask = [&](std::size_t i) {
    Asked asked;
    const base::Stopwatch watch;
    const std::size_t bytes = ways[i].ask(answers[i]);
    asked.seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
    asked.hash = hash_of_rows(std::span(answers[i]).first(bytes), kResultRowBytes);
    asked.rows = bytes / kResultRowBytes;
    return asked;
  };
  static_cast<void>(ask_together(count, ask));  // touches all memory
  const std::vector<Asked> alone = ask_together(1, ask);
  PointSample sample;
  add_rates(sample, *data, alone, ask_together(count, ask));
  return sample;
}

PointSample measure_clients(const TableOptions& options, const TableQuery& query,
                            NodeTransport transport, std::uint32_t count) {
  const auto data = TableData::of(query.spec(options.table_bytes, options.seed));
  const auto node = TableNode::of(data, transport);
  const auto message = message_of(query);
  std::vector<TableClient> clients;
  for (std::uint32_t i = 0; i < count; ++i) clients.push_back(TableClient::open(node->address()));
  GetsBeside gets(node->address());

  static_cast<void>(ask_together(clients, 1, message));  // touches all memory
  const std::vector<Asked> alone = ask_together(clients, 1, message);
  const std::vector<Asked> together = ask_together(clients, count, message);
  const double seconds = slowest(together);

  // Repeats it with concurrent gets; and before, measures gets with idle clients.
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
  add_rates(sample, *data, alone, together);
  const auto p99 = [](const base::Histogram& of) {
    return of.count() == 0 ? 0.0 : static_cast<double>(of.percentile(0.99));
  };
  sample.numbers.emplace_back("get_ns_p99_idle", p99(before));
  sample.numbers.emplace_back("get_ns_p99_beside", p99(beside));
  return sample;
}

}  // namespace

std::vector<MeasuredPoint> client_points(const TableOptions& options) {
  TableOptions one = options;
  one.groups = {options.groups[std::min<std::size_t>(1, options.groups.size() - 1)]};
  const TableQuery query = table_queries(one, "distinct").front();
  const auto message = message_of(query);
  std::vector<MeasuredPoint> points;
  // `others`: the threads and processes that work in addition to each client.
  const auto add = [&](const std::string& target, const std::string& transport,
                       std::uint32_t others, auto measure) {
    if (!is_chosen(options.targets, target)) return;
    for (const std::uint32_t count : options.clients) {
      Json parameters = query.parameters;
      parameters["table_bytes"] = options.table_bytes;
      if (!transport.empty()) parameters["transport"] = transport;
      parameters["clients"] = count;
      points.push_back({.target = target,
                        .workload = query.workload,
                        .parameters = std::move(parameters),
                        .threads = count + others,
                        .answers = "distinct",
                        .measure = [=] { return measure(count); }});
    }
  };
  const auto by_ways = [=](WayMaker make) {
    return [=](std::uint32_t count) { return measure_ways(options, query, make, count); };
  };
  add("local", "", 0, by_ways([=](const auto& data) { return local_way(data, message); }));
  add("remote", "", 1, by_ways([=](const auto& data) { return remote_way(data, message); }));
  for (const NodeTransport transport : options.transports) {
    const std::string by(name(transport));
    add("pull", by, 1, by_ways([=](const auto& data) {
          return pull_way(data, transport, message_of(query, true));
        }));
    add("pushed", by, 2,
        [=](std::uint32_t count) { return measure_clients(options, query, transport, count); });
  }
  return points;
}

}  // namespace espalier::bench
