// SPDX-License-Identifier: Apache-2.0
// Every workload on every target, tiny: the same answers everywhere, and reports that can be read.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/report.hpp"
#include "bench/testing/redis_fixture.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {
namespace {

const std::vector<TargetKind> kAll{TargetKind::embedded, TargetKind::absl, TargetKind::rocksdb,
                                   TargetKind::lmdb};

YcsbOptions tiny_ycsb(Workload workload) {
  YcsbOptions options;
  options.workload = workload;
  options.targets = kAll;
  options.keys = 3000;
  options.ops = 9000;  // more than two windows
  options.probe_rounds = 0;
  options.json = true;
  return options;
}

struct YcsbOutcome {
  int exit_code = 0;
  std::vector<Json> lines;
};

YcsbOutcome run_workload(const YcsbOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  YcsbOutcome outcome;
  outcome.exit_code = run_benchmark(options, {out, err});
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) outcome.lines.push_back(Json::parse(line));
  EXPECT_EQ(err.str(), "");
  return outcome;
}

void expect_same_answers(const YcsbOptions& options) {
  SCOPED_TRACE(name(options.workload));
  const YcsbOutcome outcome = run_workload(options);
  EXPECT_EQ(outcome.exit_code, 0);
  ASSERT_EQ(outcome.lines.size(), options.targets.size() * options.repeats + 1);
  std::set<std::string> hashes;
  std::set<std::string> end_hashes;
  for (std::size_t i = 0; i + 1 < outcome.lines.size(); ++i) {
    hashes.insert(outcome.lines[i].at("result_hash"));
    end_hashes.insert(outcome.lines[i].at("end_hash"));
    EXPECT_TRUE(outcome.lines[i].at("complete"));
  }
  EXPECT_EQ(hashes.size(), 1U);
  EXPECT_EQ(end_hashes.size(), 1U);
  const Json& total = outcome.lines.back();
  EXPECT_TRUE(total.at("total"));
  EXPECT_EQ(total.at("compared_runs"), options.targets.size() * options.repeats);
}

const std::vector<Workload> kWorkloads{
    Workload::a,     Workload::b,     Workload::c,     Workload::d,
    Workload::e,     Workload::f,     Workload::cloud, Workload::get,
    Workload::scan,  Workload::mixed, Workload::load,  Workload::load_ascending,
    Workload::erase,
};

std::string case_name(const testing::TestParamInfo<Workload>& parameter) {
  std::string text(name(parameter.param));
  std::erase(text, '-');
  return text;
}

class YcsbWorkload : public testing::TestWithParam<Workload> {};

TEST_P(YcsbWorkload, AllTargetsAnswerAlikeOneAtATime) {
  YcsbOptions options = tiny_ycsb(GetParam());
  options.in_flight = 1;
  expect_same_answers(options);
}

TEST_P(YcsbWorkload, AllTargetsAnswerAlikeWithManyInFlight) {
  expect_same_answers(tiny_ycsb(GetParam()));
}

// Separate, since redis-server may be missing.
class YcsbRedis : public NeedsRedis<testing::TestWithParam<Workload>> {};

TEST_P(YcsbRedis, AnswersAsOthersDo) {
  YcsbOptions options = tiny_ycsb(GetParam());
  options.targets = {TargetKind::absl, TargetKind::redis};
  expect_same_answers(options);
  options.in_flight = 1;
  expect_same_answers(options);
  options.in_flight = 7;
  options.threads = 2;
  options.redis_tcp = true;
  expect_same_answers(options);
}

INSTANTIATE_TEST_SUITE_P(All, YcsbRedis, testing::ValuesIn(kWorkloads), case_name);

INSTANTIATE_TEST_SUITE_P(All, YcsbWorkload, testing::ValuesIn(kWorkloads), case_name);

// RocksDB and LMDB are not compiled for ThreadSanitizer, so only the others run here.
TEST(YcsbConcurrency, TwoThreadsAnswerAlike) {
  for (const Workload workload : kWorkloads) {
    YcsbOptions options = tiny_ycsb(workload);
    options.targets = {TargetKind::embedded, TargetKind::absl};
    options.threads = 2;
    expect_same_answers(options);
  }
}

TEST(YcsbConcurrency, SubscribersAreToldWhatMoves) {
  YcsbOptions options = tiny_ycsb(Workload::a);
  options.targets = {TargetKind::embedded, TargetKind::absl};
  options.subscribers = 2;
  expect_same_answers(options);
  const YcsbOutcome outcome = run_workload(options);
  const Json& line = outcome.lines.front();
  EXPECT_EQ(line.at("subscribers"), 2);
  EXPECT_GT(line.at("feed_changes").get<std::uint64_t>(), 0u);
  EXPECT_GE(line.at("feed_behind").get<std::uint64_t>(), 2u);  // when they began
  EXPECT_FALSE(outcome.lines.at(1).contains("subscribers"));
}

