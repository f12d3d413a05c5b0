// SPDX-License-Identifier: Apache-2.0
// Rows that clients WRITE into a node's memory and then have appended: over every transport that
// supports it, and from clients that make false claims, or write while the node reads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "client/store_impl.hpp"
#include "kinds/table/client/landing_writer.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/format/landing.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/value.hpp"
#include "node/metrics.hpp"
#include "tests/support/landing_by_hand.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier {
namespace {

using table::PipelineBuilder;
using test::ByHand;
using wire::OffloadId;

class LandingNodes : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    start();
    store_.emplace(connect());
    tables_ = client::StoreImpl::of(*store_).tables();
    table_ = *tables_->create("t", schema_, {});
    info_.emplace(tables_->list()->at(0));
  }
  [[nodiscard]] std::uint64_t asked_for(OffloadId id) const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      if (offload.id == id) return offload.requests;
    }
    return 0;
  }
  std::vector<std::byte> rows(std::uint64_t count) const {
    std::vector<std::byte> bytes(count * schema_.row_bytes());
    for (std::uint64_t i = 0; i < count; ++i) {
      std::byte* const row = bytes.data() + i * schema_.row_bytes();
      write_value(schema_.column(0), table::Value::of(static_cast<std::int64_t>(i)), row);
      write_value(schema_.column(1), table::Value::of_text("note " + std::to_string(i % 13)), row);
    }
    return bytes;
  }
  std::vector<std::byte> all_rows() {
    PipelineBuilder builder;
    const PipelineBuilder::NodeId columns[] = {builder.column(0), builder.column(1)};
    builder.project(columns);
    std::vector<std::byte> came;
    const auto numbers =
        table_->run(*builder.finish(), schema_.row_bytes(), [&](std::span<const std::byte> some) {
          came.insert(came.end(), some.begin(), some.end());
          return true;
        });
    EXPECT_TRUE(numbers) << message(numbers.error());
    return came;
  }

  const table::Schema schema_ = *table::Schema::parse("id i64 not null, note text(12)");
  std::optional<Store> store_;
  std::unique_ptr<client::TablesImpl> tables_;
  std::shared_ptr<client::TableImpl> table_;
  std::optional<client::TableInfo> info_;
};

INSTANTIATE_TEST_SUITE_P(By, LandingNodes, ::testing::ValuesIn(test::kWays), test::way_name);

