// SPDX-License-Identifier: Apache-2.0
// For tests: a scheduler whose places are all taken by requests that keep them, and requests
// through other nodes meanwhile.
//
// Thread: one at a time, and one scene at a time.
#pragma once

#include <cstdint>
#include <string>

#include "engine/scheduler.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {

class HopPlacesScene {
 public:
  HopPlacesScene() : serving_({}, std::uint64_t{64} << 20, kCalls) {
    may_go_ = false;
    held_ = 0;
  }
  ~HopPlacesScene() { may_go_ = true; }
  HopPlacesScene(const HopPlacesScene&) = delete;
  HopPlacesScene& operator=(const HopPlacesScene&) = delete;

  /// Returns what went wrong; empty: nothing.
  std::string run() {
    for (int i = 0; i < 4; ++i) post(serving_.connect(kRings, 2), kHold, 0, 200);
    serving_.turns(kTurns);
    if (held_ < Scheduler::kInFlight) return "clients do not have their places";
    SchedulerFixture::Client& node = serving_.connect(kRings);
    if (!is_answered(node, 1)) return "what came over a node waits for clients";
    held_ = 0;
    post(node, kHold, 1, wire::kHopRequestsMax);
    serving_.turns(kTurns);
    if (held_ != Scheduler::kHopPlaces) return "what came over a node does not have its places";
    if (!is_answered(node, 2)) return "what came over two nodes waits for what came over one";
    return {};
  }

 private:
  static constexpr wire::ConnectionLayout kRings{512, 512, 1};
  static constexpr int kTurns = 500;

  struct Held {
    bool begun = false;
  };
  static Next hold(Call& call) {
    if (!std::exchange(call.state<Held>().begun, true)) ++held_;
    return may_go_ ? call.answer({}) : call.again();
  }
  static Next answer_at_once(Call& call) { return call.answer({}); }

  void post(SchedulerFixture::Client& client, wire::OffloadId offload, unsigned hops,
            std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::RequestHeader header = request_of(offload);
      header.ring = static_cast<std::uint8_t>(hops << wire::kHopShift);
      client->post(message_of(header));
    }
    client->flush();
    client->ring();
  }
  bool is_answered(SchedulerFixture::Client& client, unsigned hops) {
    post(client, kAnswer, hops, 1);
    serving_.turns(kTurns);
    return client->receive().has_value();
  }

  static constexpr auto kHold = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
  static constexpr auto kAnswer = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 1);
  static constexpr Offload kCalls[] = {{{.id = kHold,
                                         .name = "hold",
                                         .format = "",
                                         .summary = "keeps its place",
                                         .right = Right::none,
                                         .limits = {}},
                                        {.step = hold}},
                                       {{.id = kAnswer,
                                         .name = "answer",
                                         .format = "",
                                         .summary = "answers at once",
                                         .right = Right::none,
                                         .limits = {}},
                                        {.step = answer_at_once}}};
  inline static bool may_go_ = false;
  inline static std::uint32_t held_ = 0;

  SchedulerFixture serving_;
};

}  // namespace espalier::offload
