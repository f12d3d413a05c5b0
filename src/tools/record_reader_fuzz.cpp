// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file, under any options: the reader must end, in bounded memory, and keep its
// promises about line numbers; and what the writer makes of its records it must read back.
//
// The first bytes choose: format, options, size of the pieces in which the bytes arrive.
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/record_reader.hpp"
#include "tools/record_writer.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

constexpr Format kFormats[] = {Format::lines, Format::csv, Format::tsv, Format::json_lines};

void require(bool holds) {
  if (!holds) std::abort();
}

struct Pair {
  std::string key;
  std::string value;
  friend bool operator==(const Pair&, const Pair&) = default;
};

/// Everything in `bytes`, with the reader's promises checked on the way.
std::vector<Pair> read_all(const std::string& bytes, const ReaderOptions& options,
                           std::size_t piece_bytes) {
  MemorySource source(bytes, piece_bytes);
  RecordReader reader(source, options);
  std::vector<Pair> pairs;
  std::uint64_t line = 0;
  std::uint64_t reports = 0;
  for (;;) {
    const RecordReader::Next next = reader.next();
    if (next == RecordReader::Next::end) break;
    require(next != RecordReader::Next::failed);
    const bool good = next == RecordReader::Next::record;
    const std::uint64_t here = good ? reader.record().line : reader.bad().line;
    require(here > line);
    line = here;
    if (good) {
      pairs.push_back({std::string(reader.record().key), std::string(reader.record().value)});
    } else {
      require(!reader.bad().reason.empty());
      ++reports;
    }
  }
  require(pairs.size() + reports + reader.blank_lines() <= bytes.size() + 1);
  // A leading byte-order mark, at most, is not consumed as part of a record.
  require(reader.consumed_bytes() == bytes.size());
  return pairs;
}

void check_round_trip(const std::vector<Pair>& pairs, Format format, std::size_t piece_bytes) {
  std::string text;
  RecordWriter writer(format);
  std::vector<Pair> kept;
  for (const Pair& pair : pairs) {
    const std::size_t before = text.size();
    if (writer.append(text, pair.key, pair.value)) {
      require(text.size() == before);
      continue;
    }
    kept.push_back({pair.key, format == Format::lines ? "" : pair.value});
  }
  ReaderOptions options;
  options.format = format;
  require(read_all(text, options, piece_bytes) == kept);
}

void run_one(std::string bytes) {
  if (bytes.size() < 4) return;
  const auto choice = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  ReaderOptions options;
  if (choice(0) % 5 < 4) options.format = kFormats[choice(0) % 5];
  options.header = (choice(1) & 1) != 0;
  options.number_lines = (choice(1) & 2) != 0;
  options.separator = (choice(1) & 4) != 0 ? ';' : ',';
  options.key_column = 1 + (choice(1) >> 3) % 4;
  if ((choice(1) & 0x20) != 0) options.value_column = 1 + (choice(1) >> 6);
  if (choice(2) % 4 == 0) options.record_bytes_max = 1 + choice(2);
  const std::size_t piece_bytes = 1 + choice(3);
  bytes.erase(0, 4);

  const std::vector<Pair> pairs = read_all(bytes, options, piece_bytes);
  require(read_all(bytes, options, bytes.size() + 1) == pairs);
  for (const Format format : kFormats) check_round_trip(pairs, format, piece_bytes);
}

}  // namespace
}  // namespace espalier::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tools::run_one(std::string(data, data + size));
  return 0;
}
