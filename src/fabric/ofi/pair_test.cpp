// SPDX-License-Identifier: Apache-2.0
// A pair and a peer that is played by hand: what peers may not say, what waits for what, and when
// a pair gives up. What works is tested over real connections (conformance_test.cpp).
#include "fabric/ofi/pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "fabric/ofi/testing/pair_by_hand.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::Operands;
using wire::ofi::RecordHead;
using wire::ofi::RecordKind;

std::vector<std::byte> some(std::size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0xA5});
}

/// The pair is in the error state, and the peer has the reason.
void expect_ended(const PairByHand& by_hand, Status why, const std::string& what) {
  EXPECT_EQ(by_hand.pair->state(), QueuePair::State::error) << what;
  EXPECT_EQ(by_hand.pair->ended_by(), why) << what;
  EXPECT_TRUE(by_hand.channel.is_let_go()) << what;
  const auto records = by_hand.channel.records();
  ASSERT_FALSE(records.empty()) << what;
  EXPECT_EQ(records.back().kind(), RecordKind::end) << what;
  EXPECT_EQ(records.back().head.status, static_cast<std::uint8_t>(why)) << what;
  EXPECT_TRUE(std::all_of(by_hand.memory.begin(), by_hand.memory.end(), [](std::byte b) {
    return b == std::byte{0};
  })) << what;
}

TEST(OfiPair, RequestsThatMakeNoSenseEndIt) {
  const auto refuses = [](const std::string& what, auto&& requests) {
    PairByHand by_hand;
    FrameByHand frame = by_hand.frame();
    requests(by_hand, frame);
    by_hand.bring(frame);
    expect_ended(by_hand, Status::remote_invalid, what);
  };
  for (const int kind : {0, 1, 2, 3, 17, 200, 255}) {
    refuses("kind", [kind](PairByHand&, FrameByHand& frame) {
      frame.add(static_cast<RecordKind>(kind), some(16));
    });
  }
  refuses("more of nothing",
          [](PairByHand&, FrameByHand& frame) { frame.add(RecordKind::more, some(8)); });
  refuses("a READ that carries bytes", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::read, 0, 8, 8), some(8));
  });
  refuses("a READ that is too long", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::read, 0, kMessageBytesMax + 1, 0));
  });
  refuses("a WRITE that is too long", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::write, 0, kMessageBytesMax + 1, 8), some(8));
  });
  refuses("more bytes than the message has", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::write, 0, 8, 16), some(16));
  });
  refuses("a first part of nothing", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::write, 0, 8, 0));
  });
  for (const std::size_t bytes : {0u, 8u, 15u, 17u, 24u}) {
    refuses("operands of another length", [bytes](PairByHand& by_hand, FrameByHand& frame) {
      const auto length = static_cast<std::uint32_t>(bytes);
      frame.add(by_hand.asks(RecordKind::fetch_add, 0, 8, length), some(bytes));
    });
  }
  refuses("an atomic of 4 bytes", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::compare_swap, 0, 4, 16), some(16));
  });
  refuses("an atomic across words", [](PairByHand& by_hand, FrameByHand& frame) {
    frame.add(by_hand.asks(RecordKind::fetch_add, 4, 8, 16), some(16));
  });
}

TEST(OfiPair, MessagesWhosePartsDoNotFitEndIt) {
  const auto refuses = [](RecordKind kind, std::size_t bytes) {
    PairByHand by_hand;
    std::vector<std::byte> room(100);
    const Receive receive{5, room};
    ASSERT_EQ(by_hand.pair->post_receives({&receive, 1}), 1u);
    by_hand.bring(by_hand.frame().add(by_hand.asks(RecordKind::send, 0, 64, 32), some(32)));
    EXPECT_EQ(by_hand.pair->state(), QueuePair::State::connected);
    by_hand.bring(by_hand.frame().add(kind, some(bytes)));
    expect_ended(by_hand, Status::remote_invalid, "part");
    const auto completion = by_hand.next();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->work_id, 5u);
    EXPECT_EQ(completion->status, Status::flushed);
    EXPECT_EQ(room[64], std::byte{0});
  };
  refuses(RecordKind::more, 33);
  refuses(RecordKind::more, 0);
  refuses(RecordKind::send, 8);
  refuses(RecordKind::read, 0);
}

