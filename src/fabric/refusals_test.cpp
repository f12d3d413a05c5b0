// SPDX-License-Identifier: Apache-2.0
// What every transport of the fabric refuses, and how pairs end: rights, bounds, keys, lengths,
// lost peers. conformance_test.cpp has what works.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/atomic_bytes.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {
namespace {

class FabricRefusals : public ::testing::TestWithParam<FabricTransport> {
 protected:
  FabricRefusals() : seed(base::seed_from_environment(21)), scene(GetParam(), seed) {}
  [[nodiscard]] RegionKey key() const { return scene.region.remote().key; }
  [[nodiscard]] std::uint64_t at(std::uint64_t offset) const {
    return scene.region.remote().at(offset);
  }
  /// A request of each kind for the same bytes: READ, WRITE, WRITE with immediate, both atomics.
  std::vector<WorkRequest> each_kind(RegionKey with, std::uint64_t remote) {
    return {WorkRequest::read(1, eight, with, remote), WorkRequest::write(2, eight, with, remote),
            WorkRequest::write_immediate(3, eight, with, remote, 5),
            WorkRequest::fetch_add(4, with, remote, 1),
            WorkRequest::compare_swap(5, with, remote, 0, 1)};
  }
  /// A pair of its own for the request; says how it ended, and that both ends of the pair did too.
  Status refused(const WorkRequest& request, const QueuePairOptions& far = {}) {
    auto pair = scene.connect({}, far);
    std::byte room[64];
    const Receive receive{77, room};
    if (far.shared_receives == nullptr) pair.far->post_receives({&receive, 1});
    const Completion ended = scene.run(*pair.near, request);
    EXPECT_EQ(pair.near->state(), QueuePair::State::error);
    scene.await([&] { return pair.far->state() == QueuePair::State::error; });
    for (const Completion& end : scene.far_completions(1)) {
      EXPECT_EQ(end.work_id, 77u);
      EXPECT_NE(end.status, Status::success);
    }
    return ended.status;
  }
  [[nodiscard]] bool untouched() const {
    return std::all_of(scene.far_bytes().begin(), scene.far_bytes().end(),
                       [](std::byte b) { return b == std::byte{0}; });
  }

