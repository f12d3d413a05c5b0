// SPDX-License-Identifier: Apache-2.0
// Packets over memif links of this process and of others: all that is sent arrives, whole and in
// order; links come, go and come again.
#include "fabric/memif/port.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/places.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/roce/testing/port_traffic.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::fabric::memif {
namespace {

using roce::Bytes;
using roce::Came;
using roce::send;
using roce::take;
using Port = std::unique_ptr<MemifPort>;

/// Turns both until their numbers of links are these.
void await_links(MemifPort& a, std::size_t of_a, MemifPort& b, std::size_t of_b) {
  while (a.links() != of_a || b.links() != of_b) {
    static_cast<void>(a.receive());
    static_cast<void>(b.receive());
  }
}

class MemifPorts : public ::testing::Test {
 protected:
  MemifPorts() : random(base::seed_from_environment(90)) {}

  Port listening(bool is_v6 = false) { return *MemifPort::open({path, true, 0, is_v6}); }
  Port connecting(std::uint32_t link, bool is_v6 = false) {
    return *MemifPort::open({path, false, link, is_v6});
  }
  Bytes noise(std::size_t bytes) {
    Bytes made(bytes);
    random.fill(made);
    return made;
  }
  /// One packet arrives, and nothing else.
  void expect_way(MemifPort& from, MemifPort& to) {
    const Bytes sent = noise(64);
    ASSERT_TRUE(send(from, to.address(), sent));
    from.flush();
    const auto came = take(to);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].from, from.address());
    EXPECT_EQ(came[0].bytes, sent);
  }

  base::Random random;
  base::TemporaryFolder folder;
  std::string path = (folder / "memif").string();
};

TEST_F(MemifPorts, AllArrivesBothWaysInOrder) {
  for (const bool is_v6 : {false, true}) {
    const Port far = listening(is_v6);
    const Port near = connecting(7, is_v6);
    EXPECT_EQ(far->address(), listener_address(is_v6));
    EXPECT_EQ(near->address(), connector_address(7, is_v6));
    await_links(*near, 1, *far, 1);
    for (const auto& [from, to] : {std::pair(&*near, &*far), std::pair(&*far, &*near)}) {
      std::deque<Bytes> sent;
      std::size_t arrived = 0;
      std::size_t full = 0;
      constexpr std::size_t kPackets = 5000;
      for (std::size_t made = 0; arrived < kPackets;) {
        // More than there is room for, now and then.
        for (std::size_t burst = random.below(900); burst != 0 && made < kPackets; --burst) {
          Bytes packet = noise(12 + 4 * random.below(random.chance(0.3) ? 1040 : 20));
          if (!send(*from, to->address(), packet)) {
            ++full;
            break;
          }
          sent.push_back(std::move(packet));
          ++made;
        }
        from->flush();
        for (Came& came : take(*to)) {
          ASSERT_FALSE(sent.empty());
          EXPECT_EQ(came.from, from->address());
          ASSERT_EQ(came.bytes, sent.front());
          sent.pop_front();
          ++arrived;
        }
      }
      EXPECT_GT(full, 0u);
      EXPECT_EQ(to->counters().received, kPackets);
      EXPECT_EQ(from->counters().sent, kPackets);
      EXPECT_EQ(from->counters().unsent, 0u);
    }
    EXPECT_EQ(near->counters().not_ours + near->counters().wrong_icrc, 0u);
    EXPECT_EQ(far->counters().not_ours + far->counters().wrong_icrc, 0u);
  }
}

TEST_F(MemifPorts, WhatHasNoWayGetsLost) {
  const Port far = listening();
  const Port near = connecting(0);
  EXPECT_TRUE(send(*near, far->address(), noise(64)));  // the link is not up yet
  EXPECT_EQ(near->counters().unsent, 1u);
  await_links(*near, 1, *far, 1);
  EXPECT_TRUE(send(*far, connector_address(1), noise(64)));        // no such link
  EXPECT_TRUE(send(*far, connector_address(0, true), noise(64)));  // of the other version
  EXPECT_TRUE(send(*far, connector_address(0), noise(5000)));      // too long
  EXPECT_EQ(far->counters().unsent, 3u);
  far->flush();
  EXPECT_TRUE(take(*near).empty());
  expect_way(*far, *near);
}

