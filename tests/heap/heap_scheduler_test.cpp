// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of a node for one request: the request is served, or answered
// with out_of_memory and has changed nothing; its client stays connected, and other clients are not
// affected.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/transaction_calls.hpp"
#include "catalog/transaction_part.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/hash/hash_map.hpp"
#include "tests/heap/failing_heap.hpp"
#include "wire/samples.hpp"

namespace espalier::test {
namespace {

using offload::message_of;
using offload::request_of;
using offload::Response;
using offload::SchedulerFixture;
using wire::OffloadId;

struct NodeRequest {
  std::string name;
  OffloadId offload;
  std::string key{};
  std::string payload{};
  bool of_map = true;
  std::uint32_t argument = 0;

  friend void PrintTo(const NodeRequest& request, std::ostream* out) { *out << request.name; }
};

std::string batch_put(const std::string& key, const std::string& value) {
  wire::BatchEntry entry{};
  entry.kind = static_cast<std::uint8_t>(wire::BatchKind::put);
  entry.key_bytes = static_cast<std::uint16_t>(key.size());
  entry.value_bytes = static_cast<std::uint32_t>(value.size());
  return rings::bytes_of(entry) + key + value;
}

std::vector<NodeRequest> node_requests() {
  const std::string long_value(6000, 'l');
  const std::string very_long_value(300'000, 'l');  // that a helper copies
  return {
      {"Noop", OffloadId::noop, {}, {}, false},
      {"Get", OffloadId::get, "key 105"},
      {"GetAStoredValue", OffloadId::get, "key 107"},
      {"Put", OffloadId::put, "key 105", "another value"},
      {"PutALongValue", OffloadId::put, "key 107", long_value},
      {"GetAVeryLongValue", OffloadId::get, "very long"},
      {"FindAVeryLongValue", OffloadId::floor, "very long and more"},
      {"ScanToAVeryLongValue", OffloadId::scan, "key 199"},
      {"PutAVeryLongValue", OffloadId::put, "key 107", very_long_value},
      {"Insert", OffloadId::insert, "a new key", "another value"},
      {"Erase", OffloadId::erase, "key 105"},
      {"Floor", OffloadId::floor, "key 105 and more"},
      {"Scan", OffloadId::scan},
      {"ScanBackwards", OffloadId::scan_reverse},
      {"Count", OffloadId::count},
      {"WriteBatch",
       OffloadId::write_batch,
       {},
       batch_put("key 105", "new") + batch_put("key 150", long_value),
       true,
       2},
      {"OpenSnapshot", OffloadId::snapshot_open},
      {"OpenAMap", OffloadId::map_open, "m", {}, false},
      {"ListObjects", OffloadId::object_list, {}, {}, false},
      {"SampleObjects",
       OffloadId::object_samples,
       {},
       std::string(base::bytes_of(wire::SamplesWanted{256, 0, 0, 0})),
       false},
  };
}

class HeapScheduler : public ::testing::TestWithParam<NodeRequest> {
 protected:
  using Client = SchedulerFixture::Client;

  // What every world begins with.
  static void fill(SchedulerFixture& node, Client& client) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = "key " + std::to_string(100 + i);
      const std::string value(i % 7 == 0 ? 5000 : 20, 'v');
      ASSERT_TRUE(node.call(client, request_of(OffloadId::put, node.map()), key, value).applied());
    }
    const std::string value(300'000, 'v');
    ASSERT_TRUE(
        node.call(client, request_of(OffloadId::put, node.map()), "very long", value).applied());
  }
};

TEST_P(HeapScheduler, NoMemoryAtEveryAllocation) {
  const NodeRequest& asked = GetParam();
  constexpr std::int64_t kMost = 2000;
  for (const auto failure : {FailingHeap::Failure::once, FailingHeap::Failure::for_good}) {
    bool failed = true;
    std::int64_t n = 0;
    for (; failed && n < kMost; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n) +
                   (failure == FailingHeap::Failure::once ? " fails" : " and all others"));
      SchedulerFixture node;
      Client& other = node.connect();
      fill(node, other);
      Client& client = node.connect({1024, 1024, 1});
      const std::string message =
          message_of(request_of(asked.offload, asked.of_map ? node.map() : 0, 7, asked.argument),
                     asked.key, asked.payload);
      client->post(message);
      client->ring();
      FailingHeap heap(n, failure);
      node.turns(200);
      heap.stop();
      failed = heap.failed();
      Response response;
      do {
        response = node.wait(client);
        ASSERT_NE(response.header.kind, 0) << "no answer came";
      } while (!response.answers());
      EXPECT_EQ(response.header.tag, 7u);
      const Code code = response.code();
      if (code != Code::invalid) {
        EXPECT_EQ(code, Code::out_of_memory);
        EXPECT_TRUE(failed);
      }
      EXPECT_EQ(node.broken(), 0);
      // Others are served, and so is this client the next time.
      EXPECT_TRUE(node.call(other, request_of(OffloadId::get, node.map()), "key 100").found());
      const Response again = node.call(client, message);
      EXPECT_EQ(again.code(), Code::invalid);
      EXPECT_TRUE(node.run_until_idle());
      EXPECT_EQ(node.services().budget.used(), 0u);
      const std::vector<std::string> wrong = node.audit();
      EXPECT_TRUE(wrong.empty()) << wrong.front();
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_LT(n, kMost);
  }
}

INSTANTIATE_TEST_SUITE_P(Requests, HeapScheduler, ::testing::ValuesIn(node_requests()),
                         [](const auto& request) { return request.param.name; });

/// Of the map "m": what a key has, and another key anew.
std::string read_and_put(std::string_view read, std::string_view put) {
  object_calls::StepHead get_head{};
  get_head.key_bytes = static_cast<std::uint16_t>(read.size());
  get_head.kind = static_cast<std::uint8_t>(catalog::StepKind::get);
  object_calls::StepHead put_head = get_head;
  put_head.key_bytes = static_cast<std::uint16_t>(put.size());
  put_head.kind = static_cast<std::uint8_t>(catalog::StepKind::put);
  std::string bytes(base::bytes_of(std::uint16_t{1}));
  bytes.append("m").append(base::bytes_of(get_head)).append(read);
  return bytes.append(base::bytes_of(put_head)).append(put);
}

// It has read a long value, for whose answer there may be no memory.
TEST(HeapTransaction, ThatIsDoneIsNeverRefused) {
  constexpr std::int64_t kMost = 500;
  for (const auto failure : {FailingHeap::Failure::once, FailingHeap::Failure::for_good}) {
    bool failed = true;
    std::uint64_t refused = 0;
    std::int64_t n = 0;
    for (; failed && n < kMost; ++n) {
      SCOPED_TRACE(n);
      SchedulerFixture node;
      auto& other = node.connect();
      const std::string value(20'000, 'v');
      ASSERT_TRUE(
          node.call(other, request_of(OffloadId::put, node.map()), "long", value).applied());
      auto& client = node.connect({1024, 1024, 1});
      client->post(
          message_of(request_of(OffloadId::transact, 0, 7, 1), {}, read_and_put("long", "done")));
      client->ring();
      FailingHeap heap(n, failure);
      node.turns(200);
      heap.stop();
      failed = heap.failed();
      const Response response = node.wait(client);
      ASSERT_TRUE(response.answers()) << "no answer came";
      const bool done = node.call(other, request_of(OffloadId::get, node.map()), "done").found();
      EXPECT_EQ(response.code(), done ? Code::invalid : Code::out_of_memory);
      refused += done ? 0 : 1;
      EXPECT_EQ(node.broken(), 0);
      EXPECT_TRUE(node.run_until_idle());
      EXPECT_EQ(node.services().budget.used(), 0u);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(refused, 0u);
    EXPECT_LT(n, kMost);
  }
}

// The client repeats it, whatever it was answered.
TEST(HeapTransaction, OneWithANumberIsDoneOnce) {
  constexpr std::int64_t kMost = 500;
  for (const auto failure : {FailingHeap::Failure::once, FailingHeap::Failure::for_good}) {
    bool failed = true;
    std::uint64_t refused = 0;
    std::int64_t n = 0;
    for (; failed && n < kMost; ++n) {
      SCOPED_TRACE(n);
      SchedulerFixture node;
      auto& other = node.connect();
      ASSERT_TRUE(node.call(other, request_of(OffloadId::put, node.map()), "key", "v").applied());
      const Response made = node.call(other, request_of(OffloadId::transaction_client, 0, 5), {},
                                      base::bytes_of(std::uint64_t{0}));
      ASSERT_EQ(made.code(), Code::invalid);
      std::string once(base::bytes_of(object_calls::RequestNumbers{made.header.version, 1, 0}));
      once += read_and_put("key", "done");
      const auto request = request_of(OffloadId::transact_once, 0, 7, 1);
      auto& client = node.connect({1024, 1024, 1});
      client->post(message_of(request, {}, once));
      client->ring();
      FailingHeap heap(n, failure);
      node.turns(200);
      heap.stop();
      failed = heap.failed();
      const Response first = node.wait(client);
      ASSERT_TRUE(first.answers()) << "no answer came";
      const Response again = node.call(other, request, {}, once);
      ASSERT_EQ(again.code(), Code::invalid) << again.payload;
      const Response done = node.call(other, request_of(OffloadId::get, node.map()), "done");
      EXPECT_EQ(done.header.version, again.header.version);
      if (first.code() == Code::invalid) {
        EXPECT_EQ(again.header.version, first.header.version);
        EXPECT_EQ(again.payload, first.payload);
      } else {
        EXPECT_EQ(first.code(), Code::out_of_memory);
        ++refused;
      }
      EXPECT_EQ(node.broken(), 0);
      EXPECT_TRUE(node.run_until_idle());
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(refused, 0u);
    EXPECT_LT(n, kMost);
  }
}

/// A node with a hash map, whose scheduler checks dropped objects all the time.
struct HashNode {
  HashNode() : node(often()) {
    map = hash::create_hash_map(hash::hash_store_of(node.catalog()), "h", {}).value();
  }
  static offload::FixtureOptions often() {
    offload::FixtureOptions options;
    options.sweep_ns = 0;
    return options;
  }
  SchedulerFixture node;
  std::shared_ptr<hash::HashMap> map;
};

TEST(HeapHashQueue, ADroppedMapIsFreedThoughThereWasNoMemoryToSaySo) {
  for (const auto failure : {FailingHeap::Failure::once, FailingHeap::Failure::for_good}) {
    bool failed = true;
    std::int64_t n = 0;
    for (; failed && n < 100; ++n) {
      HashNode own;
      auto& client = own.node.connect();
      const std::uint32_t id = own.map->id();
      ASSERT_TRUE(own.node.call(client, request_of(OffloadId::hash_put, id), "k", "v").applied());
      const std::weak_ptr<hash::HashMap> dropped = std::exchange(own.map, nullptr);
      ASSERT_TRUE(own.node.catalog().drop<hash::HashMap>("h"));
      FailingHeap heap(n, failure);
      own.node.turns(600);
      heap.stop();
      failed = heap.failed();
      const Response response = own.node.call(client, request_of(OffloadId::hash_get, id), "k");
      EXPECT_EQ(response.code(), Code::not_found);
      EXPECT_TRUE(own.node.run_until([&] { return dropped.expired(); }));
    }
    EXPECT_GT(n, 1);
    EXPECT_FALSE(failed);
  }
}

TEST(HeapHashQueue, WhoMeetsNoMemoryIsRefusedAloneOfAll) {
  constexpr std::uint32_t kAsked = 6;
  bool failed = true;
  std::uint32_t refused = 0;
  std::int64_t n = 0;
  for (; failed && n < 200; ++n) {
    HashNode own;
    auto& client = own.node.connect({1024, 1024, 1});
    for (std::uint32_t i = 0; i < kAsked; ++i) {
      client->post(message_of(request_of(OffloadId::hash_get, own.map->id(), i), "k"));
    }
    client->ring();
    FailingHeap heap(n, FailingHeap::Failure::once);
    own.node.turns(20);
    heap.stop();
    failed = heap.failed();
    std::uint32_t answered = 0;
    std::uint32_t without = 0;
    EXPECT_TRUE(own.node.run_until([&] {
      while (const auto response = client->receive(0)) {
        ++answered;
        if (response->code() != Code::invalid) ++without;
      }
      return answered == kAsked;
    }));
    EXPECT_LE(without, 1u) << "allocation " << n;
    refused += without;
  }
  EXPECT_FALSE(failed);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace espalier::test
