// SPDX-License-Identifier: Apache-2.0
// Rows of encrypted tables that clients WRITE into a node's memory and then have copied into the
// reserved slots: over every transport that supports it, and from clients that claim slots of
// another session, used ones, or of another length, or that disappear before they fill them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "client/store_impl.hpp"
#include "espalier/table_key.hpp"
#include "kinds/table/client/landing_writer.hpp"
#include "kinds/table/client/sealed_rows.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/value.hpp"
#include "node/metrics.hpp"
#include "tests/support/landing_by_hand.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier {
namespace {

using test::ByHand;
using wire::OffloadId;

class EncryptedLandings : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    start();
    store_.emplace(connect());
    tables_ = client::StoreImpl::of(*store_).tables();
    table_ = *tables_->create("t", schema_, {.encrypted = true});
    ASSERT_TRUE(table_->use({.key = TableKey::parse("000102030405060708090a0b0c0d0e0f").value()}));
    number_ = tables_->list()->at(0).number;
  }
  [[nodiscard]] std::uint64_t asked_for(OffloadId id) const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      if (offload.id == id) return offload.requests;
    }
    return 0;
  }
  [[nodiscard]] std::vector<std::byte> rows(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::byte> bytes(count * schema_.row_bytes());
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t id = first + i;
      std::byte* const row = bytes.data() + i * schema_.row_bytes();
      write_value(schema_.column(0), table::Value::of(static_cast<std::int64_t>(id)), row);
      write_value(schema_.column(1), table::Value::of_text("note " + std::to_string(id % 13)), row);
    }
    return bytes;
  }
  /// What the table's owner reads: decrypted here.
  std::vector<std::byte> plain_rows() {
    std::vector<std::byte> came;
    const auto run = table_->read({}, {});
    EXPECT_TRUE(run) << message(run.error());
    while (run) {
      const auto some = (*run)->next();
      EXPECT_TRUE(some) << message(some.error());
      if (!some || some->empty()) break;
      came.insert(came.end(), some->begin(), some->end());
    }
    return came;
  }
  TableResult<std::uint64_t> append(std::vector<std::byte> rows) {
    auto cipher = *table_->cipher();
    return table_->append_encrypted(rows, *cipher);
  }

  const table::Schema schema_ = *table::Schema::parse("id i64 not null, note text(12)");
  std::optional<Store> store_;
  std::unique_ptr<client::TablesImpl> tables_;
  std::shared_ptr<client::TableImpl> table_;
  std::uint32_t number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(By, EncryptedLandings, ::testing::ValuesIn(test::kWays), test::way_name);

TEST_P(EncryptedLandings, ManyRowsAreWrittenAndFewAreSent) {
  std::vector<std::byte> expected;
  const auto add = [&](std::uint64_t count) {
    const std::vector<std::byte> more = rows(expected.size() / schema_.row_bytes(), count);
    const auto first = append(more);
    ASSERT_TRUE(first) << message(first.error());
    EXPECT_EQ(*first, expected.size() / schema_.row_bytes());
    expected.insert(expected.end(), more.begin(), more.end());
  };
  // The first two end in the middle of a page, the third crosses its end.
  for (const std::uint64_t count : {20'000, 3, 120'000}) add(count);
  const bool writes = way_ != "unix";
  EXPECT_EQ(asked_for(OffloadId::table_reserve), 3u);
  EXPECT_EQ(asked_for(OffloadId::table_commit), writes ? 2u : 0u);
  EXPECT_EQ(asked_for(OffloadId::table_append), writes ? 1u : 3u);
  EXPECT_TRUE(plain_rows() == expected);
}

// --- clients that say what is not so -------------------------------------------------------------

/// Slots that a client by hand has reserved.
struct Reserved {
  std::uint64_t number = 0;
  std::string slots;
};

class HostileEncryptedLandings : public EncryptedLandings {
 protected:
  Reserved reserve(ByHand& client, std::uint32_t count) {
    const auto reply = client.ask(OffloadId::table_reserve, number_, {}, {}, count);
    EXPECT_TRUE(reply) << message(reply.error());
    if (!reply) return {};
    for (std::string_view left = reply->payload; !left.empty();
         left.remove_prefix(sizeof(wire::ReservedSlots))) {
      wire::ReservedSlots some{};
      std::memcpy(&some, left.data(), sizeof some);
      for (std::uint32_t i = 0; i < some.slots; ++i) {
        EXPECT_TRUE(given_.emplace(some.cipher_page, some.first_slot + i).second)
            << "a counter block is used twice";
      }
    }
    return {reply->header.version, reply->payload};
  }
  std::vector<std::byte> sealed(const Reserved& reserved, std::vector<std::byte> rows) {
    auto cipher = *table_->cipher();
    EXPECT_TRUE(client::seal_rows(rows, schema_.row_bytes(), reserved.slots, *cipher));
    return rows;
  }
  /// The node's error for a commit; empty: it was done.
  std::string commit(ByHand& client, const wire::LandingGrant& grant, std::uint64_t count,
                     std::uint64_t reservation) {
    const auto reply = client.commit(number_, {grant.window, 0, count * schema_.row_bytes()},
                                     base::bytes_of(reservation));
    return reply ? "" : message(reply.error());
  }

