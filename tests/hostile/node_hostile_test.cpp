// SPDX-License-Identifier: Apache-2.0
// Clients that violate every rule, and a node that must tolerate them: other clients get right
// answers meanwhile, and when the hostile ones are gone, nothing of them is left.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/places.hpp"
#include "base/unix_address.hpp"
#include "memory/seqpacket.hpp"
#include "tests/support/hostile.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

using rings::message_of;
using rings::request_of;
using wire::OffloadId;

constexpr wire::ConnectionLayout kRings{64, 64, 2};
constexpr std::uint32_t kAMap = 1;  // the number of the first map of a node

class HostileFixture : public NodeFixture {
 protected:
  void SetUp() override {
    start();
    fill();
    seed_ = base::seed_from_environment(7);
  }
  /// Items to scan, and values that no ring holds.
  void fill() {
    const auto client = open();
    for (int i = 0; i < 3000; ++i) {
      const auto put = client->call(request_of(OffloadId::put, kAMap),
                                    "item" + std::to_string(10'000 + i), std::string(64, 'i'));
      ASSERT_TRUE(put && put->applied());
    }
    const auto put =
        client->call(request_of(OffloadId::put, kAMap), "big", std::string(1 << 20, 'b'));
    ASSERT_TRUE(put && put->applied());
  }
  [[nodiscard]] std::unique_ptr<RawClient> open(wire::ConnectionLayout layout = kRings) const {
    auto client = RawClient::open(socket(), layout);
    EXPECT_TRUE(client) << message(client.error());
    return client ? std::move(*client) : nullptr;
  }
  /// Runs a hostile client's actions repeatedly, beside a witness.
  template <class Body>
  void beside_a_witness(std::uint64_t rounds, Body body) {
    SCOPED_TRACE(seed_text(seed_));
    {
      const Witness witness(socket());
      witness.wait_for(1);
      Random random(seed_);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        body(random);
        witness.wait_for(1);
      }
      witness.wait_for(50);
    }
    expect_all_came_back();
  }

  std::uint64_t seed_ = 0;
};

/// Of a node whose clients by networks have secrets, and of one that knows of none.
class HostileTest : public HostileFixture, public ::testing::WithParamInterface<bool> {
 protected:
  HostileTest() {
    if (!GetParam()) return;
    ask_for_secrets();
    config_.node.fabric = "roce://127.0.0.1:0/1";
  }
};

INSTANTIATE_TEST_SUITE_P(Secrets, HostileTest, ::testing::Bool(), [](const auto& secrets) {
  return std::string(secrets.param ? "known" : "none");
});

TEST_P(HostileTest, GarbageInEveryLine) {
  beside_a_witness(scaled(300), [&](Random& random) {
    const auto client = open({64, 64, static_cast<std::uint32_t>(random.between(1, 16))});
    write_garbage(*client, random, 200);
  });
}

TEST_P(HostileTest, RequestsOfRandomFields) {
  beside_a_witness(scaled(300), [&](Random& random) {
    const auto client = open();
    for (int i = 0; i < 100 && !client->ended(); ++i) {
      client->rings().post(random_request(random));
      client->ring();
      while (client->rings().receive(random.below(2) == 0 ? 0 : 1)) {
      }
    }
  });
}

TEST_P(HostileTest, LengthsThatLie) {
  beside_a_witness(scaled(300), [&](Random& random) {
    const auto client = open();
    wire::RequestHeader header = request_of(OffloadId::put, kAMap);
    header.key_bytes = static_cast<std::uint16_t>(random());
    header.bytes = static_cast<std::uint32_t>(random() >> random.between(32, 63));
    client->rings().post(rings::bytes_of(header).append(random.below(300), 'x'));
    client->ring();
    // The next message is read as the rest of that one.
    for (int i = 0; i < 20; ++i) client->rings().post(message_of(request_of(OffloadId::noop)));
    client->ring();
  });
}

TEST_P(HostileTest, CreditsThatLie) {
  beside_a_witness(scaled(40), [&](Random& random) {
    const auto client = open();
    for (int i = 0; i < 30; ++i) {
      client->rings().post(message_of(request_of(OffloadId::scan, kAMap)));
      client->rings().post(message_of(request_of(OffloadId::get, kAMap), "big"));
    }
    client->ring();
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t credit = random.one_in(3) ? random() : random.below(100'000);
      base::store_shared(client->rings().memory() + client->rings().layout().response_side(0),
                         credit);
    }
  });
}

TEST_P(HostileTest, ScribblingOverTheWholeConnectionPage) {
  beside_a_witness(scaled(40), [&](Random& random) {
    const auto client = open();
    for (int i = 0; i < 200; ++i) {
      client->rings().post(random_request(random));
      for (std::uint32_t at = 0; at < wire::kConnectionPageBytes; at += 8) {
        base::store_shared(client->rings().memory() + at, random());
      }
      client->ring();
    }
  });
}

TEST_P(HostileTest, ScribblingOverTheDoorbellsOfAllClientsOfAUser) {
  const auto client = open();
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    Random random(seed_);
    while (!stop) {
      base::store_shared(client->doorbells() + 4 * random.below(wire::kDoorbellsPerPage),
                         static_cast<std::uint32_t>(random()));
    }
  });
  {
    std::vector<std::unique_ptr<RawClient>> others;
    for (int i = 0; i < 40; ++i) others.push_back(open());
    const Witness witness(socket());
    for (std::uint64_t round = 0; round < scaled(100); ++round) {
      for (const auto& other : others) {
        const auto answer = other->call(request_of(OffloadId::get, kAMap), "item10000");
        ASSERT_TRUE(answer && answer->payload == std::string(64, 'i'));
      }
      witness.wait_for(1);
    }
  }
  stop = true;
  scribbler.join();
  client->hang_up();
  expect_descriptors(descriptors_);
}

