// SPDX-License-Identifier: Apache-2.0
// The metrics of a working node, scraped over the loopback interface as Prometheus does.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catalog/testing/some_objects.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "node/metrics.hpp"
#include "node/node_number.hpp"
#include "node/numbers_format.hpp"
#include "node/sample_metrics.hpp"
#include "node/testing/http_fixture.hpp"
#include "node/testing/metrics_reader.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/role_fixture.hpp"

namespace espalier::test {
namespace {

using Labels = std::map<std::string, std::string>;

class NodeMetricsConcurrency : public NodeFixture {
 protected:
  NodeMetricsConcurrency() { options_.metrics_at_any_port = true; }

  [[nodiscard]] std::uint16_t port() const { return node_->metrics_port(); }
  [[nodiscard]] node::ReadMetrics scrape() const {
    const std::string response = node::get(port(), "/metrics");
    EXPECT_EQ(node::status_of(response), "HTTP/1.1 200 OK");
    return node::MetricsReader::read(node::body_of(response));
  }

  std::atomic<int> asked_{0};
};

TEST_F(NodeMetricsConcurrency, TellWhatClientsDid) {
  config_.node.cores = 2;
  start();
  const node::ReadMetrics before = scrape();
  EXPECT_EQ(before.at("espalier_requests_total").sum(), 0);
  EXPECT_EQ(before.at("espalier_map_items").at({{"map", "default"}}), 0);
  {
    Store store = connect();
    Map map = *store.open_map("default");
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(map.put("key " + std::to_string(i), std::string(100, 'v')));
    }
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(map.get("key " + std::to_string(i)));
    EXPECT_FALSE(store.open_map("no such map"));
    const auto snapshot = map.snapshot();
    ASSERT_TRUE(snapshot);
    const node::ReadMetrics after = scrape();
    const Labels of_map = {{"map", "default"}};
    const node::ReadMetric& requests = after.at("espalier_requests_total");
    EXPECT_EQ(requests.at({{"offload", "put"}}), 1000);
    EXPECT_EQ(requests.at({{"offload", "get"}}), 500);
    EXPECT_EQ(after.at("espalier_requests_refused_total").at(), 1);
    EXPECT_GE(after.at("espalier_request_duration_seconds").at({{"offload", "put"}}, "_count"), 5);
    EXPECT_EQ(after.at("espalier_connections").samples.size(), 2u);
    EXPECT_EQ(after.at("espalier_connections").sum(), 1);
    EXPECT_EQ(after.at("espalier_map_items").at(of_map), 1000);
    EXPECT_GE(after.at("espalier_map_leaves").at(of_map), 2);
    EXPECT_EQ(after.at("espalier_map_height").at(of_map), 2);
    EXPECT_EQ(after.at("espalier_map_snapshots").at(of_map), 1);
    EXPECT_EQ(after.at("espalier_map_read_version").at(of_map),
              after.at("espalier_map_write_version").at(of_map));
    EXPECT_LE(after.at("espalier_memory_taken_bytes").at(),
              after.at("espalier_memory_limit_bytes").at());
    EXPECT_LE(after.at("espalier_epoch_oldest").at(), after.at("espalier_epoch_current").at());
    EXPECT_GE(after.at("espalier_epoch_participants").at(), 2);
    EXPECT_GE(after.at("espalier_worker_sleeps_total").sum(), 1);
    EXPECT_GT(after.at("espalier_process_start_time_seconds").at(), 1e9);
  }
  // Ended connections leave the metrics, too.
  node::ReadMetrics last;
  do {
    last = scrape();
  } while (last.at("espalier_connections").sum() != 0 ||
           last.at("espalier_requests_in_flight").sum() != 0);
}

// Also while it goes: by name, no kind is known here.
TEST_F(NodeMetricsConcurrency, TellOfKindsThatTheNodeDoesNotKnow) {
  static std::atomic<int> living{0};  // outlives the node
  start();
  const auto make = [&](const std::string& name) {
    return catalog::create_some<catalog::SomeLater>(node_->catalog(), name, living).value();
  };
  make("odd\x1b\"\n")->lookups = 12;
  const Labels odd = {{"kind_200", "odd\\x1b\"\\x0a"}};
  node::ReadMetrics now = scrape();
  EXPECT_EQ(now.at("espalier_kind_200_items").at(odd), 3);
  EXPECT_EQ(now.at("espalier_kind_200_lookups_total").at(odd), 12);
  EXPECT_EQ(now.at("espalier_kind_200_queued_bytes").samples.size(), 2u);
  EXPECT_EQ(now.at("espalier_objects_left_out").at(), 0);
  for (int i = 0; i < 299; ++i) make("o" + std::to_string(i));
  now = scrape();
  EXPECT_EQ(now.at("espalier_kind_200_items").samples.size(), 300u);
  EXPECT_EQ(now.at("espalier_objects_left_out").at(), 0);
  EXPECT_EQ(now.at("espalier_map_items").at({{"map", "default"}}), 0) << "as it was";
}

TEST_F(NodeMetricsConcurrency, AreReadWhileClientsWorkAndMapsComeAndGo) {
  config_.node.cores = 2;
  start();
  const Witness one(socket());
  const Witness other(socket());
  std::thread maps([this] {
    Store store = connect();
    for (int i = 0; i < 20; ++i) {
      const std::string name = "map \\ \"" + std::to_string(i % 3) + '\n';
      ASSERT_TRUE(store.create_map(name));
      ASSERT_TRUE(store.open_map(name)->put("a", "b"));
      ASSERT_TRUE(store.drop_map(name));
    }
  });
  double requests = 0;
  for (int i = 0; i < 50; ++i) {
    const node::ReadMetrics now = scrape();
    EXPECT_GE(now.at("espalier_requests_total").sum(), requests);
    EXPECT_LE(now.at("espalier_epoch_oldest").at(), now.at("espalier_epoch_current").at());
    requests = now.at("espalier_requests_total").sum();
  }
  maps.join();
  one.wait_for(100);
  EXPECT_GT(scrape().at("espalier_requests_total").sum(), requests);
}

TEST_F(NodeMetricsConcurrency, NumbersThroughRingsAreThoseAtThePort) {
  config_.node.cores = 2;
  start();
  const Store store = connect();
  Map map = *store.open_map("default");
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(map.put(std::to_string(i), "v"));
  const auto bytes = client::StoreImpl::of(store).node_numbers();
  ASSERT_TRUE(bytes) << message(bytes.error());
  const auto numbers = node::decode(*bytes);
  ASSERT_TRUE(numbers) << message(numbers.error());
  const node::ReadMetrics scraped = scrape();
  const auto read = node::MetricsReader::read(node::metrics_text(*numbers));
  for (const std::string name :
       {"espalier_objects", "espalier_connections", "espalier_memory_taken_bytes",
        "espalier_memory_limit_bytes", "espalier_epoch_participants_limit",
        "espalier_process_start_time_seconds"}) {
    EXPECT_EQ(read.at(name).sum(), scraped.at(name).sum()) << name;
  }
  EXPECT_EQ(read.at("espalier_requests_total").at({{"offload", "put"}}), 1000);
  EXPECT_GT(numbers->uptime_ns, 0u);
  // And those of objects: the same names and labels, and values that do not change meanwhile.
  wire::SamplesWanted wanted{};
  wanted.objects_max = 256;
  const auto sampled = channel::samples(*client::StoreImpl::of(store).channel(), wanted);
  ASSERT_TRUE(sampled) << message(sampled.error());
  std::string page;
  node::append_sample_metrics(page, *sampled);
  const node::ReadMetrics by_rings = node::MetricsReader::read(page);
  EXPECT_GE(by_rings.size(), 10u);
  for (const auto& [name, metric] : by_rings) {
    ASSERT_TRUE(scraped.contains(name)) << name;
    EXPECT_EQ(scraped.at(name).samples.size(), metric.samples.size()) << name;
  }
  for (const std::string name : {"espalier_map_items", "espalier_map_leaves",
                                 "espalier_map_read_version", "espalier_map_height"}) {
    EXPECT_EQ(by_rings.at(name).at({{"map", "default"}}), scraped.at(name).at({{"map", "default"}}))
        << name;
  }
  EXPECT_EQ(by_rings.at("espalier_map_items").at({{"map", "default"}}), 1000);
}

// Of a node without a log, which is no device.
TEST_F(NodeMetricsConcurrency, EachNumberThatItHasIsOnThePage) {
  start();
  const Store store = connect();
  const std::string page = node::body_of(node::get(port(), "/metrics"));
  const node::ReadMetrics scraped = node::MetricsReader::read(page);
  std::size_t left_out = 0;
  for (const node::NodeNumber& number : node::node_numbers()) {
    const std::string name = node::metric_name(number);
    if (scraped.contains(name)) continue;
    const bool may_lack = name.find("_log_") != std::string::npos ||
                          name.find("_device_") != std::string::npos;
    EXPECT_TRUE(may_lack) << name;
    ++left_out;
  }
  EXPECT_LT(left_out, node::node_numbers().size() / 2);
}

TEST_F(NodeMetricsConcurrency, NumbersAreToldUntilTheNodeStops) {
  config_.node.cores = 2;
  start();
  const auto ask = [this] {
    const Store store = connect();
    for (;;) {
      const auto bytes = client::StoreImpl::of(store).node_numbers();
      if (bytes) {
        EXPECT_TRUE(node::decode(*bytes));
        asked_.fetch_add(1);
        continue;
      }
      // It gets the error of the stopping node, or arrives while the node stops.
      EXPECT_TRUE(bytes.error().code == Code::connection_lost ||
                  bytes.error().code == Code::unsupported || bytes.error().code == Code::system)
          << message(bytes.error());
      return;
    }
  };
  std::thread one(ask);
  std::thread other(ask);
  Store store = connect();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store.create_map("m"));
    ASSERT_TRUE(store.drop_map("m"));
  }
  while (asked_.load() < 20) std::this_thread::yield();
  node_.reset();
  one.join();
  other.join();
}

