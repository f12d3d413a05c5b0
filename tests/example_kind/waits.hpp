// SPDX-License-Identifier: Apache-2.0
// A program's calls for tests of nodes that reach nodes: requests that keep their places until the
// test releases them, a worker that is blocked, answers of many bytes, and calls from node to node.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/registry.hpp"
#include "wire/call_codec.hpp"

namespace espalier::example {

namespace wait_calls {

constexpr wire::OffloadId call_number(std::uint8_t number) {
  return static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 32 + number);
}

struct Stop {
  static constexpr wire::CallRow kCall{.id = call_number(0),
                                       .name = "waits_stop",
                                       .summary = "has the worker stand still until it may go on",
                                       .right = wire::Right::admin,
                                       .at_device = wire::AtDevice::refused};
  using Reply = wire::Nothing;

  static constexpr void fields(auto&, auto&) {}
};

struct Filled {
  wire::OwnBytes bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.rest(self.bytes, "zeros", 4 << 20);
  }
};

struct Fill {
  static constexpr wire::CallRow kCall{.id = call_number(1),
                                       .name = "waits_fill",
                                       .summary = "answers so many zeros",
                                       .right = wire::Right::read,
                                       .at_device = wire::AtDevice::refused};
  using Reply = Filled;

  std::uint32_t bytes = 0;

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.bytes, "how many"); }
};

struct Chained {
  std::uint32_t hops = 0;

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.hops); }
};

struct Chain {
  static constexpr wire::CallRow kCall{
      .id = call_number(2),
      .name = "waits_chain",
      .summary =
          "keeps its place until it may go on, calls the other node as often as asked, there "
          "and back, and answers over how many nodes it has come in the end",
      .right = wire::Right::write,
      .at_device = wire::AtDevice::refused};
  using Reply = Chained;

  std::uint32_t held = 0;  // 1: it waits until it is released
  std::uint32_t more = 0;  // further calls

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.held, "whether it waits");
    message.fixed(self.more, "how many calls follow");
  }
};

using All = wire::CallList<Stop, Fill, Chain>;

}  // namespace wait_calls

/// A test's control of a node, and its observations. Thread: any.
struct NodeWaits final : offload::NodePart {
  std::atomic<bool> stopped{false};         ///< a worker is blocked
  std::atomic<bool> goes_on{false};         ///< releases it
  std::atomic<std::uint32_t> held{0};       ///< requests that keep their places
  std::atomic<std::uint32_t> may_go{0};     ///< how many of them are released
  std::atomic<std::uint32_t> chained{0};    ///< requests that came through another node
  std::atomic<std::uint32_t> cancelled{0};  ///< that kept their places until then
};

[[nodiscard]] const offload::Kind& waits_kind();

}  // namespace espalier::example
