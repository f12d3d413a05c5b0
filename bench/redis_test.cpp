// SPDX-License-Identifier: Apache-2.0
// The Redis child process, and the edge cases of the sorted set. ycsb_test.cpp checks that it
// answers all workloads as the other targets do.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/redis_form.hpp"
#include "bench/request_list.hpp"
#include "bench/testing/redis_fixture.hpp"

namespace espalier::bench {
namespace {

TEST(RedisAddress, IsASocketOrAHostAndAPort) {
  EXPECT_EQ(parse_redis_address("unix:/run/redis.sock")->path, "/run/redis.sock");
  const auto address = parse_redis_address("tcp:::1:6379");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->port, 6379);
  EXPECT_EQ(to_string(*address), "tcp:::1:6379");
  for (const char* text : {"", "localhost:6379", "unix:", "tcp:6379", "tcp::6379",
                           "tcp:host:", "tcp:host:0", "tcp:host:65536", "tcp:host:63x"}) {
    EXPECT_EQ(parse_redis_address(text), std::nullopt) << text;
  }
}

TEST(FindProgram, LooksIntoEachFolder) {
  EXPECT_EQ(find_program("sh", "/no/such/folder::/bin"), "/bin/sh");
  EXPECT_EQ(find_program("sh", "/no/such/folder"), std::nullopt);
  EXPECT_EQ(find_program("sh", ""), std::nullopt);
  EXPECT_EQ(find_program("sh", nullptr), std::nullopt);
}

TEST(RedisPrograms, OneThatIsMissingIsSaid) {
  const char* const path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  setenv("PATH", "/no/such/folder", 1);
  try {
    const RedisServer server;
    FAIL() << "started without a program";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("apt-get install redis-server"), std::string::npos);
  }
  setenv("PATH", before.c_str(), 1);
}

class Redis : public NeedsRedis<testing::Test> {};

