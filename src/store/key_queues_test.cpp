// SPDX-License-Identifier: Apache-2.0
// The order of transactions by their keys: against a model, and by threads.
#include "store/key_queues.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "store/transaction.hpp"

namespace espalier::store {
namespace {

using Place = KeyQueues::Place;

/// Steps on keys of one object. The keys outlive it.
std::vector<ObjectSteps> on_keys(const std::vector<std::string>& keys, std::uint32_t object = 7) {
  std::vector<ObjectSteps> objects(1);
  objects[0].id = object;
  for (const std::string& key : keys) {
    objects[0].steps.push_back({catalog::StepKind::get, key});
    objects[0].steps.push_back({catalog::StepKind::put, key, "value"});
  }
  return objects;
}

const std::vector<std::string> kOne = {"1"};
const std::vector<std::string> kTwo = {"2"};
const std::vector<std::string> kBoth = {"1", "2"};
const std::vector<std::string> kOther = {"3"};

TEST(KeyQueues, ThoseWithAKeyInCommonGoInTheOrderOfArrival) {
  KeyQueues queues;
  std::array<Place, 5> places;
  EXPECT_TRUE(queues.enter(places[0], on_keys(kOne)));
  EXPECT_TRUE(queues.enter(places[1], on_keys(kBoth)));
  EXPECT_TRUE(queues.enter(places[2], on_keys(kTwo)));
  EXPECT_TRUE(queues.enter(places[3], on_keys(kOther)));
  EXPECT_TRUE(queues.enter(places[4], on_keys(kOne, 8))) << "the key of another object";
  const auto first = [&] {
    std::string all;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].is_first()) all += std::to_string(i);
    }
    return all;
  };
  EXPECT_EQ(first(), "034");
  places[0].leave();
  EXPECT_EQ(first(), "0134") << "what has left is in no queue";
  EXPECT_FALSE(places[2].is_first()) << "it came behind the one of both keys";
  places[1].leave();
  EXPECT_EQ(first(), "01234");
}

TEST(KeyQueues, OneThatGoesBeforeItsTurnKeepsNobodyWaiting) {
  KeyQueues queues;
  Place first;
  auto gone = std::make_unique<Place>();
  Place last;
  EXPECT_TRUE(queues.enter(first, on_keys(kOne)));
  EXPECT_TRUE(queues.enter(*gone, on_keys(kBoth)));
  EXPECT_TRUE(queues.enter(last, on_keys(kBoth)));
  gone.reset();
  EXPECT_FALSE(last.is_first());
  first.leave();
  EXPECT_TRUE(last.is_first());
}

TEST(KeyQueues, OneIsAloneWhileThereIsNoOther) {
  KeyQueues queues;
  Place behind;
  Place other;
  {
    const auto alone = queues.try_alone();
    ASSERT_TRUE(alone);
    EXPECT_FALSE(queues.try_alone());
    EXPECT_TRUE(queues.enter(behind, on_keys(kOne)));
    EXPECT_TRUE(queues.enter(other, on_keys(kOther)));
    EXPECT_FALSE(behind.is_first());
    EXPECT_FALSE(other.is_first());
    other.leave();
  }
  EXPECT_TRUE(behind.is_first());
  EXPECT_FALSE(queues.try_alone());
  behind.leave();
  EXPECT_TRUE(queues.try_alone());
  EXPECT_TRUE(queues.try_alone()) << "the one before has ended";
}

TEST(KeyQueues, AClientHasSoManyPlacesAndNoMore) {
  KeyQueues queues;
  std::array<Place, KeyQueues::kPlacesOfClientMax> places;
  for (Place& place : places) EXPECT_TRUE(queues.enter(place, on_keys(kOne), 5));
  Place more;
  EXPECT_FALSE(queues.enter(more, on_keys(kOther), 5));
  EXPECT_TRUE(queues.enter(more, on_keys(kOne), 6)) << "of another client";
  more.leave();
  EXPECT_TRUE(queues.enter(more, on_keys(kOne)));
  more.leave();
  places[3].leave();
  EXPECT_TRUE(queues.enter(more, on_keys(kOther), 5));
}