TEST(OfiPair, AnswersToNothingEndIt) {
  for (const RecordKind kind :
       {RecordKind::data, RecordKind::value, RecordKind::done, RecordKind::starved}) {
    PairByHand by_hand;
    by_hand.bring(by_hand.frame().add(kind, some(8)));
    expect_ended(by_hand, Status::remote_invalid, "answer");
  }
}

TEST(OfiPair, AnswersThatDoNotFitEndIt) {
  const auto refuses = [](const WorkRequest& request, RecordKind kind, std::size_t bytes) {
    PairByHand by_hand;
    ASSERT_EQ(by_hand.pair->post(request).taken, 1u);
    by_hand.progress();
    by_hand.bring(by_hand.frame().add(kind, some(bytes)));
    expect_ended(by_hand, Status::remote_invalid, std::string(name(request.opcode)));
    const auto completion = by_hand.next();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->status, Status::flushed);
  };
  std::array<std::byte, 24> own{};
  const auto middle = std::span(own).subspan(8, 8);
  const auto read = WorkRequest::read(1, middle, 1, 0);
  refuses(read, RecordKind::data, 9);
  refuses(read, RecordKind::data, 0);
  refuses(read, RecordKind::value, 8);
  refuses(read, RecordKind::done, 0);
  const auto add = WorkRequest::fetch_add(1, 1, 0, 1, middle.data());
  refuses(add, RecordKind::data, 8);
  refuses(add, RecordKind::value, 4);
  refuses(add, RecordKind::value, 16);
  refuses(add, RecordKind::done, 0);
  const auto write = WorkRequest::write(1, middle, 1, 0);
  refuses(write, RecordKind::data, 8);
  refuses(write, RecordKind::value, 8);
  refuses(write, RecordKind::done, 8);
  EXPECT_TRUE(std::all_of(own.begin(), own.end(), [](auto b) { return b == std::byte{0}; }));
}

TEST(OfiPair, HeadsThatCannotBeEndIt) {
  {
    PairByHand by_hand;
    by_hand.bring(FrameByHand(by_hand.channel.frames_carried() + 1));
    expect_ended(by_hand, Status::remote_invalid, "frames that were never sent");
  }
  {
    PairByHand by_hand;
    by_hand.bring(by_hand.frame(1));
    expect_ended(by_hand, Status::remote_invalid, "requests that were never sent");
  }
  {
    PairByHand by_hand;
    by_hand.bring(some(9000));
    expect_ended(by_hand, Status::remote_invalid, "noise");
  }
  {
    PairByHand by_hand;
    by_hand.bring(std::vector<std::byte>());
    expect_ended(by_hand, Status::remote_invalid, "nothing");
  }
}

TEST(OfiPair, WhatIsPutAsideIsBounded) {
  PairByHand by_hand;  // with no receives
  std::size_t frames = 0;
  while (by_hand.pair->state() == QueuePair::State::connected) {
    ASSERT_LT(++frames, 1000u);
    by_hand.bring(by_hand.frame().add(RecordKind::send, some(4000)));
  }
  expect_ended(by_hand, Status::remote_invalid, "too much");
  EXPECT_GE(frames, wire::ofi::kWindowBytes / 4064);
  EXPECT_LE(frames, wire::ofi::kWindowBytes / 4000 + 1);
}