  std::uint64_t seed;
  FabricScene scene;
  std::vector<std::byte> eight = std::vector<std::byte>(8, std::byte{0xAA});
};

TEST_P(FabricRefusals, KeysThatAreNotGoodAreRefused) {
  for (const RegionKey wrong : {key() ^ 1, key() ^ 0x80000000u, RegionKey{0}, ~RegionKey{0}}) {
    for (const WorkRequest& request : each_kind(wrong, at(0))) {
      EXPECT_EQ(refused(request), Status::remote_access) << name(request.opcode);
    }
  }
  EXPECT_TRUE(untouched());
}

TEST_P(FabricRefusals, NothingOutsideTheRegionIsTouched) {
  const std::uint64_t end = FabricScene::kRegionBytes;
  const std::uint64_t base = scene.region.remote().base;
  for (const std::uint64_t remote :
       {at(end), at(end - 7) & ~std::uint64_t{7}, at(0) - 8, std::uint64_t{0}, ~std::uint64_t{7},
        base + (std::uint64_t{1} << 63)}) {
    for (const WorkRequest& request : each_kind(key(), remote)) {
      if (remote == at(end - 8)) continue;
      EXPECT_EQ(refused(request), Status::remote_access) << name(request.opcode) << remote - base;
    }
  }
  std::vector<std::byte> most(4096);
  EXPECT_EQ(refused(WorkRequest::read(1, most, key(), at(end - 4095))), Status::remote_access);
  EXPECT_EQ(refused(WorkRequest::write(1, most, key(), at(end - 4095))), Status::remote_access);
  EXPECT_EQ(refused(WorkRequest::read(1, most, key(), std::uint64_t{0} - 100)),
            Status::remote_access);
  EXPECT_TRUE(untouched());
}

TEST_P(FabricRefusals, EachRightIsNeeded) {
  for (const RemoteRights rights : {RemoteRights::read, RemoteRights::write, RemoteRights::atomic,
                                    RemoteRights::read | RemoteRights::atomic}) {
    const OfferedMemory memory = scene.link->memory(4096);
    const auto region = *scene.link->far().regions().offer(memory, rights);
    for (const WorkRequest& request : each_kind(region.remote().key, region.remote().at(64))) {
      if (!includes(rights, rights_for(request.opcode))) {
        EXPECT_EQ(refused(request), Status::remote_access) << name(request.opcode);
        continue;
      }
      const auto pair = scene.connect();
      const Receive receive{};
      if (takes_receive(request.opcode)) pair.far->post_receives({&receive, 1});
      EXPECT_EQ(scene.run(*pair.near, request).status, Status::success) << name(request.opcode);
      if (takes_receive(request.opcode)) scene.far_completions(1);
    }
  }
}

TEST_P(FabricRefusals, RegionsAreForTheirDomain) {
  const OfferedMemory memory = scene.link->memory(4096);
  const auto region = *scene.link->far().regions().offer(memory, kAllRights, 8);
  const auto request = WorkRequest::read(1, eight, region.remote().key, region.remote().at(0));
  EXPECT_EQ(refused(request), Status::remote_access);
  QueuePairOptions far;
  far.domain = 8;
  const auto pair = scene.connect({}, far);
  EXPECT_EQ(scene.run(*pair.near, request).status, Status::success);
  EXPECT_EQ(refused(WorkRequest::read(1, eight, key(), at(0)), far), Status::remote_access);
}

TEST_P(FabricRefusals, ARevokedRegionIsClosed) {
  const auto pair = scene.connect();
  auto region = scene.offer();
  const auto request = WorkRequest::read(1, eight, region.remote().key, region.remote().at(0));
  ASSERT_EQ(scene.run(*pair.near, request).status, Status::success);
  region.revoke();
  EXPECT_EQ(scene.run(*pair.near, request).status, Status::remote_access);
  EXPECT_EQ(pair.near->state(), QueuePair::State::error);
  // The place is given again, under another key.
  const auto next = scene.offer();
  EXPECT_EQ(refused(request), Status::remote_access);
  const auto again = scene.connect();
  EXPECT_EQ(
      scene.run(*again.near, WorkRequest::read(1, eight, next.remote().key, next.remote().at(0)))
          .status,
      Status::success);
}

TEST_P(FabricRefusals, AtomicsMustBeAligned) {
  for (const std::uint64_t offset : {1u, 2u, 4u, 7u}) {
    EXPECT_EQ(refused(WorkRequest::fetch_add(1, key(), at(64 + offset), 1)),
              Status::remote_invalid);
    EXPECT_EQ(refused(WorkRequest::compare_swap(1, key(), at(64 + offset), 0, 1)),
              Status::remote_invalid);
  }
  EXPECT_TRUE(untouched());
}

TEST_P(FabricRefusals, MalformedRequestsAreRefusedAtOnce) {
  const auto pair = scene.connect();
  std::vector<WorkRequest> wrong(1);  // no opcode
  wrong.push_back(WorkRequest::read(1, eight, key(), at(0)));
  wrong.back().opcode = Opcode::receive;
  wrong.push_back(WorkRequest::read(1, eight, key(), at(0)));
  wrong.back().opcode = static_cast<Opcode>(200);
  wrong.push_back(WorkRequest::read(1, eight, key(), at(0)).as_inline());
  wrong.push_back(WorkRequest::fetch_add(1, key(), at(0), 1).as_inline());
  wrong.push_back(WorkRequest::fetch_add(1, key(), at(0), 1));
  wrong.back().bytes = 4;
  wrong.push_back(WorkRequest::write(1, eight, key(), at(0)));
  wrong.back().bytes = scene.properties().message_bytes_max + 1;
  wrong.push_back(WorkRequest::write(1, eight, key(), at(0)).as_inline());
  wrong.back().bytes = scene.properties().inline_bytes_max + 1;
  wrong.push_back(WorkRequest::read(1, {}, key(), at(0)));
  wrong.back().bytes = 8;
  for (const WorkRequest& request : wrong) {
    const std::array requests{WorkRequest::write(7, eight, key(), at(0)), request,
                              WorkRequest::write(8, eight, key(), at(8))};
    const Posted posted = pair.near->post(requests);
    EXPECT_EQ(posted.taken, 1u);
    EXPECT_EQ(posted.stopped, Posted::Stopped::malformed);
    EXPECT_EQ(scene.near_completions(1)[0].work_id, 7u);
  }
  EXPECT_EQ(pair.near->state(), QueuePair::State::connected);
}

TEST_P(FabricRefusals, AFullQueueTakesWhatItHasRoomFor) {
  QueuePairOptions near;
  CompletionQueue small(scene.link->near(), 8);
  near.sends = &small;
  auto pair = scene.connect(near);
  const std::vector<WorkRequest> requests(20, WorkRequest::write(1, eight, key(), at(0)));
  const Posted posted = pair.near->post(requests);
  EXPECT_EQ(posted.taken, 8u);
  EXPECT_EQ(posted.stopped, Posted::Stopped::full);
  EXPECT_EQ(pair.near->post(requests).taken, 0u);
  std::vector<Completion> ended(20);
  std::size_t have = 0;
  scene.await([&] { return (have += small.poll(std::span(ended).subspan(have))) == 8; });
  EXPECT_EQ(pair.near->post(requests).taken, 8u);
  pair.near.reset();  // with all of them in flight, or completed
}

TEST_P(FabricRefusals, APairThatEndsGivesItsPlacesBack) {
  const std::vector<WorkRequest> requests(64, WorkRequest::write(1, eight, key(), at(0)));
  for (int round = 0; round < 200; ++round) {  // 200 * (64 + 32) places, of 4096
    auto pair = scene.connect();
    std::vector<Receive> receives(32);
    ASSERT_EQ(pair.near->post_receives(receives), 32u);
    ASSERT_EQ(pair.near->post(requests).taken, 64u);
    if (round % 2 == 0) pair.near->close();
    pair.near.reset();
    pair.far.reset();
    std::vector<Completion> ended(256);
    while (scene.near_queue.poll(ended) != 0) {
    }
  }
}

TEST_P(FabricRefusals, WhatFollowsAFailureIsFlushedInOrder) {
  const auto pair = scene.connect();
  const auto other = scene.connect();
  const std::array requests{WorkRequest::write(1, eight, key(), at(0)),
                            WorkRequest::read(2, eight, key() ^ 2, at(0)).unsignalled(),
                            WorkRequest::write(3, eight, key(), at(8)).unsignalled(),
                            WorkRequest::read(4, eight, key(), at(16)),
                            WorkRequest::fetch_add(5, key(), at(24), 1)};
  ASSERT_EQ(pair.near->post(requests).taken, 5u);
  const auto ended = scene.near_completions(5);
  EXPECT_EQ(ended[0].status, Status::success);
  EXPECT_EQ(ended[1].status, Status::remote_access);
  EXPECT_EQ(pair.near->ended_by(), Status::remote_access);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ended[i].work_id, i + 1);
    EXPECT_TRUE(i <= 1 || ended[i].status == Status::flushed);
  }
  ASSERT_EQ(pair.near->post(WorkRequest::write(9, eight, key(), at(0)).unsignalled()).taken, 1u);
  const auto late = scene.near_completions(1);
  EXPECT_EQ(late[0].work_id, 9u);
  EXPECT_EQ(late[0].status, Status::flushed);
  const Receive receive{10, eight};
  ASSERT_EQ(pair.near->post_receives({&receive, 1}), 1u);
  EXPECT_EQ(scene.near_completions(1)[0].status, Status::flushed);
  // No other pair is affected.
  EXPECT_EQ(scene.run(*other.near, WorkRequest::read(1, eight, key(), at(0))).status,
            Status::success);
}