TEST_F(Redis, AServerOfOurOwnEndsWithItsObject) {
  pid_t process = 0;
  std::string socket;
  {
    const RedisServer server;
    process = server.process();
    socket = server.address().path;
    RedisConnection connection(server.address());
    EXPECT_EQ(connection.info("server", "process_id"), std::to_string(process));
    EXPECT_EQ(connection.info("server", "no_such_field"), "");
    EXPECT_GT(resident(process).bytes, 0U);
    EXPECT_THROW(connection.command({"NOSUCH"}), std::runtime_error);
  }
  EXPECT_EQ(::kill(process, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_THROW(RedisConnection({.path = socket}), std::runtime_error);
}

TEST_F(Redis, AServerOfOurOwnMayListenAtATcpPort) {
  const RedisServer server(RedisDoor::tcp);
  EXPECT_EQ(server.address().path, "");
  RedisConnection connection(server.address());
  EXPECT_EQ(connection.info("server", "tcp_port"), std::to_string(server.address().port));
  const RedisServer beside(RedisDoor::tcp);
  EXPECT_NE(beside.address().port, server.address().port);
}

TEST_F(Redis, OneThatRunsAlreadyMustBeEmptyAndIsLeftSo) {
  const RedisServer server;
  RedisConnection connection(server.address());
  TargetOptions options;
  options.redis_address = to_string(server.address());
  connection.command({"SET", "someone", "else"});
  EXPECT_THROW(make_redis_target(options), std::runtime_error);
  EXPECT_EQ(connection.command({"DBSIZE"})->integer, 1);
  connection.command({"DEL", "someone"});
  {
    const std::unique_ptr<Target> target = make_redis_target(options);
    Answers answers;
    target->open_session()->run(std::vector{request_of(Op::put, "key", "value")}, answers);
    EXPECT_EQ(answers.errors(), 0U);
    EXPECT_EQ(target->contents(), (Contents{1, item_hash("key", "value")}));
    EXPECT_GT(target->resident_elsewhere()->bytes, 0U);
  }
  EXPECT_EQ(connection.command({"DBSIZE"})->integer, 0);
}

TEST_F(Redis, StringsTellWhetherWritesFoundSomethingToDo) {
  TargetOptions options;
  options.in_flight = 4;
  const std::unique_ptr<Target> target = make_redis_target(options);
  const std::string bytes("\0\r\n$", 4);
  std::vector<Request> requests{
      request_of(Op::insert, bytes, bytes), request_of(Op::insert, bytes, "other"),
      request_of(Op::get, bytes),           request_of(Op::get, "missing"),
      request_of(Op::erase, "missing"),     request_of(Op::put, "empty"),
      request_of(Op::get, "empty"),         request_of(Op::erase, bytes)};
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].tag = i;
  Answers answers;
  target->open_session()->run(requests, answers);
  Answers expected;
  expected.written(0, true);
  expected.written(1, false);
  expected.value(2, bytes);
  expected.missing(3);
  expected.written(4, false);
  expected.written(5, true);
  expected.value(6, "");
  expected.written(7, true);
  EXPECT_EQ(answers.errors(), 0U);
  EXPECT_EQ(answers.exact(), expected.exact());
  EXPECT_EQ(target->contents(), (Contents{1, item_hash("empty", "")}));
}

TEST_F(Redis, ASortedSetScansFromTheFloorAndToTheEnd) {
  TargetOptions options;
  options.ordered = true;
  options.fixed_key_bytes = 2;
  const std::unique_ptr<Target> target = make_redis_target(options);
  const std::unique_ptr<TargetSession> session = target->open_session();
  // Values whose order differs from their keys', if they were compared.
  const std::vector<std::pair<std::string, std::string>> items{
      {std::string(2, '\0'), "\xff\xff"}, {"b\xff", "z"}, {"c0", ""}, {"\xff\xff", "a"}};
  Answers loaded;
  for (const auto& [key, value] : items) {
    session->run(std::vector{request_of(Op::insert, key, value)}, loaded);
  }
  const auto expect = [&](const Request& request, std::size_t first, std::size_t count) {
    Answers answers;
    session->run({&request, 1}, answers);
    Answers expected;
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      sum += item_hash(items[i].first, items[i].second);
    }
    expected.items(0, sum);
    expected.scan_done(0, count);
    EXPECT_EQ(answers.first_error(), "");
    EXPECT_EQ(answers.scanned_items(), count);
    EXPECT_EQ(answers.exact(), expected.exact());
  };
  const auto range = [](Op op, std::string_view low, std::string_view high, std::uint32_t limit) {
    Request request = request_of(op, low);
    request.high = high;
    request.limit = limit;
    return request;
  };
  expect(range(Op::scan, "", "", 0), 0, 4);
  expect(range(Op::scan, "b\xff", "", 2), 1, 2);
  expect(range(Op::scan, "b\xff", "\xff\xff", 0), 1, 2);
  expect(range(Op::scan_floor, "bz", "c0", 0), 0, 3);
  expect(range(Op::scan_floor, "b\xff", "b\xff", 0), 1, 1);
  expect(range(Op::scan_floor, "c1", "\xff\xff", 0), 2, 2);
  expect(range(Op::scan_floor, "c1", "\xff\xff", 1), 2, 1);
  expect(range(Op::scan_floor, "\xff\xff", "\xff\xff", 3), 3, 1);
  EXPECT_EQ(target->contents().items, items.size());
}

TEST_F(Redis, ASortedSetRefusesWhatItCannotAnswer) {
  TargetOptions options;
  options.ordered = true;
  EXPECT_THROW(make_redis_target(options), std::runtime_error);  // keys of many lengths
  options.fixed_key_bytes = 2;
  const std::unique_ptr<Target> target = make_redis_target(options);
  Answers answers;
  EXPECT_THROW(target->open_session()->run(std::vector{request_of(Op::get, "ab")}, answers),
               std::runtime_error);
}

}  // namespace
}  // namespace espalier::bench
