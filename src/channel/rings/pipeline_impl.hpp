// SPDX-License-Identifier: Apache-2.0
// Implementation interface of Pipeline, for each kind of map and each channel.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "channel/interface.hpp"
#include "espalier/types.hpp"
#include "wire/message.hpp"

namespace espalier::client {

class PipelineImpl : public Interface {
 public:
  /// As in Pipeline.
  virtual void submit(std::span<const Request> requests, Handler& handler) = 0;
  virtual std::size_t poll() = 0;
  virtual std::size_t advance() = 0;
  virtual void run(std::span<const Request> requests, Handler& handler) = 0;
};

/// Supplies hints where reads may enter a map. Thread: that of the requests.
class HintSource {
 public:
  /// A node (wire::Ref) at which this read may begin; 0: none known. Any value is safe: a wrong
  /// hint costs time, and does not change the answer.
  /// Must not throw, nor use the requests' lane: the read is about to be sent there.
  [[nodiscard]] virtual std::uint64_t hint_of(const Request& read) noexcept = 0;

 protected:
  ~HintSource() = default;
};

/// The target of a batch of requests: the map, and the snapshot to read.
struct Scope {
  std::uint32_t map = 0;
  std::uint32_t max_key_bytes = 0;
  std::uint64_t snapshot = 0;  // its number; 0: none
  /// Maps an operation to a call of the map's kind; `invalid`: none, and such requests are
  /// `unsupported`. Null: the calls of ordered maps.
  wire::OffloadId (*call_of)(Op) = nullptr;
  HintSource* hints = nullptr;  // null: no hints
};

}  // namespace espalier::client