TEST_P(FabricRefusals, NothingBehindAFailureTakesEffect) {
  const auto pair = scene.connect();
  const std::vector<std::byte> mark(8, std::byte{1});
  const std::array requests{WorkRequest::fetch_add(1, key() ^ 4, at(0), 1),
                            WorkRequest::write(2, mark, key(), at(8)),
                            WorkRequest::fetch_add(3, key(), at(16), 1)};
  ASSERT_EQ(pair.near->post(requests).taken, 3u);
  scene.near_completions(3);
  scene.idle();
  EXPECT_TRUE(untouched());
}

TEST_P(FabricRefusals, AMessageLongerThanItsReceiveEndsThePair) {
  const auto pair = scene.connect();
  std::vector<std::byte> room(100);
  const Receive receive{3, std::span(room).first(64)};
  ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
  const std::vector<std::byte> message(65, std::byte{9});
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::send(1, message)).status, Status::remote_invalid);
  const auto received = scene.far_completions(1);
  EXPECT_EQ(received[0].status, Status::local_length);
  EXPECT_EQ(received[0].work_id, 3u);
  scene.await([&] { return pair.far->state() == QueuePair::State::error; });
  EXPECT_EQ(room[64], std::byte{0});
}

TEST_P(FabricRefusals, WithoutAReceiveASendWaits) {
  const auto pair = scene.connect();
  ASSERT_EQ(pair.near->post(WorkRequest::send(1, eight)).taken, 1u);
  scene.idle();
  EXPECT_EQ(scene.near_queue.waiting(), 0u);
  std::vector<std::byte> room(8);
  const Receive receive{2, room};
  ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
  scene.far_completions(1);
  EXPECT_EQ(scene.near_completions(1)[0].status, Status::success);
  EXPECT_EQ(room, eight);
}

