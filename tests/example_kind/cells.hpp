// SPDX-License-Identifier: Apache-2.0
// A program's calls that work on other nodes' memory: one offers a page of words to sessions that
// ask for it, the other copies a word from one peer to another, by one-sided posts.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/registry.hpp"
#include "memory/shared_memory.hpp"
#include "wire/call_codec.hpp"

namespace espalier::example {

/// The words of one node; the node must outlive it.
class Cells {
 public:
  static constexpr std::uint64_t kBytes = 4096;
  static constexpr std::uint32_t kWords = kBytes / sizeof(std::uint64_t);

  Cells() : memory_(*memory::SharedMemory::create("espalier-cells", kBytes)) {}
  [[nodiscard]] const memory::SharedMemory& memory() const { return memory_; }
  [[nodiscard]] std::atomic_ref<std::uint64_t> word(std::uint32_t number) const {
    return std::atomic_ref(reinterpret_cast<std::uint64_t*>(memory_.at(0))[number]);
  }

 private:
  memory::SharedMemory memory_;
};

namespace cell_calls {

constexpr wire::OffloadId call_number(std::uint8_t number) {
  return static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 16 + number);
}

/// Where a session may read, write and add, with a key of its own.
struct Granted {
  std::uint64_t base = 0;
  std::uint32_t key = 0;
  std::uint32_t words = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.base);
    message.fixed(self.key);
    message.fixed(self.words);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return words <= Cells::kWords ? std::nullopt : std::optional(wire::Fault{});
  }
};

struct Copied {
  std::uint64_t word = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.word); }
};

struct Grant {
  static constexpr wire::CallRow kCall{.id = call_number(0),
                                       .name = "cells_grant",
                                       .summary = "lets the session use the node's words",
                                       .right = wire::Right::admin,
                                       .at_device = wire::AtDevice::refused};
  using Reply = Granted;

  static constexpr void fields(auto&, auto&) {}
};

struct Copy {
  static constexpr wire::CallRow kCall{
      .id = call_number(1),
      .name = "cells_copy",
      .summary = "copies a word of the first peer to the second and counts there; answers the word",
      .right = wire::Right::write,
      .at_device = wire::AtDevice::refused,
      .changes = true};
  using Reply = Copied;

  std::uint32_t from = 0;
  std::uint32_t to = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.from, "the word's number");
    message.fixed(self.to, "where it goes");
  }
};

using All = wire::CallList<Grant, Copy>;

}  // namespace cell_calls

/// A node's state for it: its words.
struct NodeCells final : offload::NodePart {
  std::shared_ptr<const Cells> cells = std::make_shared<Cells>();
  std::atomic<int> keys{0};  ///< valid keys
};

/// The word at C that counts the copies that have arrived.
inline constexpr std::uint32_t kCopiesCounted = Cells::kWords - 1;

[[nodiscard]] const offload::Kind& cells_kind();

}  // namespace espalier::example
