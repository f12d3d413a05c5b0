// SPDX-License-Identifier: Apache-2.0
// A kind that a program defines: one handle for a queue of this process, of a node, and of a node
// behind a device; with roles, statistics and lists as any kind has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "channel/objects.hpp"
#include "tests/example_kind/queue_fixture.hpp"
#include "tests/support/role_fixture.hpp"
#include "wire/samples.hpp"
#include "wire/testing/call_checks.hpp"

namespace espalier::example {
namespace {

using test::RoleFixture;

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}
template <class T>
Code code_of(const Result<T>& result) {
  return error_of(result).code;
}

TEST_P(QueueOverEachWay, FirstInFirstOut) {
  const auto made = QueueHandle::create(*store_, "jobs");
  ASSERT_TRUE(made) << message(made.error());
  EXPECT_EQ(made->pop()->has_value(), false);
  EXPECT_EQ(made->push("one"), 0u);
  EXPECT_EQ(made->push(""), 1u);
  const auto opened = QueueHandle::open(*store_, "jobs");
  ASSERT_TRUE(opened) << message(opened.error());
  EXPECT_EQ(opened->push(std::string(queue_calls::kBytesMax, 'x')), 2u);
  EXPECT_EQ(opened->length(), 3u);
  std::uint64_t number = 0;
  for (const std::string& bytes :
       {std::string("one"), std::string(), std::string(queue_calls::kBytesMax, 'x')}) {
    const auto entry = made->pop();
    ASSERT_TRUE(entry && *entry);
    EXPECT_EQ(std::string_view((*entry)->bytes), bytes);
    EXPECT_EQ((*entry)->number, number++);
  }
  EXPECT_EQ(opened->length(), 0u);
  EXPECT_EQ(opened->pop()->has_value(), false);
  EXPECT_EQ(audit("jobs"), std::vector<std::string>{});
}

TEST_P(QueueOverEachWay, WhatCannotBeIsRefused) {
  const auto queue = QueueHandle::create(*store_, "jobs");
  ASSERT_TRUE(queue);
  EXPECT_EQ(error_of(QueueHandle::create(*store_, "jobs")),
            (Error{Code::already_exists, 0, kOwnKinds}));
  EXPECT_EQ(code_of(QueueHandle::create(*store_, "")), Code::invalid_argument);
  EXPECT_EQ(code_of(QueueHandle::create(*store_, std::string(256, 'n'))), Code::invalid_argument);
  EXPECT_EQ(code_of(QueueHandle::open(*store_, "others")), Code::not_found);
  ASSERT_TRUE(store_->create_map("m"));
  EXPECT_EQ(error_of(QueueHandle::open(*store_, "m")), (Error{Code::wrong_kind, 0, 1}));
  EXPECT_EQ(error_of(store_->open_map("jobs")), (Error{Code::wrong_kind, 0, kOwnKinds}));
  const std::string long_entry(queue_calls::kBytesMax, 'x');
  EXPECT_EQ(code_of(queue->push(long_entry + "x")), Code::invalid_argument);
  std::uint64_t pushed = 0;
  while (queue->push(long_entry)) ++pushed;
  EXPECT_EQ(pushed, Queue::kBytesMax / (queue_calls::kBytesMax + Queue::kOverheadBytes));
  EXPECT_EQ(code_of(queue->push(long_entry)), Code::out_of_memory);
  ASSERT_TRUE(queue->pop());
  EXPECT_EQ(queue->push(long_entry), pushed);
  EXPECT_EQ(audit("jobs"), std::vector<std::string>{});
}

TEST_P(QueueOverEachWay, AHandleOfADroppedOneFindsNone) {
  const auto old = QueueHandle::create(*store_, "jobs");
  ASSERT_TRUE(old && old->push("one"));
  EXPECT_EQ(code_of(channel::drop(channel(), "jobs", ObjectKind::table)), Code::wrong_kind);
  ASSERT_TRUE(channel::drop(channel(), "jobs", Queue::kKind));
  const auto young = QueueHandle::create(*store_, "jobs");
  ASSERT_TRUE(young);
  EXPECT_EQ(code_of(old->push("two")), Code::not_found);
  EXPECT_EQ(code_of(old->pop()), Code::not_found);
  EXPECT_EQ(code_of(old->length()), Code::not_found);
  EXPECT_EQ(young->length(), 0u);
}

TEST_P(QueueOverEachWay, IsListedAndCounted) {
  ASSERT_TRUE(store_->create_map("a"));
  const auto queue = QueueHandle::create(*store_, "jobs");
  ASSERT_TRUE(queue && queue->push("one") && queue->push("three") && queue->pop());
  const auto listed = channel::list(channel(), Queue::kKind);
  ASSERT_TRUE(listed) << message(listed.error());
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().name, "jobs");
  EXPECT_EQ(listed->front().kind, Queue::kKind);
  EXPECT_EQ(listed->front().numbers.entries, 1u);
  EXPECT_GT(listed->front().numbers.memory_bytes, sizeof(Queue));
  wire::SamplesWanted wanted{};
  wanted.objects_max = 10;
  const auto sampled = channel::samples(channel(), wanted, "jobs");
  ASSERT_TRUE(sampled) << message(sampled.error());
  ASSERT_EQ(sampled->objects.size(), 1u);
  const wire::SampledObject& object = sampled->objects.front();
  EXPECT_EQ(object.kind_name, "queue");
  std::map<std::string, std::uint64_t> values;
  for (const wire::Sample& sample : object.samples) values[sample.name] = sample.value;
  EXPECT_EQ(values, (std::map<std::string, std::uint64_t>{
                        {"length", 1}, {"queued_bytes", 5}, {"pushed", 2}, {"popped", 1}}));
}