TEST_P(FabricRefusals, ASendGivesUpIfItShallNotWaitForEver) {
  QueuePairOptions near;
  near.receive_retries = 1;
  const auto pair = scene.connect(near);
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::send(1, eight)).status, Status::no_receive);
  EXPECT_EQ(pair.near->ended_by(), Status::no_receive);
  scene.await([&] { return pair.far->state() == QueuePair::State::error; });
}

TEST_P(FabricRefusals, RequestsOfNoBytesTouchNoRegion) {
  const auto pair = scene.connect();
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::read(1, {}, 12345, 9)).status, Status::success);
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::write(1, {}, 12345, 9)).status, Status::success);
  const Receive receive{};
  ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::write_immediate(1, {}, 0, 0, 4)).status,
            Status::success);
  EXPECT_EQ(scene.far_completions(1)[0].immediate, 4u);
}

TEST_P(FabricRefusals, EitherSideCanClose) {
  for (const bool near_closes : {true, false}) {
    const auto pair = scene.connect();
    const Receive receive{1, eight};
    ASSERT_EQ(pair.near->post_receives({&receive, 1}), 1u);
    ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    (near_closes ? pair.near : pair.far)->close();
    EXPECT_EQ((near_closes ? pair.near : pair.far)->state(), QueuePair::State::error);
    scene.await([&] {
      return pair.near->state() == QueuePair::State::error &&
             pair.far->state() == QueuePair::State::error;
    });
    EXPECT_EQ(pair.near->ended_by(), Status::success);
    EXPECT_EQ(pair.far->ended_by(), Status::success);
    EXPECT_EQ(scene.near_completions(1)[0].status, Status::flushed);
    EXPECT_EQ(scene.far_completions(1)[0].status, Status::flushed);
  }
}

TEST_P(FabricRefusals, APairThatIsGoneIsNoticed) {
  auto pair = scene.connect();
  pair.far.reset();
  scene.await([&] { return pair.near->state() == QueuePair::State::error; });
}