TEST_F(NodeMetricsConcurrency, GarbageAndSlownessAtThePortHarmNobody) {
  start();
  const Witness witness(socket());
  std::vector<std::unique_ptr<node::HttpClient>> slow;
  for (std::size_t i = 0; i + 4 < node::HttpListener::kConnectionsMax; ++i) {
    slow.push_back(std::make_unique<node::HttpClient>(port()));
    ASSERT_TRUE(slow.back()->send("GET /metrics HTTP/1.1\r\nX: "));
  }
  for (int i = 0; i < 50; ++i) {
    std::string garbage(static_cast<std::size_t>(i * 397), static_cast<char>(i * 31));
    const std::string answer = node::exchange(port(), garbage + "\r\n\r\n");
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
    for (auto& client : slow) client->send("x");
  }
  witness.wait_for(100);
  EXPECT_EQ(node::body_of(node::get(port(), "/healthz")), "ok");
  EXPECT_EQ(scrape().at("espalier_connections").sum(), 1);
}

// Those at the port would have their five seconds; a node does not wait for them.
TEST_F(NodeMetricsConcurrency, ANodeStopsAlthoughSomebodyIsAtThePort) {
  start();
  node::HttpClient half(port());
  ASSERT_TRUE(half.send("GET /metrics"));
  const node::HttpClient silent(port());
  EXPECT_EQ(node::body_of(node::get(port(), "/healthz")), "ok");
  node_.reset();
  EXPECT_EQ(half.receive_all(), "");
}

