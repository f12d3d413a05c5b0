// SPDX-License-Identifier: Apache-2.0
#include "node/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "node/node_number.hpp"
#include "node/testing/metrics_fixture.hpp"
#include "node/testing/metrics_reader.hpp"

namespace espalier::node {
namespace {

using Labels = std::map<std::string, std::string>;

// A row without a help is one of several of its name.
std::size_t metric_count() {
  return static_cast<std::size_t>(std::ranges::count_if(
      node_numbers(), [](const NodeNumber& number) { return !number.help.empty(); }));
}

TEST(Metrics, AreWhatAStrictReaderTakes) {
  const ReadMetrics read = MetricsReader::read(metrics_text(some_numbers()));
  EXPECT_EQ(read.size(), metric_count() + 7) << "and those of objects";
  EXPECT_EQ(read.at("espalier_build_info").at({{"version", "1.2.3"}}), 1);
  EXPECT_EQ(read.at("espalier_process_start_time_seconds").at(), 1'700'000'000.25);
  EXPECT_EQ(read.at("espalier_requests_total").at({{"offload", "get"}}), 640);
  EXPECT_EQ(read.at("espalier_requests_total").at({{"offload", "noop"}}), 0);
  EXPECT_EQ(read.at("espalier_requests_refused_total").at(), 11);
  EXPECT_EQ(read.at("espalier_requests_in_flight").at({{"worker", "0"}}), 3);
  EXPECT_EQ(read.at("espalier_connections").at({{"worker", "1"}}), 1);
  EXPECT_EQ(read.at("espalier_worker_sleeps_total").sum(), 15);
  EXPECT_EQ(read.at("espalier_map_items").at({{"map", "default"}}), 0x1p60);
  EXPECT_EQ(read.at("espalier_map_height").at({{"map", "default"}}), 3);
  const Labels sales = {{"table", "sales"}};
  EXPECT_EQ(read.at("espalier_objects").at({{"kind", "map"}}), 1);
  EXPECT_EQ(read.at("espalier_objects").at({{"kind", "table"}}), 1);
  EXPECT_EQ(read.at("espalier_objects").at({{"kind", "sequencer"}}), 1);
  EXPECT_EQ(read.at("espalier_objects").at({{"kind", "other"}}), 0);
  const Labels orders = {{"sequencer", "orders"}};
  EXPECT_EQ(read.at("espalier_sequencer_next").at(orders), 1234);
  EXPECT_EQ(read.at("espalier_sequencer_sealed").at(orders), 1);
  EXPECT_EQ(read.at("espalier_feed_followers").at({{"map", "default"}}), 23);
  EXPECT_EQ(read.at("espalier_table_rows").at(sales), 1000);
  EXPECT_EQ(read.at("espalier_table_memory_bytes").at(sales), 4'259'840);
  EXPECT_EQ(read.at("espalier_queries_running").at(), 6);
  EXPECT_EQ(read.at("espalier_queries_refused_total").at(), 10);
  EXPECT_EQ(read.at("espalier_helper_threads").at(), 3);
  EXPECT_EQ(read.at("espalier_helper_jobs").at({{"state", "ready"}}), 4);
  EXPECT_EQ(read.at("espalier_helper_jobs").at({{"state", "running"}}), 2);
  EXPECT_EQ(read.at("espalier_helper_busy_seconds_total").at(), 1.5);
  EXPECT_EQ(read.at("espalier_helper_longest_step_seconds").at(), 0.002);
  EXPECT_EQ(read.at("espalier_requests_denied_total").at(), 21);
  const ReadMetric& authentications = read.at("espalier_authentications_total");
  EXPECT_EQ(authentications.at({{"result", "accepted"}}), 22);
  EXPECT_EQ(authentications.at({{"result", "wrong_proof"}}), 23);
  EXPECT_EQ(authentications.at({{"result", "failed"}}), 24);
  EXPECT_EQ(authentications.at({{"result", "timed_out"}}), 25);
  EXPECT_EQ(authentications.at({{"result", "limited"}}), 26);
  EXPECT_EQ(read.at("espalier_pending_peers").at(), 27);
  EXPECT_EQ(read.at("espalier_audit_left_out_total").at(), 28);
  EXPECT_EQ(read.at("espalier_snapshots").at(), 31);
  EXPECT_EQ(read.at("espalier_snapshot_bytes").at(), 32);
  EXPECT_EQ(read.at("espalier_snapshot_limit_bytes").at(), 33);
  EXPECT_EQ(read.at("espalier_snapshots_expired_total").at(), 34);
  EXPECT_EQ(read.at("espalier_connections_limit").at(), 41);
  EXPECT_EQ(read.at("espalier_principal_connections_limit").at(), 42);
  EXPECT_EQ(read.at("espalier_connections_limited_total").at(), 43);
  EXPECT_EQ(read.at("espalier_pending_connections").at(), 44);
  EXPECT_EQ(read.at("espalier_ring_bytes").at(), 45);
  EXPECT_EQ(read.at("espalier_ring_limit_bytes").at(), 46);
  EXPECT_EQ(read.at("espalier_principal_ring_limit_bytes").at(), 47);
  EXPECT_EQ(read.at("espalier_connections_kept").at(), 48);
  EXPECT_EQ(read.at("espalier_pending_connections_limit").at(), 49);
  EXPECT_EQ(read.at("espalier_user_pending_connections_limit").at(), 50);
  const ReadMetric& held = read.at("espalier_held_bytes");
  EXPECT_EQ(held.at({{"kind", "snapshot"}, {"owner", "process 12"}, {"map", "default"}}), 8192);
  EXPECT_EQ(held.at({{"kind", "lease"}, {"owner", "session 3"}, {"map", ""}}), 4096);
}

TEST(Metrics, TellOfPeers) {
  const ReadMetrics read = MetricsReader::read(metrics_text(some_numbers()));
  const Labels peer = {{"peer", "b"}};
  EXPECT_EQ(read.at("espalier_peer_links_up").at(peer), 2);
  EXPECT_EQ(read.at("espalier_peer_links_opened_total").at(peer), 3);
  EXPECT_EQ(read.at("espalier_peer_posts_total").at(peer), 60);
  EXPECT_EQ(read.at("espalier_peer_doorbells_total").at(peer), 20);
  EXPECT_EQ(read.at("espalier_peer_completions_total").at(peer), 19);
  EXPECT_EQ(read.at("espalier_peer_failures_total").at(peer), 1);
  EXPECT_EQ(read.at("espalier_peer_calls_total").at(peer), 5);
  EXPECT_EQ(read.at("espalier_peer_calls_failed_total").at(peer), 4);
}

TEST(Metrics, PacketsInNamesOfOthers) {
  const ReadMetrics read = MetricsReader::read(metrics_text(some_numbers()));
  const ReadMetric& cookies = read.at("espalier_connection_cookies_total");
  EXPECT_EQ(cookies.at({{"result", "sent"}}), 51);
  EXPECT_EQ(cookies.at({{"result", "accepted"}}), 52);
  EXPECT_EQ(cookies.at({{"result", "refused"}}), 53);
  EXPECT_EQ(read.at("espalier_connection_messages_shed_total").at(), 54);
  const ReadMetric& packets = read.at("espalier_packets_dropped_total");
  EXPECT_EQ(packets.at({{"reason", "foreign"}}), 55);
  EXPECT_EQ(packets.at({{"reason", "out_of_window"}}), 56);
}

// Every user of the machine may read them.
TEST(Metrics, TellWhatPrincipalsHaveAndNotWhoTheyAre) {
  const std::string text = metrics_text(some_numbers());
  EXPECT_EQ(text.find("alice"), std::string::npos);
  const ReadMetrics read = MetricsReader::read(text);
  EXPECT_EQ(read.at("espalier_principals").at(), 61);
  EXPECT_EQ(read.at("espalier_principal_connections_most").at(), 62);
  EXPECT_EQ(read.at("espalier_principal_ring_bytes_most").at(), 63);
  EXPECT_EQ(read.at("espalier_principal_snapshots_most").at(), 64);
  EXPECT_EQ(read.at("espalier_principal_snapshots_limit").at(), 35);
}

TEST(Metrics, TellOfTheLogWhereThereIsOne) {
  NodeNumbers numbers = some_numbers();
  ReadMetrics read = MetricsReader::read(metrics_text(numbers));
  EXPECT_EQ(read.at("espalier_log_durable_sequence").at(), 81);
  EXPECT_EQ(read.at("espalier_log_handed_over_sequence").at(), 82);
  EXPECT_EQ(read.at("espalier_log_bytes").at(), 83);
  EXPECT_EQ(read.at("espalier_log_limit_bytes").at(), 84);
  EXPECT_EQ(read.at("espalier_log_failed").at({{"reason", "log: file x, offset 4096"}}), 1);
  EXPECT_EQ(read.at("espalier_checkpoints_total").at(), 91);
  EXPECT_EQ(read.at("espalier_checkpoints_failed_total").at(), 92);
  EXPECT_EQ(read.at("espalier_checkpoint_last_records").at(), 93);
  EXPECT_EQ(read.at("espalier_checkpoint_last_bytes").at(), 94);
  EXPECT_EQ(read.at("espalier_checkpoint_last_seconds").at(), 9.5);
  EXPECT_EQ(read.at("espalier_recovered_records").at(), 96);
  EXPECT_EQ(read.at("espalier_recovered_bytes").at(), 97);
  EXPECT_EQ(read.at("espalier_recovery_expected_bytes").at(), 99);
  EXPECT_EQ(read.at("espalier_recovery_seconds").at(), 9.8);
  std::erase_if(numbers.samples, [](const wire::Sample& sample) {
    return sample.name.starts_with("checkpoint_last");  // none was finished yet
  });
  read = MetricsReader::read(metrics_text(numbers));
  EXPECT_EQ(read.at("espalier_checkpoints_total").at(), 91);
  EXPECT_TRUE(read.at("espalier_checkpoint_last_bytes").samples.empty());
  numbers.samples.clear();
  read = MetricsReader::read(metrics_text(numbers));
  EXPECT_TRUE(read.at("espalier_log_bytes").samples.empty());
  EXPECT_TRUE(read.at("espalier_log_failed").samples.empty());
  EXPECT_TRUE(read.at("espalier_checkpoints_total").samples.empty());
}

TEST(Metrics, TellOfTheChainOfAMember) {
  NodeNumbers numbers = some_numbers();
  EXPECT_TRUE(
      MetricsReader::read(metrics_text(numbers)).at("espalier_chain_epoch").samples.empty());
  set(numbers, {{"chain_epoch", 4},
                {"chain_members", 3},
                {"chain_serves", 1},
                {"chain_held_sequence", 72},
                {"chain_acknowledged_sequence", 71}});
  const ReadMetrics read = MetricsReader::read(metrics_text(numbers));
  EXPECT_EQ(read.at("espalier_chain_epoch").at(), 4);
  EXPECT_EQ(read.at("espalier_chain_members").at(), 3);
  EXPECT_EQ(read.at("espalier_chain_serves").at(), 1);
  EXPECT_EQ(read.at("espalier_chain_held_sequence").at(), 72);
  EXPECT_EQ(read.at("espalier_chain_acknowledged_sequence").at(), 71);
}

TEST(Metrics, DurationsAreAHistogramInSeconds) {
  const ReadMetrics read = MetricsReader::read(metrics_text(some_numbers()));
  const ReadMetric& durations = read.at("espalier_request_duration_seconds");
  const auto bucket = [&](const char* le) {
    return durations.at({{"offload", "get"}, {"le", le}}, "_bucket");
  };
  EXPECT_EQ(bucket("2.56e-07"), 7);
  EXPECT_EQ(bucket("3.84e-07"), 7);
  EXPECT_EQ(bucket("5.12e-07"), 9);
  EXPECT_EQ(bucket("17.179869184"), 9);
  EXPECT_EQ(bucket("+Inf"), 10);
  EXPECT_EQ(durations.at({{"offload", "get"}}, "_count"), 10);
  EXPECT_EQ(durations.at({{"offload", "get"}}, "_sum"), 20.0000025);
  // An offload without timed requests has no line.
  EXPECT_THROW(static_cast<void>(durations.at({{"offload", "noop"}}, "_count")), std::out_of_range);
}

TEST(Metrics, NothingBeyondTheNamesIsNeeded) {
  const ReadMetrics read = MetricsReader::read(metrics_text(NodeNumbers{}));
  EXPECT_EQ(read.size(), metric_count());
  EXPECT_TRUE(read.at("espalier_connections").samples.empty());
}

TEST(Metrics, NoTwoNamesOfMapsLookAlike) {
  NodeNumbers numbers;
  const std::vector<std::string> names = {
      "a\"b\nc",      "a\\",        "a\\\\",   "k\xC3\xA4se",
      "\xFF",         "\\xff",      "\\\\xff", std::string(1, '\0'),
      "\x7F\xC3\xA4", "{x=\"y\"} 1"};
  for (const std::string& name : names) {
    numbers.sampled.objects.push_back(object_of(ObjectKind::map, 1, name, {{"items", 1}}));
  }
  const ReadMetrics read = MetricsReader::read(metrics_text(numbers));
  std::set<std::string> labels;
  for (const ReadSample& sample : read.at("espalier_map_items").samples) {
    labels.insert(sample.labels.at("map"));
  }
  EXPECT_EQ(labels.size(), names.size());
  EXPECT_TRUE(labels.contains("k\xC3\xA4se"));
  EXPECT_TRUE(labels.contains("\\xff"));
  EXPECT_TRUE(labels.contains("\\\\xff"));
  EXPECT_TRUE(labels.contains("{x=\"y\"} 1"));
}

TEST(Metrics, HaveTheLabelsThatTheTableTells) {
  NodeNumbers numbers = some_numbers();
  const ReadMetrics read = MetricsReader::read(metrics_text(numbers));
  for (const NodeNumber& number : node_numbers()) {
    for (const ReadSample& sample : read.at(metric_name(number)).samples) {
      std::string labels;
      for (const auto& [name, value] : sample.labels) {
        if (name != "le") labels += (labels.empty() ? "" : ",") + name;
      }
      EXPECT_EQ(labels, number.labels) << number.name;
    }
  }
}

std::string wrong(const std::string& text) {
  try {
    static_cast<void>(MetricsReader::read(text));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// The reader is the judge of all else, so it is judged here.
TEST(MetricsReader, RefusesWhatPrometheusMight) {
  const std::string head = "# HELP a_total h\n# TYPE a_total counter\n";
  EXPECT_EQ(wrong(head + "a_total{b=\"c\\\\\\\"\\n\"} 1\n"), "");
  EXPECT_EQ(wrong(head + "a_total 1"), "the last line does not end: a_total 1");
  EXPECT_EQ(wrong("a_total 1\n"), "a sample before its type: a_total 1");
  EXPECT_EQ(wrong(head + "b 1\n"), "a sample of another metric: b 1");
  EXPECT_EQ(wrong(head + "a_total 1 2\n"), "not one value: a_total 1 2");
  EXPECT_EQ(wrong(head + "a_total x\n"), "not a value: a_total x");
  EXPECT_EQ(wrong(head + "a_total 1\na_total 1\n"), "a sample twice: a_total 1");
  EXPECT_EQ(wrong(head + head), "a metric twice: # HELP a_total h");
  EXPECT_NE(wrong(head + "a_total{b=\"\\x\"} 1\n"), "");
  EXPECT_NE(wrong(head + "a_total{b=\"\xFF\"} 1\n"), "");
  EXPECT_NE(wrong(head + "a_total{b=\"c} 1\n"), "");
  EXPECT_NE(wrong(head + "a_total{b=\"c\",b=\"c\"} 1\n"), "");
  EXPECT_NE(wrong("# HELP a h\n# TYPE a counter\n"), "");
  EXPECT_NE(wrong("# HELP a_total h\n# TYPE a_total gauge\n"), "");
  EXPECT_NE(wrong("# HELP a h\n"), "");
  const std::string histogram = "# HELP h h\n# TYPE h histogram\n";
  const std::string good = "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n";
  EXPECT_EQ(wrong(histogram + good), "");
  EXPECT_NE(wrong(histogram + "h_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n"), "");
  EXPECT_NE(wrong(histogram + "h_bucket{le=\"1\"} 3\n" + good.substr(good.find("h_bucket", 1))),
            "");
  EXPECT_NE(wrong(histogram + "h_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 3\n"), "");
  EXPECT_NE(wrong(histogram + "h_bucket{le=\"+Inf\"} 2\nh_count 2\n"), "");
}

// Each is reported as a sample, so it keeps to their rules; and JSON has no duplicate names.
TEST(NodeNumbers, AreGoodSamplesWithNamesOfTheirOwn) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  std::set<std::string_view> in_json;
  for (const NodeNumber& number : node_numbers()) {
    EXPECT_TRUE(names.emplace(number.name, number.label_value).second) << number.name;
    EXPECT_TRUE(number.json.empty() || in_json.insert(number.json).second) << number.json;
    EXPECT_TRUE(number.read != nullptr || number.write != nullptr) << number.name;
    if (number.read != nullptr) {
      EXPECT_TRUE(wire::is_good(sample_of(number, 1), "node")) << number.name;
    }
  }
}

TEST(MetricsDocument, HasEveryMetricAsTheTableHasIt) {
  std::ifstream in(std::string(ESPALIER_SOURCE_DIR) + "/docs/metrics.md");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.resize(text.find("\n## Objects\n"));  // of which tests/node_metrics_test.cpp takes care
  std::string rows;
  for (const NodeNumber& number : node_numbers()) {
    if (number.help.empty()) continue;
    const std::string labels = number.labels.empty() ? "" : "`" + std::string(number.labels) + "`";
    rows += "| `" + metric_name(number) + "` | " + std::string(number.type) + " | " + labels +
            (labels.empty() ? "| " : " | ") + std::string(number.help) + " |\n";
  }
  std::string found;  // all rows of metrics, so that a removed metric has none left
  for (std::size_t at = text.find("\n| `"); at != std::string::npos;
       at = text.find("\n| `", at + 1)) {
    found += text.substr(at + 1, text.find('\n', at + 1) - at);
  }
  EXPECT_EQ(found, rows);
}

}  // namespace
}  // namespace espalier::node
