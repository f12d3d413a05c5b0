// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the segments of a log: what is read of them is in order, and recovery names
// what it refuses. Checksums are made right, unless the first byte says otherwise, so that what
// lies behind them is tried too.
//
//   | how | segments, each: | blocks | header, 64 bytes | blocks, each: | length, 2 bytes | bytes |
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "log/block_reader.hpp"
#include "log/recovery.hpp"
#include "log/testing/faulty_folder.hpp"

namespace espalier::log {
namespace {

using base::FuzzInput;
using base::want;

constexpr std::uint64_t kNode = 1;

std::vector<std::byte> make_segment(FuzzInput& input, std::uint64_t number, bool right) {
  const std::size_t blocks = input.byte() % 8;
  std::vector<std::byte> bytes(kUnitBytes);
  SegmentHeader header{};
  input.fill(std::as_writable_bytes(std::span(&header, 1)));
  if (right) {
    header.magic = kSegmentMagic;
    header.version = kFormatVersion;
    header.node = kNode;
    header.segment = number;
    header.after_loss &= 1;
    header.segment_bytes = 16 * kUnitBytes;
    header.crc = checksum_of(header);
  }
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t length = input.number<std::uint16_t>() % (2 * kUnitBytes);
    std::vector<std::byte> block(base::round_up(length + 1, kUnitBytes));
    input.fill(std::span(block).first(length));
    if (right) {
      const auto whole = static_cast<std::uint32_t>(block.size());
      const std::uint64_t offset = bytes.size();
      std::memcpy(block.data() + offsetof(BlockHeader, magic), &kBlockMagic, 4);
      std::memcpy(block.data() + offsetof(BlockHeader, block_bytes), &whole, 4);
      std::memcpy(block.data() + offsetof(BlockHeader, offset), &offset, 8);
      const std::uint32_t salt = block_salt(header);
      std::memcpy(block.data() + offsetof(BlockHeader, salt), &salt, 4);
      const auto crc = checksum_of_block(header, block);
      std::memcpy(block.data(), &crc, sizeof crc);
    }
    bytes.insert(bytes.end(), block.begin(), block.end());
  }
  return bytes;
}

void check(FaultyFolder& folder, const RecoveryTerms& terms) {
  std::uint64_t next = terms.from;
  const auto recovered = recover(
      folder, terms,
      [&](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
        want(sequence == next++, "records out of order");
        static_cast<void>(std::string(reinterpret_cast<const char*>(record.data()), record.size()));
        return {};
      });
  if (recovered) {
    want(recovered->next_sequence == next, "the log ends elsewhere");
    want(!recovered->cut || recovered->cut->sequence <= next, "cut behind the end");
  } else {
    want(recovered.error().fault != LogFault::invalid, "an error that is none");
    want(!recovered.error().file.empty(), "an error without a file");
    want(!message(recovered.error()).empty(), "an error without words");
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  FaultyFolder folder(1);
  const std::uint8_t how = input.byte();
  for (std::uint64_t number = 1; number <= 3 && !input.over(); ++number) {
    folder.put(segment_name(number), make_segment(input, number, (how & 1) == 0));
  }
  RecoveryTerms terms{kNode, 1 + how / 64u, {}};
  check(folder, terms);
  terms.accept_loss_from = 1;
  check(folder, terms);
}

}  // namespace
}  // namespace espalier::log

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::log::run(data, size);
  return 0;
}
