// SPDX-License-Identifier: Apache-2.0
// A path that drops packets above a length: every call on such a connection ends with an error that
// has their length, although the pair can always be made again.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/thread_rings.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::client {
namespace {

using fabric::roce::IpAddress;
using fabric::roce::PortAddress;

/// A node with rings, but nothing that reads them.
class RingsOfANode {
 public:
  RingsOfANode(std::unique_ptr<fabric::roce::PacketPort> port, const wire::ConnectionLayout& layout)
      : layout_(layout),
        endpoint_(std::move(port), *fabric::RegionTable::create(1),
                  fabric::NumberSource::of_seed(2)),
        completions_(endpoint_, 1024),
        receives_(completions_, 256),
        memory_(*memory::SharedMemory::create("undelivered-test", layout.bytes())),
        link_(rings::RingLink::Side::node, memory_.at(0), layout) {
    static_cast<void>(endpoint_.listen("7"));
    for (std::uint64_t i = 0; i < 256; ++i) post_receive(i);
  }
  ~RingsOfANode() { drop(); }

  void progress() {
    endpoint_.progress();
    fabric::Completion some[32];
    const std::size_t count = completions_.poll(some);
    for (std::size_t i = 0; i < count; ++i) {
      const bool came = some[i].opcode == fabric::Opcode::receive ||
                        some[i].opcode == fabric::Opcode::receive_write;
      if (!came) {
        link_.completed(some[i]);
        continue;
      }
      if (some[i].status == fabric::Status::success) {
        EXPECT_TRUE(link_.received(some[i], {}));
      }
      post_receive(some[i].work_id);
    }
    if (const auto request = endpoint_.next_request()) accept(*request);
    if (pair_ && pair_->state() == fabric::QueuePair::State::error) drop();
    link_.mirror();
  }
  /// Sends something that takes so many slots.
  void say(std::uint32_t slots) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      std::byte* const at = memory_.at(layout_.responses(0) + slot * wire::kRingSlotBytes);
      base::store_shared<std::uint32_t>(at, wire::sequence_of(slot), std::memory_order_release);
    }
  }
  [[nodiscard]] int accepted() const { return accepted_; }
  [[nodiscard]] bool has_heard() const { return link_.delivered(0).load() != 0; }

 private:
  void post_receive(std::uint64_t number) {
    const fabric::Receive receive{number, {}};
    receives_.post({&receive, 1});
  }
  void drop() {
    if (pair_) pair_->close();
    link_.detach();
    pair_.reset();
    region_.revoke();
  }
  void accept(const fabric::ConnectRequest& request) {
    drop();
    wire::LinkHello hello{};
    std::memcpy(&hello, request.data.data(), std::min(request.data.size(), sizeof hello));
    region_ = *endpoint_.regions().offer({memory_.at(0), memory_.bytes(), memory_.descriptor(), 0},
                                         fabric::RemoteRights::write);
    wire::LinkWelcome welcome{};
    welcome.magic = wire::kLinkMagic;
    welcome.protocol = wire::kLinkProtocol;
    welcome.way = hello.way;
    welcome.request_slots_log2 = hello.request_slots_log2;
    welcome.response_slots_log2 = hello.response_slots_log2;
    welcome.response_rings = hello.response_rings;
    welcome.node_id = 7;
    welcome.token = {1, 2};
    welcome.base = region_.remote().base;
    welcome.key = region_.remote().key;
    fabric::QueuePairOptions options;
    options.sends = &completions_;
    options.shared_receives = &receives_;
    options.timeout_ns = kPairTimeoutNs;
    pair_ = *endpoint_.accept(request, options, std::as_bytes(std::span(&welcome, 1)));
    link_.attach(*pair_, {wire::LinkWay::write, hello.key, hello.base});
    ++accepted_;
  }

 public:
  static constexpr std::uint64_t kPairTimeoutNs = 4'000'000;

 private:
  wire::ConnectionLayout layout_;
  fabric::roce::RoceEndpoint endpoint_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  memory::SharedMemory memory_;
  rings::RingLink link_;
  fabric::Registration region_;
  std::unique_ptr<fabric::QueuePair> pair_;
  int accepted_ = 0;
};

/// Runs the node while its owner waits.
class PortOfAClient final : public fabric::roce::PacketPort {
 public:
  PortOfAClient(std::unique_ptr<PacketPort> port, std::function<void()> step)
      : port_(std::move(port)), step_(std::move(step)) {}
  [[nodiscard]] PortAddress address() const override { return port_->address(); }
  [[nodiscard]] std::uint32_t window_bytes() const override { return port_->window_bytes(); }
  std::byte* begin(const PortAddress& to, std::size_t bytes) override {
    return port_->begin(to, bytes);
  }
  void seal() override { port_->seal(); }
  void flush() override { port_->flush(); }
  std::span<const fabric::roce::Arrived> receive() override { return port_->receive(); }
  [[nodiscard]] std::uint64_t now_ns() const override { return port_->now_ns(); }
  void wait(std::uint64_t /*timeout_ns*/) override { step_(); }
  void wake() override {}

