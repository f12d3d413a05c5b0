// SPDX-License-Identifier: Apache-2.0
// Shows that a planted bug is detected, and acts at the moments that it opens.
// For *_planted_test.cpp alone: only their libraries have the switches.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kinds/map/node/planted_tree_bugs.hpp"

#if defined(ESPALIER_PLANTED_BUGS)
namespace espalier::test {

/// Acts the first time that this thread reaches a moment.
class At {
 public:
  At(tree::Moment when, std::function<void()> act) {
    tree::on_moment = [this, when, act = std::move(act)](tree::Moment moment) {
      if (moment != when || std::exchange(came_, true)) return;
      act();
    };
  }
  ~At() { tree::on_moment = nullptr; }
  At(const At&) = delete;
  At& operator=(const At&) = delete;
  [[nodiscard]] bool came() const { return came_; }

 private:
  bool came_ = false;
};

/// What is wrong, as text; empty: nothing.
using Wrong = std::string;

inline Wrong differs(const std::string& what, const std::string& expected,
                     const std::string& found) {
  if (expected == found) return {};
  return what + ": expected " + expected + ", found " + found;
}

inline Wrong differs(const std::string& what, const std::vector<std::string>& expected,
                     const std::vector<std::string>& found) {
  if (expected == found) return {};
  for (std::size_t i = 0; i < expected.size() && i < found.size(); ++i) {
    if (expected[i] != found[i]) {
      return differs(what + " " + std::to_string(i), expected[i], found[i]);
    }
  }
  return differs(what + ", how many", std::to_string(expected.size()),
                 std::to_string(found.size()));
}

/// Expects that a check passes without this bug, and fails with it.
template <class Bug>
void expect_rejected(Bug bug, const std::function<Wrong()>& check) {
  ASSERT_EQ(check(), "") << "without a bug";
  const base::Planted planted(bug);
  const Wrong wrong = check();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  ::testing::Test::RecordProperty("rejected_because", wrong);
}

}  // namespace espalier::test

#endif  // ESPALIER_PLANTED_BUGS
