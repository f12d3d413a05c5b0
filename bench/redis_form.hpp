// SPDX-License-Identifier: Apache-2.0
// The representation of items in Redis, and its commands. Redis has no ordered map of keys to
// values, so there are two forms, and a workload takes the cheapest one that can answer it:
//
//   strings     Workloads without scans: a string for each item. GET, SET, SET NX, DEL: what people
//               use Redis for, and its fastest way.
//   sorted set  Workloads with scans: one sorted set, all scores equal, so that members lie in the
//               order of their bytes. A member is the key with the value behind it; keys have one
//               length, so members are in the order of the keys, and a scan returns the values too:
//                 scan    ZRANGEBYLEX from the key on, LIMIT
//                 floor   ZREVRANGEBYLEX from the key down, LIMIT 0 1, sent with the scan
//                 insert  ZADD of the member, which does not look whether the key is there
//               The other form that people use, names of strings as members, would take a second
//               round trip for the values. Insert-only, a member never has to be looked for: the
//               workloads with scans read by scans only and replace nothing, so gets, puts and
//               erases are refused here rather than made of three commands and never measured.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/redis_connection.hpp"
#include "bench/target.hpp"

namespace espalier::bench {

class RedisForm {
 public:
  virtual ~RedisForm() = default;

  /// Appends the commands of one request. Errors: throws std::runtime_error if the form has no such
  /// operation.
  virtual void ask(RedisConnection& connection, const Request& request) = 0;
  /// Waits for the answer to the oldest outstanding request, which is this one.
  virtual void take(RedisConnection& connection, const Request& request, Answers& answers) = 0;
  /// Reads everything. Requires: no writes meanwhile.
  virtual Contents contents(RedisConnection& connection) = 0;
};

std::unique_ptr<RedisForm> make_redis_strings();
/// `key_bytes`: length of every key. Requires: not 0.
std::unique_ptr<RedisForm> make_redis_sorted_set(std::uint32_t key_bytes);

}  // namespace espalier::bench