TEST_P(HostileTest, RequestsThatChangeWhileTheyAreRead) {
  beside_a_witness(scaled(30), [&](Random& random) {
    const auto client = open();
    std::atomic<bool> stop{false};
    std::thread flipper([&stop, &client, other = Random(random())]() mutable {
      std::byte* const lines = client->rings().memory() + client->rings().layout().requests();
      while (!stop) {
        // Not the sequence words: then nothing would be read at all.
        const std::uint64_t at = other.below(64) * wire::kRingSlotBytes + other.between(4, 63);
        base::store_shared(lines + at, static_cast<std::uint8_t>(other()));
      }
    });
    for (int i = 0; i < 2000 && !client->ended(); ++i) {
      client->rings().post(random_request(random));
      client->ring();
      while (client->rings().receive(i % 2)) {
      }
    }
    stop = true;
    flipper.join();
  });
}

// --- at the socket -------------------------------------------------------------------------------

TEST_P(HostileTest, NonsenseInsteadOfAHello) {
  wire::Hello good = RawClient::hello(kRings);
  std::vector<std::string> packets{"", "x", std::string(1 << 16, 'x'),
                                   rings::bytes_of(good) + "more", rings::bytes_of(good).substr(1)};
  wire::Hello bad = good;
  bad.magic ^= 1;
  packets.push_back(rings::bytes_of(bad));
  bad = good;
  bad.protocol = 2;
  packets.push_back(rings::bytes_of(bad));
  beside_a_witness(scaled(50), [&](Random&) {
    for (const std::string& packet : packets) {
      const auto socket = memory::connect_packets(this->socket());
      ASSERT_TRUE(socket);
      ::send(socket->number(), packet.data(), packet.size(), MSG_NOSIGNAL);
      wire::Welcome welcome{};
      ASSERT_EQ(::recv(socket->number(), &welcome, sizeof welcome, 0),
                static_cast<ssize_t>(sizeof welcome));
      EXPECT_EQ(welcome.magic, wire::kHelloMagic);
      EXPECT_EQ(static_cast<Code>(welcome.code),
                packet == packets.back() ? Code::unsupported : Code::invalid_argument);
      EXPECT_EQ(::recv(socket->number(), &welcome, sizeof welcome, 0), 0);
    }
    static_cast<void>(memory::connect_packets(this->socket()));  // and nothing at all
  });
}