TEST_F(MemifPorts, ManyLinksAtOneSocket) {
  const Port far = listening();
  std::vector<Port> near;
  for (const std::uint32_t link : {0u, 9u, 255u}) {
    near.push_back(connecting(link));
    await_links(*near.back(), 1, *far, near.size());
  }
  for (const Port& port : near) {
    expect_way(*port, *far);
    expect_way(*far, *port);
  }
  for (const Port& port : near) EXPECT_TRUE(take(*port).empty());
}

TEST_F(MemifPorts, ALinkIsOfOneAtATime) {
  const Port far = listening();
  Port first = connecting(4);
  await_links(*first, 1, *far, 1);
  const Port second = connecting(4);
  while (second->counters().refused == 0) {
    static_cast<void>(second->receive());
    static_cast<void>(far->receive());
  }
  expect_way(*first, *far);
  first.reset();
  await_links(*second, 1, *far, 1);
  expect_way(*second, *far);
  expect_way(*far, *second);
}

// The end of one and all that the next has to say are found in the same look.
TEST_F(MemifPorts, ALinkPassesFromOneToTheNextInALook) {
  const auto turn = [](MemifPort& port, int turns) {
    for (; turns != 0; --turns) static_cast<void>(port.receive());
  };
  const Port far = listening();
  Port first = connecting(4);
  await_links(*first, 1, *far, 1);
  const Port second = connecting(4);
  turn(*far, 50'000);  // it is accepted, and gets the hello
  turn(*second, 100);  // and offers its memory
  first.reset();
  await_links(*second, 1, *far, 1);
  EXPECT_EQ(far->counters().links_up, 2u);
  EXPECT_EQ(second->counters().refused, 0u);
  expect_way(*second, *far);
  expect_way(*far, *second);
}

TEST_F(MemifPorts, AListenerThatComesBackIsFound) {
  Port far = listening();
  const Port near = connecting(0);
  for (int round = 0; round < 3; ++round) {
    await_links(*near, 1, *far, 1);
    expect_way(*near, *far);
    // What was on its way is gone with it.
    ASSERT_TRUE(send(*near, far->address(), noise(100)));
    near->flush();
    far.reset();
    EXPECT_TRUE(send(*near, listener_address(), noise(100)));
    near->flush();
    far = listening();
  }
  EXPECT_EQ(near->counters().links_up, 3u);
}

TEST_F(MemifPorts, NobodyThere) {
  const auto none = MemifPort::open({path, false, 0});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::connection_lost);
  const Port far = listening();
  const auto second = MemifPort::open({path, true, 0});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::already_exists);
  EXPECT_FALSE(MemifPort::open({path, false, kLinksMax}));
}

/// Serves a listening port, and sends back what comes, until it goes.
class Echo {
 public:
  explicit Echo(MemifPort& port) : port_(port), thread_([this] { work(); }) {}
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  ~Echo() {
    stopping_.store(true);
    port_.wake();
    thread_.join();
  }

