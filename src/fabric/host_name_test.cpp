// SPDX-License-Identifier: Apache-2.0
#include "fabric/host_name.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <deque>
#include <string>
#include <vector>

#include "fabric/address.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/testing/meeting.hpp"

namespace espalier::fabric {
namespace {

/// A list as the system's resolver gives it.
class Found {
 public:
  explicit Found(const std::vector<std::string>& hosts) {
    for (const std::string& host : hosts) {
      auto& at = addresses_.emplace_back(roce::PortAddress{roce::parse_address(host)->ip, 0});
      addrinfo& one = list_.emplace_back();
      one = {};
      one.ai_family = at.get()->sa_family;
      one.ai_addr = at.get();
      one.ai_addrlen = at.bytes;
      if (list_.size() > 1) list_[list_.size() - 2].ai_next = &one;
    }
  }
  [[nodiscard]] const addrinfo* list() const { return list_.empty() ? nullptr : &list_.front(); }

 private:
  std::deque<roce::SocketAddress> addresses_;
  std::deque<addrinfo> list_;
};

std::string picked(const std::vector<std::string>& hosts, std::optional<bool> is_v6 = {}) {
  const Found found(hosts);
  const auto ip = pick_address(found.list(), is_v6);
  return ip ? roce::to_text({*ip, 1}) : "";
}

TEST(HostName, TheFirstAddressOfIpv4IsTaken) {
  EXPECT_EQ(picked({"192.0.2.7", "192.0.2.8"}), "192.0.2.7:1");
  EXPECT_EQ(picked({"2001:db8::1", "192.0.2.8"}), "192.0.2.8:1");
  EXPECT_EQ(picked({"2001:db8::1", "2001:db8::2"}), "[2001:db8::1]:1");
  EXPECT_EQ(picked({"192.0.2.8", "2001:db8::1"}, true), "[2001:db8::1]:1");
  EXPECT_EQ(picked({"2001:db8::1"}, false), "");
  EXPECT_EQ(picked({}), "");
}

// A malicious resolver could return them.
TEST(HostName, WhatIsNoMachinesOwnIsLeftOut) {
  EXPECT_EQ(picked({"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "fe80::1",
                    "::ffff:192.0.2.1"}),
            "");
  EXPECT_EQ(picked({"0.0.0.0", "192.0.2.1"}), "192.0.2.1:1");
}

TEST(HostName, OneThatIsNotKnownIsAnError) {
  // Longer than a label may be, so the resolver is not asked.
  const auto found = look_up(std::string(64, 'a'));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), fail(Code::system, ENXIO).error());
  EXPECT_NE(explain(found.error()), "");
}

// Each machine knows this one by itself.
TEST(HostName, EndsMeetByTheNameOfThisMachine) {
  auto listening = open_for_listening(*parse("roce://localhost:0/7"), *RegionTable::create());
  ASSERT_TRUE(listening) << message(listening.error());
  EXPECT_EQ(listening->address.name, "");  // it publishes the address where it listens
  EXPECT_TRUE(listening->address.where.ip.is_loopback());
  FabricAddress target = listening->address;
  target.name = "localhost";
  target.where.ip = {};
  auto connecting = open_for_connecting(target, *RegionTable::create());
  ASSERT_TRUE(connecting) << message(connecting.error());
  expect_to_meet(*listening, *connecting);
}

// Without secrets a node listens for this machine alone, which a name does not guarantee.
TEST(HostName, OneMayReachANetwork) {
  EXPECT_EQ(reach_of(*parse("roce://localhost/1")), Reach::network);
}

}  // namespace
}  // namespace espalier::fabric
