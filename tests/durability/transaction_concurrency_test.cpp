// SPDX-License-Identifier: Apache-2.0
// Transactions of several threads, beside plain readers and writers: all are strictly serialisable,
// and none waits for another forever.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "tests/durability/transaction_store.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

constexpr const char* kAccounts[] = {"map_a", "hash_a", "map_b", "hash_b"};
constexpr int kAccountsOfMap = 4;
constexpr std::int64_t kMoney = 100;

std::vector<NamedStep> all_accounts(StepKind kind) {
  std::vector<NamedStep> steps;
  for (const char* const map : kAccounts) {
    for (int i = 0; i < kAccountsOfMap; ++i) {
      steps.push_back({map, kind, std::to_string(i), kind == StepKind::put ? "100" : ""});
    }
  }
  return steps;
}

std::int64_t sum_of(const std::vector<catalog::StepFound>& found) {
  std::int64_t sum = 0;
  for (const catalog::StepFound& one : found) sum += std::stoll(one.value);
  return sum;
}

/// Moves money between two accounts: reads both, and writes both if they are still so.
bool move_money(TransactionStore& f, base::Random& random) {
  const auto account = [&] {
    return std::pair<std::string, std::string>(kAccounts[random.below(4)],
                                               std::to_string(random.below(kAccountsOfMap)));
  };
  const auto from = account();
  auto to = account();
  while (to == from) to = account();
  const auto now =
      f.transact({{from.first, StepKind::get, from.second}, {to.first, StepKind::get, to.second}});
  EXPECT_TRUE(now) << message(now.error());
  if (!now) return false;
  const std::int64_t amount = 1 + static_cast<std::int64_t>(random.below(5));
  const auto moved = [&](std::size_t which, std::int64_t by) {
    return std::to_string(std::stoll(now->found[which].value) + by);
  };
  using enum StepKind;
  const auto done =
      f.transact({{from.first, check, from.second, now->found[0].value, ConditionKind::value},
                  {to.first, check, to.second, now->found[1].value, ConditionKind::value},
                  {to.first, put, to.second, moved(1, amount)},
                  {from.first, put, from.second, moved(0, -amount)}});
  EXPECT_TRUE(done) << message(done.error());
  return done && !done->failed_step;
}

TEST(TransactionsConcurrency, MoneyIsConstant) {
  const std::uint64_t seed = seed_from_environment(421);
  SCOPED_TRACE(seed_text(seed));
  TransactionStore f;
  ASSERT_TRUE(f.transact(all_accounts(StepKind::put)));
  std::atomic<std::uint64_t> moved{0};
  std::atomic<int> working{3};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      base::Random random(seed + thread);
      for (std::uint64_t i = 0; i < scaled(3000); ++i) {
        if (move_money(f, random)) moved.fetch_add(1);
      }
      working.fetch_sub(1);
    });
  }
  std::uint64_t looked = 0;
  while (working.load() != 0) {
    const auto all = f.transact(all_accounts(StepKind::get));
    ASSERT_TRUE(all);
    ASSERT_EQ(sum_of(all->found), 4 * kAccountsOfMap * kMoney);
    ++looked;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(moved.load(), 0u);
  EXPECT_GT(looked, 0u);
  EXPECT_EQ(sum_of(f.transact(all_accounts(StepKind::get))->found), 4 * kAccountsOfMap * kMoney);
  EXPECT_EQ(f.faults(), "");
}

/// What a plain reader has of a key that all transactions set to one number.
class PlainReader {
 public:
  explicit PlainReader(TransactionStore& f)
      : context_(f.core, std::move(*f.core.epochs.join()), 1),
        thread_(*hash::HashThread::join(hash::hash_store_of(f.core.catalog))),
        map_a_(context_, f.map("map_a")),
        map_b_(context_, f.map("map_b")),
        hash_a_(f.hash("hash_a")),
        hash_b_(f.hash("hash_b")) {}

  std::uint64_t read(std::size_t which) {
    if (which == 0) return number(map_a_.get("n"));
    if (which == 1) return number(map_b_.get("n"));
    const auto& map = which == 2 ? hash_a_ : hash_b_;
    return number(map->get(thread_, "n").value().value_or(""));
  }

 private:
  static std::uint64_t number(const std::string& text) {
    return text.empty() ? 0 : std::stoull(text);
  }
  tree::ThreadContext context_;
  hash::HashThread thread_;
  tree::MapUser map_a_;
  tree::MapUser map_b_;
  std::shared_ptr<hash::HashMap> hash_a_;
  std::shared_ptr<hash::HashMap> hash_b_;
};