TEST(OfiPair, WhatWaitsForAReceiveStopsNoAnswer) {
  PairByHand by_hand;
  std::array<std::byte, 8> into{};
  ASSERT_EQ(by_hand.pair->post(WorkRequest::read(3, into, 1, 0)).taken, 1u);
  by_hand.progress();
  by_hand.channel.frames.clear();
  by_hand.bring(by_hand.frame().add(RecordKind::send, some(16)).add(RecordKind::data, some(8)));
  EXPECT_EQ(by_hand.next()->work_id, 3u);
  ASSERT_EQ(by_hand.channel.records().size(), 1u);  // said once
  EXPECT_EQ(by_hand.channel.records()[0].kind(), RecordKind::starved);
  by_hand.progress();
  EXPECT_EQ(by_hand.channel.records().size(), 1u);
  std::vector<std::byte> room(16);
  const Receive receive{9, room};
  ASSERT_EQ(by_hand.pair->post_receives({&receive, 1}), 1u);
  by_hand.progress();
  EXPECT_EQ(by_hand.next()->work_id, 9u);
  EXPECT_EQ(by_hand.channel.records().back().kind(), RecordKind::done);
  EXPECT_EQ(room, some(16));
}

TEST(OfiPair, ARegionThatIsRevokedInTheMiddleOfAReadIsReadNoMore) {
  PairByHand by_hand;
  const std::uint32_t bytes = PairByHand::kRegionBytes;  // more than leaves in one turn
  by_hand.bring(by_hand.frame().add(by_hand.asks(RecordKind::read, 0, bytes, 0)));
  EXPECT_EQ(by_hand.pair->state(), QueuePair::State::connected);
  by_hand.region.revoke();
  by_hand.bring(by_hand.frame());
  expect_ended(by_hand, Status::remote_access, "revoked");
  EXPECT_EQ(by_hand.channel.records().back().head.failure,
            static_cast<std::uint8_t>(Status::remote_access));
}

// A word that is read in two parts may be half old and half new.
TEST(OfiPair, NoWordIsMovedInTwoParts) {
  PairByHand by_hand;
  constexpr std::uint32_t kBytes = 50'000;
  by_hand.bring(by_hand.frame().add(by_hand.asks(RecordKind::read, 3, kBytes, 0)));
  std::uint32_t got = 0;
  for (const Record& record : by_hand.channel.records()) {
    EXPECT_TRUE(got == 0 || (3 + got) % 8 == 0) << got;
    got += record.head.bytes;
  }
  EXPECT_EQ(got, kBytes);
  by_hand.channel.frames.clear();
  const auto from = some(kBytes);
  ASSERT_EQ(by_hand.pair->post(WorkRequest::write(1, from, 1, 5)).taken, 1u);
  by_hand.bring(by_hand.frame());
  std::uint32_t sent = 0;
  for (const Record& record : by_hand.channel.records()) {
    EXPECT_TRUE(sent == 0 || (5 + sent) % 8 == 0) << sent;
    sent += record.head.bytes;
  }
  EXPECT_EQ(sent, kBytes);
}