TEST(YcsbConcurrency, TheNodeAnswersAsOthersDoOnEveryTransport) {
  for (const NodeTransport transport : all_node_transports()) {
    SCOPED_TRACE(name(transport));
    for (const Workload workload : {Workload::a, Workload::e}) {
      YcsbOptions options = tiny_ycsb(workload);
      options.targets = {TargetKind::embedded, TargetKind::node};
      options.transport = transport;
      options.keys = 500;
      options.ops = 600;
      expect_same_answers(options);
      options.threads = 2;
      options.in_flight = 1;
      options.ops = 60;
      expect_same_answers(options);
    }
  }
}

TEST(YcsbConcurrency, ClientsThatReadAloneAnswerAsOthersDo) {
  for (const NodeTransport transport : {NodeTransport::shm, NodeTransport::roce_udp}) {
    SCOPED_TRACE(name(transport));
    for (const Workload workload : {Workload::a, Workload::e}) {
      YcsbOptions options = tiny_ycsb(workload);
      options.targets = {TargetKind::embedded, TargetKind::one_sided};
      options.transport = transport;
      options.keys = 500;
      options.ops = 300;
      expect_same_answers(options);
      options.in_flight = 1;
      expect_same_answers(options);
    }
  }
}

TEST(YcsbConcurrency, ADeviceAnswersAsOthersDo) {
  for (const NodeTransport transport : {NodeTransport::unix_socket, NodeTransport::shm}) {
    SCOPED_TRACE(name(transport));
    for (const Workload workload : {Workload::f, Workload::e, Workload::erase}) {
      YcsbOptions options = tiny_ycsb(workload);
      options.targets = {TargetKind::embedded, TargetKind::device};
      options.transport = transport;
      options.keys = 500;
      options.ops = 300;
      expect_same_answers(options);
      options.in_flight = 1;
      expect_same_answers(options);
    }
  }
}

TEST(Ycsb, LinesOfADeviceTellWhatItDid) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::device};
  options.cache_bytes = 0;
  options.ops = 300;
  const YcsbOutcome outcome = run_workload(options);
  ASSERT_FALSE(outcome.lines.empty());
  const Json& line = outcome.lines[0];
  EXPECT_EQ(line.at("target"), "device");
  EXPECT_EQ(line.at("cache_bytes"), 0);
  EXPECT_GE(line.at("bytes_per_op"), 512);  // of its host
  EXPECT_EQ(line.at("hit_share"), 0);
  EXPECT_EQ(line.at("forwarded_per_op"), 0);
}

TEST(Ycsb, LinesOfOneSidedReadsTellWhatTheyTook) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::one_sided};
  options.ops = 300;
  const YcsbOutcome outcome = run_workload(options);
  ASSERT_FALSE(outcome.lines.empty());
  EXPECT_EQ(outcome.lines[0].at("target"), "one-sided");
  EXPECT_EQ(outcome.lines[0].at("transport"), "shm");
  EXPECT_GE(outcome.lines[0].at("round_trips_per_op"), 1);
  EXPECT_GE(outcome.lines[0].at("bytes_per_op"), 512);
}

TEST(YcsbConcurrency, LinesSayOnWhichTransportANodeWasAsked) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::embedded, TargetKind::node};
  options.transport = NodeTransport::shm_send;
  options.ops = 100;
  const YcsbOutcome outcome = run_workload(options);
  ASSERT_EQ(outcome.lines.size(), 3U);
  EXPECT_FALSE(outcome.lines[0].contains("transport"));
  EXPECT_EQ(outcome.lines[1].at("transport"), "shm-send");
  const std::string settings = outcome.lines[1].at("settings");
  EXPECT_NE(settings.find("?rings=send"), std::string::npos) << settings;
}

TEST(Ycsb, TwoThreadsOnPeersWithLocksOfTheirOwn) {
  for (const Workload workload : {Workload::a, Workload::cloud}) {
    YcsbOptions options = tiny_ycsb(workload);
    options.targets = {TargetKind::rocksdb, TargetKind::lmdb, TargetKind::absl};
    options.threads = 2;
    options.ops = 2000;
    expect_same_answers(options);
  }
}

