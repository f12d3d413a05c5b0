// SPDX-License-Identifier: Apache-2.0
#include "base/testing/seeds.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace espalier::base {
namespace {

/// Sets a variable of the environment, or removes it, until it ends.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(SeedNumbers, FewSeedsAreAShareOfATestsOwnNumber) {
  const Variable all("ESPALIER_SEEDS", nullptr);
  {
    const Variable few("ESPALIER_FEW_SEEDS", nullptr);
    EXPECT_EQ(Seeds(100).count(), 100u);
  }
  const Variable few("ESPALIER_FEW_SEEDS", "10");
  EXPECT_EQ(Seeds(100).count(), 10u);
  EXPECT_EQ(Seeds(3).count(), 1u);
}

TEST(SeedNumbers, FewSeedsGoOnUntilWhatSeldomHappensHasHappened) {
  const Variable all("ESPALIER_SEEDS", nullptr);
  const Variable few("ESPALIER_FEW_SEEDS", "10");
  const auto ended = [](std::uint64_t happens_at) {
    Seeds seeds(100);
    while (seeds.more(seeds.ended() >= happens_at)) seeds.done();
    return seeds.ended();
  };
  EXPECT_EQ(ended(0), 10u);
  EXPECT_EQ(ended(37), 37u);
  EXPECT_EQ(ended(1000), 100u) << "a test's own number at most";
}

TEST(SeedNumbers, ANumberThatIsAskedForIsKeptAsItIs) {
  const Variable few("ESPALIER_FEW_SEEDS", "10");
  const Variable all("ESPALIER_SEEDS", "2000");
  EXPECT_EQ(Seeds(100).count(), 2000u);
}

}  // namespace
}  // namespace espalier::base
