// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a checkpoint: it is read as a whole or refused, and what is read twice is the
// same. Checksums are made right, unless the first byte says otherwise, so that what lies behind
// them is tried too.
//
//   | how | header, 80 bytes | blocks, each: | length, 2 bytes | bytes |
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "log/checkpoint_reader.hpp"
#include "log/testing/faulty_folder.hpp"

namespace espalier::log {
namespace {

using base::FuzzInput;
using base::want;

constexpr std::uint64_t kFuzzStore = 1;
constexpr std::uint64_t kFuzzNumber = 1;

void add_block(FuzzInput& input, const CheckpointHeader& header, bool right,
               std::vector<std::byte>& bytes) {
  const std::size_t length = input.number<std::uint16_t>() % (2 * kUnitBytes);
  std::vector<std::byte> block(base::round_up(length + 1, kUnitBytes));
  input.fill(std::span(block).first(length));
  if (right) {
    BlockHeader fields{};
    std::memcpy(&fields, block.data(), sizeof fields);
    fields.magic = kBlockMagic;
    fields.block_bytes = static_cast<std::uint32_t>(block.size());
    fields.offset = bytes.size();
    fields.durable = 0;
    fields.salt = block_salt(as_segment(header));
    std::memcpy(block.data(), &fields, sizeof fields);
    fields.crc = checksum_of_block(as_segment(header), block);
    std::memcpy(block.data(), &fields.crc, sizeof fields.crc);
  }
  bytes.insert(bytes.end(), block.begin(), block.end());
}

std::vector<std::byte> make_file(FuzzInput& input) {
  const bool right = (input.byte() & 1) == 0;
  CheckpointHeader header{};
  input.fill(std::as_writable_bytes(std::span(&header, 1)));
  if (right) {
    header.magic = kCheckpointMagic;
    header.version = kCheckpointVersion;
    header.store = kFuzzStore;
    header.number = kFuzzNumber;
    header.reserved = header.reserved_too = 0;
    header.sequence %= 100;
    header.through = header.sequence + header.through % 100;
    header.records %= 10;
  }
  std::vector<std::byte> bytes(kUnitBytes);
  for (int i = 0; i < 8 && !input.over(); ++i) add_block(input, header, right, bytes);
  if (right) {
    header.blocks_end = bytes.size();
    header.crc = checksum_of(header);
  }
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

void run_checkpoint(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  FaultyFolder folder(1);
  folder.put(numbered_name(kCheckpointBegin, kFuzzNumber, kWhole), make_file(input));
  const auto found = find_checkpoints(folder, kFuzzStore);
  if (!found) {
    want(found.error().fault != LogFault::invalid, "an error that is none");
    want(!message(found.error()).empty(), "an error without words");
    return;
  }
  want(found->newest.has_value() == found->damaged.empty(), "neither whole nor damaged");
  if (!found->newest) return;
  std::uint64_t records = 0;
  const auto read = read_checkpoint(
      folder, *found->newest,
      [&](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
        want(sequence == 0, "a record of no checkpoint");
        ++records;
        static_cast<void>(std::string(reinterpret_cast<const char*>(record.data()), record.size()));
        return {};
      });
  want(read.has_value(), "what was whole is not");
  want(records == found->newest->records, "another number of records");
}

}  // namespace
}  // namespace espalier::log

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::log::run_checkpoint(data, size);
  return 0;
}
