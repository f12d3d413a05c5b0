// SPDX-License-Identifier: Apache-2.0
#include "base/current.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace espalier::base {
namespace {

/// A value that counts those that live.
class Counted {
 public:
  Counted(int number, std::atomic<int>& living)
      : held_(&living, [](std::atomic<int>* of) { --*of; }), number_(number) {
    ++living;
  }
  [[nodiscard]] int number() const { return held_ != nullptr ? number_ : -1; }

 private:
  std::shared_ptr<std::atomic<int>> held_;
  int number_;
};

bool always(const Counted&) { return true; }

TEST(Current, WhatIsUsedStaysAndWhatIsNotGoes) {
  std::atomic<int> living{0};
  {
    Current<Counted> current(Counted(1, living));
    {
      const auto first = current.use();
      ASSERT_TRUE(current.replace(Counted(2, living), always));
      EXPECT_EQ(first->number(), 1);
      EXPECT_EQ(current.use()->number(), 2);
      EXPECT_EQ(living, 2);
      auto moved = current.use();
      const auto second = std::move(moved);
      ASSERT_TRUE(current.replace(Counted(3, living), always));
      EXPECT_EQ((*second).number(), 2);
      EXPECT_EQ(living, 3);
    }
    EXPECT_EQ(living, 1);
    EXPECT_FALSE(current.replace(Counted(4, living), [](const Counted& now) {
      EXPECT_EQ(now.number(), 3);
      return false;
    }));
    EXPECT_EQ(current.use()->number(), 3);
    EXPECT_EQ(living, 1);
  }
  EXPECT_EQ(living, 0);
}

TEST(CurrentConcurrency, EachUseIsOfAValueThatIsThere) {
  constexpr int kValues = 20'000;
  std::atomic<int> living{0};
  {
    Current<Counted> current(Counted(0, living));
    std::atomic<bool> over{false};
    std::vector<std::jthread> users;
    for (int user = 0; user < 2; ++user) {
      users.emplace_back([&] {
        int newest = 0;
        do {
          const auto now = current.use();
          ASSERT_GE(now->number(), newest) << "an older one, or one that is gone";
          newest = now->number();
        } while (!over);
      });
    }
    for (int number = 1; number <= kValues; ++number) {
      EXPECT_TRUE(current.replace(Counted(number, living), always));
      EXPECT_LE(living, 4) << "the current one, and those that two threads use";
    }
    over = true;
    users.clear();
    EXPECT_EQ(living, 1);
  }
  EXPECT_EQ(living, 0);
}

}  // namespace
}  // namespace espalier::base
