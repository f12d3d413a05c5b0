// SPDX-License-Identifier: Apache-2.0
// For tests: a scheduler over a store whose records become durable when the test says so, as with a
// disk that stalls.
//
// Thread: one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "catalog/transaction_calls.hpp"
#include "catalog/transaction_part.hpp"
#include "catalog/unflushed_age.hpp"
#include "engine/connection.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "engine/waiting_answers.hpp"

namespace espalier::offload {

/// A transaction of one put.
inline std::string put_of(std::string_view object, std::string_view key, std::string_view value) {
  std::string bytes(base::bytes_of(static_cast<std::uint16_t>(object.size())));
  bytes += object;
  object_calls::StepHead head{};
  head.value_bytes = static_cast<std::uint32_t>(value.size());
  head.key_bytes = static_cast<std::uint16_t>(key.size());
  head.kind = static_cast<std::uint8_t>(catalog::StepKind::put);
  bytes += base::bytes_of(head);
  return bytes.append(key).append(value);
}

class DurableScheduler {
 public:
  static constexpr wire::ConnectionLayout kManyRequests{1024, 2048, 1};

  /// Of async: the limit of the age of records that are not durable, by now_ns.
  static constexpr std::uint64_t kAsyncNs = 1600;

  explicit DurableScheduler(std::uint64_t message_bytes_max = std::uint64_t{64} << 20,
                            Durability durability = Durability::sync)
      : node_({}, message_bytes_max) {
    sink_.set_promise({durability, &age_});
    node_.catalog().record_to(&sink_);
  }
  ~DurableScheduler() {
    sink_.fail_all();  // ends all in flight
    static_cast<void>(node_.run_until_idle());
    node_.catalog().record_to(nullptr);
  }
  DurableScheduler(const DurableScheduler&) = delete;
  DurableScheduler& operator=(const DurableScheduler&) = delete;

  /// Sends a request with the next tag, and runs it as far as possible.
  void post(SchedulerClient& client, wire::OffloadId offload, std::uint32_t object,
            std::string_view key, std::string_view payload = {}, std::uint32_t argument = 0,
            unsigned hops = 0) {
    send(client, offload, object, key, payload, argument, hops);
    node_.turns(6);
  }
  /// Sends it without running it.
  void send(SchedulerClient& client, wire::OffloadId offload, std::uint32_t object,
            std::string_view key, std::string_view payload = {}, std::uint32_t argument = 0,
            unsigned hops = 0) {
    wire::RequestHeader header = request_of(offload, object, ++tag_);
    header.argument = argument;
    header.ring = static_cast<std::uint8_t>(hops << wire::kHopShift);
    client->post(message_of(header, key, payload));
    client->ring();
  }
  Response call(SchedulerClient& client, wire::OffloadId offload, std::uint32_t object,
                std::string_view key, std::string_view payload = {}) {
    return node_.call(client, request_of(offload, object, ++tag_), key, payload);
  }
  /// Runs as many turns as a worker does before it sleeps. Returns whether it would sleep then.
  bool falls_asleep(SchedulerClient& client) {
    for (int round = 0; round < 4000; ++round) {
      if (client->flush()) client->ring();
      if (!node_.turn() && !node_.scheduler().has_news()) return true;
    }
    return false;
  }
  /// Tags of the received answers, in order.
  static std::vector<std::uint32_t> tags(SchedulerClient& client) {
    std::vector<std::uint32_t> all;
    while (const auto response = client->receive(0)) all.push_back(response->header.tag);
    return all;
  }
  /// Whether no answer has arrived.
  static bool is_silent(SchedulerClient& client) { return !client->receive(0).has_value(); }
  /// This client's answers that wait after their requests have ended.
  static std::size_t waiting(const SchedulerClient& client) {
    const auto& waiting = client.connection->waiting;
    return waiting != nullptr ? waiting->size() : 0;
  }

  static inline std::atomic<std::uint64_t> now_ns = 1;  // the clock of records' ages
  static std::uint64_t read_now() noexcept { return now_ns; }

  catalog::RecordingSink sink_{catalog::RecordingSink::Durable::by_hand};
  catalog::UnflushedAge age_{sink_, kAsyncNs, read_now};
  SchedulerFixture node_;
  SchedulerClient& client_ = node_.connect(kManyRequests);
  SchedulerClient& other_ = node_.connect(kManyRequests, 2);
  std::uint32_t tag_ = 0;
};

/// Checks how answers wait. Returns what is wrong; empty: nothing.
inline std::string what_is_wrong_with_waiting() {
  using wire::OffloadId;
  using Tags = std::vector<std::uint32_t>;
  DurableScheduler scene;
  int wakes = 0;
  scene.node_.scheduler().wake = [&wakes] { ++wakes; };
  const std::uint32_t map = scene.node_.map();
  for (const char* key : {"a", "b", "c"}) scene.post(scene.client_, OffloadId::put, map, key, "1");
  if (scene.sink_.count() != 3) return "the writes were not begun";
  if (!scene.is_silent(scene.client_)) return "an answer came before its version was released";
  if (!scene.falls_asleep(scene.client_)) return "a worker does not sleep while answers wait";
  scene.sink_.make_durable(1);
  if (wakes != 1) return "a worker that sleeps was not woken once";
  scene.node_.turns(4);
  if (scene.tags(scene.client_) != Tags{1}) return "what is durable was not answered alone";
  scene.sink_.make_durable();
  scene.node_.turns(4);
  if (scene.tags(scene.client_) != Tags{2, 3}) return "answers came out of order";
  return {};
}

}  // namespace espalier::offload
