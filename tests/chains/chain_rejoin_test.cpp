// SPDX-License-Identifier: Apache-2.0
// Two nodes in a chain, each a process: one is killed, added again, and rejoins while clients
// write; then the other one is killed, and all that was acknowledged is there.
#include <string>
#include <thread>

#include "espalier/transaction.hpp"
#include "tests/chains/chain_of_two.hpp"

namespace espalier::test {
namespace {

class ChainRejoinConcurrency : public ChainOfTwo {
 protected:
  void SetUp() override {
    ChainOfTwo::SetUp();
    auto store = connect_to_chain();
    ASSERT_TRUE(store) << message(store.error());
    store_ = std::make_unique<Store>(std::move(*store));
    auto map = until_done([&] { return store_->open_map("default"); });
    ASSERT_TRUE(map) << message(map.error());
    map_ = std::make_unique<Map>(std::move(*map));
  }
  [[nodiscard]] static std::string key_of(std::size_t i) { return "key" + std::to_string(i % 500); }
  [[nodiscard]] std::string value_of(std::size_t i) const {
    return std::to_string(i) + std::string(value_bytes_, 'v');
  }
  void put_some(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, ++puts_) {
      const auto put = until_done([&] { return map_->put(key_of(puts_), value_of(puts_)); });
      ASSERT_TRUE(put) << puts_ << ": " << message(put.error());
    }
  }
  void expect_all() {
    for (std::size_t i = puts_ < 500 ? 0 : puts_ - 500; i < puts_; ++i) {
      const auto found = until_done([&] { return value(*map_, key_of(i)); });
      ASSERT_TRUE(found) << i << ": " << message(found.error());
      EXPECT_TRUE(*found == value_of(i)) << i;
    }
  }
  [[nodiscard]] chain::View view() const {
    const auto read = membership()->read();
    EXPECT_TRUE(read && *read);
    return read && *read ? **read : chain::View{};
  }
  /// As `espalier chain add`.
  void add(const std::string& name) {
    for (bool added = false; !added;) {
      const chain::View now = view();
      const auto taken = membership()->replace(
          now.with_joining(name, "shm:" + (folder_ / name).string(), "unix:" + socket_of(name)));
      ASSERT_TRUE(taken) << taken.error();
      added = *taken;
    }
  }
  void end_member(std::size_t place) {
    members_[place].kill();
    members_[place].wait();
  }
  /// Writes until the chain has so many members.
  void put_until_whole(std::size_t members) {
    const base::Stopwatch watch;
    while (view().members.size() != members) {
      ASSERT_LT(watch.elapsed_ns(), kSoonNs) << print(view());
      put_some(5);
      // So it writes less than the log may grow by while a checkpoint is fetched.
      const std::uint64_t looks_until_ns = watch.elapsed_ns() + 100'000'000;
      while (view().members.size() != members && watch.elapsed_ns() < looks_until_ns) {
        std::this_thread::yield();
      }
    }
  }
  void put_until_alone() { put_until_whole(1); }

  std::size_t value_bytes_ = 100;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Map> map_;
  std::size_t puts_ = 0;
};

// As `espalier chain restore --accept-loss`: b's data is there, and later data is lost.
TEST_F(ChainRejoinConcurrency, OneThatWasLeftOutIsTheChainWhereAllMembersAreLost) {
  put_some(20);
  const std::size_t before = puts_;
  end_member(1);
  put_until_alone();
  put_some(20);
  end_member(0);
  const chain::View now = view();
  ASSERT_EQ(membership()->replace(now.restored({2, "b", "shm:" + (folder_ / "b").string()})), true);
  begin("b");
  for (std::size_t i = 0; i < before; ++i) {
    const auto found = until_done([&] { return value(*map_, key_of(i)); });
    ASSERT_TRUE(found) << i << ": " << message(found.error());
    EXPECT_TRUE(*found == value_of(i)) << i;
  }
  const auto lost = until_done([&] { return value(*map_, key_of(puts_ - 1)); });
  ASSERT_TRUE(lost) << message(lost.error());
  EXPECT_EQ(*lost, std::nullopt);
  put_some(5);
}

TEST_F(ChainRejoinConcurrency, AMemberThatWasLeftOutJoinsByTheLog) {
  put_some(200);
  end_member(0);
  put_some(100);
  EXPECT_EQ(view().members.size(), 1u);
  add("a");
  begin("a");
  put_until_whole(2);
  EXPECT_EQ(view().members[1].name, "a");
  put_some(100);
  end_member(1);  // b, which alone had all from the beginning
  put_some(50);
  expect_all();
  EXPECT_EQ(view().members.size(), 1u);
  EXPECT_EQ(view().members[0].name, "a");
}

// The log starts at the checkpoint, which is sent as a file.
TEST_F(ChainRejoinConcurrency, AMemberJoinsByACheckpointAndTheLog) {
  value_bytes_ = 50'000;
  MapOptions in_group;
  in_group.group = "bank";
  for (const char* const name : {"first", "second"}) {
    ASSERT_TRUE(until_done([&] { return store_->create_map(name, in_group); }));
  }
  put_some(3 * kLogBytesMax / 50'000);
  end_member(1);
  put_until_alone();
  add("b");
  const std::size_t joined = begin("b");
  put_until_whole(2);
  put_some(20);
  end_member(0);
  put_some(20);
  expect_all();
  const auto both = [&](const std::string& text) {
    return until_done([&] {
      return store_->transact(Transaction().put("first", "k", text).put("second", "k", text));
    });
  };
  EXPECT_TRUE(both("1")) << "the checkpoint has the group";
  // Its folder is one like any other: it starts again by its own checkpoint and log.
  end_member(joined);
  begin("b");
  expect_all();
  EXPECT_TRUE(both("2"));
}

TEST_F(ChainRejoinConcurrency, AMemberThatIsKilledWhileItJoinsJoinsAgain) {
  value_bytes_ = 20'000;
  put_some(2 * kLogBytesMax / 20'000);
  end_member(1);
  put_until_alone();
  add("b");
  for (int i = 0; i < 4; ++i) {
    const std::size_t place = begin("b");
    put_some(static_cast<std::size_t>(10 + 30 * i));
    end_member(place);
    if (view().members.size() == 2) {  // it was quick: it is left out, and added again
      put_until_alone();
      add("b");
    }
  }
  begin("b");
  put_until_whole(2);
  end_member(0);
  put_some(20);
  expect_all();
}

}  // namespace
}  // namespace espalier::test
