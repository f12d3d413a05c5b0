// SPDX-License-Identifier: Apache-2.0
// The calls of queues: requests, replies, and their execution at a node. A device relays all of
// them to its host.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string_view>

#include "catalog/catalog.hpp"
#include "tests/example_kind/queue.hpp"
#include "wire/call_codec.hpp"

namespace espalier::example::queue_calls {

/// Most bytes of an entry.
inline constexpr std::uint32_t kBytesMax = 65535;

/// A number from the range that the protocol reserves for programs.
constexpr wire::OffloadId call_number(std::uint8_t number) {
  return static_cast<wire::OffloadId>(wire::kOwnOffloadIds + number);
}

// --- replies -------------------------------------------------------------------------------------

struct Opened {
  std::uint32_t id = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.id); }
  [[nodiscard]] static Opened of(const Queue& queue) { return {queue.id()}; }
};

struct Pushed {
  std::uint64_t number = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.number); }
};

struct Popped {
  bool found = false;
  std::uint64_t number = 0;
  wire::OwnBytes bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.flag(self.found, wire::kFound);
    message.version(self.number);
    message.rest(self.bytes, "the entry", kBytesMax);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const bool nothing = number == 0 && bytes.size() == 0;
    return found || nothing ? std::nullopt : std::optional(wire::Fault{});
  }
};

struct Counted {
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  std::uint64_t bytes = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.pushed);
    message.fixed(self.popped);
    message.fixed(self.bytes);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return popped <= pushed ? std::nullopt : std::optional(wire::Fault{});
  }
};

// --- requests ------------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{.id = call_number(0),
                                       .name = "queue_create",
                                       .summary = "makes an empty queue; answers its number",
                                       .right = wire::Right::admin,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the queue's name");
  }
};

struct Open {
  static constexpr wire::CallRow kCall{.id = call_number(1),
                                       .name = "queue_open",
                                       .summary = "answers a queue's number",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the queue's name");
  }
};

struct Push {
  static constexpr wire::CallRow kCall{.id = call_number(2),
                                       .name = "queue_push",
                                       .summary = "appends an entry; answers its number",
                                       .right = wire::Right::write,
                                       .object = wire::Names::by_id,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true};
  using Reply = Pushed;

  std::uint32_t queue = 0;
  std::string_view bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.queue, "the queue's id");
    message.rest(self.bytes, "the entry", kBytesMax);
  }
};

struct Pop {
  static constexpr wire::CallRow kCall{
      .id = call_number(3),
      .name = "queue_pop",
      .summary = "takes the oldest entry out; answers it and its number, or that there is none",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Popped;

  std::uint32_t queue = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.queue, "the queue's id");
  }
};

struct Count {
  static constexpr wire::CallRow kCall{
      .id = call_number(4),
      .name = "queue_count",
      .summary = "answers how many entries were pushed and popped, and the bytes that wait",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed};
  using Reply = Counted;

  std::uint32_t queue = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.queue, "the queue's id");
  }
};

using All = wire::CallList<Create, Open, Push, Pop, Count>;

// --- what they do, at a node and in a store of this process --------------------------------------

[[nodiscard]] Result<std::shared_ptr<Queue>> obtain(catalog::Catalog& catalog, const Create& asked);
[[nodiscard]] Result<std::shared_ptr<Queue>> obtain(catalog::Catalog& catalog, const Open& asked);
[[nodiscard]] Result<Pushed> execute(Queue& queue, const Push& asked);
[[nodiscard]] Result<Popped> execute(Queue& queue, const Pop& asked);
[[nodiscard]] Result<Counted> execute(Queue& queue, const Count& asked);

}  // namespace espalier::example::queue_calls
