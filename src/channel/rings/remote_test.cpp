// SPDX-License-Identifier: Apache-2.0
// The client's end of rings, against a scripted node.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/testing/fake_node.hpp"

namespace espalier::client {
namespace {

constexpr wire::ConnectionLayout kRings{64, 64, 2};
constexpr Scope kScope{1, 460, 0};

/// The answer of each request, by its tag.
struct Answers final : Handler {
  void done(const Completion& completion) override {
    codes[completion.tag] = completion.error.code;
    values[completion.tag] = std::string(completion.value);
  }
  bool items(std::uint64_t tag, std::span<const Item> run) override {
    items_of[tag] += run.size();
    return true;
  }
  std::map<std::uint64_t, Code> codes;
  std::map<std::uint64_t, std::string> values;
  std::map<std::uint64_t, std::size_t> items_of;
};

constexpr wire::CallMessage kNoop{.offload = wire::OffloadId::noop};

class RemoteTest : public testing::Test {
 protected:
  RemoteTest() : node_(testing::TempDir() + "espalier-fake-" + std::to_string(::getpid())) {}
  std::unique_ptr<ThreadRings> open_lane() {
    if (!connection_) connection_ = *node_.connect(kRings);
    return *ThreadRings::open(connection_);
  }
  static Request get(std::uint64_t tag) {
    Request request;
    request.op = Op::get;
    request.key = "key";
    request.tag = tag;
    return request;
  }
  /// Sends until there is no room; the node does not read.
  static void fill_request_ring(ThreadRings& rings) {
    while (rings.send(kNoop, 0)) {
    }
  }

