// SPDX-License-Identifier: Apache-2.0
// For tests: a Redis server of their own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "bench/redis_server.hpp"

namespace espalier::bench {

/// A test that needs redis-server, a peer for comparisons only: without it the test is skipped
/// (tests/skips.txt).
template <class Base>
class NeedsRedis : public Base {
 protected:
  void SetUp() override {
    if (!find_program(kRedisProgram, std::getenv("PATH"))) {
      GTEST_SKIP() << "redis-server is not installed";
    }
  }
};

}  // namespace espalier::bench