TEST(Ycsb, KeysAndValuesOfManyLengths) {
  for (const std::uint32_t key_bytes : {8U, 9U, 16U, 24U, 32U, 48U, 64U, 100U}) {
    for (const std::uint32_t value_bytes : {0U, 8U, 16U, 64U, 100U, 600U}) {
      SCOPED_TRACE(std::to_string(key_bytes) + " and " + std::to_string(value_bytes));
      for (const Workload workload : {Workload::a, Workload::cloud}) {
        YcsbOptions options = tiny_ycsb(workload);
        options.targets = {TargetKind::embedded, TargetKind::absl};
        options.keys = 300;
        options.ops = 300;
        options.key_bytes = key_bytes;
        options.value_bytes = value_bytes;
        expect_same_answers(options);
      }
    }
  }
}

TEST(Ycsb, ValuesOfDrawnLengthsAndAscendingKeys) {
  for (const Workload workload : {Workload::a, Workload::e, Workload::load}) {
    YcsbOptions options = tiny_ycsb(workload);
    options.targets = {TargetKind::embedded, TargetKind::absl};
    options.key_source = KeySource::ascending;
    options.value_bytes = 16384;
    options.draw_values = true;
    options.keys = 300;
    options.ops = 300;
    expect_same_answers(options);
  }
}

TEST(Ycsb, EveryDistribution) {
  for (const Distribution distribution :
       {Distribution::uniform, Distribution::zipfian, Distribution::latest}) {
    for (const Workload workload : {Workload::a, Workload::d, Workload::e, Workload::cloud}) {
      YcsbOptions options = tiny_ycsb(workload);
      options.targets = {TargetKind::embedded, TargetKind::absl};
      options.distribution = distribution;
      expect_same_answers(options);
    }
  }
}

TEST(Ycsb, TargetsTakeTurns) {
  YcsbOptions options = tiny_ycsb(Workload::a);
  options.targets = {TargetKind::absl, TargetKind::embedded};
  options.repeats = 3;
  const YcsbOutcome outcome = run_workload(options);
  ASSERT_EQ(outcome.lines.size(), 7U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(outcome.lines[i].at("target"), i % 2 == 0 ? "absl" : "embedded");
    EXPECT_EQ(outcome.lines[i].at("repeat"), i / 2);
  }
  EXPECT_EQ(outcome.lines.back().at("ratio_to_absl").at("absl"), 1.0);
  EXPECT_GT(outcome.lines.back().at("ratio_to_absl").at("embedded"), 0.0);
}

TEST(Ycsb, LinesHaveTheKeysThatAreDocumented) {
  YcsbOptions options = tiny_ycsb(Workload::cloud);
  options.targets = {TargetKind::embedded};
  options.probe_rounds = 1;
  const Json line = run_workload(options).lines.front();
  for (const char* key :
       {"bench",       "target",      "workload",   "distribution", "keys",           "key_bytes",
        "value_bytes", "scan_share",  "threads",    "in_flight",    "seed",           "ops",
        "ops_per_s",   "ns_p50",      "ns_p99",     "ns_p999",      "bytes_per_item", "pages",
        "probe_ns",    "result_hash", "hash_covers"}) {
    EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(line.at("ops"), 9000);
  EXPECT_EQ(line.at("hash_covers"), "shape");
}

TEST(Ycsb, SeedsDecideTheAnswers) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::absl};
  const Json first = run_workload(options).lines.front();
  EXPECT_EQ(run_workload(options).lines.front().at("result_hash"), first.at("result_hash"));
  options.seed = 2;
  EXPECT_NE(run_workload(options).lines.front().at("result_hash"), first.at("result_hash"));
}

TEST(Ycsb, TimeThatIsUpIsSaid) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::absl};
  options.seconds = 1e-9;
  const YcsbOutcome outcome = run_workload(options);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_FALSE(outcome.lines.front().at("complete"));
  EXPECT_EQ(outcome.lines.back().at("compared_runs"), 0);
}

TEST(Ycsb, TablesForPeople) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::embedded, TargetKind::absl};
  options.json = false;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err}), 0);
  EXPECT_NE(out.str().find("result hash"), std::string::npos);
  EXPECT_NE(out.str().find("x absl"), std::string::npos);
  EXPECT_NE(out.str().find("all answers equal"), std::string::npos);
}

TEST(Ycsb, ProgressIsShownOnTerminalsAndRemoved) {
  YcsbOptions options = tiny_ycsb(Workload::c);
  options.targets = {TargetKind::absl};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_benchmark(options, {out, err, true}), 0);
  EXPECT_NE(err.str().find("absl: c x 9000"), std::string::npos);
  EXPECT_TRUE(err.str().ends_with("\r\033[K"));
}

}  // namespace
}  // namespace espalier::bench
