// SPDX-License-Identifier: Apache-2.0
// How connections begin and end.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric::shm {
namespace {

TEST(ShmConnectConcurrency, BothHearWhatTheOtherSays) {
  Connected two;
  EXPECT_EQ(text_of(two.client.pair->peer_data()), "welcome");
  EXPECT_EQ(text_of(two.target.pair->peer_data()), "hello");
  EXPECT_EQ(two.client.pair->state(), QueuePair::State::connected);
  EXPECT_EQ(two.target.pair->state(), QueuePair::State::connected);
  EXPECT_EQ(two.client.endpoint->properties().transport, "shm");
}

TEST(ShmConnectConcurrency, AsMuchMayBeSaidAsInEveryTransport) {
  base::TemporaryFolder folder;
  const std::string path = (folder / "s").string();
  Side target;
  Side client;
  ASSERT_TRUE(target.endpoint->listen(path));
  const std::vector<std::byte> hello(kConnectDataMax + 1, std::byte{1});
  const std::vector<std::byte> welcome(kAcceptDataMax + 1, std::byte{2});
  EXPECT_FALSE(client.endpoint->connect(path, client.options(), hello));
  client.pair =
      *client.endpoint->connect(path, client.options(), std::span(hello).first(kConnectDataMax));
  std::optional<ConnectRequest> request;
  until(client, target, [&] { return (request = target.endpoint->next_request()).has_value(); });
  EXPECT_EQ(request->data.size(), kConnectDataMax);
  EXPECT_FALSE(request->peer.empty());
  EXPECT_FALSE(target.endpoint->accept(*request, target.options(), welcome));
  target.pair = *target.endpoint->accept(*request, target.options(),
                                         std::span(welcome).first(kAcceptDataMax));
  until(client, target, [&] { return client.pair->state() == QueuePair::State::connected; });
  EXPECT_EQ(client.pair->peer_data().size(), kAcceptDataMax);
  // One request is one connection.
  EXPECT_FALSE(target.endpoint->accept(*request, target.options(), {}));
}

TEST(ShmConnectConcurrency, WhoIsRefusedIsToldSo) {
  base::TemporaryFolder folder;
  Side target;
  Side client;
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  client.pair = *client.endpoint->connect((folder / "s").string(), client.options(), {});
  std::optional<ConnectRequest> request;
  until(client, target, [&] { return (request = target.endpoint->next_request()).has_value(); });
  const auto message = bytes_of("x");
  client.pair->post(WorkRequest::send(1, message));
  target.endpoint->reject(*request);
  until(client, target, [&] { return client.pair->state() == QueuePair::State::error; });
  EXPECT_EQ(client.pair->ended_by(), Status::remote_operation);
  EXPECT_EQ(client.take(client.sends)->status, Status::flushed);
}

TEST(ShmConnectConcurrency, NobodyThere) {
  base::TemporaryFolder folder;
  Side client;
  client.pair = *client.endpoint->connect((folder / "none").string(), client.options(), {});
  EXPECT_EQ(client.pair->state(), QueuePair::State::error);
  EXPECT_EQ(client.pair->ended_by(), Status::retry_exceeded);
  EXPECT_FALSE(client.endpoint->connect("", client.options(), {}));
  EXPECT_FALSE(client.endpoint->connect(std::string(200, 'x'), client.options(), {}));
}

TEST(ShmConnectConcurrency, AListenerThatGoesAnswersNobody) {
  base::TemporaryFolder folder;
  auto target = std::make_unique<Side>();
  Side client;
  ASSERT_TRUE(target->endpoint->listen((folder / "s").string()));
  client.pair = *client.endpoint->connect((folder / "s").string(), client.options(), {});
  target.reset();
  until(client, client, [&] { return client.pair->state() == QueuePair::State::error; });
  EXPECT_EQ(client.pair->ended_by(), Status::retry_exceeded);
  EXPECT_FALSE(std::filesystem::exists(folder / "s"));
}

TEST(ShmConnectConcurrency, WhoGivesUpCannotBeAccepted) {
  base::TemporaryFolder folder;
  Side target;
  Side client;
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  client.pair = *client.endpoint->connect((folder / "s").string(), client.options(), {});
  std::optional<ConnectRequest> request;
  until(client, target, [&] { return (request = target.endpoint->next_request()).has_value(); });
  client.pair->close();
  EXPECT_EQ(client.pair->ended_by(), Status::success);
  // Either it is gone, or the pair ends immediately.
  auto accepted = target.endpoint->accept(*request, target.options(), {});
  if (accepted) {
    until(client, target, [&] { return (*accepted)->state() == QueuePair::State::error; });
  } else {
    EXPECT_EQ(accepted.error().code, Code::not_found);
  }
}

TEST(ShmConnectConcurrency, RequestsThatArePostedEarlyWait) {
  base::TemporaryFolder folder;
  Side target;
  Side client;
  auto memory = *memory::SharedMemory::create("test", 4096);
  const auto region = target.table->offer({memory.at(0), 4096, memory.descriptor(), 0}, kAllRights);
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  QueuePairOptions options = client.options();
  options.send_depth = 3;
  client.pair = *client.endpoint->connect((folder / "s").string(), options, {});
  const RemoteRegion& remote = region->remote();
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(client.pair->post(WorkRequest::fetch_add(i, remote.key, remote.base, 1)).taken, 1u);
  }
  const Posted fourth = client.pair->post(WorkRequest::fetch_add(3, remote.key, remote.base, 1));
  EXPECT_EQ(fourth.taken, 0u);
  EXPECT_EQ(fourth.stopped, Posted::Stopped::full);
  std::optional<ConnectRequest> request;
  until(client, target, [&] { return (request = target.endpoint->next_request()).has_value(); });
  target.pair = *target.endpoint->accept(*request, target.options(), {});
  until(client, target, [&] { return client.sends.waiting() == 3; });
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(client.take(client.sends)->old_value, i);
}

