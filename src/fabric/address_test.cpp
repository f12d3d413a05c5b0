// SPDX-License-Identifier: Apache-2.0
// Addresses as text, hostile ones too; and that those which are good open endpoints that meet.
#include "fabric/address.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/testing/meeting.hpp"

namespace espalier::fabric {
namespace {

using std::string_literals::operator""s;

std::shared_ptr<RegionTable> no_regions() { return *RegionTable::create(); }

TEST(FabricAddress, IsReadAndWritten) {
  const std::vector<std::pair<std::string, std::string>> texts{
      {"shm:/run/a", "shm:/run/a"},
      {"shm:here", "shm:here"},
      {"shm:shm:x", "shm:shm:x"},
      {"roce+memif:/run/m", "roce+memif:/run/m,service=1"},
      {"roce+memif:m,service=7,link=255", "roce+memif:m,link=255,service=7"},
      {"roce://10.0.0.1", "roce://10.0.0.1:4791/1"},
      {"roce://10.0.0.1/7", "roce://10.0.0.1:4791/7"},
      {"roce://10.0.0.1:0/65535", "roce://10.0.0.1:0/65535"},
      {"roce://127.0.0.1:49151/1", "roce://127.0.0.1:49151/1"},
      {"roce://::1/2", "roce://[::1]:4791/2"},
      {"roce://[::1]", "roce://[::1]:4791/1"},
      {"roce://[2001:DB8::1]:20000/3", "roce://[2001:db8::1]:20000/3"},
      {"roce+xdp://eth0/10.0.0.1", "roce+xdp://eth0/10.0.0.1:4791/1"},
      {"roce+xdp://a.7@b/10.0.0.1:0/7", "roce+xdp://a.7@b/10.0.0.1:0/7"},
      {"roce+xdp://eth0/[::1]:5000/2", "roce+xdp://eth0/[::1]:5000/2"},
      {"ofi://tcp/10.0.0.1", "ofi://tcp/10.0.0.1:7471"},
      {"ofi://verbs/10.0.0.1:65535", "ofi://verbs/10.0.0.1:65535"},
      {"ofi://tcp/::1", "ofi://tcp/[::1]:7471"},
      {"ofi://tcp/[::1]:0", "ofi://tcp/[::1]:0"},
      {"roce://localhost", "roce://localhost:4791/1"},
      {"roce://node-1.example.org:5000/2", "roce://node-1.example.org:5000/2"},
      {"roce://1a.2b/3", "roce://1a.2b:4791/3"},
      {"roce://face/3", "roce://face:4791/3"},
      {"roce+xdp://eth0/node", "roce+xdp://eth0/node:4791/1"},
      {"ofi://tcp/node", "ofi://tcp/node:7471"},
  };
  for (const auto& [text, whole] : texts) {
    const auto address = parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_text(*address), whole);
    EXPECT_EQ(parse(whole), address);
  }
}

void expect_fault(const std::string& text, AddressFault fault) {
  const auto address = parse(text);
  ASSERT_FALSE(address) << text;
  EXPECT_EQ(address.error().code, Code::invalid_argument);
  EXPECT_EQ(static_cast<AddressFault>(address.error().detail), fault) << text;
  EXPECT_TRUE(explain(fault).ends_with(".")) << text;
}

TEST(FabricAddress, SaysWhatIsWrong) {
  using enum AddressFault;
  const std::vector<std::pair<std::string, AddressFault>> texts{
      {"", scheme},
      {"/run/a", scheme},
      {"roce:10.0.0.1", scheme},
      {"SHM:/a", scheme},
      {"tcp://10.0.0.1", scheme},
      {"shm:", path},
      {"shm:" + std::string(108, 'a'), path},
      {"shm:a\0b"s, path},
      {"roce+memif:", path},
      {"roce+memif:,link=1", path},
      {"roce+memif:" + std::string(108, 'a'), path},
      {"roce+memif:a,link=256", link},
      {"roce+memif:a,link=", link},
      {"roce+memif:a,link=-1", link},
      {"roce+memif:a,", link},
      {"roce+memif:a,7", link},
      {"roce+memif:a,link=1,b", link},
      {"roce+memif:a,service=0", service},
      {"roce+memif:a,link=1,service=", service},
      {"roce+memif://a/7,service=65536", service},
      {"roce://", host},
      {"roce:///1", host},
      {"roce://-a/1", host},
      {"roce://a-/1", host},
      {"roce://a..b/1", host},
      {"roce://a.b./1", host},
      {"roce://a_b/1", host},
      {"roce://node.1/1", host},
      {"roce://[node]/1", host},
      {"roce://" + std::string(64, 'a') + "/1", host},
      {"roce://a:b/1", port},
      {"roce://10.0.0/1", host},
      {"roce://10.0.0.256/1", host},
      {"roce://10.0.0.1\0.2/1"s, host},
      {"roce:// 10.0.0.1/1", host},
      {"roce://[::1/1", host},
      {"roce://[[::1]/1", host},
      {"roce://[10.0.0.1]:4791/1", host},
      {"roce://::ffff:10.0.0.1/1", host},
      {"roce://fe80::1%eth0/1", link_local},
      {"roce://[fe80::1]:4791/1", link_local},
      {"roce://[febf::1]/1", link_local},
      {"roce://1:2:3/1", host},
      {"roce://0.0.0.0/1", any_host},
      {"roce://[::]/1", any_host},
      {"roce://224.0.0.1/1", any_host},
      {"roce://255.255.255.255/1", any_host},
      {"roce://[ff02::1]/1", any_host},
      {"roce://10.0.0.1:/1", port},
      {"roce://10.0.0.1:49152/1", port},
      {"roce://10.0.0.1:65536/1", port},
      {"roce://10.0.0.1:-1/1", port},
      {"roce://10.0.0.1:1 /1", port},
      {"roce://[::1]4791/1", port},
      {"roce://10.0.0.1/", service},
      {"roce://10.0.0.1/0", service},
      {"roce://10.0.0.1/65536", service},
      {"roce://10.0.0.1/1/1", service},
      {"roce://10.0.0.1/x", service},
      {"roce://10.0.0.1/" + std::string(100'000, '9'), service},
  };
  for (const auto& [text, fault] : texts) expect_fault(text, fault);
}

TEST(FabricAddress, SaysWhatIsWrongWithOneOfAnInterface) {
  using enum AddressFault;
  const std::vector<std::pair<std::string, AddressFault>> texts{
      {"roce+xdp:eth0/10.0.0.1", scheme},
      {"roce+xdp://", interface},
      {"roce+xdp://eth0", interface},
      {"roce+xdp:///10.0.0.1", interface},
      {"roce+xdp://../10.0.0.1", interface},
      {"roce+xdp://et:h0/10.0.0.1", interface},
      {"roce+xdp://et h0/10.0.0.1", interface},
      {"roce+xdp://et\0h0/10.0.0.1"s, interface},
      {"roce+xdp://interface-name-1/10.0.0.1", interface},
      {"roce+xdp://" + std::string(100'000, 'e') + "/10.0.0.1", interface},
      {"roce+xdp://eth0/", host},
      {"roce+xdp://eth0/fe80::1", link_local},
      {"roce+xdp://eth0/0.0.0.0", any_host},
      {"roce+xdp://eth0/10.0.0.1:49152", port},
      {"roce+xdp://eth0/10.0.0.1/0", service},
      {"roce+xdp://eth0/1/10.0.0.1", service},
  };
  for (const auto& [text, fault] : texts) expect_fault(text, fault);
}

TEST(FabricAddress, SaysWhatIsWrongWithOneOfLibfabric) {
  using enum AddressFault;
  const std::vector<std::pair<std::string, AddressFault>> texts{
      {"ofi:tcp/10.0.0.1", scheme},
      {"ofi://", provider},
      {"ofi://tcp", provider},
      {"ofi:///10.0.0.1", provider},
      {"ofi://tcp;ofi_rxm/10.0.0.1", provider},
      {"ofi://tcp+rxm/10.0.0.1", provider},
      {"ofi://t\0p/10.0.0.1"s, provider},
      {"ofi://" + std::string(100'000, 'p') + "/10.0.0.1", provider},
      {"ofi://tcp/", host},
      {"ofi://tcp/10.0.0.1/1", host},
      {"ofi://tcp/0.0.0.0", any_host},
      {"ofi://tcp/10.0.0.1:65536", port},
      {"ofi://tcp/10.0.0.1:", port},
  };
  for (const auto& [text, fault] : texts) expect_fault(text, fault);
}

/// Opens an end that listens and one that asks it, and connects them.
void expect_ends_to_meet(const std::string& text) {
  auto listening = open_for_listening(*parse(text), no_regions());
  ASSERT_TRUE(listening) << message(listening.error());
  auto connecting = open_for_connecting(listening->address, no_regions());
  ASSERT_TRUE(connecting) << message(connecting.error());
  EXPECT_EQ(connecting->mtu_bytes, 4096u);
  expect_to_meet(*listening, *connecting);

  const auto second = open_for_listening(listening->address, no_regions());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::already_exists);
}

TEST(FabricAddress, OpensEndsThatMeet) {
  const base::TemporaryFolder folder;
  expect_ends_to_meet("shm:" + (folder / "s").string());
  expect_ends_to_meet("roce://127.0.0.1:0/7");
  expect_ends_to_meet("ofi://tcp/127.0.0.1:0");
  expect_ends_to_meet("roce+memif:" + (folder / "m").string() + ",link=2,service=7");
}

TEST(FabricAddress, TellsWhyNobodyCanBeAsked) {
  const auto target = *parse("roce://127.0.0.1:0/1");
  const auto free = open_for_connecting(target, no_regions());
  ASSERT_FALSE(free);
  EXPECT_EQ(free.error(), fail(Code::invalid_argument, 7).error());
  auto good = target;
  good.where.udp_port = 4791;
  const auto other = open_for_connecting(good, no_regions(), *parse_host("::1"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error(), fail(Code::invalid_argument, 8).error());
  const auto no_port = open_for_connecting(*parse("ofi://tcp/127.0.0.1:0"), no_regions());
  ASSERT_FALSE(no_port);
  EXPECT_EQ(explain(no_port.error()), explain(AddressFault::free_port));
  // Reserved for documents, so that no machine has it.
  const auto strange = open_for_connecting(good, no_regions(), *parse_host("192.0.2.1"));
  ASSERT_FALSE(strange);
  EXPECT_EQ(strange.error(), fail(Code::system, EADDRNOTAVAIL).error());
  const auto elsewhere = open_for_listening(*parse("roce://192.0.2.1/1"), no_regions());
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error(), fail(Code::system, EADDRNOTAVAIL).error());
}

TEST(FabricAddress, TellsThatThereIsNoSuchInterface) {
  const auto address = *parse("roce+xdp://nonesuch0/10.0.0.1");
  const auto listening = open_for_listening(address, no_regions());
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error(), fail(Code::system, ENODEV).error());
  const auto connecting = open_for_connecting(address, no_regions());
  ASSERT_FALSE(connecting);
  EXPECT_EQ(connecting.error(), fail(Code::system, ENODEV).error());
}

TEST(FabricAddress, TellsWhatIsMissing) {
  const auto listening = open_for_listening(*parse("ofi://nonesuch/127.0.0.1:0"), no_regions());
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Code::unsupported);
  EXPECT_EQ(explain(listening.error()), ofi::explain(ofi::Unsupported::provider));
  EXPECT_EQ(explain(Error{Code::system, 0, EADDRNOTAVAIL}), "");
}

}  // namespace
}  // namespace espalier::fabric
