// SPDX-License-Identifier: Apache-2.0
// Peers of memif that do not keep to the protocol: what they say, and what they write into the
// shared memory, ends their own link and nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/memif/port.hpp"
#include "fabric/memif/testing/raw_peer.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/testing/port_traffic.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::fabric::memif {
namespace {

using roce::Bytes;

class MemifHostile : public ::testing::Test {
 protected:
  MemifHostile()
      : random(base::seed_from_environment(91)), port(*MemifPort::open({path, true, 0})) {}

  /// Turns until what is expected of the counters has come.
  void await(const std::function<bool(const MemifCounters&)>& done) {
    while (!done(port->counters())) static_cast<void>(port->receive());
  }
  void await_up() {
    const std::uint64_t before = port->counters().links_up;
    await([&](const MemifCounters& now) { return now.links_up != before; });
  }
  void expect_refused(const std::function<void(RawPeer&)>& say) {
    RawPeer peer(path);
    const std::uint64_t before = port->counters().refused;
    say(peer);
    await([&](const MemifCounters& now) { return now.refused != before; });
    EXPECT_EQ(port->links(), 0u);
  }
  /// Another peer, on another link, is served.
  void expect_others_are_served() {
    const auto near = *MemifPort::open({path, false, 200});
    while (near->links() == 0) {
      static_cast<void>(port->receive());
      static_cast<void>(near->receive());
    }
    std::byte* const at = near->begin(listener_address(), 64);
    ASSERT_NE(at, nullptr);
    std::memset(at, 7, 64);
    near->seal();
    near->flush();
    const std::uint64_t before = port->counters().received;
    for (int turn = 0; turn < 100 && port->counters().received == before; ++turn) {
      static_cast<void>(port->receive());
    }
    EXPECT_EQ(port->counters().received, before + 1);
  }

