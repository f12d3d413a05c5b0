// SPDX-License-Identifier: Apache-2.0
#include "wire/call_codec.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "wire/refusal.hpp"
#include "wire/testing/call_maker.hpp"

namespace espalier::wire {
namespace {

struct Pair {
  std::uint32_t left;
  std::uint32_t right;
};

struct Stored {
  bool found = false;
  std::uint32_t place = 0;
  std::uint64_t version = 0;
  Pair pair{};
  std::string_view words;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, kFound);
    message.version(self.place);
    message.read_version(self.version);
    message.fixed(self.pair);
    message.rest(self.words, {}, 4);
  }
  [[nodiscard]] std::optional<Fault> fault() const {
    return pair.left > pair.right ? std::optional(Fault{pair.left}) : std::nullopt;
  }
};

struct Store {
  static constexpr CallRow kCall{.id = OffloadId::noop,
                                 .name = "store",
                                 .summary = "stores",
                                 .right = Right::write,
                                 .limits = {.map = true, .keys = Keys::one},
                                 .at_device = AtDevice::relayed,
                                 .changes = true};
  using Reply = Stored;

  std::uint32_t map = 0;
  std::uint32_t count = 0;
  std::string_view key;
  Pair pair{};
  std::uint64_t number = 0;
  std::string_view words;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.argument(self.count, "how many");
    message.key(self.key, "where", 2, 9);
    message.fixed(self.pair, "Pair");
    message.fixed(self.number, "a number");
    message.rest(self.words, "words", 6, 1);
  }
  [[nodiscard]] std::optional<Fault> fault() const {
    return count == 0 ? std::optional(Fault{7, "none"}) : std::nullopt;
  }
};

Store store() { return {3, 5, "here", {1, 2}, 77, "words"}; }

// The bytes as they travel, in one piece.
std::string payload_of(const CallMessage& message) {
  return std::string(message.payload) + std::string(message.more_payload);
}

TEST(CallCodec, ComparisonsAreWellFormed) {
  EXPECT_FALSE(fault_of(Comparison{7, 0, 4, 0, 0}, 3));
  EXPECT_FALSE(fault_of(Comparison{0, 0, 1, 1, 0}, 0));
  EXPECT_EQ(fault_of(Comparison{0, 0, 5, 0, 0}, 3)->detail, 5u) << "there is no such kind";
  EXPECT_TRUE(fault_of(Comparison{0, 0, 1, 0, 1}, 3));
  EXPECT_TRUE(fault_of(Comparison{0, 0, 1, 2, 0}, 0));
  EXPECT_TRUE(fault_of(Comparison{0, 0, 1, 1, 0}, 3)) << "a value and an erase";
}

TEST(CallCodec, ARowHasTheLengthsOfItsFieldsAndWhatItSaysBesides) {
  constexpr const CallRow& row = kRow<Store>;
  EXPECT_EQ(row.name, "store");
  EXPECT_EQ(row.limits.key_bytes_min, 2u);
  EXPECT_EQ(row.limits.key_bytes_max, 9u);
  EXPECT_EQ(row.limits.payload_bytes_min, sizeof(Pair) + 8 + 1);
  EXPECT_EQ(row.limits.payload_bytes_max, sizeof(Pair) + 8 + 6);
  EXPECT_TRUE(row.limits.map);
  EXPECT_EQ(row.limits.keys, Keys::one);
  EXPECT_EQ(row.request_format(),
            "map: the map's id; argument: how many; key: where, 2 to 9 bytes; 8 bytes: Pair; 8 "
            "bytes: a number; payload: words");
}

TEST(CallCodec, ARequestIsReadAsItWasWritten) {
  const Store asked = store();
  const RequestMessage<Store> written(asked);
  const CallMessage& message = written.get();
  EXPECT_EQ(message.offload, OffloadId::noop);
  EXPECT_EQ(message.map, 3u);
  EXPECT_EQ(message.argument, 5u);
  EXPECT_EQ(message.key, "here");
  const std::string payload = payload_of(message);
  EXPECT_EQ(payload, std::string(base::bytes_of(asked.pair)) +
                         std::string(base::bytes_of(asked.number)) + "words");
  const auto read = read_request<Store>({message.map, message.argument, message.key, payload});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->map, 3u);
  EXPECT_EQ(read->count, 5u);
  EXPECT_EQ(read->key, "here");
  EXPECT_EQ(read->pair.left, 1u);
  EXPECT_EQ(read->pair.right, 2u);
  EXPECT_EQ(read->number, 77u);
  EXPECT_EQ(read->words, "words");
  EXPECT_FALSE(fault_of(*read));
}

TEST(CallCodec, APayloadOfAnotherLengthIsNoRequest) {
  const Store asked = store();
  const RequestMessage<Store> message(asked);
  std::string payload = payload_of(message.get());
  const std::string whole = payload;
  for (payload += "x!"; !payload.empty(); payload.pop_back()) {
    const bool good = payload.size() > sizeof(Pair) + 8 && payload.size() <= sizeof(Pair) + 8 + 6;
    EXPECT_EQ(read_request<Store>({0, 1, "here", payload}).has_value(), good) << payload.size();
  }
  EXPECT_FALSE(read_request<Store>({0, 1, "here", {}}));
}

TEST(CallCodec, AFaultHasItsWords) {
  Store asked = store();
  asked.count = 0;
  const auto fault = fault_of(asked);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->detail, 7u);
  EXPECT_EQ(fault->words, "none");
}