  std::set<std::pair<std::uint64_t, std::uint64_t>> given_;
};
INSTANTIATE_TEST_SUITE_P(By, HostileEncryptedLandings,
                         ::testing::Values("shm", "roce", "roce_known"), test::way_name);

constexpr const char* kNotItsOwn =
    "the reservation has ended, or is another session's: nothing was appended";

TEST_P(HostileEncryptedLandings, AReservationIsItsSessionsAndServesOnce) {
  ByHand client(address());
  ByHand other(address());
  const wire::LandingGrant grant = client.open(test::kWindowBytes);
  const wire::LandingGrant others = other.open(test::kWindowBytes);
  const Reserved reserved = reserve(client, 10);
  const std::vector<std::byte> cipher_text = sealed(reserved, rows(0, 10));
  const auto link = client.link();
  ASSERT_EQ(ByHand::write(*link, grant, cipher_text), fabric::Status::success);
  // Of another session: neither is it filled, nor does another length end it.
  EXPECT_EQ(commit(other, others, 10, reserved.number), kNotItsOwn);
  EXPECT_EQ(commit(other, others, 9, reserved.number), kNotItsOwn);
  const std::string ten(cipher_text.size(), 'x');
  const auto sent =
      other.ask(OffloadId::table_append, number_, ten, base::bytes_of(reserved.number));
  ASSERT_FALSE(sent);
  EXPECT_EQ(message(sent.error()), kNotItsOwn);
  EXPECT_EQ(commit(client, grant, 10, reserved.number + 1), kNotItsOwn);
  EXPECT_EQ(table_->facts()->rows, 0u);
  EXPECT_EQ(commit(client, grant, 10, reserved.number), "");
  EXPECT_EQ(commit(client, grant, 10, reserved.number), kNotItsOwn) << "it is spent";
  EXPECT_TRUE(plain_rows() == rows(0, 10));
}

TEST_P(HostileEncryptedLandings, NothingIsBelievedOfWhatACommitSays) {
  ByHand client(address());
  const wire::LandingGrant grant = client.open(test::kWindowBytes);
  const std::uint64_t row = schema_.row_bytes();
  const Reserved reserved = reserve(client, 1);
  const std::string_view number = base::bytes_of(reserved.number);
  const auto code = [&](const wire::LandedRows& rows, std::string_view key) {
    const auto reply = client.commit(number_, rows, key);
    return reply ? std::nullopt : std::optional(reply.error().error.code);
  };
  EXPECT_EQ(code({grant.window, 0, row}, ""), Code::unsupported);
  EXPECT_EQ(code({grant.window, 0, row}, number.substr(1)), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, 0, row}, std::string(number) + "x"), Code::invalid_argument);
  EXPECT_EQ(code({grant.window + 1, 0, row}, number), Code::not_found);
  EXPECT_EQ(code({grant.window, 4, row}, number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, 0, row - 8}, number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, grant.bytes, row}, number), Code::invalid_argument);
  // None of these has ended the reservation; another number of rows does.
  EXPECT_EQ(commit(client, grant, 2, reserved.number),
            "the reservation was for another number of rows, and has ended: nothing was appended");
  EXPECT_EQ(commit(client, grant, 1, reserved.number), kNotItsOwn);
  const Reserved none = reserve(client, 1);
  EXPECT_EQ(commit(client, grant, 0, none.number),
            "the reservation was for another number of rows, and has ended: nothing was appended");
  EXPECT_EQ(table_->facts()->rows, 0u);
}

TEST_P(HostileEncryptedLandings, ASessionThatIsGoneLeavesItsSlotsDead) {
  std::vector<std::byte> expected;
  for (std::uint64_t round = 0; round < 5; ++round) {
    std::uint64_t left_behind = 0;
    {
      ByHand gone(address());
      const wire::LandingGrant grant = gone.open(test::kWindowBytes);
      const Reserved reserved = reserve(gone, 7);
      const auto link = gone.link();
      ASSERT_EQ(ByHand::write(*link, grant, sealed(reserved, rows(0, 7))), fabric::Status::success);
      left_behind = reserved.number;
    }
    // Not after the 10 seconds that a reservation lasts, but when the session has ended.
    ByHand client(address());
    const wire::LandingGrant grant = client.open(test::kWindowBytes);
    const Reserved reserved = reserve(client, 100);
    const std::vector<std::byte> own = rows(1000 * round, 100);
    const auto link = client.link();
    ASSERT_EQ(ByHand::write(*link, grant, sealed(reserved, own)), fabric::Status::success);
    EXPECT_EQ(commit(client, grant, 7, left_behind), kNotItsOwn);
    EXPECT_EQ(commit(client, grant, 100, reserved.number), "");
    expected.insert(expected.end(), own.begin(), own.end());
  }
  EXPECT_TRUE(plain_rows() == expected);
}

}  // namespace
}  // namespace espalier
