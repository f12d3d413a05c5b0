// SPDX-License-Identifier: Apache-2.0
// Controllers that fill the tables of switches: which nodes they select, several controllers,
// several switches, and tables and answers when these are slow, delayed or gone.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "dataplane/control_line.hpp"
#include "dataplane/control_stream.hpp"
#include "fabric/shm/listening_socket.hpp"
#include "kinds/map/write/map_core.hpp"
#include "tests/support/in_network_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

class IndexControllers : public InNetwork {
 public:
  using InNetwork::key_of;
};

// Tables that are too small for all leaves get those that are read: what clients count, by READs
// and by rings, decides.
TEST_F(IndexControllers, SmallTablesTakeUpWhatIsRead) {
  start();
  fill(8'000, {.node_bytes = 1024, .log_bytes = 128});
  // A machine that is busy gives few answers in half a second.
  (*node_->catalog().open<tree::MapCore>("m"))->heat.halve_each(20'000'000'000);
  open_switch();
  IndexController controller = this->controller(50, 0);
  ASSERT_EQ(did(controller), Did::installed);
  open_reader();
  // A leaf or two: one answer of 64 counts.
  constexpr std::uint64_t kHotKeys = 20;
  // Trips of a get, where all of them went by tables; else nothing: a machine that is so busy that
  // the controller's lease is lost has the switch forget the map.
  const auto trips_around = [&](std::uint64_t hot, std::uint64_t gets) -> std::optional<double> {
    const std::uint64_t before = switch_->redirected();
    std::uint64_t trips = 0;
    for (std::uint64_t i = 0; i < gets; ++i) {
      trips += trips_of(key_of(hot + i % kHotKeys));
      if (i % 50 == 49) static_cast<void>(controller.round());
    }
    if (switch_->redirected() - before < gets) return std::nullopt;
    return static_cast<double>(trips) / static_cast<double>(gets);
  };
  // Counts travel with renewals of leases, so it takes some rounds.
  for (const std::uint64_t hot : {5'000u, 1'200u}) {
    std::optional<double> trips;
    for (int i = 0; i < 50 && !trips; ++i) {
      did(controller);
      trips = trips_around(hot, kHotKeys);
    }
    EXPECT_GT(trips.value_or(0), 1.5) << "too many leaves for these tables";
    for (int i = 0; i < 300 && trips.value_or(2) > 1.01; ++i) {
      static_cast<void>(controller.round());
      trips = trips_around(hot, 400);
    }
    EXPECT_LE(trips.value_or(2), 1.01) << "they were made for what is read";
  }
  double trips = 2;
  for (int i = 0; i < 100 && trips > 1.01; ++i) {
    for (std::uint64_t k = 0; k < 1'000; ++k) ASSERT_TRUE(written_->get(key_of(7'000 + k % 20)));
    static_cast<void>(controller.round());
    static_cast<void>(controller.round());
    trips = static_cast<double>(trips_of(key_of(7'010)));
  }
  EXPECT_EQ(trips, 1) << "by rings it counts, too";
}

// A recorded trace selects their nodes, whatever the node counts.
TEST_F(IndexControllers, SmallTablesTakeUpWhatATraceHas) {
  start();
  fill(8'000, {.node_bytes = 1024, .log_bytes = 128});
  open_switch();
  for (const std::uint64_t hot : {5'000u, 1'200u}) {
    std::vector<std::string> trace;
    for (std::uint64_t i = 0; i < 400; ++i) trace.push_back(key_of(hot + i % 20));
    IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                                .map = "m",
                                .controls = {control()},
                                .limits = {.ranges = 50, .sets = 0},
                                .trace = trace});
    ASSERT_EQ(did(controller), Did::installed);
    open_reader();
    trips_of(key_of(1));
    expect_trips(1, key_of(hot + 10), &controller);
    EXPECT_GT(trips_of(key_of(hot == 5'000 ? 1'210 : 5'010)), 1u) << "no place is left for it";
    EXPECT_EQ(did(controller), Did::nothing);
  }
}

TEST_F(IndexControllers, ASwitchThatBeginsAnewGetsEverything) {
  start();
  fill(2'000);
  open_switch();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  switch_.reset();
  EXPECT_FALSE(controller.round()) << "it is gone";
  open_switch();
  EXPECT_EQ(did(controller), Did::installed);
  open_reader();
  trips_of(key_of(1));
  const std::uint64_t before = switch_->redirected();
  expect_trips(1, key_of(77), &controller);
  EXPECT_GT(switch_->redirected(), before);
  controller.clear();
  expect_trips(1, key_of(78));  // by the node
}

// The key that tables write belongs to their controller, and is void when it is gone: so the switch
// forgets the tables with their controller, and the node answers.
TEST_F(IndexControllers, TablesOfAControllerThatIsGoneAreForgotten) {
  start();
  fill(2'000);
  open_switch();
  open_reader();
  {
    IndexController controller = this->controller();
    ASSERT_EQ(did(controller), Did::installed);
    trips_of(key_of(1));
    expect_trips(1, key_of(5), &controller);
  }
  while (number_of_switch("maps") != 0) std::this_thread::yield();
  const std::uint64_t before = switch_->redirected();
  for (std::uint64_t i = 0; i < 2'000; i += 111) expect_trips(1, key_of(i));
  EXPECT_EQ(switch_->redirected(), before);
  IndexController other = this->controller();
  ASSERT_EQ(did(other), Did::installed);
  expect_trips(1, key_of(6), &other);
}

// Tables from a file with the key of a controller that is gone cost time, but no wrong answers.
TEST_F(IndexControllers, TablesThatNameAVoidKeyLeadNowhere) {
  start();
  fill(2'000);
  open_switch();
  open_reader();
  auto asker = *dataplane::ControlClient::connect(control());
  std::string program;
  {
    IndexController controller = this->controller();
    ASSERT_EQ(did(controller), Did::installed);
    program = *asker.ask("program");
  }
  while (node_->connections() > 3) std::this_thread::yield();
  ASSERT_TRUE(asker.ask("install", program));
  trips_of(key_of(1));
  for (std::uint64_t i = 0; i < 2'000; i += 111) EXPECT_GT(trips_of(key_of(i)), 1u);
  IndexController other = this->controller();
  ASSERT_EQ(did(other), Did::installed) << "nobody holds them";
  expect_trips(1, key_of(6), &other);
}

// Tables that are installed whole write a new key, and the previous tables' key ends.
TEST_F(IndexControllers, EachGenerationOfTablesHasAKeyOfItsOwn) {
  start();
  fill(2'000);
  open_switch();
  open_reader();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  auto asker = *dataplane::ControlClient::connect(control());
  const std::string first = *asker.ask("program");
  trips_of(key_of(1));
  expect_trips(1, key_of(5), &controller);
  for (std::uint64_t i = 9'000; i < 10'000; ++i) put(key_of(i), "leaves more");
  lost_ = false;
  ASSERT_EQ(did(controller), Did::installed);
  const std::string second = *asker.ask("program");
  const auto keys = [](const std::string& program) {
    return (*dataplane::SwitchProgram::parse(program)).maps().front().keys;
  };
  EXPECT_NE(keys(first).redirect, keys(second).redirect);
  // Where its lease was lost it has opened the map anew, which may be offered under another key.
  if (!lost_) {
    EXPECT_EQ(keys(first).keyed, keys(second).keyed);
  }
  expect_trips(1, key_of(5), &controller);
  expect_trips(1, key_of(9'500), &controller);
  std::uint64_t trips = 1;
  for (int i = 0; i < 1'000 && trips == 1; ++i) {
    did(controller);
    ASSERT_TRUE(asker.ask("install", first));
    trips = trips_of(key_of(5));
  }
  EXPECT_GT(trips, 1u) << "its key is good for ever";
  did(controller);
  expect_trips(1, key_of(5), &controller);
}

TEST_F(IndexControllers, TwoMapsHaveTheirTablesInOneSwitch) {
  start();
  fill(2'000);
  Map second = *writer_->create_map("second", kOptions);
  for (std::uint64_t i = 0; i < 2'000; ++i) ASSERT_TRUE(second.put(key_of(i), "of the second"));
  open_switch();
  IndexController controller = this->controller();
  IndexController of_second = this->controller(4000, 3, "second");
  ASSERT_EQ(did(controller), Did::installed);
  ASSERT_EQ(did(of_second), Did::installed);
  EXPECT_EQ(number_of_switch("maps"), 2u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(did(controller) != Did::installed || lost_) << "each leaves the other's alone";
    EXPECT_TRUE(did(of_second) != Did::installed || lost_);
  }
  open_reader();
  trips_of(key_of(1));
  expect_trips(1, key_of(5), &controller);
  auto read = *reader_->open_map("second");
  const auto trips = [&] { return client::StoreImpl::of(*reader_).read_traffic().round_trips; };
  std::uint64_t of_one_get = 0;
  for (int i = 0; i < 50 && of_one_get != 1; ++i) {
    if (i != 0) did(of_second);
    const std::uint64_t before = trips();
    const auto found = read.get(key_of(7));
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->value, "of the second");
    of_one_get = trips() - before;
  }
  EXPECT_EQ(of_one_get, 1u);
  of_second.clear();
  EXPECT_EQ(number_of_switch("maps"), 1u);
  expect_trips(1, key_of(6), &controller);
}

TEST_F(IndexControllers, OneControllerFillsTwoSwitches) {
  start();
  fill(2'000);
  open_switch();
  const std::string other_control = path("other control");
  auto other =
      *dataplane::RunningSwitch::open({{path("other clients"), path("fabric")}, other_control});
  IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                              .map = "m",
                              .controls = {control(), other_control},
                              .limits = {.ranges = 4000, .sets = 3}});
  ASSERT_EQ(did(controller), Did::installed);
  put(key_of(17), "moves its leaf");
  did(controller);
  for (const auto& clients : {"clients", "other clients"}) {
    open_reader(clients);
    trips_of(key_of(1));
    const std::uint64_t before = switch_->redirected() + other->redirected();
    expect_trips(1, key_of(17), &controller);
    EXPECT_GT(switch_->redirected() + other->redirected(), before) << clients;
  }
  switch_.reset();
  auto gone = controller.round();
  for (int i = 0; i < 50 && !gone && gone.error().side == IndexController::Fault::Side::node; ++i) {
    gone = controller.round();  // the lease was lost, too
  }
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().control, control());
  put(key_of(18), "and the other one is told all the same");
  std::uint64_t trips = 0;
  for (int i = 0; i < 50 && trips != 1; ++i) {
    EXPECT_FALSE(controller.round());
    trips = trips_of(key_of(18));
  }
  EXPECT_EQ(trips, 1u);
}

/// What speaks like a switch's control, and takes so long to take tables.
class SlowSwitch {
 public:
  SlowSwitch(const std::string& path, std::uint64_t slow_ns)
      : listening_(*fabric::shm::ListeningSocket::open(path, S_IRUSR | S_IWUSR,
                                                       fabric::shm::ListeningSocket::Kind::stream)),
        thread_([this, slow_ns] { serve(slow_ns); }) {}
  ~SlowSwitch() {
    ::shutdown(listening_.number(), SHUT_RDWR);
    thread_.join();
  }

 private:
  // One connection after the other.
  void serve(std::uint64_t slow_ns) {
    for (;;) {
      pollfd watched{listening_.number(), POLLIN, 0};
      ::poll(&watched, 1, -1);
      const memory::Descriptor socket(
          ::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      dataplane::ControlStream stream(socket.number());
      const std::function<void()> nothing;
      const auto wait = [&] {
        return dataplane::ControlStream::Wait{base::monotonic_ns() + 60'000'000'000, nothing};
      };
      while (const auto line = stream.line(wait())) {
        const auto request = dataplane::read_control_line(*line);
        if (!stream.bytes(request->bytes, wait())) break;
        const std::uint64_t until_ns = base::monotonic_ns() + slow_ns;
        while (request->word == "put" && base::monotonic_ns() < until_ns) {
          std::this_thread::yield();
        }
        if (!stream.send("ok 0\n", wait())) break;
      }
    }
  }

  fabric::shm::ListeningSocket listening_;
  std::thread thread_;
};

// Another controller has installed something else, while nothing moves in the map.
TEST_F(IndexControllers, AMapThatASwitchHasForgottenIsPutAgain) {
  start();
  fill(2'000);
  open_switch();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  ASSERT_TRUE(dataplane::ControlClient::connect(control())->ask("install", "espalier-switch 1\n"));
  EXPECT_EQ(number_of_switch("maps"), 0u);
  EXPECT_EQ(did(controller), Did::installed);
  EXPECT_EQ(number_of_switch("maps"), 1u);
}

// A switch that does not answer is skipped for a while, and the other one is updated.
TEST_F(IndexControllers, ASwitchThatHangsKeepsNoOtherFromItsTables) {
  start();
  fill(2'000);
  open_switch();
  const auto hangs = *fabric::shm::ListeningSocket::open(
      path("hangs"), S_IRUSR | S_IWUSR, fabric::shm::ListeningSocket::Kind::stream);
  IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                              .map = "m",
                              .controls = {path("hangs"), control()},
                              .limits = {.ranges = 4000, .sets = 3}});
  EXPECT_FALSE(controller.round());
  for (int i = 0; i < 50 && number_of_switch("maps_held") == 0; ++i) {
    EXPECT_FALSE(controller.round());
  }
  EXPECT_EQ(number_of_switch("maps_held"), 1u);
  open_reader();
  trips_of(key_of(1));
  const std::uint64_t before = switch_->redirected();
  std::uint64_t trips = 0;
  for (int i = 0; i < 50 && trips != 1; ++i) {
    EXPECT_FALSE(controller.round());
    trips = trips_of(key_of(5));
  }
  EXPECT_EQ(trips, 1u);
  EXPECT_GT(switch_->redirected(), before);
}

// A switch that takes long to answer, as one does whose tables are large or that was stopped.
TEST_F(IndexControllers, ALeaseIsKeptWhileASwitchIsSlow) {
  start();
  fill(500);
  SlowSwitch slow(path("slow"), 1'500'000'000);
  IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                              .map = "m",
                              .controls = {path("slow")},
                              .limits = {.ranges = 100, .sets = 1}});
  bool kept = false;
  for (int i = 0; i < 5 && !kept; ++i) {  // a machine may be so busy that it is lost after all
    ASSERT_EQ(did(controller), Did::installed);
    kept = controller.round().has_value();
  }
  EXPECT_TRUE(kept);
}

/// Writes ascending numbers, and reads them through a switch: an answer must be a number that was
/// there during the get.
class NumbersThatGrow {
 public:
  static constexpr std::uint64_t kKeys = 3'000;

  NumbersThatGrow(Map writes, Map reads, std::uint64_t seed)
      : writer_([this, writes, seed]() mutable { write(writes, seed); }),
        reader_([this, reads, seed]() mutable { read(reads, seed + 1); }) {}
  ~NumbersThatGrow() {
    ends_ = true;
    writer_.join();
    reader_.join();
  }
  void wait_for_answers(std::uint64_t more) const {
    const std::uint64_t until = answers_ + more;
    while (answers_ < until && !failed_) std::this_thread::yield();
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void write(Map& map, std::uint64_t seed) {
    Random random(seed);
    for (std::uint64_t number = 1; !ends_ && !failed_; ++number) {
      const std::uint64_t key = random.below(kKeys);
      begun_[key] = number;
      check(map.put(IndexControllers::key_of(key), std::to_string(number)).has_value(),
            "a put failed");
      there_[key] = number;
      // Nodes split and merge near them.
      const std::string beside = IndexControllers::key_of(key) + "x" + std::to_string(number % 8);
      const bool stays = random.chance(0.5);
      check(stays ? map.put(beside, "y").has_value() : map.erase(beside).has_value(), "beside");
    }
  }
  void read(Map& map, std::uint64_t seed) {
    Random random(seed);
    while (!ends_ && !failed_) {
      const std::uint64_t key = random.below(kKeys);
      const std::uint64_t least = there_[key];
      const auto found = map.get(IndexControllers::key_of(key));
      const std::uint64_t most = begun_[key];
      if (!check(found && *found, "a get failed")) return;
      const std::uint64_t number = std::stoull((*found)->value);
      check(least <= number && number <= most, "an answer from another time");
      ++answers_;
    }
  }
  bool check(bool good, const char* what) {
    if (!good && !failed_.exchange(true)) ADD_FAILURE() << what;
    return good;
  }

  std::array<std::atomic<std::uint64_t>, kKeys> begun_{};
  std::array<std::atomic<std::uint64_t>, kKeys> there_{};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> ends_{false};
  std::thread writer_;
  std::thread reader_;
};

// Controllers that are late, go without a word and come back, and old tables of theirs.
TEST_F(IndexControllers, AnswersAreRightWhateverControllersDo) {
  start();
  fill(0, {.node_bytes = 1024, .log_bytes = 128});
  for (std::uint64_t i = 0; i < NumbersThatGrow::kKeys; ++i) put(key_of(i), "0");
  open_switch();
  open_reader();
  auto asker = *dataplane::ControlClient::connect(control());
  const std::uint64_t seed = seed_from_environment(4);
  Random random(seed);
  std::optional<IndexController> controller;
  std::vector<std::string> programs{"espalier-switch 1\n"};
  {
    NumbersThatGrow numbers(*written_, *read_, seed);
    for (int i = 0; i < 60 && !numbers.failed(); ++i) {
      switch (random.below(8)) {
        case 0: controller.emplace(this->controller(random.below(300) + 1, random.below(4))); break;
        case 1: controller.reset(); break;
        case 2: ASSERT_TRUE(asker.ask("install", programs[random.below(programs.size())])); break;
        case 3: programs.push_back(*asker.ask("program")); break;
        case 4: break;  // it is late
        default:
          if (controller) did(*controller);
          break;
      }
      numbers.wait_for_answers(1 + random.below(60));
    }
  }
  EXPECT_GT(switch_->redirected(), 0u);
  controller.emplace(this->controller());
  ASSERT_EQ(did(*controller), Did::installed);
  model_[key_of(17)] = (*written_->get(key_of(17)))->value;
  expect_trips(1, key_of(17), &*controller);
}

}  // namespace
}  // namespace espalier::test
