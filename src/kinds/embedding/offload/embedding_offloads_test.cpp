// SPDX-License-Identifier: Apache-2.0
// Offloads on embedding tables and models whose clients go in the middle: groupings are undone, and
// the networks of a batch run for those that are left.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/model_queries.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "kinds/embedding/offload/dense_batches.hpp"
#include "kinds/embedding/offload/pooled_rows.hpp"
#include "kinds/embedding/offload/testing/turn_of_reductions.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
#include "memory/size_class.hpp"

namespace espalier::offload {
namespace {

using embedding::EmbeddingTable;
using wire::OffloadId;

class EmbeddingOffloads : public testing::Test {
 protected:
  std::shared_ptr<EmbeddingTable> table_of(const std::string& name, std::uint32_t dimension,
                                           std::uint32_t rows) {
    const auto table =
        embedding::create_embedding_table(node_.catalog(), node_.store().pool, name,
                                          embedding::shape_of({.dimension = dimension}))
            .value();
    std::vector<float> values(std::size_t{rows} * dimension);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i / dimension % 16) / 16;
    }
    EXPECT_TRUE(table->append(std::as_bytes(std::span(values))));
    return table;
  }
  [[nodiscard]] std::uint64_t pages() {
    return node_.store().pool.stats(memory::relation_class_of(embedding::kPageBytes)).in_use;
  }

  SchedulerFixture node_;
};

TEST(ReductionTurns, RowsOfATurnAreAskedForBeforeTheFirstIsSummed) {
  EXPECT_TRUE(rows_of_a_turn_are_asked_for_first());
}

// The helper is kept at the first sums until its client has gone.
TEST_F(EmbeddingOffloads, AGroupingWhoseClientGoesIsUndone) {
  const auto table = table_of("t", 64, 4000);
  const std::uint8_t two[] = {2};
  const std::uint32_t pair[] = {5, 6};
  const std::uint32_t before = embedding::group_rows(*table, {two, pair}).value();
  const std::uint64_t pages_before = pages();
  const std::vector<std::uint8_t> sizes(500, 8);
  std::vector<std::uint32_t> rows(4000);
  std::iota(rows.begin(), rows.end(), 0u);
  const std::string payload = std::string(base::bytes_of(embedding::GroupsShape{500, 4000})) +
                              std::string(reinterpret_cast<const char*>(rows.data()), 16'000) +
                              std::string(sizes.begin(), sizes.end());
  SchedulerClient& client = node_.connect(kLongRequests);
  {
    const auto held = table->hold_replacements();
    client->post(message_of(request_of(OffloadId::embedding_group, table->id(), 1), "", payload));
    client->ring();
    ASSERT_TRUE(node_.run_until([&] { return table->all_numbers().grouping_groups == 500; }));
    EXPECT_EQ(table->all_numbers().groups, 1u);
    node_.disconnect(client);
  }
  ASSERT_TRUE(node_.run_until([&] { return client.ended; }));
  ASSERT_TRUE(node_.run_until([&] { return pages() == pages_before; }));
  EXPECT_EQ(table->all_numbers().grouping_groups, 0u);
  EXPECT_EQ(table->memo()->number(), before);
  EXPECT_EQ(embedding::audit(*table), std::vector<std::string>{});
  // Another may begin.
  SchedulerClient& next = node_.connect(kLongRequests);
  const Response done =
      node_.call(next, request_of(OffloadId::embedding_group, table->id(), 2), "", payload);
  EXPECT_EQ(done.code(), Code::invalid);
  EXPECT_EQ(table->memo()->number(), done.header.version);
  EXPECT_EQ(table->all_numbers().groups, 500u);
}

/// The one helper does nothing until it is released.
class LatchedHelper {
 public:
  explicit LatchedHelper(HelperPool& helpers) {
    helpers.run([released = released_] { released->wait(); });
  }
  ~LatchedHelper() { release(); }
  LatchedHelper(const LatchedHelper&) = delete;
  LatchedHelper& operator=(const LatchedHelper&) = delete;
  void release() {
    if (!std::exchange(done_, true)) released_->count_down();
  }

 private:
  const std::shared_ptr<std::latch> released_ = std::make_shared<std::latch>(1);
  bool done_ = false;
};

class RankingOffloads : public EmbeddingOffloads {
 protected:
  RankingOffloads() {
    base::Random random(7);
    parts_.draw(random);
    for (const std::string& name : parts_.tables) tables_.push_back(table_of(name, 8, 50));
    model_ =
        embedding::create_ranking_model(node_.catalog(), node_.store().pool, "model", parts_.file())
            .value();
  }
  /// The payload of a request of some queries, each another one.
  [[nodiscard]] std::string queries(std::uint32_t count, std::uint32_t first) const {
    std::string text(base::bytes_of(embedding::InferShape{0, 1}));
    for (std::uint32_t i = first; i < first + count; ++i) {
      text += std::to_string(i % 7) + " 1 0.5 2 " + std::to_string(i % 3) + " | " +
              std::to_string(i % 50) + " 3 | " + std::to_string(i * 7 % 50) + "\n";
    }
    return text;
  }
  /// The same as words, which no helper reads.
  [[nodiscard]] std::string words(std::uint32_t count, std::uint32_t first) const {
    const std::string text = queries(count, first).substr(sizeof(embedding::InferShape));
    const auto read = embedding::parse_queries(model_->shape(), text).value();
    std::vector<EmbeddingBags> bags;
    for (const auto& of : read.tables) bags.push_back({of.ids, of.offsets});
    return std::string(base::bytes_of(embedding::InferShape{count, 0})) +
           embedding::words_of(read.dense, bags);
  }
  /// Asks for the ranks of so many queries of each client, as words and before the scheduler has a
  /// turn; returns how often the networks ran for them.
  [[nodiscard]] std::uint64_t batches_of(const std::vector<SchedulerClient*>& clients,
                                         std::uint32_t count) {
    const std::uint64_t before = model_->batches();
    for (std::uint32_t i = 0; i < clients.size(); ++i) post(*clients[i], words(count, i * 31));
    std::vector<Response> responses;
    for (SchedulerClient* const client : clients) responses.push_back(node_.wait(*client));
    const std::uint64_t batches = model_->batches() - before;
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      expect_ranks_of(responses[i], queries(count, i * 31));
    }
    return batches;
  }
  void expect_ranks_of(const Response& response, const std::string& payload) {
    ASSERT_EQ(response.code(), Code::invalid) << response.payload;
    const auto wanted =
        embedding::infer(model_, node_.catalog(), {0, 1},
                         std::string_view(payload).substr(sizeof(embedding::InferShape)))
            .value();
    std::vector<float> found(response.payload.size() / sizeof(float));
    std::memcpy(found.data(), response.payload.data(), found.size() * sizeof(float));
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-5) << i;
  }
  /// The batch that a request of so many queries joins, when its rows are reduced.
  [[nodiscard]] std::shared_ptr<DenseBatch> joined(DenseBatches& batches, std::uint32_t count,
                                                   std::uint64_t now_ns) {
    auto inference = std::make_shared<embedding::Inference>(model_);
    EXPECT_TRUE(inference->read(
        {0, 1}, std::string_view(queries(count, 0)).substr(sizeof(embedding::InferShape))));
    EXPECT_TRUE(inference->open(node_.catalog()));
    while (inference->step().value()) {
    }
    return batches.join(inference, now_ns);
  }
  void post(SchedulerClient& client, const std::string& payload) {
    client->post(message_of(request_of(OffloadId::model_infer, model_->id(), 1), "", payload));
    client->ring();
  }

  embedding::RankingParts parts_;
  std::vector<std::shared_ptr<EmbeddingTable>> tables_;
  std::shared_ptr<embedding::RankingObject> model_;
};