TEST_P(QueueOverEachWay, AgreesWithAModel) {
  base::Random random(base::seed_from_environment(20261129));
  const auto queue = QueueHandle::create(*store_, "jobs");
  ASSERT_TRUE(queue);
  std::deque<std::string> model;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  for (int step = 0; step < 2000; ++step) {
    if (random.below(2) == 0) {
      std::string bytes(random.below(100), static_cast<char>('a' + random.below(26)));
      ASSERT_EQ(queue->push(bytes), pushed++);
      model.push_back(std::move(bytes));
    } else {
      const auto entry = queue->pop();
      ASSERT_TRUE(entry) << message(entry.error());
      ASSERT_EQ(entry->has_value(), !model.empty());
      if (model.empty()) continue;
      ASSERT_EQ((*entry)->number, popped++);
      ASSERT_EQ(std::string_view((*entry)->bytes), model.front());
      model.pop_front();
    }
    if (step % 50 == 0) {
      ASSERT_EQ(queue->length(), model.size());
      ASSERT_EQ(audit("jobs"), std::vector<std::string>{});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, QueueOverEachWay,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device"),
                         test::way_name);

class QueueRoles : public RoleFixture {
 protected:
  void SetUp() override {
    write("clients", all_lines());
    config_.clients.secrets = path("clients");
    config_.node.fabric = "shm:" + path("fabric");
    options_.own_kinds = {&queue_kind(), 1};
    options_.audit = [this](const offload::AuditRecord& record) {
      const std::lock_guard lock(audit_mutex_);
      audited_.push_back(record.name + " " + record.act);
    };
    start();
  }
  void TearDown() override { node_.reset(); }  // which still has records for us
  [[nodiscard]] Store come_as(const std::string& name) const {
    return *Store::connect(node_->fabric_addresses().front(), {.secret = secret(name)});
  }

  static constexpr Error kTakesWrite{Code::not_permitted, 0, 2};
  static constexpr Error kTakesAdmin{Code::not_permitted, 0, 3};
  static constexpr Error kOtherNames{Code::not_permitted, 0, 0};

  std::mutex audit_mutex_;
  std::vector<std::string> audited_;
};

TEST_F(QueueRoles, ItsRowsSayWhoMayWhat) {
  Store own = admin();
  ASSERT_TRUE(QueueHandle::create(own, "jobs"));
  const Store reader = come_as("reader");
  const auto read = QueueHandle::open(reader, "jobs");
  ASSERT_TRUE(read) << message(read.error());
  EXPECT_EQ(read->length(), 0u);
  EXPECT_EQ(error_of(read->push("x")), kTakesWrite);
  EXPECT_EQ(error_of(read->pop()), kTakesWrite);
  const Store writer = come_as("writer");
  const auto written = QueueHandle::open(writer, "jobs");
  ASSERT_TRUE(written && written->push("x"));
  EXPECT_EQ(error_of(QueueHandle::create(writer, "more")), kTakesAdmin);
  EXPECT_EQ(read->length(), 1u);
  node_.reset();
  const std::lock_guard lock(audit_mutex_);
  EXPECT_THAT(audited_, testing::Contains("reader queue_push"));
  EXPECT_THAT(audited_, testing::Contains("writer queue_create"));
}

TEST_F(QueueRoles, ARoleForSomeNamesIsGoodForThoseAlone) {
  Store own = admin();
  ASSERT_TRUE(QueueHandle::create(own, "jobs"));
  ASSERT_TRUE(QueueHandle::create(own, std::string(kPrefix) + "jobs"));
  const Store shop = come_as("shop");
  EXPECT_EQ(error_of(QueueHandle::open(shop, "jobs")), kOtherNames);
  const auto of_shop = QueueHandle::open(shop, std::string(kPrefix) + "jobs");
  ASSERT_TRUE(of_shop && of_shop->push("y"));
  channel::Channel& by_shop = *client::StoreImpl::of(shop).channel();
  const auto listed = channel::list(by_shop, Queue::kKind);
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->size(), 1u);
  // By a number that was guessed.
  const auto all = channel::list(*client::StoreImpl::of(own).channel(), Queue::kKind);
  ASSERT_EQ(all->front().name, "jobs");
  EXPECT_EQ(error_of(channel::ask(by_shop, queue_calls::Pop{all->front().id})), kOtherNames);
}

// Impossible answers of a queue are refused.
TEST(QueueCalls, ALyingNodeIsNotBelieved) {
  const queue_calls::Counted counted{3, 5, 0};
  const wire::ReplyMessage<queue_calls::Counted> lie(counted);
  EXPECT_FALSE(wire::read_reply<queue_calls::Counted>(lie.header(), lie.payload()));
  wire::ResponseHeader none{};
  EXPECT_TRUE(wire::read_reply<queue_calls::Popped>(none, ""));
  EXPECT_FALSE(wire::read_reply<queue_calls::Popped>(none, "x"));
  none.flags = wire::kFound;
  EXPECT_TRUE(wire::read_reply<queue_calls::Popped>(none, "x"));
  EXPECT_FALSE(wire::read_reply<queue_calls::Popped>(none, std::string(65536, 'x')));
}

// Any bytes: what is decoded encodes to the same bytes.
TEST(QueueCalls, AnyBytesAreReadOrRefused) {
  base::Random random(base::seed_from_environment(20261129));
  for (int i = 0; i < 20000; ++i) {
    std::string key(random.below(300), '\0');
    std::string payload(random.below(100), '\0');
    for (char& byte : key) byte = static_cast<char>(random.below(256));
    for (char& byte : payload) byte = static_cast<char>(random.below(256));
    wire::CallBytes bytes;
    bytes.object = static_cast<std::uint32_t>(random());
    bytes.argument = static_cast<std::uint32_t>(random());
    bytes.header.version = random() >> random.below(64);
    bytes.header.flags = static_cast<std::uint8_t>(random.below(256));
    bytes.key = key;
    bytes.payload = payload;
    wire::check_calls(queue_calls::All(), bytes);
  }
}

}  // namespace
}  // namespace espalier::example
