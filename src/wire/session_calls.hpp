// SPDX-License-Identifier: Apache-2.0
// The calls that concern no object, or that a session makes for its own one-sided reads: what a
// session asks of its node.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "wire/call_codec.hpp"
#include "wire/datagram.hpp"
#include "wire/one_sided.hpp"

namespace espalier::session_calls {

/// Measures the latency of a node.
struct Noop {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::noop,
                                       .name = "noop",
                                       .summary = "answers",
                                       .right = wire::Right::none,
                                       .at_device = wire::AtDevice::here};
  using Reply = wire::Nothing;

  std::string_view key;
  std::string_view payload;

  static constexpr void fields(auto& self, auto& message) {
    message.key(self.key, "anything", 0, 65535);
    message.rest(self.payload, "anything");
  }
};

struct Cancel {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::cancel,
                                       .name = "cancel",
                                       .summary =
                                           "ends it early: it is answered with what it has, "
                                           "or with busy where it has not begun",
                                       .right = wire::Right::none,
                                       .at_device = wire::AtDevice::here};
  using Reply = wire::Nothing;

  std::uint32_t tag = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(
        self.tag, "the tag of a scan, count, table_read or table_query of the same response ring");
  }
};

/// What wire/node_numbers.hpp draws.
struct NodeNumbers {
  std::string_view bytes;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.bytes); }
};

struct NodeStats {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::node_stats,
      .name = "node_stats",
      .summary = "answers the node's numbers, those of its workers and offloads",
      .right = wire::Right::read,
      .object = wire::Names::all,
      .at_device = wire::AtDevice::here};
  using Reply = NodeNumbers;

  static constexpr void fields(auto&, auto&) {}
};

struct Renewed {
  std::uint64_t epoch = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.epoch); }
};

struct RenewLease {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::lease_renew,
      .name = "lease_renew",
      .summary =
          "renews a lease, or takes it back, and counts an answer of each of these leaves; "
          "answers the present epoch as version",
      .right = wire::Right::read};
  using Reply = Renewed;

  std::uint32_t object = 0;  ///< of the leaves
  wire::LeaseRenewal renewal{};
  std::string_view leaves;  ///< as catalog::Object::count_reads takes them

  static constexpr void fields(auto& self, auto& message) {
    message.hint(self.object);
    message.fixed(self.renewal,
                  "LeaseRenewal, the lease and the oldest epoch of walks in flight, or all ones");
    message.rest(self.leaves, "up to 32 LIDs of leaves of a map",
                 wire::kSampledLeavesMax * sizeof(std::uint32_t));
  }
};

/// How far the log of a durable node is. What was answered before it was asked has records at or
/// below `recorded`; those at or below `durable` are on the disk.
struct LogState {
  std::uint64_t recorded = 0;
  std::uint64_t durable = 0;
  wire::OwnBytes run_bytes;  ///< 8, of which run of the log these are; none: unknown

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.recorded);
    message.read_version(self.durable);
    message.rest(self.run_bytes, "the run of the log", sizeof(std::uint64_t));
  }
  [[nodiscard]] static LogState of(std::uint64_t recorded, std::uint64_t durable,
                                   std::uint64_t run) {
    return {recorded, durable, wire::OwnBytes({reinterpret_cast<const char*>(&run), sizeof run})};
  }
  /// 0: unknown.
  [[nodiscard]] std::uint64_t run() const {
    std::uint64_t number = 0;
    if (run_bytes.size() == sizeof number) {
      std::memcpy(&number, std::string_view(run_bytes).data(), sizeof number);
    }
    return number;
  }
};

/// Of call await_durable, its argument. Older nodes wait for either.
inline constexpr std::uint32_t kAwaitDurable = 1;
inline constexpr std::uint32_t kTellRun = 2;

struct AwaitDurable {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::await_durable,
      .name = "await_durable",
      .summary =
          "answers the newest record of the node's log as version, and as read version up to "
          "which one all are on the disk; where it waits, once the newest is; and the number "
          "of the log's run, 8 bytes, where that is asked for",
      .right = wire::Right::none,
      .at_device = wire::AtDevice::relayed};
  using Reply = LogState;

  std::uint32_t wants = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(self.wants, "1: it waits; 2: of which run the numbers are, too");
  }
};

struct DatagramOffered {
  wire::DatagramOffer offer{};

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.offer);
  }
};

struct OpenDatagrams {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::datagram_open,
      .name = "datagram_open",
      .summary =
          "begins a session of datagrams, in place of the one that the response ring of its answer "
          "had; answers DatagramOffer",
      .right = wire::Right::read};
  using Reply = DatagramOffered;

  static constexpr void fields(auto&, auto&) {}
};

using All = wire::CallList<Noop, Cancel, NodeStats, RenewLease, AwaitDurable, OpenDatagrams>;

}  // namespace espalier::session_calls
