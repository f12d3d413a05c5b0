// SPDX-License-Identifier: Apache-2.0
// Offloads on hash maps: each once, every field that cannot be, long values that helpers copy, and
// a write that waits for its release while others are answered.
#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <memory>
#include <set>
#include <string>

#include "base/bytes.hpp"
#include "base/epoch_pins.hpp"
#include "engine/long_answer.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/walk_items.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

/// A step of a helper is over after its first piece.
FixtureOptions one_piece_a_step() {
  FixtureOptions options;
  options.helpers.step_ns = 1;
  return options;
}

/// The one helper does nothing until it is released.
class HeldHelper {
 public:
  explicit HeldHelper(HelperPool& helpers) {
    helpers.run([released = released_] { released->wait(); });
  }
  ~HeldHelper() { release(); }
  HeldHelper(const HeldHelper&) = delete;
  HeldHelper& operator=(const HeldHelper&) = delete;
  void release() {
    if (!std::exchange(done_, true)) released_->count_down();
  }

 private:
  const std::shared_ptr<std::latch> released_ = std::make_shared<std::latch>(1);
  bool done_ = false;
};

class HashOffloads : public testing::Test {
 protected:
  Response call(OffloadId offload, std::uint32_t map, std::string_view key,
                std::string_view payload = {}) {
    return node_.call(client_, request_of(offload, map, ++tag_), key, payload);
  }
  std::uint32_t create(std::string_view name,
                       const hash::HashShape& shape = {2, 1, 0, 0, 1 << 20}) {
    const Response made = call(OffloadId::hash_create, 0, name, base::bytes_of(shape));
    EXPECT_EQ(made.header.code, 0);
    EXPECT_EQ(std::string(made.payload.begin(), made.payload.end()), base::bytes_of(shape));
    return static_cast<std::uint32_t>(made.header.version);
  }
  void expect_error(const Response& response, Code code, std::uint32_t detail) {
    EXPECT_TRUE(response.answers());
    EXPECT_EQ(response.code(), code) << message({response.code(), 0, response.detail()});
    EXPECT_EQ(response.detail(), detail);
  }
  static std::string text_of(const Response& response) {
    return {response.payload.begin(), response.payload.end()};
  }

  static std::string expecting(std::string_view value) {
    wire::Comparison comparison{};
    comparison.kind = static_cast<std::uint8_t>(ConditionKind::value);
    comparison.expected_bytes = static_cast<std::uint32_t>(value.size());
    return std::string(base::bytes_of(comparison)).append(value);
  }
  /// Turns until a value that was found is pinned, for a helper.
  void expect_pinned() {
    EXPECT_TRUE(node_.run_until([&] {
      if (client_->flush()) client_->ring();
      return node_.store().epoch_pins.oldest() != base::EpochPins::kNone;
    })) << "it is not found";
  }
  [[nodiscard]] std::uint64_t steps() { return node_.services().helpers.numbers().steps; }

  SchedulerFixture node_{one_piece_a_step()};
  SchedulerFixture::Client& client_ = node_.connect();
  std::uint32_t tag_ = 0;
};

TEST_F(HashOffloads, MakeOpenWriteAndRead) {
  const std::uint32_t id = create("h");
  EXPECT_EQ(call(OffloadId::hash_open, 0, "h").header.version, id);
  const Response put = call(OffloadId::hash_put, id, "k", "v");
  EXPECT_EQ(put.header.flags, wire::kApplied);
  EXPECT_EQ(put.header.version, 1u);
  EXPECT_EQ(call(OffloadId::hash_insert, id, "k", "w").header.flags, wire::kFound);
  EXPECT_EQ(call(OffloadId::hash_update, id, "k", "w").header.flags, wire::kFound | wire::kApplied);
  const Response got = call(OffloadId::hash_get, id, "k");
  EXPECT_EQ(got.header.flags, wire::kFound);
  EXPECT_EQ(got.header.version, 2u);
  EXPECT_EQ(text_of(got), "w");
  EXPECT_EQ(call(OffloadId::hash_get, id, "l").header.flags, 0);
  const std::uint64_t amount = 7;
  const Response sum = call(OffloadId::hash_add, id, "n", base::bytes_of(amount));
  EXPECT_EQ(text_of(sum), base::bytes_of(amount));
  const Response stats = call(OffloadId::hash_stats, id, {});
  hash::HashNumbers numbers{};
  ASSERT_EQ(stats.payload.size(), sizeof numbers);
  std::memcpy(&numbers, stats.payload.data(), sizeof numbers);
  EXPECT_EQ(numbers.items, 2u);
  EXPECT_EQ(numbers.write_version, 3u);
  EXPECT_EQ(call(OffloadId::hash_erase, id, "k").header.flags, wire::kFound | wire::kApplied);
  EXPECT_EQ(call(OffloadId::hash_erase, id, "k").header.flags, 0);
}

