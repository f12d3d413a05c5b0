// SPDX-License-Identifier: Apache-2.0
// A frame of a peer, read record by record. All of it is the peer's word: what is taken out lies
// within the frame, and means nothing yet.
//
// Thread: any; plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "wire/fabric_ofi.hpp"

namespace espalier::fabric::ofi {

struct Record {
  wire::ofi::RecordHead head{};
  std::span<const std::byte> payload;

  [[nodiscard]] wire::ofi::RecordKind kind() const {
    return static_cast<wire::ofi::RecordKind>(head.kind);
  }
};

class FrameReader {
 public:
  /// Nothing if these bytes are no frame.
  static std::optional<FrameReader> open(std::span<const std::byte> frame);

  [[nodiscard]] const wire::ofi::FrameHead& head() const { return head_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  /// The next record, or nothing where none begins. Requires: !at_end().
  std::optional<Record> next();
  /// What has not been read.
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

  /// Reads on in records alone, as next() left them.
  explicit FrameReader(std::span<const std::byte> records) : rest_(records) {}

 private:
  wire::ofi::FrameHead head_{};
  std::span<const std::byte> rest_;
};

}  // namespace espalier::fabric::ofi