TEST(ShmConnectConcurrency, OnePathIsForOneListener) {
  base::TemporaryFolder folder;
  const std::string path = (folder / "s").string();
  Side first;
  Side second;
  ASSERT_TRUE(first.endpoint->listen(path));
  EXPECT_EQ(second.endpoint->listen(path).error().code, Code::already_exists);
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST(ShmConnectConcurrency, ASocketThatWasLeftBehindIsReplacedAndAFileIsNot) {
  base::TemporaryFolder folder;
  const std::string path = (folder / "s").string();
  {
    // The file of a listener that has died.
    Side dead;
    ASSERT_TRUE(dead.endpoint->listen(path));
    std::filesystem::rename(path, folder / "kept");
  }
  std::filesystem::rename(folder / "kept", path);
  Side target;
  Side client;
  ASSERT_TRUE(target.endpoint->listen(path));
  connect(client, target, path, client.options(), target.options());
  EXPECT_EQ(client.pair->state(), QueuePair::State::connected);

  std::ofstream(folder / "file") << "data";
  EXPECT_FALSE(target.endpoint->listen((folder / "file").string()));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "file"));
}

TEST(ShmConnectConcurrency, AnEndpointHasManyPairs) {
  base::TemporaryFolder folder;
  Side target;
  Side client;
  auto memory = *memory::SharedMemory::create("test", 4096);
  const auto region = target.table->offer({memory.at(0), 4096, memory.descriptor(), 0}, kAllRights);
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  std::vector<std::unique_ptr<QueuePair>> pairs;
  for (int i = 0; i < 60; ++i) {
    connect(client, target, (folder / "s").string(), client.options(), target.options());
    pairs.push_back(std::move(client.pair));
    pairs.push_back(std::move(target.pair));
  }
  const RemoteRegion& remote = region->remote();
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    pairs[i]->post(WorkRequest::fetch_add(i, remote.key, remote.base, 1));
  }
  until(client, target, [&] { return client.sends.waiting() == 60; });
  EXPECT_EQ(base::load_shared<std::uint64_t>(memory.at(0)), 60u);
  // One that ends is no end for others.
  pairs[0]->close();
  until(client, target, [&] { return pairs[1]->state() == QueuePair::State::error; });
  EXPECT_EQ(pairs[2]->state(), QueuePair::State::connected);
  EXPECT_EQ(pairs[3]->state(), QueuePair::State::connected);
}