// The process has no descriptor left for them. Their own are those they had before.
TEST_P(HostileTest, MoreClientsThanThereAreDescriptors) {
  constexpr int kClients = 50;
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto witness = std::make_unique<Witness>(socket());
  witness->wait_for(1);
  const auto address = base::UnixAddress::file(socket());
  ASSERT_TRUE(address);
  std::vector<memory::Descriptor> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  }
  const int next = ::dup(clients.back().number());  // descriptors are given out from the lowest on
  ASSERT_GE(next, 0);
  ::close(next);
  rlimit none_left = usual;
  none_left.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);
  for (const memory::Descriptor& client : clients) {
    EXPECT_EQ(::connect(client.number(), address->get(), address->bytes()), 0);
    wire::Welcome welcome{};
    EXPECT_EQ(::recv(client.number(), &welcome, sizeof welcome, 0),
              static_cast<ssize_t>(sizeof welcome));
    EXPECT_EQ(static_cast<Code>(welcome.code), Code::too_many_participants);
  }
  witness->wait_for(10);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  clients.clear();
  EXPECT_TRUE(open()->call(request_of(OffloadId::noop)));
}

TEST_P(HostileTest, LayoutsOfAllSizesAreMadePossible) {
  constexpr std::uint32_t kNumbers[] = {0, 1, 63, 64, 65, 1000, 65'536, 65'537, ~0u};
  beside_a_witness(scaled(100), [&](Random& random) {
    const auto client = open({random.pick(kNumbers), random.pick(kNumbers), random.pick(kNumbers)});
    ASSERT_NE(client, nullptr);
    EXPECT_TRUE(client->rings().layout().valid());
    const auto answer = client->call(request_of(OffloadId::noop));
    EXPECT_TRUE(answer && answer->answers());
  });
}

TEST_P(HostileTest, OtherBytesThanOneEndTheConnection) {
  beside_a_witness(scaled(20), [&](Random&) {
    for (const std::string& packet :
         {std::string("\0", 1), std::string("\2"), std::string("\xFF"), std::string("\1\1"),
          std::string(300, '\1'), std::string(100'000, 'x')}) {
      const auto client = open();
      EXPECT_TRUE(client->call(request_of(OffloadId::noop)));
      client->send_packet(packet);
      while (!client->ended()) std::this_thread::yield();
    }
  });
}

TEST_P(HostileTest, BytesThatWakeWithoutEnd) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(open());
  std::atomic<bool> stop{false};
  std::vector<std::thread> senders;
  for (const auto& client : clients) {
    senders.emplace_back([&stop, raw = client.get()] {
      while (!stop) raw->send_packet({"\1", 1});
    });
  }
  {
    const Witness witness(socket());
    witness.wait_for(scaled(2000));
  }
  stop = true;
  for (std::thread& sender : senders) sender.join();
  for (const auto& client : clients) EXPECT_TRUE(client->call(request_of(OffloadId::noop)));
  clients.clear();
  expect_all_came_back();
}

TEST_P(HostileTest, DescriptorsThatNobodyAskedFor) {
  beside_a_witness(scaled(50), [&](Random&) {
    const std::string hello = rings::bytes_of(RawClient::hello(kRings));
    const auto socket = memory::connect_packets(this->socket());
    ASSERT_TRUE(socket);
    EXPECT_TRUE(send_with_descriptors(socket->number(), hello, 20));
    EXPECT_TRUE(send_with_descriptors(socket->number(), {"\1", 1}, 20));
    const auto client = open();
    EXPECT_TRUE(send_with_descriptors(client->socket(), {"\1", 1}, 20));
    EXPECT_TRUE(client->call(request_of(OffloadId::noop)));
  });
}

// --- those that stop -----------------------------------------------------------------------------

TEST_P(HostileTest, AClientThatStopsInTheMiddleOfAMessage) {
  std::vector<std::unique_ptr<RawClient>> stopped;
  beside_a_witness(20, [&](Random& random) {
    stopped.push_back(open());
    wire::RequestHeader header = request_of(OffloadId::put, kAMap);
    header.bytes = static_cast<std::uint32_t>(random.between(1000, 1 << 20));
    stopped.back()->rings().post(rings::bytes_of(header).append(random.below(900), 'x'));
    stopped.back()->ring();
    if (stopped.size() == 20) stopped.clear();
  });
}

TEST_P(HostileTest, RingsThatNobodyReads) {
  std::vector<std::unique_ptr<RawClient>> stopped;
  beside_a_witness(60, [&](Random& random) {
    stopped.push_back(open({512, 64, 2}));
    for (int i = 0; i < 200; ++i) {
      wire::RequestHeader header =
          request_of(random.one_in(2) ? OffloadId::scan : OffloadId::get, kAMap);
      header.ring = static_cast<std::uint8_t>(random.below(2));
      stopped.back()->rings().post(message_of(header, "big"));
    }
    stopped.back()->ring();
    if (stopped.size() == 60) stopped.clear();
  });
}

TEST_P(HostileTest, AClientWithAFullRingIsServedOnAnother) {
  const auto client = open({512, 64, 2});
  for (int i = 0; i < 200; ++i)
    client->rings().post(message_of(request_of(OffloadId::scan, kAMap)));
  client->ring();
  for (int i = 0; i < 100; ++i) {
    wire::RequestHeader get = request_of(OffloadId::get, kAMap);
    get.ring = 1;
    const auto answer = client->call(get, "item10001");
    ASSERT_TRUE(answer && answer->found());
  }
}

// --- comings and goings --------------------------------------------------------------------------

TEST_P(HostileTest, AThousandConnectionsOpenedAndClosed) {
  std::vector<std::unique_ptr<RawClient>> open_now;
  std::uint64_t opened = 0;
  beside_a_witness(scaled(1000), [&](Random& random) {
    open_now.push_back(open());
    ++opened;
    ASSERT_NE(open_now.back(), nullptr);
    if (random.one_in(2)) open_now.back()->rings().post(random_request(random));
    open_now.back()->ring();
    if (random.one_in(40) || opened == scaled(1000)) open_now.clear();
  });
}

TEST_P(HostileTest, MoreConnectionsThanMayBeAreRefused) {
  config_.clients.connections_max = 5;
  start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(open());
  while (node_->connections() != 5) std::this_thread::yield();
  const auto refused = RawClient::open(socket(), kRings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), base::full_error(base::Places::connections, 5));
  clients.pop_back();
  // Its place is free once its rings are, a moment after its worker has let go of it.
  while (node_->services().connections.numbers().connections != 4) std::this_thread::yield();
  EXPECT_NE(open(), nullptr);
}