/// What the queues should be: places in the order of arrival, each with its keys.
class QueueModel {
 public:
  struct Entry {
    std::unique_ptr<Place> place;
    std::vector<std::string> keys;
  };
  void expect_first_ones() const {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(entries[i].place->is_first(), !alone && may_run(i)) << i;
    }
  }
  [[nodiscard]] bool may_run(std::size_t at) const {
    return std::none_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(at),
                        [&](const Entry& earlier) { return meet(earlier, entries[at]); });
  }

  std::vector<Entry> entries;
  std::optional<KeyQueues::Alone> alone;

 private:
  static bool meet(const Entry& one, const Entry& other) {
    return std::ranges::any_of(one.keys, [&](const std::string& key) {
      return std::ranges::find(other.keys, key) != other.keys.end();
    });
  }
};

std::vector<std::string> some_keys(base::Random& random) {
  std::vector<std::string> keys;
  for (std::uint64_t count = 1 + random.below(4); count != 0; --count) {
    keys.push_back("key" + std::to_string(random.below(12)));
  }
  return keys;
}

TEST(KeyQueuesRandom, AgreeWithAModel) {
  const std::uint64_t seed = base::seed_from_environment(42);
  SCOPED_TRACE(seed);
  base::Random random(seed);
  KeyQueues queues;
  QueueModel model;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t what = random.below(8);
    if (what == 0 && !model.alone) {
      model.alone = queues.try_alone();
      EXPECT_EQ(model.alone.has_value(), model.entries.empty());
    } else if (what == 1 && model.alone) {
      model.alone.reset();
    } else if (what < 5 && model.entries.size() < 12) {
      QueueModel::Entry last{std::make_unique<Place>(), some_keys(random)};
      EXPECT_TRUE(queues.enter(*last.place, on_keys(last.keys)));
      model.entries.push_back(std::move(last));
    } else if (!model.entries.empty()) {  // whether it was first or not
      const auto gone = static_cast<std::ptrdiff_t>(random.below(model.entries.size()));
      model.entries.erase(model.entries.begin() + gone);
    }
    model.expect_first_ones();
    ASSERT_FALSE(HasFailure()) << "step " << i;
  }
}

// Each takes its ticket in one piece with its place, and writes it to its keys when it is first: on
// each key tickets ascend, and no two threads are at one key.
TEST(KeyQueuesConcurrency, TicketsOfAKeyAscend) {
  constexpr std::size_t kKeys = 5;
  constexpr int kEach = 2000;
  const std::uint64_t seed = base::seed_from_environment(43);
  SCOPED_TRACE(seed);
  KeyQueues queues;
  std::mutex arriving;
  std::uint64_t tickets = 0;
  std::array<std::uint64_t, kKeys> last{};  // guarded by the order alone
  std::array<std::string, kKeys> wrong;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(seed + t);
      for (int i = 0; i < kEach; ++i) {
        std::vector<std::size_t> at = {random.below(kKeys), random.below(kKeys)};
        const std::vector<std::string> keys = {std::to_string(at[0]), std::to_string(at[1])};
        Place place;
        std::optional<KeyQueues::Alone> alone;
        std::uint64_t ticket = 0;
        {
          const std::lock_guard lock(arriving);
          ticket = ++tickets;
          alone = queues.try_alone();
          if (!alone) static_cast<void>(queues.enter(place, on_keys(keys)));
        }
        queues.await(place);
        for (const std::size_t key : at) {
          if (last[key] > ticket) wrong[key] = std::to_string(ticket);
          last[key] = ticket;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t key = 0; key < kKeys; ++key) EXPECT_EQ(wrong[key], "") << key;
  EXPECT_EQ(tickets, 4u * kEach);
  EXPECT_TRUE(queues.try_alone()) << "all have left";
}

}  // namespace
}  // namespace espalier::store
