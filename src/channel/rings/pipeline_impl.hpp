// SPDX-License-Identifier: Apache-2.0
// What stands behind a Pipeline, whatever kind of map it is of and wherever that lies.
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

/// Who knows where reads may enter a map. Thread: that of the requests.
class HintSource {
 public:
  /// A node (wire::Ref) at which this read may begin; 0: none is known. It may be any: what comes
  /// of a wrong one is the same, later.
  /// It must not throw, nor use the requests' lane: the read is about to be sent there.
  [[nodiscard]] virtual std::uint64_t hint_of(const Request& read) noexcept = 0;

 protected:
  ~HintSource() = default;
};

/// What a walk of requests is told besides them: which map, and what to read it as of.
struct Scope {
  std::uint32_t map = 0;
  std::uint32_t max_key_bytes = 0;
  std::uint64_t snapshot = 0;  // its number; 0: none
  /// Which call of the map's kind an operation is; `invalid`: it has none, and such requests are
  /// `unsupported`. Null: those of ordered maps.
  wire::OffloadId (*call_of)(Op) = nullptr;
  HintSource* hints = nullptr;  // null: none has any
};

}  // namespace espalier::client
