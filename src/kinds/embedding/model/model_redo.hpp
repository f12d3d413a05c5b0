// SPDX-License-Identifier: Apache-2.0
// Redo records of a ranking model's weights (docs/formats/records.md). The record of its creation
// has the head of its file; the floats behind that are logged in parts.
//
//   0      16      24       28         32
//   +------+-------+--------+----------+--------
//   | head | first | floats | reserved | floats
//   +------+-------+--------+----------+--------
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::embedding {

/// The type of a model's records.
inline constexpr std::uint8_t kWeightsRedo = catalog::kOwnRedoTypes;

struct WeightsRecord {
  catalog::RedoHead head;
  std::uint64_t first;   // number of its first float in the file
  std::uint32_t floats;  // of this part, not 0
  std::uint32_t reserved;
};
static_assert(sizeof(WeightsRecord) == 32 && offsetof(WeightsRecord, first) == 16);
static_assert(offsetof(WeightsRecord, floats) == 24 && offsetof(WeightsRecord, reserved) == 28);
static_assert(std::has_unique_object_representations_v<WeightsRecord>);

/// Floats of a part: 256 KiB.
inline constexpr std::size_t kWeightsOfAPart = std::size_t{64} << 10;

[[nodiscard]] constexpr std::size_t weights_record_bytes(std::size_t floats) {
  return sizeof(WeightsRecord) + floats * sizeof(float);
}

/// Writes a record. `floats`: their bytes. Requires: weights_record_bytes() of room.
inline void write_weights(std::span<std::byte> to, std::uint32_t model, std::uint64_t first,
                          std::string_view floats) {
  WeightsRecord record{};
  record.head =
      catalog::redo_head(ObjectKind::model, model, kWeightsRedo, sizeof record + floats.size());
  record.first = first;
  record.floats = static_cast<std::uint32_t>(floats.size() / sizeof(float));
  catalog::RedoWriter writer(to);
  writer.part(record);
  writer.text(floats);
}

/// A part as parsed from its record, into which it points.
struct WeightsRedo {
  std::uint32_t model = 0;
  std::uint64_t first = 0;
  std::uint32_t floats = 0;
  std::string_view bytes;
};

/// Parses a record of arbitrary bytes. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<WeightsRedo> read_weights_redo(std::string_view record) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::model);
  if (!head) return std::unexpected(head.error());
  if (head->type != kWeightsRedo) return catalog::corrupt(RedoFault::type);
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<WeightsRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  const std::string_view rest = reader.rest();
  if (fields.floats == 0 || rest.size() != std::size_t{fields.floats} * sizeof(float)) {
    return catalog::corrupt(RedoFault::count);
  }
  return WeightsRedo{head->object, fields.first, fields.floats, rest};
}

}  // namespace espalier::embedding