 private:
  void work() {
    while (!stopping_.load()) {
      for (const Came& came : take(port_)) static_cast<void>(send(port_, came.from, came.bytes));
      port_.flush();
      port_.wait(10'000'000);
    }
  }
  MemifPort& port_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

TEST_F(MemifPorts, WhoNamesNoLinkGetsOneThatIsFree) {
  const Port far = listening();
  const Echo echo(*far);
  // In the way of those that look for one, wherever they begin.
  std::vector<Port> near;
  for (std::uint32_t link = 0; link < kLinksMax; link += 16) {
    near.push_back(connecting(link));
    while (near.back()->links() == 0) static_cast<void>(near.back()->receive());
  }
  std::set<std::uint8_t> taken;
  for (int i = 0; i < 40; ++i) {
    auto port = MemifPort::open({.path = path, .link = {}});
    ASSERT_TRUE(port) << message(port.error());
    const auto address = (*port)->address();
    const std::uint8_t number = address.ip.bytes[3];
    EXPECT_EQ(address, connector_address(number));
    EXPECT_NE(number % 16, 0);
    EXPECT_TRUE(taken.insert(number).second);
    const Bytes sent = noise(64);
    ASSERT_TRUE(send(**port, far->address(), sent));
    (*port)->flush();
    std::vector<Came> came;
    while (came.empty()) came = take(**port);
    EXPECT_EQ(came[0].bytes, sent);
    near.push_back(std::move(*port));
  }
}

TEST_F(MemifPorts, NoLinkIsFree) {
  auto listening = *shm::ListeningSocket::open(path);
  std::atomic<bool> done{false};
  std::set<std::uint32_t> refused;  // one that is late is retried
  std::thread refuses([&] {
    while (!done.load()) {
      memory::Descriptor peer(
          ::accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer) continue;
      const auto link = MemifLink::accept(std::move(peer));
      while (link->state() == MemifLink::State::agreeing) {
        link->progress([&](std::uint32_t number) {
          refused.insert(number);
          return false;
        });
      }
    }
  });
  const auto none = MemifPort::open({.path = path, .link = {}});
  done.store(true);
  refuses.join();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), base::full_error(base::Places::links, kLinksMax));
  EXPECT_EQ(refused.size(), kLinksMax);
}

