// SPDX-License-Identifier: Apache-2.0
// An end that listens and one that connects to it, both opened by their addresses: for tests.
//
// Thread: one, which plays both sides.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "fabric/address.hpp"

namespace espalier::fabric {

/// Fails the test unless a pair of theirs gets connected.
inline void expect_to_meet(Listening& listening, Connecting& connecting) {
  CompletionQueue here(*connecting.endpoint, 4);
  CompletionQueue there(*listening.endpoint, 4);
  QueuePairOptions options;
  options.send_depth = options.receive_depth = 1;
  options.sends = &here;
  options.mtu_bytes = connecting.mtu_bytes;
  const auto pair = connecting.endpoint->connect(connecting.target, options, {});
  ASSERT_TRUE(pair) << message(pair.error());
  std::unique_ptr<QueuePair> accepted;
  options.sends = &there;
  while ((*pair)->state() == QueuePair::State::connecting) {
    listening.endpoint->progress();
    if (const auto request = listening.endpoint->next_request()) {
      accepted = std::move(*listening.endpoint->accept(*request, options, {}));
    }
    connecting.endpoint->progress();
  }
  EXPECT_EQ((*pair)->state(), QueuePair::State::connected);
}

}  // namespace espalier::fabric
