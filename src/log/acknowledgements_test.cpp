// SPDX-License-Identifier: Apache-2.0
#include "log/acknowledgements.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace espalier::log {
namespace {

struct Heard {
  Acknowledgements::Callback of(std::uint64_t sequence) {
    return [this, sequence](const LogError* error) {
      (error == nullptr ? durable : failed).push_back(sequence);
    };
  }
  std::vector<std::uint64_t> durable;
  std::vector<std::uint64_t> failed;
};

TEST(Acknowledgements, ComeInTheOrderOfSequences) {
  Acknowledgements acknowledgements(10);
  Heard heard;
  for (const std::uint64_t sequence : {15, 12, 14, 11, 12}) {
    acknowledgements.when_durable(sequence, heard.of(sequence));
  }
  EXPECT_TRUE(heard.durable.empty());
  acknowledgements.when_durable(9, heard.of(9));  // is already
  acknowledgements.reach(12);
  EXPECT_EQ(heard.durable, (std::vector<std::uint64_t>{9, 11, 12, 12}));
  acknowledgements.reach(11);
  EXPECT_EQ(acknowledgements.durable(), 12u);
  acknowledgements.reach(20);
  EXPECT_EQ(heard.durable, (std::vector<std::uint64_t>{9, 11, 12, 12, 14, 15}));
  EXPECT_TRUE(heard.failed.empty());
}

TEST(Acknowledgements, EndWithTheFirstError) {
  Acknowledgements acknowledgements(0);
  Heard heard;
  for (const std::uint64_t sequence : {1, 2}) {
    acknowledgements.when_durable(sequence, heard.of(sequence));
  }
  acknowledgements.reach(1);
  const LogError error{{Code::system, 0, 5}, LogFault::system, FileName("file"), 4096, 2};
  acknowledgements.fail(error);
  acknowledgements.fail({});
  acknowledgements.reach(9);
  acknowledgements.when_durable(3, heard.of(3));
  EXPECT_EQ(heard.durable, (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(heard.failed, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(acknowledgements.error(), error);
  EXPECT_EQ(acknowledgements.wait(2).error(), error);
  EXPECT_TRUE(acknowledgements.wait(1));
}

TEST(Acknowledgements, ACallbackMayAskForMore) {
  Acknowledgements acknowledgements(0);
  Heard heard;
  acknowledgements.when_durable(1, [&](const LogError*) {
    acknowledgements.when_durable(2, heard.of(2));
    acknowledgements.when_durable(1, heard.of(1));
    EXPECT_TRUE(heard.durable.empty());  // not from within another one
  });
  acknowledgements.reach(2);
  EXPECT_EQ(heard.durable, (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace espalier::log
