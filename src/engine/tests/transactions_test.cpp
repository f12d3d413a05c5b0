// SPDX-License-Identifier: Apache-2.0
// The offload of transactions: what it answers, and what it refuses in words.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/calls.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/map/map_forms.hpp"
#include "store/clock_groups.hpp"
#include "wire/refusal.hpp"

namespace espalier::offload {
namespace {

using object_calls::FoundHead;
using object_calls::StepHead;
using wire::OffloadId;

/// A request, step by step.
class Asked {
 public:
  explicit Asked(const std::vector<std::string>& names)
      : objects_(static_cast<std::uint32_t>(names.size())) {
    for (const std::string& name : names) {
      bytes_ += base::bytes_of(static_cast<std::uint16_t>(name.size()));
      bytes_ += name;
    }
  }
  Asked& get(std::uint8_t object, std::string_view key) { return add(object, 1, key, {}); }
  Asked& put(std::uint8_t object, std::string_view key, std::string_view value) {
    return add(object, 3, key, value);
  }
  Asked& only_if_absent(std::uint8_t object, std::string_view key) {
    return add(object, 2, key, {}, 1);
  }
  [[nodiscard]] std::uint32_t objects() const { return objects_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  Asked& add(std::uint8_t object, std::uint8_t kind, std::string_view key, std::string_view value,
             std::uint8_t condition = 0) {
    StepHead head{};
    head.value_bytes = static_cast<std::uint32_t>(value.size());
    head.key_bytes = static_cast<std::uint16_t>(key.size());
    head.object = object;
    head.kind = kind;
    head.condition = condition;
    bytes_ += base::bytes_of(head);
    bytes_ += key;
    bytes_ += value;
    return *this;
  }

  std::uint32_t objects_;
  std::string bytes_;
};

class TransactionOffload : public testing::Test {
 protected:
  // Of these two; "m" has a clock of its own.
  TransactionOffload() {
    node_.store().groups->share();
    const std::string shape(base::bytes_of(tree::shape_of(MapOptions{})));
    EXPECT_EQ(call(OffloadId::map_create, "own/a", shape).header.code, 0);
    EXPECT_EQ(
        call(OffloadId::hash_create, "own/h", base::bytes_of(hash::HashShape{2, 1, 0, 0, 1 << 20}))
            .header.code,
        0);
  }
  Response call(OffloadId offload, std::string_view key, std::string_view payload,
                std::uint32_t argument = 0) {
    return node_.call(client_, request_of(offload, 0, ++tag_, argument), key, payload);
  }
  Response transact(const Asked& asked) {
    return call(OffloadId::transact, {}, asked.bytes(), asked.objects());
  }
  static std::string numbered(const object_calls::RequestNumbers& numbers, const Asked& asked) {
    return std::string(base::bytes_of(numbers)) + asked.bytes();
  }
  Response once(SchedulerFixture::Client& client, const object_calls::RequestNumbers& numbers,
                const Asked& asked) {
    return node_.call(client, request_of(OffloadId::transact_once, 0, ++tag_, asked.objects()), {},
                      numbered(numbers, asked));
  }
  std::uint64_t make_client() {
    const Response made =
        call(OffloadId::transaction_client, {}, base::bytes_of(std::uint64_t{0}), 1);
    EXPECT_EQ(made.code(), Code::invalid) << made.payload;
    return made.header.version;
  }
  static std::string found(std::uint64_t version, std::string_view value) {
    std::string bytes(
        base::bytes_of(FoundHead{version, static_cast<std::uint32_t>(value.size()), 1}));
    return bytes.append(value);
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect(kLongRequests);
  std::uint32_t tag_ = 0;
};

TEST_F(TransactionOffload, AnswersWhatItHasReadAndItsVersion) {
  const Response first = transact(Asked({"own/a", "own/h"}).put(0, "k", "1").put(1, "k", "2"));
  ASSERT_EQ(first.code(), Code::invalid) << first.payload;
  EXPECT_NE(first.header.version, 0u);
  EXPECT_EQ(first.payload, "");
  const Response second =
      transact(Asked({"own/h", "own/a"}).get(1, "k").get(0, "none").put(0, "k", "3").get(0, "k"));
  ASSERT_EQ(second.code(), Code::invalid);
  EXPECT_GT(second.header.version, first.header.version);
  EXPECT_EQ(second.payload, found(first.header.version, "1") +
                                std::string(base::bytes_of(FoundHead{})) +
                                found(first.header.version, "2"));
  const Response read = transact(Asked({"own/h"}).get(0, "k"));
  EXPECT_EQ(read.header.version, 0u);
  EXPECT_EQ(read.payload, found(second.header.version, "3"));
}

TEST_F(TransactionOffload, ALongOneIsDoneByAHelper) {
  Asked asked({"own/a", "own/h"});
  for (int i = 0; i < 60; ++i) {
    asked.put(static_cast<std::uint8_t>(i % 2), std::to_string(i), std::string(3000, 'v'));
  }
  const Response done = transact(asked);
  ASSERT_EQ(done.code(), Code::invalid) << done.payload;
  const Response read = transact(Asked({"own/a", "own/h"}).get(0, "58").get(1, "59"));
  EXPECT_EQ(read.payload, found(done.header.version, std::string(3000, 'v')) +
                              found(done.header.version, std::string(3000, 'v')));
}

// Its request is short.
TEST_F(TransactionOffload, OneThatReadsMuchIsDoneByAHelper) {
  const std::string value(40'000, 'v');
  const auto steps = [&] { return node_.services().helpers.numbers().steps; };
  const Response first = transact(Asked({"own/a"}).put(0, "k", value));
  const Response second = transact(Asked({"own/h"}).put(0, "k", value));
  ASSERT_EQ(first.code(), Code::invalid);
  ASSERT_EQ(second.code(), Code::invalid);
  const std::uint64_t before = steps();
  EXPECT_EQ(transact(Asked({"own/a"}).get(0, "k")).payload, found(first.header.version, value));
  EXPECT_EQ(steps(), before);
  const Response read = transact(Asked({"own/a", "own/h"}).get(0, "k").get(1, "k").put(1, "l", ""));
  EXPECT_EQ(read.code(), Code::invalid);
  EXPECT_EQ(read.payload, found(first.header.version, value) + found(second.header.version, value));
  EXPECT_EQ(steps(), before + 1);
}

TEST_F(TransactionOffload, RefusesInWordsAndTouchesNothing) {
  const Response failed =
      transact(Asked({"own/a", "own/h"}).put(0, "k", "1").only_if_absent(1, "k"));
  EXPECT_EQ(failed.code(), Code::invalid);
  const Response again =
      transact(Asked({"own/a", "own/h"}).put(0, "k", "2").only_if_absent(0, "k"));
  EXPECT_EQ(again.code(), Code::condition_failed);
  EXPECT_EQ(again.detail(), 1u);
  const Response clocks = transact(Asked({"own/a", "m"}).put(0, "k", "2").put(1, "k", "2"));
  EXPECT_EQ(clocks.code(), Code::unsupported);
  EXPECT_EQ(wire::error_in(clocks.header.code, clocks.payload).detail, 1u);
  EXPECT_NE(clocks.payload.find("must be of one group"), std::string::npos) << clocks.payload;
  EXPECT_EQ(transact(Asked({"own/a", "none"}).put(0, "k", "2").get(1, "k")).code(),
            Code::not_found);
  EXPECT_EQ(call(OffloadId::transact, {}, std::string(26, '\0'), 1).code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::transact, {}, std::string(26, '\0'), 65).code(),
            Code::invalid_argument);
  const Response read = transact(Asked({"own/a"}).get(0, "k"));
  EXPECT_EQ(read.payload, found(failed.header.version, "1"));
}

TEST_F(TransactionOffload, ARoleForSomeNamesReachesNoOthers) {
  client_.connection->access = Access("someone", Right::write, "own/");
  EXPECT_EQ(transact(Asked({"own/a"}).put(0, "k", "1")).code(), Code::invalid);
  EXPECT_EQ(transact(Asked({"m"}).get(0, "k")).code(), Code::not_permitted);
  EXPECT_EQ(transact(Asked({"own/a", "m"}).put(0, "k", "2").get(1, "k")).code(),
            Code::not_permitted);
  client_.connection->access = Access("someone", Right::read, "own/");
  EXPECT_EQ(transact(Asked({"own/a"}).put(0, "k", "1")).code(), Code::not_permitted);
}

// --- with numbers --------------------------------------------------------------------------------

TEST_F(TransactionOffload, ANumberThatIsAskedForByAnotherConnectionGetsItsFirstAnswer) {
  const std::uint64_t client = make_client();
  const Asked asked = Asked({"own/a", "own/h"}).get(0, "k").put(0, "k", "1").put(1, "k", "1");
  const Response first = once(client_, {client, 1, 0}, asked);
  ASSERT_EQ(first.code(), Code::invalid) << first.payload;
  EXPECT_NE(first.header.version, 0u);
  EXPECT_EQ(first.payload, base::bytes_of(FoundHead{}));
  ASSERT_EQ(transact(Asked({"own/a"}).put(0, "k", "2")).code(), Code::invalid);
  SchedulerFixture::Client& other = node_.connect(kLongRequests, 2);
  const Response again = once(other, {client, 1, 0}, asked);
  ASSERT_EQ(again.code(), Code::invalid) << again.payload;
  EXPECT_EQ(again.header.version, first.header.version);
  EXPECT_EQ(again.payload, first.payload);
  EXPECT_EQ(again.header.flags & wire::kFound, wire::kFound);
  const Response now = transact(Asked({"own/a"}).get(0, "k"));
  EXPECT_NE(now.payload.find('2'), std::string::npos) << "it was done again";
}

TEST_F(TransactionOffload, ANumberIsRefusedInWords) {
  const std::uint64_t client = make_client();
  const Asked put = Asked({"own/a"}).put(0, "k", "1");
  const auto refusal = [&](const object_calls::RequestNumbers& numbers, const Asked& asked,
                           Code code, std::string_view words) {
    const Response refused = once(client_, numbers, asked);
    EXPECT_EQ(refused.code(), code);
    EXPECT_NE(refused.payload.find(words), std::string::npos) << refused.payload;
  };
  refusal({client + 1, 1, 0}, put, Code::outdated, "does not know this client");
  refusal({client, 1, 1}, put, Code::invalid_argument, "its number is none");
  refusal({0, 1, 0}, put, Code::invalid_argument, "its number is none");
  refusal({client, 257, 0}, put, Code::exhausted, "256 numbers");
  EXPECT_EQ(once(client_, {client, 1, 0}, put).code(), Code::invalid);
  refusal({client, 1, 0}, Asked({"own/a"}).put(0, "k", "2"), Code::already_exists, "had this");
  EXPECT_EQ(once(client_, {client, 3, 2}, put).code(), Code::invalid);
  refusal({client, 2, 1}, put, Code::outdated, "was acknowledged");
  const Asked absent = Asked({"own/a"}).put(0, "l", "1").only_if_absent(0, "k");
  for (int i = 0; i < 2; ++i) {
    const Response failed = once(client_, {client, 4, 2}, absent);
    EXPECT_EQ(failed.code(), Code::condition_failed);
    EXPECT_EQ(failed.detail(), 1u);
  }
  EXPECT_EQ(once(client_, {client, 5, 2}, Asked({"none"}).put(0, "k", "1")).code(),
            Code::not_found);
  ASSERT_EQ(call(OffloadId::transaction_client, {}, base::bytes_of(client), 2).code(),
            Code::invalid);
  refusal({client, 6, 2}, put, Code::outdated, "does not know this client");
  EXPECT_EQ(call(OffloadId::transaction_client, {}, base::bytes_of(client), 2).code(),
            Code::outdated);
  EXPECT_EQ(call(OffloadId::transaction_client, {}, base::bytes_of(client), 0).code(),
            Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::transaction_client, {}, base::bytes_of(std::uint64_t{0}), 3).code(),
            Code::invalid_argument);
}

// A long one, which a helper does, and whose answer is too long to be kept.
TEST_F(TransactionOffload, OfALongAnswerItIsKnownThatItWasGiven) {
  const std::uint64_t client = make_client();
  ASSERT_EQ(transact(Asked({"own/a"}).put(0, "k", std::string(70'000, 'v'))).code(), Code::invalid);
  const Asked asked = Asked({"own/a", "own/h"}).get(0, "k").put(1, "k", "1");
  const Response first = once(client_, {client, 1, 0}, asked);
  ASSERT_EQ(first.code(), Code::invalid) << first.payload;
  EXPECT_GT(first.payload.size(), 70'000u);
  const Response again = once(client_, {client, 1, 0}, asked);
  ASSERT_EQ(again.code(), Code::invalid) << again.payload;
  EXPECT_EQ(again.header.version, first.header.version);
  EXPECT_EQ(again.header.flags & wire::kFound, 0);
  EXPECT_EQ(again.payload, "");
}

// The number of a connection that goes before it was carried out is free again.
TEST_F(TransactionOffload, WhoeverAsksForANumberThatRunsGetsItsAnswer) {
  const std::uint64_t client = make_client();
  Asked asked({"own/a", "own/h"});
  for (int i = 0; i < 60; ++i) {
    asked.put(static_cast<std::uint8_t>(i % 2), std::to_string(i), std::string(3000, 'v'));
  }
  SchedulerFixture::Client& other = node_.connect(kLongRequests, 2);
  const auto message = [&](std::uint32_t tag) {
    return message_of(request_of(OffloadId::transact_once, 0, tag, asked.objects()), {},
                      numbered({client, 1, 0}, asked));
  };
  client_->post(message(++tag_));
  client_->ring();
  node_.turns(1);  // a helper does it
  other->post(message(++tag_));
  other->ring();
  const Response first = node_.wait(client_);
  const Response second = node_.wait(other);
  ASSERT_EQ(first.code(), Code::invalid) << first.payload;
  ASSERT_EQ(second.code(), Code::invalid) << second.payload;
  EXPECT_EQ(first.header.version, second.header.version);
}

}  // namespace
}  // namespace espalier::offload
