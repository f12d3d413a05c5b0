// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/frame_reader.hpp"

#include "base/atomic_bytes.hpp"

namespace espalier::fabric::ofi {

std::optional<FrameReader> FrameReader::open(std::span<const std::byte> frame) {
  using wire::ofi::FrameHead;
  if (frame.size() < sizeof(FrameHead) || frame.size() > wire::ofi::kFrameBytesMax) return {};
  FrameReader reader(frame.subspan(sizeof(FrameHead)));
  reader.head_ = base::load_plain<FrameHead>(frame.data());
  const FrameHead& head = reader.head_;
  const bool reserved = head.reserved[0] != 0 || head.reserved[1] != 0 || head.reserved[2] != 0 ||
                        head.reserved_taken != 0;
  if (head.bytes != frame.size() || reserved || (head.flags & ~wire::ofi::kFlagProbe) != 0) {
    return {};
  }
  return reader;
}

std::optional<Record> FrameReader::next() {
  using wire::ofi::RecordHead;
  if (rest_.size() < sizeof(RecordHead)) return {};
  Record record;
  record.head = base::load_plain<RecordHead>(rest_.data());
  const std::uint32_t payload = record.head.bytes;
  if (payload > wire::ofi::kPayloadMax || wire::ofi::record_bytes(payload) > rest_.size()) {
    return {};
  }
  record.payload = rest_.subspan(sizeof(RecordHead), payload);
  rest_ = rest_.subspan(wire::ofi::record_bytes(payload));
  return record;
}

}  // namespace espalier::fabric::ofi