TEST_F(HashOffloads, RefuseWhatCannotBe) {
  const std::uint32_t id = create("h");
  const auto bad_shape = [&](const hash::HashShape& shape) {
    return call(OffloadId::hash_create, 0, "x", base::bytes_of(shape));
  };
  EXPECT_EQ(bad_shape({3, 1, 0, 0, 0}).code(), Code::invalid_argument);
  EXPECT_EQ(bad_shape({1024, 1, 0, 0, 0}).code(), Code::invalid_argument);
  EXPECT_EQ(bad_shape({0, 1, 0, 0, 0}).code(), Code::invalid_argument);
  EXPECT_EQ(bad_shape({64, 2, 0, 0, 0}).code(), Code::invalid_argument);
  EXPECT_EQ(bad_shape({64, 1, 0, 1, 0}).code(), Code::invalid_argument);
  EXPECT_EQ(bad_shape({64, 1, 1, 0, 0}).code(), Code::invalid_argument) << "no group's name";
  const auto in_group = [&](const hash::HashShape& shape, const std::string& group) {
    return call(OffloadId::hash_create, 0, "x", std::string(base::bytes_of(shape)) + group);
  };
  EXPECT_EQ(in_group({64, 1, 0, 0, 0}, "g").code(), Code::invalid_argument);
  EXPECT_EQ(in_group({64, 1, 2, 0, 0}, "g").code(), Code::invalid_argument);
  EXPECT_EQ(in_group({64, 0, 1, 0, 0}, "g").code(), Code::invalid_argument) << "no versions";
  EXPECT_EQ(in_group({64, 1, 255, 0, 0}, std::string(256, 'g')).code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::hash_create, 0, "x", "too short").code(), Code::invalid_argument);
  expect_error(call(OffloadId::hash_get, node_.map(), "k"), Code::not_found, node_.map());
  expect_error(call(OffloadId::hash_put, id + 1, "k", "v"), Code::not_found, id + 1);
  expect_error(call(OffloadId::get, id, "k"), Code::not_found, id);
  EXPECT_EQ(call(OffloadId::hash_put, id, "", "v").code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::hash_add, id, "n", "seven b").code(), Code::invalid_argument);
  expect_error(call(OffloadId::one_sided_hash, id + 1, {}), Code::not_found, id + 1);
  EXPECT_EQ(call(OffloadId::one_sided_hash, id, {}).code(), Code::unsupported)
      << "rings in shared memory";
  EXPECT_EQ(call(OffloadId::hash_add, id, "n", "more than eight").code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::hash_get, id, "k", "a payload").code(), Code::invalid_argument);
  EXPECT_EQ(call(OffloadId::hash_put, id, "k", std::string(hash::kValueBytesMax + 1, 'v')).code(),
            Code::value_too_long);
  EXPECT_EQ(call(OffloadId::hash_get, id, "k").header.flags, 0);
}