// Each has its own ranks, in whichever request's helper they run: full batches, and those that are
// due.
TEST_F(RankingOffloads, RequestsOfABatchHaveTheirOwnRanks) {
  std::vector<SchedulerClient*> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(&node_.connect(kLongRequests));
  for (const std::uint32_t count : {1u, 13u, 64u, 100u}) {
    std::vector<std::string> payloads;
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      payloads.push_back(queries(count, i * 31));
      post(*clients[i], payloads.back());
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      expect_ranks_of(node_.wait(*clients[i]), payloads[i]);
    }
  }
}

// As 100 us are longer than the turns that they take, unless the machine is elsewhere meanwhile.
TEST_F(RankingOffloads, RequestsThatComeTogetherAreRankedTogether) {
  std::vector<SchedulerClient*> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(&node_.connect(kLongRequests));
  bool together = false;
  for (int attempt = 0; attempt < 1000 && !together; ++attempt) {
    together = batches_of(clients, 20) == 1;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_TRUE(together);
}

// The fourth request fills the batch, and the fifth finds no room in it.
TEST_F(RankingOffloads, ABatchIsFullWithSixtyFourQueries) {
  std::vector<SchedulerClient*> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(&node_.connect(kLongRequests));
  bool two = false;
  for (int attempt = 0; attempt < 1000 && !two; ++attempt) {
    const std::uint64_t batches = batches_of(clients, 16);
    ASSERT_GE(batches, 2u);
    ASSERT_FALSE(HasFailure());
    two = batches == 2;
  }
  EXPECT_TRUE(two);
}

// A batch waits for others for 100 us, unless it is full.
TEST_F(RankingOffloads, ABatchThatIsNotFullWaits) {
  SchedulerClient& client = node_.connect(kLongRequests);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::uint64_t begun = base::monotonic_ns();
    post(client, words(63, 0));
    const Response response = node_.wait(client);
    EXPECT_GE(base::monotonic_ns() - begun, 100'000u);
    expect_ranks_of(response, queries(63, 0));
  }
  DenseBatches batches;
  auto first = joined(batches, 63, 5000);
  EXPECT_FALSE(first->is_ready(5000));
  EXPECT_FALSE(first->is_ready(104'999));
  EXPECT_TRUE(first->is_ready(105'000));
  EXPECT_EQ(first->due_ns(), 105'000u);
  EXPECT_EQ(joined(batches, 1, 6000), first);
  EXPECT_TRUE(first->is_ready(6000));
  EXPECT_EQ(first->due_ns(), 105'000u) << "that of the first request";
}

// Whichever of them it is whose helper was to rank the batch.
TEST_F(RankingOffloads, ABatchWhoseRunnerGoesIsRankedForTheOthers) {
  for (int gone = 0; gone < 3; ++gone) {
    std::vector<SchedulerClient*> clients;
    std::vector<std::string> payloads;
    for (std::uint32_t i = 0; i < 3; ++i) {
      clients.push_back(&node_.connect(kLongRequests));
      payloads.push_back(queries(30, i * 31));
    }
    // Text is parsed by the helper before it is held.
    for (std::uint32_t i = 0; i < 3; ++i) post(*clients[i], payloads[i]);
    node_.turns(20);
    LatchedHelper held(node_.services().helpers);
    node_.turns(200);
    node_.disconnect(*clients[static_cast<std::size_t>(gone)]);
    node_.turns(200);
    held.release();
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i != gone) expect_ranks_of(node_.wait(*clients[at]), payloads[at]);
    }
    ASSERT_TRUE(node_.run_until([&] { return clients[static_cast<std::size_t>(gone)]->ended; }));
    for (int i = 0; i < 3; ++i) {
      if (i != gone) node_.disconnect(*clients[static_cast<std::size_t>(i)]);
    }
  }
}

// One that asks for more than its share is refused, another is not; what was taken comes back.
TEST_F(RankingOffloads, MemoryOfReducedRowsIsSharedAmongClients) {
  const auto account_of = [&](std::uint32_t user) {
    return node_.services().principals.of(principal_of_user(user));
  };
  constexpr std::uint64_t kPart = PooledShare::kBytesMax / 4;
  const PooledMemory memory;
  {
    std::list<PooledRows> taken;
    for (std::uint32_t user = 10; user < 14; ++user) {
      for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(taken.emplace_back().take(kPart, account_of(user), memory));
      ASSERT_FALSE(PooledRows().take(1, account_of(user), memory));
    }
    EXPECT_FALSE(PooledRows().take(1, account_of(14), memory)) << "all of the scheduler";
    taken.pop_front();
    EXPECT_FALSE(PooledRows().take(kPart + 1, account_of(10), memory));
    EXPECT_TRUE(PooledRows().take(kPart, account_of(10), memory));
    EXPECT_TRUE(PooledRows().take(kPart, account_of(14), memory));
  }
  EXPECT_EQ(memory.bytes->load(), 0u);

  SchedulerClient& client = node_.connect(kLongRequests, 10);
  SchedulerClient& other = node_.connect(kLongRequests, 11);
  std::atomic<std::uint64_t>& share = client.connection->account->parts.of<PooledShare>().bytes;
  EXPECT_EQ(share, 0u);
  share = PooledShare::kBytesMax;
  const std::string payload = queries(3, 0);
  post(client, payload);
  const Response refused = node_.wait(client);
  EXPECT_EQ(refused.code(), Code::out_of_memory);
  EXPECT_EQ(share, PooledShare::kBytesMax);
  post(other, payload);
  expect_ranks_of(node_.wait(other), payload);
  share = 0;
  post(client, payload);
  expect_ranks_of(node_.wait(client), payload);
  EXPECT_TRUE(node_.run_until([&] { return share == 0; }));
}

// Requests that ended keep neither their model, nor queries that other batches would rank.
TEST_F(RankingOffloads, ABatchWhoseRequestsAllWentIsForgotten) {
  DenseBatches batches;
  auto first = joined(batches, DenseBatch::kQueries, 0);
  const std::weak_ptr<DenseBatch> left = first;
  EXPECT_EQ(joined(batches, 1, 0), first);
  batches.maintain(node_.services());
  ASSERT_FALSE(left.expired()) << "a request waits for it";
  first.reset();
  auto second = joined(batches, 1, 0);
  EXPECT_TRUE(left.expired());
  EXPECT_FALSE(second->is_full());
  const auto holders = model_.use_count();
  second.reset();
  batches.maintain(node_.services());
  EXPECT_LT(model_.use_count(), holders);
}

}  // namespace
}  // namespace espalier::offload
