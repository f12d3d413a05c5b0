// SPDX-License-Identifier: Apache-2.0
// Tables of the public API from several threads: appends beside queries, and streams that another
// thread ends.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <thread>

#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

using TableCallsConcurrency = test::TablesAnywhere;
INSTANTIATE_TEST_SUITE_P(By, TableCallsConcurrency, ::testing::Values("embedded", "unix", "roce"),
                         test::way_name);

TEST_P(TableCallsConcurrency, QueriesSeeWholeAppends) {
  constexpr std::int64_t kTogether = 50;
  constexpr int kAppends = 200;
  open();
  const Table table = make("sales");
  std::atomic<int> running{2};
  const auto append = [&] {
    for (int i = 0; i < kAppends; ++i) fill(table, kTogether);
    --running;
  };
  std::thread one(append);
  std::thread other(append);
  std::int64_t last = 0;
  while (running.load() != 0) {
    const auto counted = table.query().aggregate({count()}).run();
    EXPECT_TRUE(counted) << message(counted.error());
    if (!counted) break;
    const std::int64_t rows = (*counted)[0].get<std::int64_t>(0);
    EXPECT_EQ(rows % kTogether, 0);
    EXPECT_GE(rows, last);
    last = rows;
  }
  one.join();
  other.join();
  EXPECT_EQ(*table.rows(), std::uint64_t{2} * kAppends * kTogether);
}

TEST_P(TableCallsConcurrency, AnotherThreadEndsAStream) {
  open();
  const Table table = make("sales");
  fill(table, 50'000);
  for (int i = 0; i < 10; ++i) {
    std::stop_source stop;
    std::thread ends([&] { stop.request_stop(); });
    std::optional<TableError> error;
    bool ended = false;
    auto stream = table.query().stream({.stop = stop.get_token()});
    if (!stream) error = stream.error();
    while (!error && !ended) {
      const auto rows = stream->next();
      if (!rows) error = rows.error();
      ended = rows && !*rows;
    }
    ends.join();
    EXPECT_TRUE(ended || error->error == (Error{Code::system, 0, ECANCELED}));
  }
  // None of them blocks what follows.
  const auto counted = table.query().aggregate({count()}).run();
  ASSERT_TRUE(counted) << message(counted.error());
  EXPECT_EQ((*counted)[0].get<std::int64_t>(0), 50'000);
}

}  // namespace
}  // namespace espalier