/// A socket at `path` that accepts nothing until it is asked to, with a full queue.
struct BusyListener {
  explicit BusyListener(const std::string& path) : address(*base::UnixAddress::file(path)) {
    EXPECT_EQ(::bind(socket.number(), address.get(), address.bytes()), 0);
    EXPECT_EQ(::listen(socket.number(), 0), 0);
    while (true) {
      memory::Descriptor peer = made();
      if (::connect(peer.number(), address.get(), address.bytes()) != 0) break;
      waiting.push_back(std::move(peer));
    }
    EXPECT_EQ(errno, EAGAIN);
  }
  static memory::Descriptor made() {
    return memory::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  memory::Descriptor accept() const {
    return memory::Descriptor(
        ::accept4(socket.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
  memory::Descriptor socket = made();
  base::UnixAddress address;
  std::vector<memory::Descriptor> waiting;
};

TEST_F(MemifPorts, AListenerWithAFullQueueIsDialledAgain) {
  const BusyListener busy(path);
  auto near = MemifPort::open({path, false, 0});
  ASSERT_TRUE(near) << message(near.error());
  for (std::size_t i = 0; i < busy.waiting.size(); ++i) EXPECT_TRUE(busy.accept());
  std::unique_ptr<MemifLink> far;
  while ((*near)->links() == 0) {
    static_cast<void>((*near)->receive());
    if (auto peer = busy.accept()) far = MemifLink::accept(std::move(peer));
    if (far) far->progress([](std::uint32_t) { return true; });
  }
}

TEST_F(MemifPorts, AListenerThatMissesTheFirstAttemptIsDialledAgain) {
  const auto listening = *shm::ListeningSocket::open(path);
  std::atomic<bool> done{false};
  std::thread listens([&] {
    std::unique_ptr<MemifLink> far;
    for (std::size_t seen = 0; !done.load();) {
      memory::Descriptor peer(
          ::accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (peer && ++seen > 1) far = MemifLink::accept(std::move(peer));
      if (far) far->progress([](std::uint32_t) { return true; });
    }
  });
  const auto near = MemifPort::open({.path = path, .link = {}});
  done.store(true);
  listens.join();
  EXPECT_TRUE(near) << message(near.error());
}

bool readable(int descriptor) {
  pollfd asked{descriptor, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

// A thread that sleeps on other things too is woken by packets, by new connections and by wake(),
// by each once.
TEST_F(MemifPorts, TellsWhoSleepsOnADescriptor) {
  const Port far = listening();
  const Port near = connecting(3);
  await_links(*near, 1, *far, 1);
  const auto completion = [&](auto happens) {
    const int quiet = far->begin_sleep();
    EXPECT_FALSE(readable(quiet));
    happens();
    EXPECT_TRUE(readable(quiet));
    far->end_sleep();
  };
  for (int round = 0; round < 3; ++round) {
    completion([&] {
      ASSERT_TRUE(send(*near, far->address(), noise(64)));
      near->flush();
    });
    // Still there, so the thread should not sleep now.
    EXPECT_TRUE(readable(far->begin_sleep()));
    far->end_sleep();
    EXPECT_EQ(take(*far).size(), 1u);
    completion([&] { far->wake(); });
  }
  Port another;
  completion([&] { another = connecting(4); });
  await_links(*another, 1, *far, 2);
  completion([&] { another.reset(); });
  while (far->links() != 1) static_cast<void>(far->receive());
  expect_way(*near, *far);
}

// A process that dies in the middle of its packets leaves nothing behind but what had come whole.
TEST_F(MemifPorts, KilledPeersLeaveTheLinkFree) {
  const Port far = listening();
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const Port near = connecting(1);
      const Bytes packet(2000, std::byte{7});
      for (;;) {
        static_cast<void>(near->receive());
        if (!send(*near, listener_address(), packet)) near->flush();
      }
    }
    const std::uint64_t before = far->counters().received;
    const std::uint64_t enough = before + 1000 + random.below(1000);
    while (far->counters().received < enough) static_cast<void>(far->receive());
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    while (far->links() != 0) static_cast<void>(far->receive());
  }
  EXPECT_EQ(far->counters().not_ours + far->counters().wrong_icrc, 0u);
  const Port near = connecting(1);
  await_links(*near, 1, *far, 1);
  expect_way(*near, *far);
}

/// Sockets of this process.
std::size_t open_sockets() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::count_if(begin(all), end(all), [](const auto& entry) {
    std::error_code gone;  // that by which they are read
    return std::filesystem::read_symlink(entry, gone).string().starts_with("socket:");
  }));
}

// Else the other side would not see that a process has ended while a child of it lives.
TEST_F(MemifPorts, AChildHasNoSocketOfALinkThatItsParentMade) {
  const Port far = listening();
  const std::size_t listens = open_sockets();
  const Port near = connecting(7);
  await_links(*near, 1, *far, 1);
  EXPECT_EQ(open_sockets(), listens + 2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(static_cast<int>(open_sockets() - listens));
  EXPECT_EQ(base::wait_for_child(child), 1) << "that of who accepts is its own";
  expect_way(*near, *far);
}

using MemifPortsConcurrency = MemifPorts;

// Both sides sleep until the other wakes them; if one did not, the test would take for ever.
TEST_F(MemifPortsConcurrency, SleepersAreWoken) {
  constexpr std::uint64_t kLong = 3'600'000'000'000;
  constexpr std::uint64_t kRounds = 3000;
  const Port far = listening();
  std::atomic<bool> done{false};
  std::thread other([&] {
    const Port near = connecting(2);
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      while (near->links() == 0) static_cast<void>(near->receive());
      ASSERT_TRUE(send(*near, listener_address(), noise(64)));
      near->flush();
      while (take(*near).empty()) near->wait(kLong);
    }
    done.store(true);
    far->wake();
  });
  std::uint64_t answered = 0;
  while (!done.load()) {
    for (const Came& came : take(*far)) {
      ASSERT_TRUE(send(*far, came.from, came.bytes));
      ++answered;
    }
    far->flush();
    far->wait(kLong);
  }
  other.join();
  EXPECT_EQ(answered, kRounds);
}

}  // namespace
}  // namespace espalier::fabric::memif
