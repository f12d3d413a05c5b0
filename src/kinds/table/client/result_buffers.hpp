// SPDX-License-Identifier: Apache-2.0
// Memory into which a node writes the rows of one lane's queries: a few buffers, offered once for
// the lane's response ring, and returned after they are read.
//
// Some nodes do not support this, and rings in shared memory do not need it; then rows come in
// chunks.
//
// The node can write there at any time, whatever it has announced: each byte of a buffer is read
// once.
//
// Thread: one at a time: that of the lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "channel/rings/remote_pipeline.hpp"
#include "kinds/table/format/result_buffers.hpp"

namespace espalier::client {

class ResultBuffers final : public LanePart {
 public:
  static constexpr std::uint32_t kBuffers = 16;
  static constexpr std::uint32_t kBufferBytes = std::uint32_t{256} << 10;

  ResultBuffers() = default;
  ResultBuffers(const ResultBuffers&) = delete;
  ResultBuffers& operator=(const ResultBuffers&) = delete;

  /// Offers them, if not done yet. Returns whether the node may be asked to write there. Cost: the
  /// first time memory and a request. Requires: nothing is in flight.
  bool offer(RemoteRequests& requests, NodeConnection& connection);
  /// The rows at the node's claimed location; nullopt: there is no such place.
  [[nodiscard]] std::optional<std::span<const std::byte>> find(
      const wire::ResultPlace& place) const;

 private:
  std::byte* memory_ = nullptr;  // owned by the connection; null: none was offered
  bool refused_ = false;
  std::uint64_t not_before_ns_ = 0;  // time of the next attempt
};

/// Buffers that one run has read and not returned yet.
class ReadBuffers {
 public:
  void add(std::uint32_t buffer) { buffers_.push_back(buffer); }
  [[nodiscard]] bool empty() const { return buffers_.empty(); }
  /// Whether there are enough of them to justify a message.
  [[nodiscard]] bool many() const { return buffers_.size() >= ResultBuffers::kBuffers / 4; }
  /// Returns them, if there is room for the message; otherwise keeps them for the next time.
  void give_back(RemoteRequests& requests);

 private:
  std::vector<std::uint32_t> buffers_;
};

}  // namespace espalier::client