TEST(CallCodec, AReplyIsReadAsItWasWritten) {
  const Stored stored{true, 9, 1ULL << 40, {3, 4}, "more"};
  const ReplyMessage<Stored> message(stored);
  const std::string payload = std::string(message.payload()) + std::string(message.more_payload());
  const auto read = read_reply<Stored>(message.header(), payload);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->found);
  EXPECT_EQ(read->place, 9u);
  EXPECT_EQ(read->version, 1ULL << 40);
  EXPECT_EQ(read->pair.right, 4u);
  EXPECT_EQ(read->words, "more");
}

TEST(CallCodec, WhatIsNoReplyIsNotRead) {
  const Stored stored{false, 9, 0, {3, 4}, "more"};
  const ReplyMessage<Stored> message(stored);
  const std::string payload(message.payload());
  ResponseHeader header = message.header();
  EXPECT_TRUE(read_reply<Stored>(header, payload));
  EXPECT_FALSE(read_reply<Stored>(header, payload + "12345")) << "longer than it may be";
  EXPECT_FALSE(read_reply<Stored>(header, std::string_view(payload).substr(1))) << "cut off";
  header.version = std::uint64_t{std::numeric_limits<std::uint32_t>::max()} + 1;
  EXPECT_FALSE(read_reply<Stored>(header, payload)) << "a place that is too far";
  const Pair wrong{5, 4};
  EXPECT_FALSE(read_reply<Stored>(message.header(), base::bytes_of(wrong))) << "a fault";
}

struct Look {
  static constexpr CallRow kCall{.id = OffloadId::noop, .name = "look", .summary = "looks"};
  std::uint32_t map = 0;
  std::string_view key;
  std::optional<std::uint64_t> snapshot;
  std::string_view high;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.map, "the map's id");
    message.item_key(self.key, "where");
    message.snapshot(self.snapshot);
    message.rest(self.high, "until", 5);
  }
};

TEST(CallCodec, ASnapshotBeginsThePayloadIfTheHeaderSaysSo) {
  const Look look{3, "from", 77, "to"};
  const RequestMessage<Look> message(look);
  EXPECT_TRUE(message.get().at_snapshot);
  const std::string payload = payload_of(message.get());
  EXPECT_EQ(payload, std::string(base::bytes_of(std::uint64_t{77})) + "to");
  const auto at = read_request<Look>({3, 0, "from", payload, true});
  ASSERT_TRUE(at);
  EXPECT_EQ(at->snapshot, 77u);
  EXPECT_EQ(at->high, "to");
  EXPECT_FALSE(read_request<Look>({3, 0, "from", payload, false})) << "longer than high may be";
  EXPECT_FALSE(read_request<Look>({3, 0, "from", "1234567", true})) << "no number";
  const auto newest = read_request<Look>({3, 0, "from", "to", false});
  ASSERT_TRUE(newest);
  EXPECT_FALSE(newest->snapshot);
  EXPECT_TRUE(kRow<Look>.limits.at_snapshot);
  EXPECT_EQ(kRow<Look>.limits.payload_bytes_max, 8u + 5);
  EXPECT_FALSE(RequestMessage<Look>(*newest).get().at_snapshot);
}

struct Swap {
  static constexpr CallRow kCall{.id = OffloadId::noop, .name = "swap", .summary = "swaps"};
  std::uint64_t bytes = 0;
  std::string_view before;
  std::string_view after;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.bytes, "how long");
    message.sized(self.before, self.bytes, "what is there");
    message.rest(self.after, "what is to be there");
  }
};

TEST(CallCodec, WhatIsSizedIsAsLongAsItsFieldSays) {
  const Swap swap{3, "old", "new!"};
  const RequestMessage<Swap> message(swap);
  const std::string payload = payload_of(message.get());
  EXPECT_EQ(payload, std::string(base::bytes_of(swap.bytes)) + "oldnew!");
  const auto read = read_request<Swap>({0, 0, {}, payload});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->before, "old");
  EXPECT_EQ(read->after, "new!");
  const std::uint64_t more = 1000;
  EXPECT_FALSE(read_request<Swap>({0, 0, {}, std::string(base::bytes_of(more)) + "oldnew!"}));
}

TEST(CallCodec, NothingIsNothing) {
  EXPECT_TRUE(read_reply<Nothing>({}, {}));
  EXPECT_FALSE(read_reply<Nothing>({}, "x"));
}

TEST(Refusal, IsItsCodeItsDetailAndWords) {
  const Error error{Code::not_found, 0, 0x01020304};
  const auto detail = detail_bytes(error);
  const std::string payload = std::string(detail.data(), detail.size()) + "there is none";
  EXPECT_EQ(error_in(static_cast<std::uint16_t>(error.code), payload), error);
  EXPECT_EQ(words_in(payload), "there is none");
  EXPECT_EQ(words_in(payload.substr(0, 4)), "");
}

// It comes from elsewhere, and may be of any length.
TEST(Refusal, WithoutAWholeDetailHasNone) {
  for (const std::string_view payload : {"", "abc"}) {
    EXPECT_EQ(error_in(static_cast<std::uint16_t>(Code::busy), payload), (Error{Code::busy, 0, 0}));
    EXPECT_EQ(words_in(payload), "");
  }
}

// Ids are never used again: requests that a fuzzer makes name those that are there, however high.
TEST(CallMaker, ObjectsAreMostlySuchAsThereAre) {
  const std::vector<std::uint32_t> ids{1, 7001, 7002};
  std::map<std::uint32_t, int> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const auto bytes = static_cast<std::uint8_t>(byte);
    base::FuzzInput input(&bytes, 1);
    FieldMaker maker(input, {{"m"}, ids});
    std::uint32_t number = 0;
    maker.object(number, {});
    ++seen[number];
  }
  for (const std::uint32_t id : ids) EXPECT_GE(seen[id], 60) << id;
  EXPECT_GT(seen[15], 0);  // and none that is there
}

}  // namespace
}  // namespace espalier::wire