TEST_P(FabricRefusals, ConnectingCarriesDataBothWays) {
  QueuePairOptions options;
  options.sends = &scene.near_queue;
  const auto hello = scene.noise(kConnectDataMax);
  const auto welcome = scene.noise(kAcceptDataMax);
  auto near = *scene.link->near().connect(scene.link->address(), options, hello);
  // What is posted before waits.
  std::vector<std::byte> back(8, std::byte{1});
  ASSERT_EQ(near->post(WorkRequest::read(1, back, key(), at(0))).taken, 1u);
  std::optional<ConnectRequest> request;
  scene.await([&] { return (request = scene.link->far().next_request()).has_value(); });
  EXPECT_TRUE(std::equal(hello.begin(), hello.end(), request->data.begin()));
  options.sends = &scene.far_queue;
  const auto far = scene.link->far().accept(*request, options, welcome);
  ASSERT_TRUE(far);
  scene.await([&] { return near->state() == QueuePair::State::connected; });
  ASSERT_GE(near->peer_data().size(), welcome.size());
  EXPECT_TRUE(std::equal(welcome.begin(), welcome.end(), near->peer_data().begin()));
  EXPECT_EQ(scene.near_completions(1)[0].status, Status::success);
  EXPECT_EQ(back, std::vector<std::byte>(8));
  // The request is no longer pending.
  EXPECT_EQ(scene.link->far().accept(*request, options, {}).error().code, Code::not_found);
}

TEST_P(FabricRefusals, WhoIsRejectedIsTold) {
  QueuePairOptions options;
  options.sends = &scene.near_queue;
  const auto near = *scene.link->near().connect(scene.link->address(), options, {});
  ASSERT_EQ(near->post(WorkRequest::write(1, eight, key(), at(0))).taken, 1u);
  std::optional<ConnectRequest> request;
  scene.await([&] { return (request = scene.link->far().next_request()).has_value(); });
  scene.link->far().reject(*request);
  scene.await([&] { return near->state() == QueuePair::State::error; });
  EXPECT_EQ(near->ended_by(), Status::remote_operation);
  EXPECT_EQ(scene.near_completions(1)[0].status, Status::flushed);
  EXPECT_TRUE(untouched());
}

TEST_P(FabricRefusals, NobodyListeningIsNoticed) {
  QueuePairOptions options;
  options.sends = &scene.near_queue;
  options.retries = 1;
  const auto near = scene.link->near().connect(scene.link->nobody(), options, {});
  if (!near) return;  // noticed immediately
  scene.await([&] { return (*near)->state() == QueuePair::State::error; });
  EXPECT_NE((*near)->ended_by(), Status::success);
}

TEST_P(FabricRefusals, OptionsAreChecked) {
  const auto refuses = [&](const QueuePairOptions& options, std::size_t data = 0) {
    const std::vector<std::byte> bytes(data);
    const auto made = scene.link->near().connect(scene.link->address(), options, bytes);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::invalid_argument);
  };
  refuses({});
  QueuePairOptions good;
  good.sends = &scene.near_queue;
  refuses(good, kConnectDataMax + 1);
  QueuePairOptions options = good;
  options.send_depth = 0;
  refuses(options);
  options = good;
  options.receive_depth = 1u << 31;
  refuses(options);
  options = good;
  options.mtu_bytes = 1500;
  refuses(options);
  options = good;
  options.retries = 8;
  refuses(options);
}

// A guesser needs 32 bits of the key and the random beginning of a region's addresses. Each wrong
// guess costs a pair, so the millions are tried at the table (region_probes_test.cpp).
TEST_P(FabricRefusals, GuessesAreNotAccepted) {
  const int guesses = static_cast<int>(200 / GetParam().effort);
  for (int i = 0; i < guesses; ++i) {
    const auto pair = scene.connect();
    // Half of them know the key, the other half the address.
    const RegionKey guess = i % 2 == 0 ? key() : static_cast<RegionKey>(scene.random());
    const std::uint64_t remote = i % 2 == 1 ? at(0) : scene.random();
    if (guess == key() && remote - at(0) < FabricScene::kRegionBytes) continue;
    EXPECT_EQ(scene.run(*pair.near, WorkRequest::read(1, eight, guess, remote)).status,
              Status::remote_access);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricRefusals, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace espalier::fabric