TEST(ShmConnectConcurrency, SeveralPairsTakeReceivesFromOneQueue) {
  base::TemporaryFolder folder;
  Side target;
  Side first;
  Side second;
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  ReceiveQueue shared(target.receives, 16);
  QueuePairOptions options = target.options();
  options.shared_receives = &shared;
  connect(first, target, (folder / "s").string(), first.options(), options);
  const auto of_first = std::move(target.pair);
  connect(second, target, (folder / "s").string(), second.options(), options);
  std::array<std::byte, 8> into{};
  const Receive receives[] = {{1, into}, {2, into}};
  ASSERT_EQ(shared.post(receives), 2u);
  const auto message = bytes_of("x");
  second.pair->post(WorkRequest::send(1, message));
  until(second, target, [&] { return target.receives.waiting() == 1; });
  EXPECT_EQ(target.take(target.receives)->pair, target.pair->number());
  first.pair->post(WorkRequest::send(1, message));
  until(first, target, [&] { return target.receives.waiting() == 1; });
  const auto completion = target.take(target.receives);
  EXPECT_EQ(completion->pair, of_first->number());
  EXPECT_EQ(completion->work_id, 2u);
  target.pair.reset();
}

// Another thread sees that the socket was closed, perhaps before the ring is read.
TEST(ShmConnectConcurrency, WhatWasSentLastIsReceivedThoughTheSocketHasEnded) {
  Connected two;
  constexpr std::uint64_t kMessages = 200;  // more than are taken in one go
  std::vector<std::array<std::byte, 8>> into(kMessages);
  QueuePairOptions options = two.target.options();
  options.receive_depth = kMessages;
  Side client;
  QueuePairOptions of_client = client.options();
  of_client.send_depth = kMessages;
  connect(client, two.target, two.path(), of_client, options);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const Receive receive{i, into[i]};
    ASSERT_EQ(two.target.pair->post_receives({&receive, 1}), 1u);
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const auto request = WorkRequest::send_immediate(i, {}, static_cast<std::uint32_t>(i));
    ASSERT_EQ(client.pair->post(request.as_inline().unsignalled()).taken, 1u) << i;
  }
  client.pair->close();
  // A later request is reported after the close.
  Side late;
  late.pair = *late.endpoint->connect(two.path(), late.options(), {});
  while (!two.target.endpoint->next_request()) std::this_thread::yield();
  two.target.endpoint->progress();
  EXPECT_EQ(two.target.pair->state(), QueuePair::State::error);
  EXPECT_EQ(two.target.pair->ended_by(), Status::success);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const auto completion = two.target.take(two.target.receives);
    ASSERT_TRUE(completion) << i;
    EXPECT_EQ(completion->status, Status::success) << i;
    EXPECT_EQ(completion->immediate, i);
  }
}

TEST(ShmConnectConcurrency, BothSidesMayReachTheOther) {
  Connected two;
  auto memory = *memory::SharedMemory::create("of the client", 4096);
  const auto region =
      two.client.table->offer({memory.at(0), 4096, memory.descriptor(), 0}, kAllRights);
  const auto data = bytes_of("from the target");
  two.target.pair->post(WorkRequest::write(1, data, region->remote().key, region->remote().base));
  EXPECT_EQ(two.next(two.target.sends).status, Status::success);
  EXPECT_EQ(text_of({memory.at(0), data.size()}), "from the target");
}

}  // namespace
}  // namespace espalier::fabric::shm