 private:
  std::unique_ptr<PacketPort> port_;
  std::function<void()> step_;
};

struct LastDone final : Handler {
  void done(const Completion& completion) override {
    error = completion.error;
    ++times;
  }
  bool items(std::uint64_t /*tag*/, std::span<const Item> /*run*/) override { return true; }
  Error error;
  int times = 0;
};

class Undelivered : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kTimeoutNs = 1'000'000'000;
  static constexpr PortAddress kClient{IpAddress::v4(10, 0, 0, 1), 20000};
  static constexpr PortAddress kNode{IpAddress::v4(10, 0, 0, 2), 4791};

  Undelivered() : node(network.open(kNode), {128, 128, 1}) {
    FabricConnectionOptions options;
    options.request_slots = 128;
    options.response_slots = 128;
    options.response_rings = 1;
    options.now_ns = [this] { return network.now_ns(); };
    options.pair_timeout_ns = RingsOfANode::kPairTimeoutNs;
    options.timeout_ns = kTimeoutNs;
    auto port = std::make_unique<PortOfAClient>(network.open(kClient), [this] { step(); });
    auto endpoint = std::make_unique<fabric::roce::RoceEndpoint>(
        std::move(port), *fabric::RegionTable::create(3), fabric::NumberSource::of_seed(4));
    connection = *FabricConnection::open(
        fabric::Connecting{std::move(endpoint), fabric::roce::to_text(kNode) + "/7", 1024},
        options);
  }
  void step() {
    network.advance(10'000);
    node.progress();
  }
  /// From now on packets of one side above a length get lost.
  void lose_long_ones_of(const PortAddress& side) {
    network.loses = [side](const PortAddress& from, const PortAddress&, auto ib) {
      return from == side && ib.size() > 972;
    };
  }
  /// Puts a value of so many bytes, and returns the error.
  Error put(std::size_t bytes) {
    auto rings = *ThreadRings::open(connection);
    RemoteRequests requests(*rings, 8);
    const std::string value(bytes, 'x');
    std::vector<Request> asked(1);
    asked[0].op = Op::put;
    asked[0].key = "key";
    asked[0].value = value;
    LastDone last;
    requests.submit(asked, last, {1, 460, 0});
    const std::uint64_t until_ns = network.now_ns() + 2 * kTimeoutNs;
    while (requests.advance() != 0 && network.now_ns() < until_ns) {
      if (node.has_heard()) node.say(48);
      step();
    }
    EXPECT_EQ(last.times, 1) << "a call has no end";
    if (last.times == 0) connection->hang_up();
    return last.error;
  }

  fabric::roce::PacketNetwork network{base::seed_from_environment(98)};
  RingsOfANode node;
  std::shared_ptr<FabricConnection> connection;
};

// IP and UDP, BTH, RETH, 1024 bytes and the ICRC.
constexpr std::uint32_t kLength = 20 + 8 + 12 + 16 + 1024 + 4;

TEST_F(Undelivered, RequestsEndWithAnErrorThatSaysHowLongTheirPacketsAre) {
  lose_long_ones_of(kClient);
  const std::uint64_t begun_ns = network.now_ns();
  EXPECT_EQ(put(3000), (Error{Code::connection_lost, 0, kLength << 16}));
  EXPECT_EQ(node.accepted(), 2);  // a second try
  EXPECT_LT(network.now_ns() - begun_ns, kTimeoutNs / 2);
}

TEST_F(Undelivered, AnswersDoToo) {
  lose_long_ones_of(kNode);
  const std::uint64_t begun_ns = network.now_ns();
  EXPECT_EQ(put(10), (Error{Code::connection_lost, 0, kLength << 16}));
  EXPECT_LT(network.now_ns() - begun_ns, kTimeoutNs / 2);
}

TEST_F(Undelivered, WhereNothingComesThroughItEndsInTimeAsWell) {
  network.loses = [](const PortAddress&, const PortAddress&, auto) { return true; };
  const std::uint64_t begun_ns = network.now_ns();
  EXPECT_EQ(put(3000), (Error{Code::connection_lost, 0, 0}));
  EXPECT_LT(network.now_ns() - begun_ns, kTimeoutNs * 3 / 2);
}

// If anything has moved between two losses, the path was good.
TEST_F(Undelivered, ShortBreaksOfTheNetworkEndNothing) {
  for (int i = 0; i < 3; ++i) {
    const auto alive = [](const PortAddress&, const PortAddress&, auto) { return true; };
    network.loses = alive;
    for (int turn = 0; turn < 5000; ++turn) {
      connection->make_progress();
      step();
    }
    network.loses = nullptr;
    for (int turn = 0; turn < 20'000; ++turn) {
      connection->make_progress();
      step();
    }
    EXPECT_FALSE(connection->lost());
  }
}

}  // namespace
}  // namespace espalier::client
