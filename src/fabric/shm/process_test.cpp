// SPDX-License-Identifier: Apache-2.0
// Two processes really: the target is a child that sleeps, and that is killed in the end.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>

#include "base/atomic_bytes.hpp"
#include "base/child_process.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric::shm {
namespace {

// A child that runs the body, which gets a descriptor to say one byte to. Make it while this
// process has one thread.
class Child {
 public:
  explicit Child(const std::function<void(int)>& body) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    heard_ = memory::Descriptor(ends[0]);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
  }
  ~Child() {
    if (process_ > 0) kill();
  }
  // Waits until it has said its byte.
  void wait_until_ready() {
    char byte = 0;
    ASSERT_EQ(::read(heard_.number(), &byte, 1), 1);
  }
  void kill() {
    ::kill(process_, SIGKILL);
    static_cast<void>(base::wait_for_child(process_));
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  memory::Descriptor heard_;
};

constexpr std::uint64_t kRegionBytes = 1 << 20;

// Offers a region, accepts one client, sends it the region, and then calls `then`.
void serve(const std::string& path, int ready, const std::function<void(Side&)>& then) {
  Side side;
  auto memory = *memory::SharedMemory::create("served", kRegionBytes);
  std::memset(memory.at(0), 0x5A, kRegionBytes);
  base::store_plain(memory.at(0), std::uint64_t{40});
  const auto region =
      side.table->offer({memory.at(0), kRegionBytes, memory.descriptor(), 0}, kAllRights);
  if (!side.endpoint->listen(path) || ::write(ready, "r", 1) != 1) return;
  std::optional<ConnectRequest> request;
  while (!(request = side.endpoint->next_request())) side.endpoint->wait(kLong);
  side.pair = *side.endpoint->accept(*request, side.options(),
                                     std::as_bytes(std::span(&region->remote(), 1)));
  then(side);
}

struct Client {
  explicit Client(const std::string& path) {
    side.pair = *side.endpoint->connect(path, side.options(), {});
    while (side.pair->state() == QueuePair::State::connecting) {
      side.endpoint->wait(kLong);
      side.endpoint->progress();
    }
    const auto said = side.pair->peer_data();
    EXPECT_EQ(said.size(), sizeof remote);
    if (said.size() == sizeof remote) std::memcpy(&remote, said.data(), sizeof remote);
  }
  Completion next(CompletionQueue& queue) {
    while (true) {
      if (const auto completion = side.take(queue)) return *completion;
      side.endpoint->wait(kLong);
    }
  }
  Completion run(const WorkRequest& request) {
    EXPECT_EQ(side.pair->post(request).taken, 1u);
    return next(side.sends);
  }
  void wait_for_the_end() {
    while (side.pair->state() != QueuePair::State::error) {
      side.endpoint->wait(kLong);
      side.endpoint->progress();
    }
  }

  Side side;
  RemoteRegion remote;
};

TEST(ShmProcess, WorksOnTheMemoryOfAProcessThatSleepsUntilItIsKilled) {
  base::TemporaryFolder folder;
  const std::string path = (folder / "s").string();
  Child child([&](int ready) {
    serve(path, ready, [](Side&) {
      while (true) ::pause();
    });
  });
  child.wait_until_ready();
  Client client(path);
  EXPECT_EQ(
      client.run(WorkRequest::fetch_add(1, client.remote.key, client.remote.base, 2)).old_value,
      40u);
  std::vector<std::byte> all(kRegionBytes);
  EXPECT_EQ(client.run(WorkRequest::read(1, all, client.remote.key, client.remote.base)).status,
            Status::success);
  EXPECT_EQ(base::load_plain<std::uint64_t>(all.data()), 42u);
  EXPECT_TRUE(std::all_of(all.begin() + 8, all.end(), [](auto b) { return b == std::byte{0x5A}; }));
  const std::byte byte{7};
  EXPECT_EQ(
      client.run(WorkRequest::write(1, {&byte, 1}, client.remote.key, client.remote.at(9))).status,
      Status::success);
  // No receive takes this one.
  client.side.pair->post(WorkRequest::send(5, {&byte, 1}));
  client.side.pair->post(WorkRequest::send(6, {&byte, 1}));
  child.kill();
  client.wait_for_the_end();
  EXPECT_EQ(client.side.pair->ended_by(), Status::retry_exceeded);
  EXPECT_EQ(client.next(client.side.sends).status, Status::retry_exceeded);
  EXPECT_EQ(client.next(client.side.sends).status, Status::flushed);
}

TEST(ShmProcess, MessagesGoBetweenProcessesThatSleep) {
  base::TemporaryFolder folder;
  const std::string path = (folder / "s").string();
  Child child([&](int ready) {
    serve(path, ready, [](Side& side) {
      std::array<std::byte, 64> buffer;
      while (side.pair->state() == QueuePair::State::connected) {
        const Receive receive{1, buffer};
        if (side.pair->receives_posted() == 0) side.pair->post_receives({&receive, 1});
        if (const auto completion = side.take(side.receives)) {
          side.pair->post(
              WorkRequest::send(1, std::span(buffer).first(completion->bytes)).as_inline());
        } else if (!side.take(side.sends) && side.receives.waiting() == 0) {
          side.endpoint->wait(kLong);  // asking for sends may have brought a receive
        }
      }
    });
  });
  child.wait_until_ready();
  Client client(path);
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::array<std::byte, 64> buffer{};
    const Receive receive{1, buffer};
    ASSERT_EQ(client.side.pair->post_receives({&receive, 1}), 1u);
    ASSERT_EQ(client.run(WorkRequest::send(1, std::as_bytes(std::span(&i, 1)))).status,
              Status::success);
    ASSERT_EQ(client.next(client.side.receives).bytes, sizeof i);
    ASSERT_EQ(base::load_plain<std::uint64_t>(buffer.data()), i);
  }
  client.side.pair->close();
}

}  // namespace
}  // namespace espalier::fabric::shm