TEST_F(HashOffloads, LongValuesAreCopiedByHelpers) {
  const std::uint32_t id = create("h");
  for (const std::size_t bytes : {kLongValueBytes, kLongValueBytes + 1, std::size_t{3} << 20}) {
    std::string value(bytes, 'v');
    value.back() = 'e';
    EXPECT_EQ(call(OffloadId::hash_put, id, "k", value).header.flags & wire::kApplied,
              wire::kApplied);
    const Response got = call(OffloadId::hash_get, id, "k");
    EXPECT_EQ(got.header.flags, wire::kFound);
    EXPECT_TRUE(text_of(got) == value) << bytes;
    const std::string change = expecting(value) + "short";
    EXPECT_EQ(call(OffloadId::hash_compare_and_set, id, "k", change).header.flags,
              wire::kFound | wire::kApplied);
    EXPECT_EQ(call(OffloadId::hash_compare_and_set, id, "k", change).code(),
              Code::condition_failed);
    EXPECT_EQ(text_of(call(OffloadId::hash_get, id, "k")), "short");
  }
}

TEST_F(HashOffloads, AWalkComesInPiecesThatGoOnBehindAKey) {
  const std::uint32_t id = create("h");
  EXPECT_EQ(call(OffloadId::hash_walk, id, "").header.flags, 0);
  std::set<std::string> model;
  for (int i = 0; i < 4000; ++i) {
    model.insert("key" + std::to_string(i));
    ASSERT_EQ(call(OffloadId::hash_put, id, "key" + std::to_string(i), "value").header.code, 0);
  }
  const std::string long_value(hash::kWalkedValueMax + 1, 'v');
  ASSERT_EQ(call(OffloadId::hash_put, id, "long", long_value).header.code, 0);
  model.insert("long");
  std::set<std::string> seen;
  std::uint64_t count = 0;
  int pieces = 0;
  for (std::string after; pieces < 100; ++pieces) {
    const Response piece = call(OffloadId::hash_walk, id, after);
    ASSERT_EQ(piece.header.code, 0);
    ASSERT_LE(piece.payload.size(), hash::kWalkBytesMax);
    const std::string bytes = text_of(piece);
    std::string_view left = bytes;
    std::uint64_t of_piece = 0;
    for (hash::ItemRead item; hash::take_item(left, item); ++of_piece) {
      EXPECT_EQ(item.head.left_out, item.key == "long" ? 1 : 0);
      EXPECT_EQ(item.value, item.key == "long" ? "" : "value");
      after = item.key;
      seen.insert(after);
    }
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(piece.header.version, of_piece);
    count += of_piece;
    if (piece.header.flags != wire::kFound) break;
    EXPECT_GE(bytes.size(), hash::kWalkBytes);
  }
  EXPECT_GT(pieces, 0);
  EXPECT_EQ(count, model.size());
  EXPECT_EQ(seen, model);
  // A key that is not there, and never was, has its place all the same.
  EXPECT_EQ(call(OffloadId::hash_walk, id, "none").header.code, 0);
  expect_error(call(OffloadId::hash_walk, id + 1, ""), Code::not_found, id + 1);
  EXPECT_EQ(call(OffloadId::hash_walk, id, "k", "a payload").code(), Code::invalid_argument);
}

// Of many clients that go while pieces are gathered nothing is left.
TEST_F(HashOffloads, AClientMayGoDuringAWalk) {
  const std::uint32_t id = create("h");
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(call(OffloadId::hash_put, id, std::to_string(i), "value").header.code, 0);
  }
  for (int i = 0; i < 10; ++i) {
    SchedulerFixture::Client& other = node_.connect();
    other->post(message_of(request_of(OffloadId::hash_walk, id, 1), "7", ""));
    other->post(message_of(request_of(OffloadId::hash_walk, id, 2), "", ""));
    other->flush();
    other->ring();
    node_.turns(i);
    node_.disconnect(other);
    ASSERT_TRUE(node_.run_until_idle());
  }
  EXPECT_EQ(call(OffloadId::hash_walk, id, "").header.code, 0);
}

