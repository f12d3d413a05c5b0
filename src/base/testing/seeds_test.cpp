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
    EXPECT_TRUE(Seeds(100).enough());
  }
  const Variable few("ESPALIER_FEW_SEEDS", "10");
  EXPECT_EQ(Seeds(100).count(), 10u);
  EXPECT_EQ(Seeds(3).count(), 1u);
  EXPECT_FALSE(Seeds(100).enough());
}

TEST(SeedNumbers, ANumberThatIsAskedForIsKeptAsItIs) {
  const Variable few("ESPALIER_FEW_SEEDS", "10");
  const Variable all("ESPALIER_SEEDS", "2000");
  EXPECT_EQ(Seeds(100).count(), 2000u);
  EXPECT_TRUE(Seeds(100).enough());
}

}  // namespace
}  // namespace espalier::base