// Strict: a reader that has seen a number in one map finds no smaller one in another, by any call.
TEST(TransactionsConcurrency, PlainReadersSeeAllOfATransactionOrNothing) {
  const std::uint64_t seed = seed_from_environment(422);
  SCOPED_TRACE(seed_text(seed));
  TransactionStore f;
  constexpr std::uint64_t kNumbers = scaled(5000);
  std::atomic<bool> wrong{false};
  std::vector<std::thread> readers;
  std::atomic<bool> writing{true};
  for (std::uint64_t thread = 0; thread < 2; ++thread) {
    readers.emplace_back([&, thread] {
      base::Random random(seed + thread);
      PlainReader reader(f);
      std::uint64_t seen = 0;
      while (writing.load()) {
        const std::uint64_t now = reader.read(random.below(4));
        if (now < seen) wrong = true;
        seen = now;
      }
    });
  }
  for (std::uint64_t i = 1; i <= kNumbers && !wrong; ++i) {
    std::vector<NamedStep> steps;
    for (const char* const map : kTransactedMaps) {
      steps.push_back({map, StepKind::put, "n", std::to_string(i)});
      // Other keys are written and erased meanwhile, so that leaves and segments are replaced.
      const bool erases = i % 2 == 0;
      steps.push_back({map, erases ? StepKind::erase : StepKind::put, std::to_string(i / 2 % 500),
                       erases ? "" : "beside"});
    }
    const auto done = f.begin(steps);
    if (!done) wrong = true;
  }
  writing = false;
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(wrong.load());
  EXPECT_EQ(f.faults(), "");
}

// The threads name the maps and keys in opposite orders; a plain write takes part, too.
TEST(TransactionsConcurrency, OppositeOrdersAndPlainWritesWaitForEachOther) {
  TransactionStore f;
  ASSERT_TRUE(f.transact({{"map_a", StepKind::put, "x", "0"},
                          {"map_b", StepKind::put, "x", "0"},
                          {"hash_a", StepKind::put, "x", "0"},
                          {"hash_b", StepKind::put, "x", "0"}}));
  const std::uint64_t rounds = scaled(4000);
  std::atomic<std::uint64_t> done{0};
  const auto work = [&](bool backwards) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      std::vector<NamedStep> steps;
      for (const char* const map : kTransactedMaps) {
        for (const char* const key : {"x", "y", "z"}) {
          steps.push_back({map, StepKind::put, key, std::to_string(i)});
        }
      }
      if (backwards) std::ranges::reverse(steps);
      if (f.transact(steps)) done.fetch_add(1);
    }
  };
  std::thread one(work, false);
  std::thread other(work, true);
  std::thread plain([&] {
    hash::HashThread own = *hash::HashThread::join(hash::hash_store_of(f.core.catalog));
    const auto map = f.hash("hash_a");
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (map->put(own, "y", "plain")) done.fetch_add(1);
    }
  });
  one.join();
  other.join();
  plain.join();
  EXPECT_EQ(done.load(), 3 * rounds);
  // The last of each key is of one transaction, but for what was written alone.
  EXPECT_EQ(f.get("map_a", "x"), f.get("hash_b", "x"));
  EXPECT_EQ(f.get("map_b", "z"), f.get("hash_a", "z"));
  EXPECT_EQ(f.faults(), "");
}

// Sums by plain calls and by transactions on one key: none is lost.
TEST(TransactionsConcurrency, PlainSumsAndTransactionsLoseNothing) {
  TransactionStore f;
  const auto map = f.hash("hash_a");
  const std::string zero(8, '\0');
  ASSERT_TRUE(f.transact(
      {{"hash_a", StepKind::put, "sum", zero}, {"map_a", StepKind::put, "count", zero}}));
  const std::uint64_t rounds = scaled(3000);
  std::atomic<std::uint64_t> added{0};
  std::thread plain([&] {
    hash::HashThread own = *hash::HashThread::join(hash::hash_store_of(f.core.catalog));
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (map->add(own, "sum", 1)) added.fetch_add(1);
    }
  });
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const auto now = f.transact({{"hash_a", StepKind::get, "sum"}});
    ASSERT_TRUE(now);
    std::uint64_t sum = base::load_le<std::uint64_t>(now->found[0].value.data()) + 1;
    const std::string next(reinterpret_cast<const char*>(&sum), sizeof sum);
    const auto done =
        f.transact({{"hash_a", StepKind::check, "sum", now->found[0].value, ConditionKind::value},
                    {"hash_a", StepKind::put, "sum", next},
                    {"map_a", StepKind::put, "count", next}});
    ASSERT_TRUE(done);
    if (!done->failed_step) added.fetch_add(1);
  }
  plain.join();
  const std::string all = f.get("hash_a", "sum").value();
  EXPECT_EQ(base::load_le<std::uint64_t>(all.data()), added.load());
  EXPECT_EQ(f.faults(), "");
}

}  // namespace
}  // namespace espalier::test
