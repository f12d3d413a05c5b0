// SPDX-License-Identifier: Apache-2.0
// Sequencers of a store in this process, by the public API.
#include "espalier/sequencer.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace espalier {
namespace {

Store small_store() {
  StoreOptions options;
  options.memory_bytes_max = std::uint64_t{64} << 20;
  options.huge_pages = false;
  return *Store::open(options);
}

TEST(EmbeddedSequencers, TakeSealFollowAndDrop) {
  Store store = small_store();
  auto numbers = store.create_sequencer("n", 7);
  ASSERT_TRUE(numbers) << message(numbers.error());
  EXPECT_EQ(numbers->name(), "n");
  EXPECT_EQ(numbers->take(3), (NumberRange{7, 3, 1}));
  auto other = store.open_sequencer("n");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->take(), (NumberRange{10, 1, 1}));
  const auto sealed = numbers->seal();
  ASSERT_TRUE(sealed);
  EXPECT_TRUE(sealed->sealed);
  EXPECT_EQ(sealed->next, 11u);
  EXPECT_EQ(sealed->node_adds, 2u);
  EXPECT_EQ(other->take().error(), (Error{Code::sealed, 0, 1}));
  ASSERT_TRUE(numbers->advance(100));
  EXPECT_EQ(numbers->epoch(), 2u);
  const Sequencer copy = *numbers;
  EXPECT_EQ(copy.epoch(), 2u) << "copies share it";
  EXPECT_EQ(other->take().error(), (Error{Code::sealed, 0, 2}));
  ASSERT_TRUE(other->follow());
  EXPECT_EQ(other->take(), (NumberRange{100, 1, 2}));
  EXPECT_EQ(other->take(0).error().code, Code::invalid_argument);
  EXPECT_EQ(store.create_map("n").error(), (Error{Code::already_exists, 0, 3}));
  EXPECT_EQ(store.drop_map("n").error(), (Error{Code::wrong_kind, 0, 3}));
  ASSERT_EQ(store.sequencers()->size(), 1u);
  EXPECT_EQ(store.sequencers()->front().name, "n");
  ASSERT_TRUE(store.drop_sequencer("n"));
  EXPECT_EQ(store.drop_sequencer("n").error().code, Code::not_found);
  EXPECT_EQ(other->take().error().code, Code::not_found);
  EXPECT_EQ(other->describe().error().code, Code::not_found);
}

TEST(EmbeddedSequencers, HandlesOutliveTheirStore) {
  std::optional<Store> store(small_store());
  auto numbers = store->create_sequencer("n");
  ASSERT_TRUE(numbers);
  store.reset();
  EXPECT_EQ(numbers->take(2), (NumberRange{0, 2, 1}));
}

TEST(EmbeddedSequencers, RefuseWhatCannotBe) {
  Store store = small_store();
  EXPECT_EQ(store.create_sequencer("").error().code, Code::invalid_argument);
  EXPECT_EQ(store.create_sequencer(std::string(256, 'n')).error().code, Code::invalid_argument);
  EXPECT_EQ(store.create_sequencer("n", Sequencer::kEnd + 1).error().code, Code::invalid_argument);
  EXPECT_EQ(store.open_sequencer("n").error().code, Code::not_found);
  auto last = store.create_sequencer("last", Sequencer::kEnd - 1);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->advance(Sequencer::kEnd + 1).error().code, Code::invalid_argument);
  EXPECT_EQ(last->take(2).error().code, Code::exhausted);
  EXPECT_EQ(last->take(), (NumberRange{Sequencer::kEnd - 1, 1, 1}));
  EXPECT_EQ(last->take().error().code, Code::exhausted);
}

}  // namespace
}  // namespace espalier