TEST_F(HashOffloads, LongValuesAreComparedPieceByPiece) {
  const std::uint32_t id = create("h");
  const std::string first(std::size_t{2} << 20, '1');
  const std::string second(std::size_t{1} << 20, '2');
  ASSERT_EQ(call(OffloadId::hash_put, id, "k", first).header.flags, wire::kApplied);
  std::string almost = first;
  almost.back() = 'x';
  for (const std::string& wrong : {almost, second, first.substr(1)}) {
    EXPECT_EQ(call(OffloadId::hash_compare_and_set, id, "k", expecting(wrong) + second).code(),
              Code::condition_failed);
  }
  EXPECT_EQ(call(OffloadId::hash_compare_and_set, id, "absent", expecting(first) + second).code(),
            Code::condition_failed);
  const std::uint64_t before = steps();
  EXPECT_EQ(call(OffloadId::hash_compare_and_set, id, "k", expecting(first) + second).header.flags,
            wire::kFound | wire::kApplied);
  EXPECT_GE(steps() - before, (first.size() + second.size()) / kCopiedBytes);
  EXPECT_TRUE(text_of(call(OffloadId::hash_get, id, "k")) == second);
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
}

// What was found is replaced before it is compared: by the same bytes, which are compared anew, and
// by others.
TEST_F(HashOffloads, AComparisonThatLosesItsRaceBeginsAgain) {
  const std::uint32_t id = create("h");
  const auto map = node_.catalog().find<hash::HashMap>(id);
  ASSERT_NE(map, nullptr);
  hash::HashThread writer = hash::HashThread::join(map->store()).value();
  const std::string first(1'000'000, '1');
  const std::string second(900'000, '2');
  for (const bool same : {true, false}) {
    ASSERT_TRUE(map->put(writer, "k", first));
    HeldHelper helper(node_.services().helpers);
    client_->post(message_of(request_of(OffloadId::hash_compare_and_set, id, 7), "k",
                             expecting(first) + second));
    client_->ring();
    expect_pinned();
    ASSERT_TRUE(map->put(writer, "k", same ? first : "another"));
    const std::uint64_t before = steps();
    helper.release();
    const Response done = node_.wait(client_);
    EXPECT_EQ(done.header.tag, 7u);
    EXPECT_EQ(done.header.flags, same ? wire::kFound | wire::kApplied : 0);
    EXPECT_EQ(done.header.code == 0, same);
    EXPECT_TRUE(text_of(call(OffloadId::hash_get, id, "k")) == (same ? second : "another"));
    EXPECT_GE(steps() - before, (same ? 2 : 1) * first.size() / kCopiedBytes);
  }
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
}

// Its buffer would be another's by then, but for the pin.
TEST_F(HashOffloads, ALongValueThatIsReplacedWhileItIsCopiedComesWhole) {
  const std::uint32_t id = create("h");
  const auto map = node_.catalog().find<hash::HashMap>(id);
  ASSERT_NE(map, nullptr);
  hash::HashThread writer = hash::HashThread::join(map->store()).value();
  const std::string first(1'000'000, '1');
  ASSERT_TRUE(map->put(writer, "k", first));
  HeldHelper helper(node_.services().helpers);
  client_->post(message_of(request_of(OffloadId::hash_get, id, 7), "k", ""));
  client_->ring();
  expect_pinned();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(map->put(writer, "k", std::string(first.size(), static_cast<char>('a' + i))));
    map->give_back(writer);
  }
  helper.release();
  const Response got = node_.wait(client_);
  EXPECT_EQ(got.header.tag, 7u);
  EXPECT_EQ(got.header.flags, wire::kFound);
  EXPECT_TRUE(text_of(got) == first);
  EXPECT_EQ(node_.store().epoch_pins.oldest(), base::EpochPins::kNone);
  map->give_back(writer);
  EXPECT_LT(map->all_numbers().long_bytes, 3 * first.size()) << "what was replaced is free";
}