TEST_F(NodeMetricsConcurrency, ATakenPortKeepsANodeFromStarting) {
  start();
  node::Config config = config_;
  config.node.socket += "2";
  config.metrics.port = port();
  const auto second = node::Node::start(config);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), (Error{Code::already_exists, 0, port()}));
  const std::uint16_t port = this->port();
  node_.reset();
  config_.metrics.port = port;
  options_.metrics_at_any_port = false;
  start();  // where the last one was, right after it
  EXPECT_EQ(this->port(), port);
  EXPECT_EQ(node::body_of(node::get(port, "/healthz")), "ok");
}

TEST_F(NodeMetricsConcurrency, ThereAreNoneUnlessTheyAreAskedFor) {
  options_.metrics_at_any_port = false;
  start();
  EXPECT_EQ(port(), 0);
}

class ObjectMetrics : public RoleFixture {};

// One object of each kind: all that there is to report, and no more.
TEST_F(ObjectMetrics, StandInTheDocument) {
  start();
  make("");
  std::string page;
  node::append_sample_metrics(page, node::numbers_and_samples_of(*node_).sampled);
  std::set<std::string> shown;
  for (const auto& [name, metric] : node::MetricsReader::read(page)) {
    std::string labels;
    for (const auto& [label, value] : metric.samples.at(0).labels) {
      labels += (labels.empty() ? "" : ",") + label;
    }
    shown.insert("| `" + name + "` | " + metric.type + " | `" + labels + "` | " + metric.help +
                 " |");
  }
  std::ifstream in(std::string(ESPALIER_SOURCE_DIR) + "/docs/metrics.md");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text = text.substr(text.find("\n## Objects\n"));
  text.resize(text.find("\n## A switch\n"));
  std::set<std::string> written;
  for (std::size_t at = text.find("\n| `"); at != std::string::npos;
       at = text.find("\n| `", at + 1)) {
    written.insert(text.substr(at + 1, text.find('\n', at + 1) - at - 1));
  }
  const auto joined = [](const std::set<std::string>& rows) {
    std::string lines;
    for (const std::string& row : rows) lines += row + '\n';
    return lines;
  };
  EXPECT_EQ(joined(written), joined(shown));
}

}  // namespace
}  // namespace espalier::test
