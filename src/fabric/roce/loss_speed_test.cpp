// SPDX-License-Identifier: Apache-2.0
// How fast `roce` is when packets get lost, in the network's own time: as a share of what it is
// when none are. So a rule that waits where it need not is seen on any machine, busy or not.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::fabric::roce {
namespace {

constexpr std::uint64_t kOneWayNs = 5000;
constexpr std::uint32_t kInFlight = 16;

struct Side {
  Side(PacketNetwork& network, std::uint8_t last, std::uint64_t seed)
      : endpoint(network.open({IpAddress::v4(10, 0, 0, last), 4791}), *RegionTable::create(seed),
                 NumberSource::of_seed(seed)),
        queue(endpoint, 256) {}
  RoceEndpoint endpoint;
  CompletionQueue queue;
  std::unique_ptr<QueuePair> pair;
};

struct Speed {
  std::uint64_t ns_per_read = 0;
  std::uint64_t sent = 0;  // packets, either way
};

/// So many READs of 64 bytes, always so many in flight, and nothing but successes.
class LossScene {
 public:
  LossScene(std::uint64_t seed, std::uint32_t in_flight)
      : in_flight_(in_flight),
        network_(seed),
        near_(network_, 1, seed),
        far_(network_, 2, seed + 1),
        memory_(4096),
        room_(std::size_t{64} * in_flight) {
    region_ = *far_.endpoint.regions().offer({memory_.data(), memory_.size()}, RemoteRights::read);
    network_.faults.delay_min_ns = network_.faults.delay_max_ns = kOneWayNs;
    EXPECT_TRUE(far_.endpoint.listen("7"));
    QueuePairOptions options;
    options.sends = &near_.queue;
    near_.pair = *near_.endpoint.connect("10.0.0.2:4791/7", options, {});
    options.sends = &far_.queue;
    while (near_.pair->state() == QueuePair::State::connecting) {
      turn();
      if (const auto asked = far_.endpoint.next_request()) {
        far_.pair = *far_.endpoint.accept(*asked, options, {});
      }
    }
  }

  /// The far side's thread does not run for so long.
  void pause_far(std::uint64_t ns) { far_paused_until_ns_ = network_.now_ns() + ns; }

  Speed read(double loss, std::uint64_t reads) {
    network_.faults.loss = loss;
    const std::uint64_t begun = network_.now_ns();
    const std::uint64_t sent = network_.counters().sent;
    std::uint64_t posted = 0;
    std::array<Completion, 64> completions;
    for (std::uint64_t done = 0; done < reads;) {
      for (; posted < reads && posted - done < in_flight_; ++posted) {
        const auto into = std::span(room_).subspan(64 * (posted % in_flight_), 64);
        const RemoteRegion& from = region_.remote();
        EXPECT_EQ(near_.pair->post(WorkRequest::read(posted, into, from.key, from.at(0))).taken,
                  1u);
      }
      turn();
      while (near_.queue.waiting() != 0) {
        const std::size_t count = near_.queue.poll(completions);
        for (std::size_t i = 0; i < count; ++i) {
          EXPECT_EQ(completions[i].status, Status::success);
          EXPECT_EQ(completions[i].work_id, done++);
        }
      }
      if (near_.pair->state() != QueuePair::State::connected) break;
    }
    Speed speed;
    speed.ns_per_read = (network_.now_ns() - begun) / reads;
    speed.sent = network_.counters().sent - sent;
    return speed;
  }

 private:
  void turn() {
    near_.endpoint.progress();
    if (network_.now_ns() >= far_paused_until_ns_) far_.endpoint.progress();
    network_.advance(1000);
  }

  std::uint32_t in_flight_;
  PacketNetwork network_;
  std::uint64_t far_paused_until_ns_ = 0;
  Side near_;
  Side far_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> room_;
  Registration region_;
};

struct Expected {
  std::uint32_t in_flight;
  double loss;
  double share;    // of the speed without loss, at least
  double packets;  // for each READ, at most; two are needed
};

TEST(RoceLoss, IsOvercomeSoon) {
  const std::uint64_t seed = base::seed_from_environment(5);
  constexpr std::uint64_t kReads = 20'000;
  for (const Expected& expected :
       {Expected{16, 0.01, 0.70, 2.5}, Expected{16, 0.05, 0.25, 4.5},
        // A fifth each way: of ten flights six lose their first READ, and two come so far as three.
        Expected{16, 0.2, 0.07, 18}, Expected{1, 0.01, 0.85, 2.1}, Expected{1, 0.2, 0.06, 3.2}}) {
    const Speed best = LossScene(seed, expected.in_flight).read(0, kReads);
    const Speed speed = LossScene(seed, expected.in_flight).read(expected.loss, kReads);
    SCOPED_TRACE(::testing::Message()
                 << expected.in_flight << " in flight, " << expected.loss
                 << " lost: " << best.ns_per_read << " and " << speed.ns_per_read << " ns");
    EXPECT_EQ(best.sent, 2 * kReads);
    EXPECT_GE(static_cast<double>(best.ns_per_read),
              expected.share * static_cast<double>(speed.ns_per_read));
    EXPECT_LE(static_cast<double>(speed.sent), expected.packets * kReads);
  }
}

// A thread that does not run for ten milliseconds, again and again, as on a machine with too many.
TEST(RoceLoss, APeerThatIsNotRunningIsNotFlooded) {
  LossScene scene(base::seed_from_environment(6), kInFlight);
  static_cast<void>(scene.read(0, 1000));
  constexpr std::uint32_t kTimes = 50;
  std::uint64_t sent = 0;
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    scene.pause_far(10'000'000);
    sent += scene.read(0, 1000).sent;
  }
  // Less than a hundred packets each time, in which a sixteenth of a second's would have gone.
  EXPECT_LE(sent, kTimes * (2 * 1000 + 100));
}

}  // namespace
}  // namespace espalier::fabric::roce
