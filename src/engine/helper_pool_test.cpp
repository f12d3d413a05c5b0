// SPDX-License-Identifier: Apache-2.0
// The pool's promises, each by itself; races of its calls are in helper_pool_concurrency_test.cpp.
#include "engine/helper_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/principal_accounts.hpp"
#include "engine/testing/helper_jobs.hpp"

namespace espalier::offload {
namespace {

TEST(HelperPoolConcurrency, OneShotWorkRunsOnAnotherThread) {
  HelperPool pool;
  Latch latch;
  std::thread::id helper;
  pool.run([&] {
    helper = std::this_thread::get_id();
    latch.open();
  });
  ASSERT_TRUE(latch.wait());
  EXPECT_NE(helper, std::this_thread::get_id());
}

TEST(HelperPoolConcurrency, AllThatTheNodeAskedForIsDoneBeforeThePoolEnds) {
  std::atomic<int> done{0};
  {
    HelperPool pool({.threads = 2});
    for (int i = 0; i < 1000; ++i) {
      pool.run([&] {
        // Also what is asked for meanwhile.
        pool.run([&] { done.fetch_add(1); });
        done.fetch_add(1);
      });
    }
  }
  EXPECT_EQ(done.load(), 2000);
}

TEST(HelperPoolConcurrency, AJobTakesItsStepsAndThenEndsOnce) {
  HelperPool pool({.threads = 2});
  const ClientId client = pool.add_client();
  Ends ends;
  ASSERT_TRUE(pool.submit(counting_job(ends, 100), {.client = client}));
  ASSERT_TRUE(ends.wait(1));
  EXPECT_EQ(ends.of(JobEnd::done), 1u);
  EXPECT_EQ(ends.steps(), 100u);
  Latch closed;
  pool.end_client(client, [&] { closed.open(); });
  ASSERT_TRUE(closed.wait());
  EXPECT_EQ(ends.destroyed(), 1u);
  const HelperNumbers numbers = pool.numbers();
  EXPECT_EQ(numbers.steps, 100u);
  EXPECT_EQ(numbers.ready + numbers.waiting + numbers.clients, 0u);
  EXPECT_LE(numbers.longest_step_ns, numbers.busy_ns);
  EXPECT_GT(numbers.busy_ns, 0u);
}

TEST(HelperPoolConcurrency, AClientThatHasEndedIsRefused) {
  HelperPool pool;
  const ClientId client = pool.add_client();
  const ClientId other = pool.add_client();
  EXPECT_NE(client, other);
  Latch closed;
  pool.end_client(client, [&] { closed.open(); });
  Ends ends;
  const auto refused = pool.submit(counting_job(ends, 1), {.client = client});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::not_found);
  ASSERT_TRUE(closed.wait());
  EXPECT_EQ(pool.submit(counting_job(ends, 1), {.client = client}).error().code, Code::not_found);
  EXPECT_EQ(pool.submit(counting_job(ends, 1), {.client = ClientId{77}}).error().code,
            Code::not_found);
  EXPECT_EQ(ends.destroyed(), 3u);
  EXPECT_EQ(ends.all(), 0u);
  EXPECT_EQ(pool.numbers().refused, 3u);
}

TEST(HelperPoolConcurrency, JobsOfAClientAndOfAllAreLimited) {
  HelperPool pool({.client_jobs_max = 3, .jobs_max = 5});
  Blocker blocker(pool);  // so that none of these begins
  const ClientId one = pool.add_client();
  const ClientId two = pool.add_client();
  Ends ends;
  std::vector<JobId> jobs;
  const auto submit = [&](ClientId client) -> std::optional<Error> {
    const auto job = pool.submit(counting_job(ends, 1), {.client = client});
    if (!job) return job.error();
    jobs.push_back(*job);
    return std::nullopt;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(submit(one), std::nullopt);
  EXPECT_EQ(submit(one), (Error{Code::out_of_memory, 0, 3}));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(submit(two), std::nullopt);
  EXPECT_EQ(submit(two), (Error{Code::out_of_memory, 0, 5}));
  for (int i = 0; i < 10; ++i) pool.run([] {});  // the node itself is not limited
  pool.cancel(jobs[0]);
  EXPECT_EQ(submit(two), (Error{Code::out_of_memory, 0, 5}));  // it has not ended yet
  blocker.open();
  ASSERT_TRUE(ends.wait(5));
  while (pool.numbers().running + pool.numbers().ready != 0) std::this_thread::yield();
  EXPECT_EQ(submit(one), std::nullopt);
  ASSERT_TRUE(ends.wait(6));
  EXPECT_EQ(ends.of(JobEnd::cancelled), 1u);
}

// A principal may have as many jobs as are left, over any number of connections: so one has half,
// the next half of the rest, and there is always one more for the last.
TEST(HelperPoolConcurrency, JobsOfOnePrincipalLeaveSomeToOthers) {
  PrincipalAccounts principals;
  HelperPool pool({.client_jobs_max = 3, .jobs_max = 16});
  Blocker blocker(pool);  // so that none of these begins
  Ends ends;
  const auto submit_all = [&](const char* principal) {
    std::size_t jobs = 0;
    for (int connection = 0; connection < 16; ++connection) {
      const ClientId client = pool.add_client(principals.of(principal));
      while (pool.submit(counting_job(ends, 1), {.client = client})) ++jobs;
    }
    return jobs;
  };
  EXPECT_EQ(submit_all("user 1"), 8u);
  EXPECT_EQ(submit_all("user 2"), 4u);
  EXPECT_EQ(submit_all("user 3"), 2u);
  EXPECT_EQ(submit_all("user 1"), 0u);
  EXPECT_EQ(submit_all("user 4"), 1u);
  blocker.open();
  ASSERT_TRUE(ends.wait(15));
  while (pool.numbers().running + pool.numbers().ready != 0) std::this_thread::yield();
  Blocker again(pool);
  EXPECT_EQ(submit_all("user 2"), 8u) << "what has ended counts no more";
  again.open();
  ASSERT_TRUE(ends.wait(23));
}

// Any thread may wake a job during a step, after the step has looked; here it does so itself.
TEST(HelperPoolConcurrency, AWakeUpDuringAStepBringsOneMoreStep) {
  HelperPool pool;
  Ends ends;
  const auto job = pool.submit(make_job(ends, [&, step = 0](StepContext& context) mutable {
    if (++step <= 2) pool.wake(context.job());
    return JobStep::wait;
  }));
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends.wait_for_steps(3));
  ASSERT_TRUE(until_waiting(pool, 1));
  EXPECT_EQ(ends.steps(), 3u);
  pool.wake(*job);
  ASSERT_TRUE(ends.wait_for_steps(4));
  pool.cancel(*job);
  ASSERT_TRUE(ends.wait(1));
  EXPECT_EQ(ends.steps(), 4u);
}

TEST(HelperPoolConcurrency, AJobThatWaitsEndsWhenItIsCancelled) {
  HelperPool pool;
  Ends ends;
  const auto job = pool.submit(waiting_job(ends));
  ASSERT_TRUE(job);
  ASSERT_TRUE(until_waiting(pool, 1));
  pool.cancel(*job);
  ASSERT_TRUE(ends.wait(1));
  EXPECT_EQ(ends.of(JobEnd::cancelled), 1u);
  pool.cancel(*job);  // nothing any more
  pool.wake(*job);
}

TEST(HelperPoolConcurrency, AJobIsCancelledBeforeItsFirstStepAndAfterOne) {
  HelperPool pool;
  Ends ends;
  Blocker blocker(pool);
  const auto before = pool.submit(counting_job(ends, 1));
  ASSERT_TRUE(before);
  pool.cancel(*before);
  blocker.open();
  ASSERT_TRUE(ends.wait(1));
  EXPECT_EQ(ends.steps(), 0u);
  const auto endless = pool.submit(counting_job(ends, ~std::uint64_t{0}));
  ASSERT_TRUE(endless);
  while (ends.steps() == 0) std::this_thread::yield();
  pool.cancel(*endless);
  ASSERT_TRUE(ends.wait(2));
  EXPECT_EQ(ends.of(JobEnd::cancelled), 2u);
}

TEST(HelperPoolConcurrency, ALongStepSeesThatItIsCancelledOrOverTime) {
  HelperPool pool({.step_ns = 60'000'000'000});
  Ends ends;
  const auto job = pool.submit(make_job(ends, [](StepContext& context) {
    while (!context.should_return()) std::this_thread::yield();
    return JobStep::again;
  }));
  ASSERT_TRUE(job);
  while (pool.numbers().running == 0) std::this_thread::yield();
  pool.cancel(*job);
  ASSERT_TRUE(ends.wait(1));
  EXPECT_EQ(ends.of(JobEnd::cancelled), 1u);

  HelperPool quick({.step_ns = 1});
  ASSERT_TRUE(quick.submit(make_job(ends, [](StepContext& context) {
    while (!context.should_return()) std::this_thread::yield();
    return JobStep::done;
  })));
  ASSERT_TRUE(ends.wait(2));
  while (quick.numbers().steps == 0) std::this_thread::yield();
  EXPECT_EQ(quick.numbers().long_steps, 1u);
}

TEST(HelperPoolConcurrency, ADeadlineEndsAJobWhereverItIs) {
  HelperPool pool;
  const auto in_ns = [](std::uint64_t ns) {
    return JobOptions{.deadline_ns = base::monotonic_ns() + ns};
  };
  Ends ends;
  ASSERT_TRUE(pool.submit(counting_job(ends, 1), {.deadline_ns = 1}));  // before its first step
  ASSERT_TRUE(ends.wait(1));
  EXPECT_EQ(ends.steps(), 0u);
  ASSERT_TRUE(pool.submit(counting_job(ends, ~std::uint64_t{0}), in_ns(3'000'000)));
  ASSERT_TRUE(ends.wait(2));
  ASSERT_TRUE(pool.submit(waiting_job(ends), in_ns(3'000'000)));  // without a wake-up
  ASSERT_TRUE(ends.wait(3));
  EXPECT_EQ(ends.of(JobEnd::deadline), 3u);
  ASSERT_TRUE(pool.submit(counting_job(ends, 5), in_ns(600'000'000'000)));
  ASSERT_TRUE(pool.submit(counting_job(ends, 5), {.deadline_ns = JobOptions::kNoDeadline - 1}));
  ASSERT_TRUE(ends.wait(5));
  EXPECT_EQ(ends.of(JobEnd::done), 2u);
}

// Which helper is busy afterwards is chance: the one that knows of the deadline, or the other.
TEST(HelperPoolConcurrency, ADeadlineIsKeptWhileAnotherHelperIsBusy) {
  HelperPool pool({.threads = 2});
  Ends ends;
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const std::uint64_t deadline_ns = base::monotonic_ns() + 20'000'000;
    ASSERT_TRUE(pool.submit(waiting_job(ends), {.deadline_ns = deadline_ns}));
    static_cast<void>(until_waiting(pool, 1, 10'000'000));
    Blocker blocker(pool);
    ASSERT_TRUE(ends.wait(round));
    EXPECT_GE(base::monotonic_ns(), deadline_ns);
  }
  EXPECT_EQ(ends.of(JobEnd::deadline), 10u);
}

TEST(HelperPoolConcurrency, TheEndOfAClientEndsItsJobsAndNoOthers) {
  HelperPool pool({.threads = 2});
  const ClientId one = pool.add_client();
  const ClientId two = pool.add_client();
  Ends ends_of_one;
  Ends ends_of_two;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pool.submit(waiting_job(ends_of_one), {.client = one}));
    ASSERT_TRUE(pool.submit(counting_job(ends_of_one, ~std::uint64_t{0}), {.client = one}));
    ASSERT_TRUE(pool.submit(waiting_job(ends_of_two), {.client = two}));
  }
  ASSERT_TRUE(until_waiting(pool, 20));
  Latch closed;
  pool.end_client(one, [&] {
    EXPECT_EQ(ends_of_one.destroyed(), 20u);
    closed.open();
  });
  ASSERT_TRUE(closed.wait());
  EXPECT_EQ(ends_of_one.of(JobEnd::cancelled), 20u);
  EXPECT_EQ(ends_of_two.all(), 0u);
  EXPECT_EQ(pool.numbers().waiting, 10u);
  EXPECT_EQ(pool.numbers().clients, 1u);
}

TEST(HelperPoolConcurrency, ThePoolsEndCancelsClientsAndWhatWaits) {
  Ends ends;
  Ends own;
  std::optional<Error> refusal;
  {
    HelperPool pool({.threads = 2});
    const ClientId client = pool.add_client();
    ASSERT_TRUE(pool.submit(waiting_job(ends), {.client = client}));
    ASSERT_TRUE(pool.submit(waiting_job(own)));
    ASSERT_TRUE(until_waiting(pool, 2));
    ASSERT_TRUE(pool.submit(counting_job(ends, ~std::uint64_t{0}), {.client = client}));
    ASSERT_TRUE(pool.submit(counting_job(own, 1000)));
    ASSERT_TRUE(pool.run(
        {.client = client}, [] {},
        [&, client](JobEnd end) {
          if (end != JobEnd::cancelled) return;
          const auto late = pool.submit(counting_job(ends, 1), {.client = client});
          if (!late) refusal = late.error();
        }));
  }
  EXPECT_EQ(ends.of(JobEnd::cancelled), 2u);
  EXPECT_EQ(own.of(JobEnd::cancelled), 1u);
  EXPECT_EQ(own.of(JobEnd::done), 1u);
  // It was done, or cancelled by the pool's end and refused what it then asked for.
  EXPECT_TRUE(!refusal || refusal->code == Code::connection_lost);
}

TEST(HelperPoolConcurrency, HelpersHaveTheWeightThatWasAskedFor) {
  for (const HelperOptions& options :
       {HelperOptions{.nice = 0}, HelperOptions{.threads = 2, .nice = 3},
        HelperOptions{.threads = 2, .nice = 19, .batch = true}}) {
    const int own = ::getpriority(PRIO_PROCESS, 0);
    HelperPool pool(options);
    Latch latch;
    int nice = 0;
    int policy = -1;
    pool.run([&] {
      nice = ::getpriority(PRIO_PROCESS, 0);
      policy = ::sched_getscheduler(0);
      latch.open();
    });
    ASSERT_TRUE(latch.wait());
    EXPECT_EQ(nice, std::min(19, own + options.nice));
    EXPECT_EQ(policy == SCHED_BATCH, options.batch);
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);  // the caller's is as it was
  }
}

}  // namespace
}  // namespace espalier::offload
