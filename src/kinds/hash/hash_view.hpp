// SPDX-License-Identifier: Apache-2.0
// A reader's view of a hash map: the image of its region, and where things begin.
//
// The read algorithm (reading.hpp) is a template over views, of which there are two: this one, of a
// mapped region, and that of bytes that READs bring (remote/remote_view.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/atomic_bytes.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/key_hash.hpp"
#include "kinds/hash/record_view.hpp"

namespace espalier::hash {

[[nodiscard]] inline BucketWord load_bucket_word(const std::byte* bucket) {
  return BucketWord{base::load_shared<std::uint64_t>(bucket, std::memory_order_acquire)};
}

struct HashView {
  const std::byte* image = nullptr;
  std::uint64_t header_offset = 0;
  std::uint32_t partition_bits = 0;
  bool versions = true;
  HashSeed seed;

  [[nodiscard]] KeyHash hash(std::string_view key) const {
    return {hash_key(key, seed), partition_bits};
  }
  [[nodiscard]] const std::byte* partition_line(std::uint32_t partition) const {
    return image + header_offset + sizeof(HashHeader) + std::uint64_t{partition} * kLineBytes;
  }
  /// The current place of the partition's directory; none: nothing was ever written there.
  [[nodiscard]] PlaceWord directory(std::uint32_t partition) const {
    return PlaceWord{base::load_shared<std::uint64_t>(
        partition_line(partition) + offsetof(PartitionLine, directory), std::memory_order_acquire)};
  }
  [[nodiscard]] std::uint64_t purged(std::uint32_t partition) const {
    return base::load_shared<std::uint64_t>(
        partition_line(partition) + offsetof(PartitionLine, purged), std::memory_order_acquire);
  }
  [[nodiscard]] const std::byte* entry(PlaceWord directory, std::uint32_t index) const {
    return image + directory.offset() + sizeof(DirectoryHeader) + std::uint64_t{index} * 8;
  }
  [[nodiscard]] PlaceWord segment(PlaceWord directory, std::uint32_t index) const {
    return PlaceWord{
        base::load_shared<std::uint64_t>(entry(directory, index), std::memory_order_acquire)};
  }
  [[nodiscard]] const std::byte* bucket(PlaceWord segment, std::uint32_t line) const {
    return image + segment.offset() + (std::uint64_t{1} + line) * kLineBytes;
  }
  /// The current header of a bin.
  [[nodiscard]] static BucketWord bucket_word_now(const std::byte* bin) {
    return load_bucket_word(bin);
  }
  /// The record or link that a slot names.
  [[nodiscard]] RecordView record(Slot slot) const { return {image, slot}; }
  [[nodiscard]] static Pair pair(const RecordView& record) { return record.pair(); }
};

}  // namespace espalier::hash