TEST_P(LandingNodes, ManyRowsAreWrittenAndFewAreSent) {
  const std::vector<std::byte> sent = rows(20'000);
  ASSERT_GE(sent.size(), client::LandingWriter::kWorthBytes);
  const auto first = table_->append(sent);
  ASSERT_TRUE(first) << message(first.error());
  EXPECT_EQ(*first, 0u);
  const auto few = rows(3);
  EXPECT_EQ(*table_->append(few), 20'000u);
  const bool writes = way_ != "unix";
  EXPECT_EQ(asked_for(OffloadId::table_commit), writes ? 1u : 0u);
  EXPECT_EQ(asked_for(OffloadId::table_append), writes ? 1u : 2u);
  std::vector<std::byte> expected = sent;
  expected.insert(expected.end(), few.begin(), few.end());
  EXPECT_EQ(all_rows(), expected);
}

TEST_P(LandingNodes, WrongRowsAreNamedAndNoneIsAppended) {
  std::vector<std::byte> sent = rows(20'000);
  const std::uint16_t too_long = 13;
  std::memcpy(sent.data() + 4321 * schema_.row_bytes() + schema_.column(1).offset, &too_long,
              sizeof too_long);
  const auto refused = table_->append(sent);
  ASSERT_FALSE(refused);
  EXPECT_NE(message(refused.error()).find("row 4321"), std::string::npos)
      << message(refused.error());
  EXPECT_EQ(table_->facts()->rows, 0u);
  EXPECT_EQ(*table_->append(rows(20'000)), 0u);  // the window serves again
}

using HostileLandings = LandingNodes;
INSTANTIATE_TEST_SUITE_P(By, HostileLandings, ::testing::Values("shm", "roce", "roce_known"),
                         test::way_name);

TEST_P(HostileLandings, NothingIsBelievedOfWhatACommitSays) {
  ByHand client(address());
  const wire::LandingGrant grant = client.open(test::kWindowBytes);
  const std::uint64_t row = schema_.row_bytes();
  const auto code = [&](const wire::LandedRows& rows, std::uint32_t table) {
    const auto reply = client.commit(table, rows);
    return reply ? std::nullopt : std::optional(reply.error().error.code);
  };
  EXPECT_EQ(code({grant.window + 1, 0, row}, info_->number), Code::not_found);
  EXPECT_EQ(code({0, 0, row}, info_->number), Code::not_found);
  EXPECT_EQ(code({grant.window, 0, row}, info_->number + 1), Code::not_found);
  EXPECT_EQ(code({grant.window, grant.bytes, row}, info_->number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, ~std::uint64_t{7}, row}, info_->number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, 8, ~std::uint64_t{0} - 7}, info_->number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, 4, row}, info_->number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, 0, row + 1}, info_->number), Code::invalid_argument);
  EXPECT_EQ(code({grant.window, grant.bytes - 8, row}, info_->number), Code::invalid_argument);
  EXPECT_EQ(table_->facts()->rows, 0u);
  EXPECT_EQ(code({grant.window, grant.bytes - row, row}, info_->number), std::nullopt);  // zeros
  EXPECT_EQ(table_->facts()->rows, 1u);
}

TEST_P(HostileLandings, AWindowIsItsSessionsAndOnlyWhileItIsOpen) {
  ByHand client(address());
  ByHand other(address());
  const wire::LandingGrant grant = client.open(test::kWindowBytes);
  const auto bytes = rows(10);
  {
    const auto link = client.link();
    EXPECT_EQ(ByHand::write(*link, grant, bytes), fabric::Status::success);
  }
  EXPECT_EQ(other.commit(info_->number, {grant.window, 0, bytes.size()}).error().error.code,
            Code::not_found);
  const auto others = other.link();
  EXPECT_EQ(ByHand::write(*others, grant, bytes), fabric::Status::remote_access);
  const auto beyond = client.link();
  EXPECT_EQ(ByHand::write(*beyond, grant, bytes, grant.bytes - 8), fabric::Status::remote_access);
  EXPECT_EQ(client.commit(info_->number, {grant.window, 0, bytes.size()})->header.version, 0u);
  ASSERT_TRUE(client.ask(OffloadId::landing_close, 0, base::bytes_of(grant.window)));
  const auto late = client.link();
  EXPECT_EQ(ByHand::write(*late, grant, bytes), fabric::Status::remote_access);
  EXPECT_EQ(client.commit(info_->number, {grant.window, 0, 24}).error().error.code,
            Code::not_found);
  EXPECT_EQ(all_rows(), bytes);
}

TEST_P(HostileLandings, WhatIsNotGivenBackComesBackWithTheSession) {
  {
    ByHand client(address());
    for (std::uint32_t i = 0; i < wire::kLandingWindowsMax; ++i) client.open(4096);
    std::vector<std::unique_ptr<client::SideLink>> links;
    for (std::uint32_t i = 0; i < wire::kLandingWindowsMax; ++i) links.push_back(client.link());
    EXPECT_EQ(client.ask(OffloadId::landing_open, 0, base::bytes_of(test::kWindowBytes))
                  .error()
                  .error.code,
              Code::too_many_participants);
  }
  // A test that fails here hangs, and the watchdog of all tests ends it.
  while (node_->connections() != 1 || node_->services().budget.used() != 0) {
    std::this_thread::yield();
  }
}

using HostileLandingsConcurrency = LandingNodes;
INSTANTIATE_TEST_SUITE_P(By, HostileLandingsConcurrency, ::testing::Values("shm", "roce"),
                         test::way_name);

// Exactly the checked bytes are appended, whatever the client writes meanwhile.
TEST_P(HostileLandingsConcurrency, RowsThatChangeWhileTheyAreCommitted) {
  constexpr std::uint64_t kRows = 2'000;
  ByHand client(address());
  const wire::LandingGrant grant = client.open(test::kWindowBytes);
  const auto good = rows(kRows);
  auto bad = good;
  const std::uint16_t too_long = 0xFFFF;
  for (std::uint64_t i = 0; i < kRows; i += 7) {
    std::memcpy(bad.data() + i * schema_.row_bytes() + schema_.column(1).offset, &too_long,
                sizeof too_long);
  }
  const auto writing = client.link();
  ASSERT_EQ(ByHand::write(*writing, grant, good), fabric::Status::success);
  std::atomic<std::uint64_t> commits{0};  // that were answered
  std::atomic<bool> done{false};
  // Changes rows at any time, and now and then leaves good ones until a commit met nothing else:
  // that of the second answer from here began after the first.
  std::thread writer([&] {
    while (!done.load()) {
      for (int i = 0; i < 4; ++i) {
        ByHand::write(*writing, grant, bad);
        ByHand::write(*writing, grant, good);
      }
      const std::uint64_t whole = commits.load() + 2;
      while (!done.load() && commits.load() < whole) std::this_thread::yield();
    }
  });
  std::uint64_t appended = 0;
  std::uint64_t refused = 0;
  for (int i = 0; i < 2'000 && (appended < 20 || refused < 20); ++i) {
    const auto reply = client.commit(info_->number, {grant.window, 0, good.size()});
    ++(reply ? appended : refused);
    commits.fetch_add(1);
  }
  done.store(true);
  writer.join();
  EXPECT_GT(appended, 0u);
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(table_->facts()->rows, appended * kRows);
  const auto came = all_rows();
  ASSERT_EQ(came.size(), appended * good.size());
  for (std::uint64_t at = 0; at < came.size(); at += good.size()) {
    ASSERT_EQ(std::memcmp(came.data() + at, good.data(), good.size()), 0) << at;
  }
}

}  // namespace
}  // namespace espalier
