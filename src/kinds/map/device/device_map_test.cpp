// SPDX-License-Identifier: Apache-2.0
// What a device's map does while its host does not let it read.
#include "kinds/map/device/device_map.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace espalier::device {
namespace {

/// A host that offers nothing.
class NoHost final : public MapHost {
 public:
  explicit NoHost(Code why) : why_(why) {}
  std::shared_ptr<MapOpening> open_map(std::uint32_t) override {
    ++asked;
    auto opening = std::make_shared<MapOpening>();
    opening->result = fail(why_);
    return opening;
  }
  void renew(const std::shared_ptr<MapReader>&) override {}

  int asked = 0;

 private:
  Code why_;
};

struct Codes : Handler {
  void done(const Completion& completion) override { seen.push_back(completion.error.code); }
  std::vector<Code> seen;
};

Code walk(DeviceMap& map) {
  Request get;
  get.op = Op::get;
  get.key = "key";
  Codes codes;
  map.submit(get, codes, {});
  while (codes.seen.empty()) map.advance();
  return codes.seen.front();
}

TEST(DeviceMap, IsNotAskedForAgainWhereTheHostDoesNotOfferIt) {
  NoHost host(Code::unsupported);
  DeviceMap map(host, 7);
  EXPECT_EQ(walk(map), Code::unsupported);
  EXPECT_FALSE(map.walks());
  EXPECT_EQ(walk(map), Code::unsupported);
  EXPECT_EQ(host.asked, 1);
}

TEST(DeviceMap, IsAskedForAgainWhenTheHostMayHaveMemoryAgain) {
  NoHost host(Code::out_of_memory);
  DeviceMap map(host, 7);
  EXPECT_EQ(walk(map), Code::out_of_memory);
  while (!map.walks()) {
  }
  EXPECT_EQ(walk(map), Code::out_of_memory);
  EXPECT_EQ(host.asked, 2);
}

TEST(DeviceMap, IsAskedForByEachWalkWhereTheHostWasOutOfReach) {
  NoHost host(Code::connection_lost);
  DeviceMap map(host, 7);
  EXPECT_EQ(walk(map), Code::connection_lost);
  EXPECT_TRUE(map.walks());
  EXPECT_EQ(walk(map), Code::connection_lost);
  EXPECT_EQ(host.asked, 2);
}

TEST(DeviceMap, IsDroppedWhereTheHostHasNone) {
  NoHost host(Code::not_found);
  DeviceMap map(host, 7);
  EXPECT_EQ(walk(map), Code::not_found);
  EXPECT_TRUE(map.dropped());
}

}  // namespace
}  // namespace espalier::device
