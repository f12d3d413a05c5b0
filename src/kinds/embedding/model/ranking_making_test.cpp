// SPDX-License-Identifier: Apache-2.0
// A ranking model in a store with a log: what its openers find while it is being made, and what is
// left of one whose making fails.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/model/model_queries.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::embedding {
namespace {

/// A store whose records are durable by hand, and a model of two parts of weights.
struct RecordedModels {
  RecordedModels() {
    parts.dense = 3000;
    parts.bottom = {30, 8};
    base::Random random(9);
    parts.draw(random);
    file = parts.file();
    for (const std::string& table : parts.tables) {
      const auto made = create_embedding_table(store.catalog, store.pool, table,
                                               shape_of({.dimension = parts.dimension}));
      EXPECT_TRUE(made);
    }
    store.catalog.record_to(&sink);
  }
  ~RecordedModels() { store.catalog.record_to(nullptr); }
  /// The errors of opening it by its name, and of using it.
  [[nodiscard]] Code opened() {
    const auto made = model_calls::obtain(store.catalog, {"m"});
    return made ? Code::invalid : made.error().code;
  }
  [[nodiscard]] Code asked() {
    const auto model = store.catalog.open<RankingObject>("m").value();
    const auto ranks =
        infer(model, store.catalog, {0, 0}, words_of({}, std::vector<EmbeddingBags>(2)));
    return ranks ? Code::invalid : ranks.error().error.code;
  }
  [[nodiscard]] std::unique_ptr<RankingMaking> begin(
      std::uint64_t timeout_ns = RankingMaking::kTimeoutNs) {
    auto making = std::make_unique<RankingMaking>(store.catalog, store.pool, "m", file, timeout_ns);
    const auto more = making->step();
    EXPECT_TRUE(more && *more);
    return making;
  }

  catalog::RecordingSink sink{catalog::RecordingSink::Durable::by_hand};
  EmbeddingStore store;
  RankingParts parts;
  std::string file;
};

TEST(RankingMaking, IsUsedOnceItsWeightsAreRecorded) {
  RecordedModels models;
  const auto making = models.begin();
  for (bool more = true; more; more = *making->step()) {
    EXPECT_EQ(models.opened(), Code::busy);
    EXPECT_EQ(models.asked(), Code::busy);
    EXPECT_EQ(create_ranking_model(models.store.catalog, models.store.pool, "m", models.file)
                  .error()
                  .error.code,
              Code::already_exists);
  }
  EXPECT_EQ(making->made()->told_in(), models.sink.count()) << "for which waits who opens it";
  EXPECT_EQ(models.opened(), Code::invalid);
  models.sink.make_durable(models.sink.count() - 1);
  EXPECT_EQ(models.asked(), Code::busy) << "a crash may lose it";
  models.sink.make_durable();
  EXPECT_EQ(models.asked(), Code::invalid);
}

TEST(RankingMaking, OneThatIsNotRecordedToItsEndIsUndone) {
  RecordedModels models;
  models.begin().reset();  // its client goes
  EXPECT_EQ(models.opened(), Code::not_found);
  EXPECT_EQ(models.store.catalog.find_any("m"), nullptr);

  auto making = models.begin();
  models.sink.refuse(true);
  ASSERT_TRUE(*making->step());
  EXPECT_TRUE(making->waits());
  making.reset();  // and the log has no room
  EXPECT_EQ(models.opened(), Code::not_found);
  EXPECT_EQ(models.asked(), Code::not_found);
  EXPECT_EQ(create_ranking_model(models.store.catalog, models.store.pool, "m", models.file)
                .error()
                .error.code,
            Code::busy);
  models.sink.refuse(false);
  making = models.begin(0);  // in its place
  models.sink.refuse(true);
  const auto late = making->step();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().error.code, Code::busy);
  EXPECT_NE(late.error().words, "") << "nor is there room to drop it";
  EXPECT_EQ(models.opened(), Code::not_found);

  models.sink.refuse(false);
  making = models.begin();
  ASSERT_TRUE(*making->step());
  EXPECT_FALSE(making->waits());
  ASSERT_TRUE(models.store.catalog.drop("m"));
  EXPECT_EQ(making->step().error().error.code, Code::not_found) << "another one has dropped it";
  making.reset();
  EXPECT_TRUE(create_ranking_model(models.store.catalog, models.store.pool, "m", models.file));
  EXPECT_EQ(models.opened(), Code::invalid);
}

}  // namespace
}  // namespace espalier::embedding