  FakeNode node_;
  std::shared_ptr<RingConnection> connection_;
};

TEST_F(RemoteTest, AnswersFindTheirRequestsInWhateverOrder) {
  const auto rings = open_lane();
  RemoteRequests requests(*rings, 8);
  Answers answers;
  const std::vector<Request> asked{get(10), get(11), get(12)};
  requests.submit(asked, answers, kScope);
  std::vector<std::uint32_t> tags;
  for (wire::RequestHeader header; node_.take_request(header);) tags.push_back(header.tag);
  ASSERT_EQ(tags.size(), 3u);
  node_.answer(tags[2], "third");
  node_.answer(99'999, "nobody's");
  node_.answer(tags[0], "first");
  while (requests.poll() != 1) {
  }
  node_.answer(tags[0], "again");  // a duplicate answer
  node_.answer(tags[1], std::string(3000, 'x'));
  requests.drain();
  EXPECT_EQ(answers.values[10], "first");
  EXPECT_EQ(answers.values[11], std::string(3000, 'x'));
  EXPECT_EQ(answers.values[12], "third");
}

TEST_F(RemoteTest, AdvanceTakesWhatIsThereAndWaitsForNothing) {
  const auto rings = open_lane();
  RemoteRequests requests(*rings, 1);
  Answers answers;
  EXPECT_EQ(requests.advance(), 0u);
  const std::vector<Request> asked{get(1), get(2)};
  requests.submit(asked, answers, kScope);
  EXPECT_EQ(requests.advance(), 2u);
  wire::RequestHeader header;
  ASSERT_TRUE(node_.take_request(header));
  node_.answer(header.tag, "first");
  EXPECT_EQ(requests.advance(), 1u);
  EXPECT_EQ(answers.values[1], "first");
  EXPECT_EQ(requests.advance(), 1u);  // sends the other
  ASSERT_TRUE(node_.take_request(header));
  node_.answer(header.tag, "second");
  EXPECT_EQ(requests.advance(), 0u);
  EXPECT_EQ(answers.values[2], "second");
}

TEST_F(RemoteTest, WhoeverOnlyAdvancesHearsOfALostNode) {
  const auto rings = open_lane();
  RemoteRequests requests(*rings, 2);
  Answers answers;
  const std::vector<Request> asked{get(1), get(2), get(3)};
  requests.submit(asked, answers, kScope);
  node_.hang_up();
  while (requests.advance() != 0) {
  }
  for (std::uint64_t tag = 1; tag <= 3; ++tag) EXPECT_EQ(answers.codes[tag], Code::connection_lost);
}

TEST_F(RemoteTest, ALostNodeFailsWhatIsInFlightAndWhatWaits) {
  const auto rings = open_lane();
  RemoteRequests requests(*rings, 2);
  Answers answers;
  const std::vector<Request> asked{get(1), get(2), get(3), get(4)};
  requests.submit(asked, answers, kScope);
  node_.hang_up();
  requests.drain();
  for (std::uint64_t tag = 1; tag <= 4; ++tag) EXPECT_EQ(answers.codes[tag], Code::connection_lost);
}

TEST_F(RemoteTest, AnAnswerThatCameBeforeTheNodeWasLostIsTaken) {
  const auto rings = open_lane();
  RemoteRequests requests(*rings, 2);
  Answers answers;
  const std::vector<Request> asked{get(1), get(2)};
  requests.submit(asked, answers, kScope);
  wire::RequestHeader header;
  ASSERT_TRUE(node_.take_request(header));
  node_.answer(header.tag, "in time");
  node_.hang_up();
  requests.drain();
  EXPECT_EQ(answers.values[1], "in time");
  EXPECT_EQ(answers.codes[2], Code::connection_lost);
}

// Other threads of the process have filled the request ring, and the node never reads it.
TEST_F(RemoteTest, WhoWaitsForRoomFindsThatTheNodeIsLost) {
  const auto rings = open_lane();
  const auto other = open_lane();
  fill_request_ring(*other);
  RemoteRequests requests(*rings, 2);
  Answers answers;
  const Request asked = get(1);
  requests.submit({&asked, 1}, answers, kScope);
  node_.hang_up();
  requests.drain();
  EXPECT_EQ(answers.codes[1], Code::connection_lost);
}

TEST_F(RemoteTest, ACallThatWaitsForRoomFindsThatTheNodeIsLost) {
  const auto rings = open_lane();
  const auto other = open_lane();
  fill_request_ring(*other);
  RemoteRequests requests(*rings, 1);
  node_.hang_up();
  const auto reply = requests.call(kNoop);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::connection_lost);
}

TEST_F(RemoteTest, ALengthThatCannotBeLosesTheConnection) {
  for (const std::uint32_t bytes : {0u, 31u, wire::kMessageBytesMax + 1, ~0u}) {
    connection_.reset();
    const auto rings = open_lane();
    RemoteRequests requests(*rings, 1);
    Answers answers;
    const Request asked = get(1);
    requests.submit({&asked, 1}, answers, kScope);
    wire::ResponseHeader header{};
    header.bytes = bytes;
    rings::MessageWriter writer(node_.responses(), 0);
    writer.header(wire::words_of(header));
    writer.finish();
    requests.drain();
    EXPECT_EQ(answers.codes[1], Code::connection_lost) << bytes;
    EXPECT_TRUE(rings->lost());
  }
}

TEST_F(RemoteTest, ItemsThatAreNotWholeAreNotDelivered) {
  const auto rings = open_lane();
  RemoteRequests requests(*rings, 1);
  Answers answers;
  Request scan;
  scan.op = Op::scan;
  scan.tag = 5;
  requests.submit({&scan, 1}, answers, kScope);
  wire::ItemHeader item{};
  item.key_bytes = 3;
  item.value_bytes = 5;
  const std::string whole = rings::bytes_of(item) + "keyvalue";
  item.value_bytes = ~0u;
  wire::RequestHeader header;
  ASSERT_TRUE(node_.take_request(header));
  node_.answer(header.tag, whole + whole + rings::bytes_of(item) + "keyvalue");
  requests.drain();
  EXPECT_EQ(answers.items_of[5], 2u);
}

TEST_F(RemoteTest, WelcomesThatMakeNoSenseAreRefused) {
  const auto refused = [&](Code code, void (*change)(wire::Welcome&)) {
    node_.change = change;
    const auto connected = node_.connect(kRings);
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().code, code);
  };
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.magic = 1; });
  refused(Code::unsupported, [](wire::Welcome& welcome) { welcome.protocol = 2; });
  refused(Code::out_of_memory, [](wire::Welcome& welcome) {
    welcome.code = static_cast<std::uint32_t>(Code::out_of_memory);
  });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.request_slots = 96; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.response_slots = 32; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.response_slots = 1 << 17; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.response_slots = 128; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.response_rings = 0; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.response_rings = 17; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.doorbell = 1024; });
  refused(Code::corrupt, [](wire::Welcome& welcome) { welcome.worker = wire::kWorkersMax; });
}

TEST_F(RemoteTest, ALongRequestGoesThroughAShortRing) {
  const auto rings = open_lane();
  std::thread node([&] {
    wire::RequestHeader header;
    while (!node_.take_request(header)) std::this_thread::yield();
    node_.answer(header.tag, "taken");
  });
  RemoteRequests requests(*rings, 1);
  Answers answers;
  const std::string value(1 << 20, 'v');
  Request put = get(3);
  put.op = Op::put;
  put.value = value;
  requests.submit({&put, 1}, answers, kScope);
  requests.drain();
  node.join();
  EXPECT_EQ(answers.codes[3], Code::invalid);
  EXPECT_EQ(answers.values[3], "taken");
}

}  // namespace
}  // namespace espalier::client
