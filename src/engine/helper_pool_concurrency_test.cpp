// SPDX-License-Identifier: Apache-2.0
// Races of the pool's calls with its helpers, and shares of time that were really measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "base/random.hpp"
#include "engine/helper_pool.hpp"
#include "engine/testing/helper_jobs.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kRounds = base::kThreadSanitizer ? 2'000 : 20'000;

/// Spins until it holds, at first without giving way, so that threads on two cores meet; false if
/// that took too long.
template <class Condition>
[[nodiscard]] bool becomes(Condition condition) {
  for (int spins = 0; spins < 5000; ++spins) {
    if (condition()) return true;
  }
  const std::uint64_t until = base::monotonic_ns() + kLongestWaitNs;
  while (!condition()) {
    if (base::monotonic_ns() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

// The job looks for a token and says that it waits; each token comes with one wake-up, and the next
// only when it was taken. So a single wake-up that is lost stops everything.
TEST(HelperPoolConcurrency, NoWakeUpIsLostBetweenALookAndAWait) {
  const std::uint64_t seed = base::seed_from_environment(1);
  for (const std::uint32_t threads : {1u, 2u}) {
    base::Random random(seed);
    base::Random pauses = random.fork();
    HelperPool pool({.threads = threads});
    std::atomic<std::uint64_t> given{0};
    std::atomic<std::uint64_t> taken{0};
    Ends ends;
    const auto job = pool.submit(make_job(ends, [&](StepContext&) {
      const std::uint64_t seen = given.load(std::memory_order_relaxed);
      taken.store(seen, std::memory_order_relaxed);
      // The next wake-up comes now, or later, also where all threads share one core.
      if (pauses.chance(0.3)) std::this_thread::yield();
      for (std::uint64_t pause = pauses.below(3000); pause != 0; --pause) {
        static_cast<void>(taken.load(std::memory_order_acquire));
      }
      return seen == kRounds ? JobStep::done : JobStep::wait;
    }));
    ASSERT_TRUE(job);
    for (std::uint64_t token = 1; token <= kRounds; ++token) {
      for (std::uint64_t pause = random.below(300); pause != 0; --pause) {
        static_cast<void>(taken.load(std::memory_order_acquire));  // so that each race has a chance
      }
      given.store(token, std::memory_order_relaxed);
      pool.wake(*job);
      ASSERT_TRUE(becomes([&] { return taken.load(std::memory_order_relaxed) == token; })) << token;
    }
    ASSERT_TRUE(ends.wait(1));
    EXPECT_EQ(ends.of(JobEnd::done), 1u);
  }
}

// Two threads cancel each job, all but an eighth, soon after it was submitted.
TEST(HelperPoolConcurrency, CancellingRacesWithTheEnd) {
  base::Random random(base::seed_from_environment(2));
  Ends ends;
  constexpr std::uint64_t kJobs = kRounds / 2;
  const auto spared = [](std::uint64_t number) { return number % 8 == 0; };
  {
    HelperPool pool({.threads = 2});
    std::vector<std::atomic<std::uint64_t>> ids(kJobs);
    const auto cancel_all = [&](base::Random pauses) {
      for (std::uint64_t i = 0; i < kJobs; ++i) {
        if (!becomes([&] { return ids[i].load(std::memory_order_acquire) != 0; })) return;
        for (std::uint64_t pause = pauses.below(2000); pause != 0; --pause) {
          static_cast<void>(ids[i].load(std::memory_order_acquire));
        }
        if (!spared(i)) pool.cancel(JobId{ids[i].load(std::memory_order_relaxed)});
      }
    };
    std::thread first(cancel_all, random.fork());
    std::thread second(cancel_all, random.fork());
    for (std::uint64_t i = 0; i < kJobs; ++i) {
      const std::uint64_t steps = spared(i) ? 1 : random.below(4);
      JobOptions options;
      if (!spared(i) && random.chance(0.2)) {
        options.deadline_ns = base::monotonic_ns() + random.below(20'000);
      }
      const auto job =
          pool.submit(steps == 0 ? waiting_job(ends) : counting_job(ends, steps), options);
      ids[i].store(static_cast<std::uint64_t>(*job), std::memory_order_release);
      if (random.chance(0.3)) pool.wake(*job);
    }
    first.join();
    second.join();
    EXPECT_TRUE(ends.wait(kJobs));
  }
  EXPECT_EQ(ends.all(), kJobs);
  EXPECT_EQ(ends.destroyed(), kJobs);
  EXPECT_GE(ends.of(JobEnd::done), kJobs / 8);
  EXPECT_NE(ends.of(JobEnd::cancelled), 0u);
}

/// One client's short life: submits, has its jobs woken and cancelled, and ends.
class ShortLife {
 public:
  ShortLife(HelperPool& pool, base::Random random) : pool_(pool), random_(random) {}

  void live() {
    client_ = pool_.add_client();
    std::atomic<bool> enough{false};
    std::array<std::atomic<std::uint64_t>, 8> ids{};
    std::thread meddler([this, &enough, &ids, random = random_.fork()]() mutable {
      while (!enough.load(std::memory_order_relaxed)) {
        const JobId job{ids[random.below(ids.size())].load(std::memory_order_relaxed)};
        random.chance(0.8) ? pool_.wake(job) : pool_.cancel(job);
      }
    });
    for (std::uint64_t i = 0; i < kRounds / 40; ++i) {
      const auto job = submit(ends_);
      job ? ++accepted_ : ++refused_;
      if (job) {
        ids[i % ids.size()].store(static_cast<std::uint64_t>(*job), std::memory_order_relaxed);
      }
    }
    pool_.end_client(client_, [this] {
      left_at_end_ = accepted_ + refused_ - ends_.destroyed();
      closed_.open();
    });
    Ends none;
    const auto late = submit(none);
    EXPECT_TRUE(!late && late.error().code == Code::not_found);
    EXPECT_TRUE(closed_.wait());
    enough.store(true, std::memory_order_relaxed);
    meddler.join();
    EXPECT_EQ(left_at_end_, 0u);
    EXPECT_EQ(ends_.all(), accepted_);
  }

 private:
  Result<JobId> submit(Ends& ends) {
    const JobOptions options{.client = client_};
    switch (random_.below(3)) {
      case 0: return pool_.submit(counting_job(ends, random_.between(1, 5)), options);
      case 1: return pool_.submit(busy_job(ends, 1000), options);
      default:
        return pool_.submit(make_job(ends,
                                     [left = random_.between(1, 5)](StepContext&) mutable {
                                       return --left == 0 ? JobStep::done : JobStep::wait;
                                     }),
                            options);
    }
  }

  HelperPool& pool_;
  base::Random random_;
  ClientId client_{};
  Ends ends_;
  Latch closed_;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t left_at_end_ = 1;
};

TEST(HelperPoolConcurrency, TheEndOfAClientRacesWithItsJobs) {
  base::Random random(base::seed_from_environment(3));
  HelperPool pool({.threads = 2, .client_jobs_max = 20});
  std::vector<std::thread> lives;
  for (int i = 0; i < 3; ++i) {
    lives.emplace_back([&pool, own = random.fork()]() mutable {
      for (int life = 0; life < 5; ++life) ShortLife(pool, own.fork()).live();
    });
  }
  for (std::thread& life : lives) life.join();
  EXPECT_EQ(pool.numbers().clients, 0u);
  EXPECT_EQ(pool.numbers().waiting + pool.numbers().ready, 0u);
}

// The bound of fair_queue.hpp, with the longest step that was measured: so it holds on a machine
// that others use, too. One helper, so nothing runs while a step looks.
TEST(HelperPoolConcurrency, AClientWithManyHeavyJobsGetsNoMoreThanItsShare) {
  HelperPool pool;
  const ClientId heavy = pool.add_client();
  const ClientId light = pool.add_client();
  Ends ends;
  Ends end_of_light;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pool.submit(busy_job(ends, 600'000), {.client = heavy}));
  }
  std::uint64_t of_light = 0;
  std::uint64_t of_heavy = 0;
  std::optional<std::uint64_t> before;
  ASSERT_TRUE(pool.submit(make_job(end_of_light,
                                   [&](StepContext&) {
                                     const std::uint64_t until = base::monotonic_ns() + 50'000;
                                     while (base::monotonic_ns() < until) {
                                     }
                                     if (!before) before = pool.served_ns(heavy);
                                     of_light = pool.served_ns(light);
                                     of_heavy = pool.served_ns(heavy) - *before;
                                     return of_light > 20'000'000 ? JobStep::done : JobStep::again;
                                   }),
                          {.client = light}));
  ASSERT_TRUE(end_of_light.wait(1));
  const auto gap = static_cast<std::int64_t>(of_heavy) - static_cast<std::int64_t>(of_light);
  const std::uint64_t bound = 2 * (HelperOptions{}.quantum_ns + pool.numbers().longest_step_ns);
  EXPECT_LE(static_cast<std::uint64_t>(std::abs(gap)), bound);
  Latch closed;
  pool.end_client(heavy, [&] { closed.open(); });
  ASSERT_TRUE(closed.wait());
}

}  // namespace
}  // namespace espalier::offload
