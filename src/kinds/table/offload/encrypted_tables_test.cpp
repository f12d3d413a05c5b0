// SPDX-License-Identifier: Apache-2.0
// Encrypted tables through calls: reservations, keys that come with a run, encrypted results.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/payload_reader.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/format/table.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/value.hpp"

namespace espalier::offload {
namespace {

using table::CtrCipher;
using table::KeyBytes;
using table::PipelineBuilder;
using table::SaltBytes;
using wire::OffloadId;

template <class T>
std::string_view text_of_struct(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class EncryptedTables : public testing::Test {
 protected:
  EncryptedTables() : schema_(*table::Schema::parse("id i64 not null, name text(20)")) {
    key_.fill(std::byte{7});
    std::vector<std::byte> bytes(schema_.encoded_bytes());
    schema_.encode(bytes);
    const Response made =
        call(OffloadId::table_create, "t", text_of(bytes), wire::kCreateEncrypted);
    EXPECT_EQ(made.header.code, 0) << made.payload;
    table_ = static_cast<std::uint32_t>(made.header.version);
    wire::CipherFacts facts{};
    EXPECT_EQ(made.payload.size(), sizeof(wire::TableFacts) + bytes.size() + sizeof facts);
    std::memcpy(&facts, made.payload.data() + made.payload.size() - sizeof facts, sizeof facts);
    EXPECT_EQ(facts.cipher, static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr));
    std::memcpy(salt_.data(), facts.salt, sizeof facts.salt);
  }

  Response call(OffloadId offload, std::string_view key, std::string_view payload = {},
                std::uint32_t argument = 0) {
    wire::RequestHeader header = request_of(offload, table_, ++tag_);
    header.argument = argument;
    return node_.call(client_, header, key, payload);
  }

  /// Rows `first` to `first + count` for the slots that a reservation's answer names.
  std::string cipher_rows(std::uint64_t first, std::uint64_t count, std::string_view slots) const {
    const std::size_t row_bytes = schema_.row_bytes();
    std::string rows(count * row_bytes, '\0');
    auto* const bytes = reinterpret_cast<std::byte*>(rows.data());
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::int64_t>(first + i);
      write_value(schema_.column(0), table::Value::of(id), bytes + i * row_bytes);
      write_value(schema_.column(1), table::Value::of_text("name" + std::to_string(id)),
                  bytes + i * row_bytes);
    }
    CtrCipher cipher = CtrCipher::derived(key_, salt_, table::kTableKeyInfo).value();
    std::byte* at = bytes;
    for (; slots.size() >= sizeof(wire::ReservedSlots);
         slots.remove_prefix(sizeof(wire::ReservedSlots))) {
      wire::ReservedSlots some{};
      std::memcpy(&some, slots.data(), sizeof some);
      cipher.apply(some.cipher_page, 64 + some.first_slot * row_bytes, at, at,
                   some.slots * row_bytes);
      at += some.slots * row_bytes;
    }
    EXPECT_EQ(at, bytes + rows.size());
    return rows;
  }
  void append(std::uint64_t first, std::uint64_t count) {
    const Response reserved =
        call(OffloadId::table_reserve, "", {}, static_cast<std::uint32_t>(count));
    ASSERT_EQ(reserved.header.code, 0) << reserved.payload;
    const std::uint64_t number = reserved.header.version;
    const Response appended = call(OffloadId::table_append, text_of_struct(number),
                                   cipher_rows(first, count, reserved.payload));
    ASSERT_EQ(appended.header.code, 0) << appended.payload;
    ASSERT_EQ(appended.header.version, first);
  }
  [[nodiscard]] wire::RunKeys keys(std::uint32_t flags) const {
    wire::RunKeys keys{};
    keys.flags = flags;
    if ((flags & wire::kTableKey) != 0) std::memcpy(keys.table_key, key_.data(), 16);
    if ((flags & wire::kResultKey) != 0) {
      std::memset(keys.result_key, 9, 16);
      std::memset(keys.result_salt, 3, 32);
    }
    return keys;
  }
  /// select * from t where id >= 100 limit 3
  static std::string some_rows(bool decrypts, bool encrypts) {
    PipelineBuilder builder;
    if (decrypts) builder.decrypt();
    if (encrypts) builder.encrypt();
    builder.filter(builder.binary(wire::ExpressionKind::greater_equal, builder.column(0),
                                  builder.constant(table::integer_constant(100))));
    builder.limit(3);
    return std::string(text_of(*builder.finish()));
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect({64, 256, 1});
  const table::Schema schema_;
  KeyBytes key_{};
  SaltBytes salt_{};
  std::uint32_t table_ = 0;
  std::uint32_t tag_ = 0;
};

TEST_F(EncryptedTables, RowsComeBackInPlainText) {
  append(0, 50);
  append(50, 1000);
  const Response answered =
      call(OffloadId::table_query, text_of_struct(keys(wire::kTableKey)), some_rows(true, false));
  ASSERT_EQ(answered.header.code, 0) << answered.payload;
  const std::string rows = answered.payload.substr(sizeof(wire::QueryNumbers));
  ASSERT_EQ(rows.size(), 3 * schema_.row_bytes());
  const auto* row = reinterpret_cast<const std::byte*>(rows.data());
  EXPECT_EQ(read_value(schema_.column(0), row).number, 100);
  EXPECT_EQ(read_value(schema_.column(1), row).text, "name100");
}

TEST_F(EncryptedTables, AResultThatIsEncryptedIsOneStream) {
  append(0, 6000);
  PipelineBuilder builder;
  builder.decrypt();
  builder.encrypt();
  const Response answered =
      call(OffloadId::table_query, text_of_struct(keys(wire::kTableKey | wire::kResultKey)),
           text_of(*builder.finish()));
  ASSERT_EQ(answered.header.code, 0) << answered.payload;
  // The fixture puts chunks in front of the last message, which begins with the numbers.
  const std::size_t all = 6000u * schema_.row_bytes();
  ASSERT_EQ(answered.payload.size(), all + sizeof(wire::QueryNumbers));
  SaltBytes salt;
  salt.fill(std::byte{3});
  KeyBytes key;
  key.fill(std::byte{9});
  CtrCipher cipher = CtrCipher::derived(key, salt, table::kResultKeyInfo).value();
  EXPECT_EQ(answered.payload.find("name"), std::string::npos);
  // Chunks are whole rows: those before the numbers decrypt where they stand, those behind them by
  // the numbers' bytes earlier.
  const auto* bytes = reinterpret_cast<const std::byte*>(answered.payload.data());
  std::vector<std::byte> row(schema_.row_bytes());
  std::size_t skipped = 0;
  for (std::uint64_t id = 0; id < 6000; ++id) {
    const std::uint64_t offset = id * row.size();
    cipher.apply(0, offset, bytes + offset + skipped, row.data(), row.size());
    if (skipped == 0 && read_value(schema_.column(0), row.data()).number !=
                            table::Wide{static_cast<std::int64_t>(id)}) {
      skipped = sizeof(wire::QueryNumbers);
      cipher.apply(0, offset, bytes + offset + skipped, row.data(), row.size());
    }
    ASSERT_EQ(read_value(schema_.column(0), row.data()).number,
              table::Wide{static_cast<std::int64_t>(id)});
    ASSERT_EQ(read_value(schema_.column(1), row.data()).text, "name" + std::to_string(id));
  }
}

TEST_F(EncryptedTables, KeysGoWhenTheRunEndsIsCancelledOrLosesItsClient) {
  for (std::uint64_t first = 0; first < 100'000; first += 10'000) append(first, 10'000);
  const std::size_t before = crypto::secret_pages_taken();
  PipelineBuilder builder;
  builder.decrypt();
  builder.encrypt();
  const std::string all(text_of(*builder.finish()));
  const wire::RunKeys both = keys(wire::kTableKey | wire::kResultKey);
  ASSERT_EQ(call(OffloadId::table_query, text_of_struct(both), all).header.code, 0);
  EXPECT_EQ(crypto::secret_pages_taken(), before);

  auto& reader = node_.connect({64, 64, 1});
  reader->post(
      message_of(request_of(OffloadId::table_query, table_, 7), text_of_struct(both), all));
  reader->ring();
  node_.turns(5'000);
  EXPECT_GT(crypto::secret_pages_taken(), before) << "it waits for its client";
  reader->post(message_of(request_of(OffloadId::cancel, 0, 8, 7)));
  reader->ring();
  Response last;
  while (last.header.tag != 7 || !last.answers()) {
    last = node_.wait(reader);
    ASSERT_NE(last.header.kind, 0);
  }
  ASSERT_TRUE(node_.run_until_idle());
  EXPECT_EQ(crypto::secret_pages_taken(), before);
  node_.disconnect(reader);

  for (int turns = 1; turns < 100; turns += 9) {
    auto& going = node_.connect({64, 64, 1});
    going->post(
        message_of(request_of(OffloadId::table_query, table_, 1), text_of_struct(both), all));
    going->ring();
    node_.turns(turns);
    node_.disconnect(going);
    ASSERT_TRUE(node_.run_until_idle());
    node_.turn();
    ASSERT_TRUE(going.ended);
  }
  while (node_.services().helpers.numbers().clients != 1) std::this_thread::yield();
  EXPECT_EQ(crypto::secret_pages_taken(), before);
}

TEST_F(EncryptedTables, KeysAreThoseThatThePipelineNeeds) {
  append(0, 200);
  const auto refusal = [&](std::string_view key, const std::string& pipeline) {
    const Response answered = call(OffloadId::table_query, key, pipeline);
    EXPECT_EQ(answered.code(), Code::invalid_argument);
    return answered.payload.substr(sizeof(std::uint32_t));  // behind the error's detail
  };
  EXPECT_EQ(refusal("", some_rows(false, false)),
            "the table is encrypted: its pipelines begin with decrypt, and need its key");
  EXPECT_EQ(refusal("", some_rows(true, false)),
            "the run's keys are not those that its pipeline needs");
  EXPECT_EQ(refusal(text_of_struct(keys(wire::kTableKey)), some_rows(true, true)),
            "the run's keys are not those that its pipeline needs");
  EXPECT_EQ(
      refusal(text_of_struct(keys(wire::kTableKey | wire::kResultKey)), some_rows(true, false)),
      "the run's keys are not those that its pipeline needs");
  EXPECT_EQ(refusal("0123456789", some_rows(true, false)), "these bytes are no keys of a run");
  // Another key gives other rows, and no error: there is no integrity.
  wire::RunKeys other = keys(wire::kTableKey);
  other.table_key[0] ^= 1;
  const Response answered =
      call(OffloadId::table_query, text_of_struct(other), some_rows(true, false));
  EXPECT_EQ(answered.header.code, 0);
  EXPECT_EQ(answered.payload.find("name1"), std::string::npos);
}

TEST_F(EncryptedTables, AppendsNeedAReservationThatIsTheirs) {
  const std::string row(schema_.row_bytes(), 'x');
  EXPECT_EQ(call(OffloadId::table_append, "", row).code(), Code::unsupported);
  const std::uint64_t none = 77;
  EXPECT_EQ(call(OffloadId::table_append, text_of_struct(none), row).code(), Code::not_found);
  EXPECT_EQ(call(OffloadId::table_append, "abc", row).code(), Code::invalid_argument);
  const Response reserved = call(OffloadId::table_reserve, "", {}, 1);
  ASSERT_EQ(reserved.header.code, 0);
  EXPECT_EQ(call(OffloadId::table_reserve, "", {}, 1u << 30).code(), Code::invalid_argument);
  const std::uint64_t number = reserved.header.version;
  // The next one waits for its turn.
  auto& other = node_.connect({64, 64, 1});
  wire::RequestHeader waiting = request_of(OffloadId::table_reserve, table_, 5);
  waiting.argument = 1;
  other->post(message_of(waiting));
  other->ring();
  node_.turns(100);
  // Another number of rows gives it up, and the next one gets other slots.
  EXPECT_EQ(call(OffloadId::table_append, text_of_struct(number), row + row).code(),
            Code::invalid_argument);
  const Response next = node_.wait(other);
  ASSERT_EQ(next.header.code, 0) << next.payload;
  EXPECT_NE(next.header.version, number);
  EXPECT_NE(next.payload, reserved.payload);
}

}  // namespace
}  // namespace espalier::offload