// The worker tries it, and no more: helpers make room, or it is refused in the end.
TEST_F(HashOffloads, HelpersMakeRoomForAWriteThatFindsNoMemory) {
  const std::uint32_t id = create("h");
  const auto map = node_.catalog().find<hash::HashMap>(id);
  ASSERT_NE(map, nullptr);
  hash::HashThread writer = hash::HashThread::join(map->store()).value();
  const std::string value(200'000, 'v');
  const auto key_of = [](int i) { return "key" + std::to_string(i); };
  int stored = 0;
  while (map->put(writer, key_of(stored), value)) ++stored;
  ASSERT_GT(stored, 100);
  std::uint64_t before = steps();
  EXPECT_EQ(call(OffloadId::hash_put, id, "k", value).code(), Code::out_of_memory);
  EXPECT_GE(steps() - before, 2u);
  EXPECT_TRUE(text_of(call(OffloadId::hash_get, id, key_of(7))) == value);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(call(OffloadId::hash_erase, id, key_of(i)).header.flags,
              wire::kFound | wire::kApplied);
  }
  EXPECT_EQ(call(OffloadId::hash_put, id, "k", value).header.flags, wire::kApplied);
  EXPECT_TRUE(text_of(call(OffloadId::hash_get, id, "k")) == value);
}

// A scheduler knows the maps that it was asked for, until they are dropped.
TEST_F(HashOffloads, ADroppedMapIsLetGo) {
  const std::uint32_t id = create("h");
  const std::uint32_t other = create("other");
  ASSERT_EQ(call(OffloadId::hash_put, id, "k", "v").header.flags, wire::kApplied);
  ASSERT_EQ(call(OffloadId::hash_put, other, "k", "w").header.flags, wire::kApplied);
  EXPECT_EQ(text_of(call(OffloadId::hash_get, id, "k")), "v");
  const std::weak_ptr<hash::HashMap> dropped = node_.catalog().find<hash::HashMap>(id);
  ASSERT_TRUE(node_.catalog().drop<hash::HashMap>("h"));
  for (const OffloadId offload :
       {OffloadId::hash_get, OffloadId::hash_put, OffloadId::hash_erase, OffloadId::hash_stats}) {
    const std::string_view key = offload == OffloadId::hash_stats ? "" : "k";
    expect_error(call(offload, id, key), Code::not_found, id);
  }
  EXPECT_TRUE(node_.run_until([&] { return dropped.expired(); })) << "it is freed";
  expect_error(call(OffloadId::hash_get, id, "k"), Code::not_found, id);
  EXPECT_EQ(text_of(call(OffloadId::hash_get, other, "k")), "w");
}

// Those whose clients go meanwhile end with them.
TEST_F(HashOffloads, AClientMayGoWhileItsLongValueIsCopied) {
  const std::uint32_t id = create("h");
  const std::string value(std::size_t{2} << 20, 'v');
  ASSERT_EQ(call(OffloadId::hash_put, id, "k", value).header.code, 0);
  for (int i = 0; i < 10; ++i) {
    SchedulerFixture::Client& other = node_.connect();
    other->post(message_of(request_of(OffloadId::hash_get, id, 1), "k", ""));
    other->post(message_of(request_of(OffloadId::hash_put, id, 2), "l", value));
    other->flush();
    other->ring();
    node_.turns(i);
    node_.disconnect(other);
    ASSERT_TRUE(node_.run_until_idle());
  }
  EXPECT_TRUE(text_of(call(OffloadId::hash_get, id, "k")) == value);
}

// A version that another thread has taken and not released yet holds back the answers of later
// writes, and nothing else.
TEST_F(HashOffloads, AWriteWaitsForItsReleaseWhileOthersAreAnswered) {
  const std::uint32_t id = create("h");
  const auto map = node_.catalog().find<hash::HashMap>(id);
  ASSERT_NE(map, nullptr);
  const std::uint64_t taken = map->clock().take();
  client_->post(message_of(request_of(OffloadId::hash_put, id, 77), "k", "v"));
  client_->ring();
  node_.turns(5);
  EXPECT_EQ(call(OffloadId::hash_get, id, "k").header.flags, 0) << "it is not released";
  EXPECT_EQ(map->clock().taken(), taken + 1);
  map->clock().done(taken);
  const Response written = node_.wait(client_);
  EXPECT_EQ(written.header.tag, 77u);
  EXPECT_EQ(written.header.version, taken + 1);
  EXPECT_EQ(text_of(call(OffloadId::hash_get, id, "k")), "v");
}

}  // namespace
}  // namespace espalier::offload