TEST_P(HostileTest, ANodeThatStopsTellsItsClientsAndFinishesWhatIsInFlight) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    Random random(seed_ + static_cast<std::uint64_t>(round));
    for (int i = 0; i < 10; ++i) {
      clients.push_back(open());
      for (int j = 0; j < 30; ++j) clients.back()->rings().post(random_request(random));
      clients.back()->ring();
    }
    node_.reset();
    for (const auto& client : clients) EXPECT_TRUE(client->ended());
    clients.clear();
    start();
  }
}

TEST_P(HostileTest, MemoryStaysWhatItIsOverManyRounds) {
  const auto round = [&](Random& random) {
    const auto client = open({512, 64, 2});
    for (int i = 0; i < 200; ++i) client->rings().post(random_request(random));
    client->ring();
    write_garbage(*client, random, 50);
  };
  beside_a_witness(scaled(200), round);
  const std::size_t heap_before = heap_bytes();
  const std::uint64_t taken_before = node_->store().region.taken_bytes();
  beside_a_witness(scaled(600), round);
  EXPECT_LT(heap_bytes(), heap_before + (std::size_t{4} << 20));
  // An extent of 2 MiB has buffers of one size, and how many of each size are in use at the same
  // time depends on the schedule.
  EXPECT_LT(node_->store().region.taken_bytes(), taken_before + (std::uint64_t{48} << 20));
}

// --- death ---------------------------------------------------------------------------------------

class HostileProcessTest : public HostileFixture {
 protected:
  // The nursery is forked while this process has one thread.
  HostileProcessTest() : nursery_(socket()) {}
  Nursery nursery_;
};

TEST_F(HostileProcessTest, DeathAtAnyPoint) {
  beside_a_witness(200, [&](Random& random) {
    const std::uint64_t seed = random();
    SCOPED_TRACE("the client's seed " + std::to_string(seed));
    EXPECT_TRUE(nursery_.run_to_its_death(seed));
  });
}

TEST_F(HostileProcessTest, ManyAtATime) {
  beside_a_witness(5, [&](Random& random) {
    for (int i = 0; i < 10; ++i) nursery_.begin(random());
    EXPECT_EQ(nursery_.wait_for_all(), 10);
  });
}

}  // namespace
}  // namespace espalier::test