  base::Random random;
  base::TemporaryFolder folder;
  std::string path = (folder / "memif").string();
  std::unique_ptr<MemifPort> port;
};

TEST_F(MemifHostile, WhatItSaysOfItselfIsChecked) {
  const std::vector<std::function<void(RawSayings&)>> lies{
      [](RawSayings& s) { s.version = 0x0100; },
      [](RawSayings& s) { s.link = kLinksMax; },
      [](RawSayings& s) { s.link = 0xFFFFFFFF; },
      [](RawSayings& s) { s.mode = 1; },
      [](RawSayings& s) { s.region_index = 1; },
      [](RawSayings& s) { s.region_bytes = 0; },
      [](RawSayings& s) { s.region_bytes = RawPeer::kBytes + 1; },
      [](RawSayings& s) { s.region_bytes = ~std::uint64_t{0}; },
      [](RawSayings& s) { s.ring_index = 1; },
      [](RawSayings& s) { s.ring_region = 1; },
      [](RawSayings& s) { s.ring_offset = 1; },
      [](RawSayings& s) { s.ring_offset = RawPeer::kBytes - 64; },
      [](RawSayings& s) { s.ring_offset = 0xFFFFFFC0; },
      [](RawSayings& s) { s.log2_slots = 0; },
      [](RawSayings& s) { s.log2_slots = 255; },
      [](RawSayings& s) { s.private_bytes = 8; },
      [](RawSayings& s) { s.second_ring_goes_the_other_way = false; },
      [](RawSayings& s) { s.cookie = 0; },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    SCOPED_TRACE(i);
    RawSayings sayings;
    lies[i](sayings);
    expect_refused([&](RawPeer& peer) { peer.say_all(sayings); });
  }
  expect_others_are_served();
}

TEST_F(MemifHostile, DescriptorsAreChecked) {
  const RawSayings sayings;
  const auto refuses = [&](const std::function<void(RawPeer&)>& say) {
    expect_refused([&](RawPeer& peer) {
      peer.say_init(sayings);
      say(peer);
    });
  };
  refuses([&](RawPeer& peer) { peer.say_region(sayings, -1); });
  refuses([&](RawPeer& peer) { peer.say_region(sayings, peer.event.number()); });
  // Memory that could get shorter under us.
  const memory::Descriptor loose(::memfd_create("loose", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(loose.number(), RawPeer::kBytes), 0);
  refuses([&](RawPeer& peer) { peer.say_region(sayings, loose.number()); });
  refuses([&](RawPeer& peer) {
    peer.say_region(sayings, peer.memory.descriptor());
    peer.say_rings(sayings, -1);
  });
  // A write to a pipe may wait for ever.
  refuses([&](RawPeer& peer) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const memory::Descriptor read_end(ends[0]);
    const memory::Descriptor write_end(ends[1]);
    peer.say_region(sayings, peer.memory.descriptor());
    peer.say_rings(sayings, write_end.number());
  });
  expect_others_are_served();
}

TEST_F(MemifHostile, MessagesOutOfTurnAndNoneAtAll) {
  const RawSayings sayings;
  expect_refused([&](RawPeer& peer) { peer.say_connect(); });
  expect_refused([&](RawPeer& peer) { peer.say_rings(sayings, peer.event.number()); });
  expect_refused([&](RawPeer& peer) {
    peer.say_init(sayings);
    peer.say_init(sayings);
  });
  expect_refused([&](RawPeer& peer) {
    peer.say_init(sayings);
    peer.say_connect();
  });
  expect_refused([&](RawPeer& peer) { peer.say(std::uint64_t{2}); });
  expect_refused([&](RawPeer& peer) { peer.socket.close(); });
  for (int round = 0; round < 300; ++round) {
    expect_refused([&](RawPeer& peer) {
      format::MessageBytes garbage;
      random.fill(std::as_writable_bytes(std::span(&garbage, 1)));
      garbage.type[0] = static_cast<std::uint8_t>(random.below(10));
      garbage.type[1] = 0;
      if (random.chance(0.5)) peer.say_init(sayings);
      peer.say(garbage, random.chance(0.5) ? peer.memory.descriptor() : -1);
      peer.say(garbage);
    });
  }
  expect_others_are_served();
}

// Messages that change nothing are taken, but not without end.
TEST_F(MemifHostile, AListenerThatAcknowledgesForEverIsLeft) {
  const std::string own = (folder / "own").string();
  const auto listening = shm::ListeningSocket::open(own);
  ASSERT_TRUE(listening);
  const auto link = *MemifLink::dial(own, 1);
  const memory::Descriptor there(::accept4(listening->number(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(there);
  const auto free = [](std::uint32_t) { return true; };
  format::MessageBytes acknowledge{};
  base::store_le(acknowledge.type, static_cast<std::uint16_t>(format::MessageType::acknowledge));
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(::send(there.number(), &acknowledge, sizeof acknowledge, 0),
              static_cast<ssize_t>(sizeof acknowledge));
    link->progress(free);
    ASSERT_EQ(link->state(), MemifLink::State::agreeing);
  }
  ASSERT_GT(::send(there.number(), &acknowledge, sizeof acknowledge, 0), 0);
  link->progress(free);
  EXPECT_EQ(link->state(), MemifLink::State::ended);
}

using MemifHostileSlow = MemifHostile;

// Silent peers take all places for handshakes; they time out, and then others are served.
TEST_F(MemifHostileSlow, SilentPeersMakeRoom) {
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<RawPeer>(path));
  expect_others_are_served();
  EXPECT_GE(port->counters().refused, 4u);
}

TEST_F(MemifHostile, DescriptorsThatPointAnywhereEndTheLink) {
  const format::DescriptorBytes wrong[] = {
      {0, 1, 64, 0, 0},                     // no such region
      {0, 0xFFFF, 64, 0, 0},                // nor such
      {0, 0, 64, RawPeer::kBytes, 0},       // behind it
      {0, 0, 65, RawPeer::kBytes - 64, 0},  // across its end
      {0, 0, 0xFFFFFFFF, 64, 0},            // round the world
      {0, 0, 64, 0xFFFFFFFF, 0},
  };
  for (const auto& descriptor : wrong) {
    RawPeer peer(path);
    peer.say_all({});
    await_up();
    const std::uint64_t before = port->counters().links_down;
    peer.send_descriptor(descriptor);
    await([&](const MemifCounters& now) { return now.links_down != before; });
    EXPECT_EQ(port->links(), 0u);
  }
  // The same where it says there is room for what we send.
  for (const auto& descriptor : wrong) {
    RawPeer peer(path);
    peer.say_all({});
    await_up();
    peer.in().store(0, descriptor);
    peer.in().set_head(1);
    const std::uint64_t before = port->counters().links_down;
    ASSERT_NE(port->begin(connector_address(1), 64), nullptr);
    port->seal();
    port->flush();
    await([&](const MemifCounters& now) { return now.links_down != before; });
  }
  expect_others_are_served();
}

TEST_F(MemifHostile, CountsThatRunAwayEndTheLink) {
  for (const bool ours : {false, true}) {
    RawPeer peer(path);
    peer.say_all({});
    await_up();
    const std::uint64_t before = port->counters().links_down;
    (ours ? peer.in() : peer.out()).set_head(65);  // of 64 slots
    if (ours) static_cast<void>(port->begin(connector_address(1), 64));
    await([&](const MemifCounters& now) { return now.links_down != before; });
  }
  expect_others_are_served();
}

TEST_F(MemifHostile, GarbageInTheSharedMemory) {
  for (int round = 0; round < 200; ++round) {
    RawPeer peer(path);
    peer.say_all({});
    await_up();
    for (int step = 0; step < 200 && port->links() != 0; ++step) {
      const std::uint32_t ring = random.chance(0.5) ? 0 : RawPeer::kOtherRing;
      const std::uint64_t at = 8 * random.below(random.chance(0.1) ? 16 : 144);
      // Small numbers are nearly good.
      std::uint64_t word = random() >> random.below(64);
      if (random.chance(0.7)) word &= 0x0000'0FFF'0001'0001;
      base::store_shared(peer.memory.at(ring + at), word);
      if (random.chance(0.3)) peer.out().set_head(static_cast<std::uint16_t>(step / 4));
      if (random.chance(0.3)) peer.in().set_head(static_cast<std::uint16_t>(step / 4));
      if (std::byte* const to = port->begin(connector_address(1), 12 + 4 * random.below(1000))) {
        to[0] = std::byte{1};
        port->seal();
      }
      port->flush();
      static_cast<void>(port->receive());
      port->wait(0);
    }
    peer.socket.close();
    while (port->links() != 0) static_cast<void>(port->receive());
  }
  EXPECT_EQ(port->counters().received, 0u);
  expect_others_are_served();
}

// What no frame of this link can be is dropped and counted, and the next one is heard.
TEST_F(MemifHostile, FramesThatAreNotOursAreDropped) {
  RawPeer peer(path);
  peer.say_all({});
  await_up();
  const auto listener = listener_address().ip;
  const auto own = connector_address(1).ip;
  const auto make = [&](const std::function<void(roce::FrameHeader&)>& spoil) {
    roce::FrameHeader header;
    header.flow = {own, listener, wire::roce::kUdpPort, wire::roce::kUdpPort, true};
    header.ip_id = 7;
    spoil(header);
    Bytes frame(roce::frame_header_bytes(header) + 68);
    const std::size_t begin = roce::write_frame_header(frame.data(), header, 68);
    roce::Icrc(header.flow).seal(std::span(frame).subspan(begin), header.ip_id);
    return frame;
  };
  const auto good = make([](roce::FrameHeader&) {});
  const auto expect = [&](std::size_t received, const Bytes& frame) {
    SCOPED_TRACE(::testing::PrintToString(frame.size()));
    const MemifCounters before = port->counters();
    peer.send(frame);
    const auto burst = port->receive();
    EXPECT_EQ(burst.size(), received);
    const MemifCounters& now = port->counters();
    EXPECT_EQ(now.received - before.received, received);
    EXPECT_EQ(now.not_ours + now.wrong_icrc - before.not_ours - before.wrong_icrc, 1 - received);
  };
  expect(1, good);
  expect(0, make([](auto& h) { h.vlan = 3; }));
  expect(0, make([](auto& h) { h.flow.destination = roce::IpAddress::v4(169, 254, 1, 2); }));
  expect(0, make([](auto& h) { h.flow.destination_port = 4790; }));
  expect(0, make([](auto& h) { h.flow.source = connector_address(2).ip; }));  // another peer's
  expect(0, make([](auto& h) {
           h.flow.source = connector_address(1, true).ip;
           h.flow.destination = listener_address(true).ip;
         }));
  const auto spoiled = [&](std::size_t at, std::uint8_t with) {
    Bytes frame = good;
    frame[at] ^= std::byte{with};
    return frame;
  };
  expect(0, spoiled(12, 0xFF));               // another type of Ethernet
  expect(0, spoiled(14, 0x01));               // options
  expect(0, spoiled(20, 0x20));               // a fragment
  expect(0, spoiled(23, 0xFF));               // not UDP
  expect(0, spoiled(good.size() - 1, 0x01));  // the ICRC
  for (std::size_t i = 14; i < good.size(); ++i) {
    // The ICRC leaves out what routers change, and IPv4's checksum knows of the part before UDP's.
    if (i == 40 || i == 41 || i == 46) continue;
    expect(0, spoiled(i, static_cast<std::uint8_t>(1 + random.below(255))));
  }
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    expect(0, Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)));
  }
  expect(1, good);

  // In parts, or longer than any of ours: skipped.
  peer.send_descriptor({format::kDescriptorGoesOn, 0, 64, RawPeer::kFrames, 0});
  EXPECT_TRUE(port->receive().empty());
  peer.send_descriptor({0, 0, 64, RawPeer::kFrames, 0});
  EXPECT_TRUE(port->receive().empty());
  peer.send_descriptor({0, 0, kFrameBytesMax + 1, RawPeer::kFrames, 0});
  EXPECT_TRUE(port->receive().empty());
  expect(1, good);
  EXPECT_EQ(port->links(), 1u);
}

}  // namespace
}  // namespace espalier::fabric::memif