TEST(OfiPair, APeerThatSaysNothingIsGivenUp) {
  QueuePairOptions options;
  options.retries = 3;
  options.timeout_ns = 1000;
  PairByHand by_hand(options);
  ASSERT_EQ(by_hand.pair->post(WorkRequest::send(1, {})).taken, 1u);
  by_hand.progress();
  std::uint32_t probes = 0;
  const std::uint64_t begin = by_hand.now_ns;
  while (by_hand.pair->state() == QueuePair::State::connected) {
    ASSERT_LE(by_hand.pair->due_ns(), begin + 16'000);
    by_hand.now_ns = by_hand.pair->due_ns();
    by_hand.channel.frames.clear();
    by_hand.progress();
    if (by_hand.channel.frames.empty()) continue;
    probes += FrameReader::open(by_hand.channel.frames[0])->head().flags;
  }
  EXPECT_EQ(probes, 3u);
  EXPECT_EQ(by_hand.now_ns - begin, 1000u + 2000 + 4000 + 8000);
  expect_ended(by_hand, Status::retry_exceeded, "silence");
  EXPECT_EQ(by_hand.next()->status, Status::retry_exceeded);
}

TEST(OfiPair, APeerThatAnswersProbesIsWaitedFor) {
  QueuePairOptions options;
  options.timeout_ns = 1000;
  PairByHand by_hand(options);
  ASSERT_EQ(by_hand.pair->post(WorkRequest::send(1, {})).taken, 1u);
  by_hand.progress();
  by_hand.bring(by_hand.frame().add(RecordKind::starved));
  for (int i = 0; i < 1000; ++i) {
    by_hand.now_ns = by_hand.pair->due_ns();
    by_hand.progress();
    by_hand.bring(by_hand.frame());
  }
  EXPECT_EQ(by_hand.pair->state(), QueuePair::State::connected);
  EXPECT_FALSE(by_hand.next());
  by_hand.bring(by_hand.frame(32).add(RecordKind::done));
  EXPECT_EQ(by_hand.next()->status, Status::success);
  EXPECT_EQ(by_hand.pair->due_ns(), 0u);
}

TEST(OfiPair, APeerWithoutAReceiveIsGivenUpIfThatIsAskedFor) {
  QueuePairOptions options;
  options.timeout_ns = 1000;
  options.receive_retries = 4;
  PairByHand by_hand(options);
  ASSERT_EQ(by_hand.pair->post(WorkRequest::send(1, {})).taken, 1u);
  by_hand.progress();
  by_hand.bring(by_hand.frame().add(RecordKind::starved));
  by_hand.now_ns += 3999;
  by_hand.bring(by_hand.frame());
  EXPECT_EQ(by_hand.pair->state(), QueuePair::State::connected);
  by_hand.now_ns += 1;
  by_hand.progress();
  expect_ended(by_hand, Status::no_receive, "starved");
  EXPECT_EQ(by_hand.next()->status, Status::no_receive);
}

TEST(OfiPair, ProbesAreAnswered) {
  PairByHand by_hand;
  by_hand.bring(FrameByHand(by_hand.channel.frames_carried(), 0, wire::ofi::kFlagProbe));
  EXPECT_EQ(by_hand.channel.frames.size(), 1u);
}

TEST(OfiPair, WhoConnectsWantsAWelcome) {
  for (const RecordKind kind : {RecordKind::hello, RecordKind::send, RecordKind::done}) {
    PairByHand by_hand({}, false);
    by_hand.bring(by_hand.frame().add(kind, greeting_bytes()));
    expect_ended(by_hand, Status::remote_invalid, "no welcome");
  }
  auto other_format = greeting_bytes();
  other_format[8] = std::byte{2};
  for (const auto& greeting : {other_format, some(16), some(8), std::vector<std::byte>(),
                               greeting_bytes(some(kAcceptDataMax + 1))}) {
    PairByHand by_hand({}, false);
    by_hand.bring(by_hand.frame().add(RecordKind::welcome, greeting));
    expect_ended(by_hand, Status::remote_invalid, "a wrong welcome");
  }
  PairByHand good({}, false);
  good.bring(good.frame().add(RecordKind::welcome, greeting_bytes(some(kAcceptDataMax))));
  EXPECT_EQ(good.pair->state(), QueuePair::State::connected);
  EXPECT_EQ(good.pair->peer_data().size(), kAcceptDataMax);
}

TEST(OfiPair, AChannelThatBreaksIsALostPeer) {
  PairByHand by_hand;
  std::array<std::byte, 8> into{};
  ASSERT_EQ(by_hand.pair->post(WorkRequest::read(3, into, 1, 0)).taken, 1u);
  ASSERT_EQ(by_hand.pair->post(WorkRequest::read(4, into, 1, 0)).taken, 1u);
  by_hand.progress();
  by_hand.channel.lose();
  EXPECT_EQ(by_hand.pair->ended_by(), Status::retry_exceeded);
  EXPECT_EQ(by_hand.next()->status, Status::retry_exceeded);
  EXPECT_EQ(by_hand.next()->status, Status::flushed);
}

}  // namespace
}  // namespace espalier::fabric::ofi
