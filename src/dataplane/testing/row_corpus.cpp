// SPDX-License-Identifier: Apache-2.0
#include "dataplane/testing/row_corpus.hpp"

#include <utility>

#include "base/random.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "dataplane/way_tables.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::dataplane {
namespace {

using RowFrame = std::vector<std::byte>;
using RowFrames = fabric::roce::CapturedFrames;
using ShimWords = std::array<std::uint8_t, 16>;

constexpr MapKeys kCorpusKeys{0xABCD'0031, 0xABCD'0032};
constexpr std::uint32_t kCorpusGeneration = 0xC0DE'0001;
constexpr std::uint64_t kLeafNumbers = 1'000'003;  // of each leaf
constexpr std::size_t kLeaves = 4096;
// Numbers of a child of the fat root, and of a node of the first set.
constexpr std::uint64_t kUnderRange = 512 * kLeafNumbers;
constexpr std::uint64_t kUnderNode = 64 * kLeafNumbers;

WayBudget corpus_way() { return {.ranges = 8, .hops = {{0, 1}, {1, 8}, {2, 600}}}; }

IndexTables corpus_tables() {
  const TreeImage tree = even_tree(4, 8, kLeafNumbers, std::vector<std::uint64_t>(kLeaves, 1));
  return compile(tree, *limits_of(corpus_way())).tables;
}

void put_be(std::uint8_t* to, std::uint64_t number, std::size_t bytes) {
  for (; bytes-- != 0; number >>= 8) to[bytes] = static_cast<std::uint8_t>(number);
}

struct ShimFields {
  std::uint8_t version_kind = 0x11;
  std::uint8_t hops = 2;
  std::uint16_t server = 0;
  std::uint32_t generation = kCorpusGeneration;
  std::uint32_t cursor = 0;
  std::uint16_t port = 4791;
};

ShimWords words_of(const ShimFields& fields) {
  ShimWords shim{};
  shim[0] = fields.version_kind;
  shim[1] = fields.hops;
  put_be(&shim[2], fields.server, 2);
  put_be(&shim[4], fields.generation, 4);
  put_be(&shim[8], fields.cursor, 4);
  put_be(&shim[12], fields.port, 2);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < shim.size(); i += 2)
    sum += std::uint32_t{shim[i]} * 256 + shim[i + 1];
  put_be(&shim[14], 0xFFFF - (sum % 0xFFFF), 2);
  return shim;
}

RowFrame draw_corpus_read(base::Random& random, std::uint64_t number) {
  const bool v6 = random.chance(0.5);
  const bool tag = random.chance(0.3);
  const bool checksum = random.chance(0.5);
  const auto header = fabric::roce::sample::frame_header(random, v6, tag);
  fabric::roce::Headers headers;
  headers.bth.opcode = fabric::roce::PacketOpcode::read_request;
  headers.bth.psn = static_cast<std::uint32_t>(random.below(1 << 24));
  headers.reth = {number, kCorpusKeys.keyed, 1024};
  RowFrame frame = sealed_frame(header, headers);
  seal_by_definition(frame, checksum);
  return frame;
}

// What may come with a cursor for a part whose nodes are of so many numbers each, with so many
// hops.
RowFrames shim_frames(base::Random& random, std::uint64_t numbers_of_node, std::uint8_t hops) {
  RowFrames frames;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t number = random.below(kLeaves * kLeafNumbers);
    const RowFrame read = draw_corpus_read(random, number);
    ShimFields right;
    right.cursor = static_cast<std::uint32_t>(number / numbers_of_node);
    right.hops = hops;
    const auto add = [&](const ShimFields& fields) {
      frames.push_back(with_shim_by_definition(read, words_of(fields)));
    };
    add(right);
    ShimFields wrong = right;
    switch (i % 8) {
      case 0: ++wrong.generation; break;
      case 1: wrong.server = 1; break;
      case 2: wrong.cursor = 1'000'000; break;
      case 3: wrong.version_kind = 0x21; break;
      case 4: wrong.version_kind = 0x12; break;
      case 5: wrong.port = 4792; break;
      case 6: wrong.cursor = (right.cursor + 1) % 8; break;
      default: wrong.hops = static_cast<std::uint8_t>(i / 8 == hops ? 5 : i / 8); break;
    }
    add(wrong);
  }
  // Damaged in each byte of the shim, in the packet, and cut.
  const RowFrame good =
      with_shim_by_definition(draw_corpus_read(random, 5), words_of({.hops = hops}));
  const std::size_t udp = udp_offset(good);
  for (std::size_t place = udp + 2; place < good.size(); ++place) {
    frames.push_back(good);
    frames.back()[place] ^= std::byte{0x08};
  }
  for (std::size_t bytes = udp; bytes < good.size(); ++bytes) {
    frames.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  return frames;
}

}  // namespace

RowFrame with_shim_by_definition(const RowFrame& frame, const ShimWords& shim) {
  const std::size_t udp = udp_offset(frame);
  const std::size_t ip = ip_offset(frame);
  const bool v6 = std::to_integer<unsigned>(frame[ip]) >> 4 == 6;
  const bool checksum = frame[udp + 6] != std::byte{0} || frame[udp + 7] != std::byte{0};
  RowFrame made = frame;
  const auto bytes = std::as_bytes(std::span(shim));
  made.insert(made.begin() + static_cast<std::ptrdiff_t>(udp + 8), bytes.begin(), bytes.end());
  base::store_be(made.data() + udp + 2, std::uint16_t{4759});
  for (const std::size_t length : {udp + 4, ip + (v6 ? 4 : 2)}) {
    const auto before = base::load_be<std::uint16_t>(made.data() + length);
    base::store_be(made.data() + length, static_cast<std::uint16_t>(before + 16));
  }
  seal_headers_by_definition(made, checksum);
  return made;
}

SwitchProgram row_corpus_whole() {
  SwitchProgram whole;
  static_cast<void>(whole.add({kCorpusKeys, corpus_tables(), {}}));
  return whole;
}

std::array<RowCorpusFile, 3> row_corpus_files() {
  auto programs = cut_program(kCorpusKeys, corpus_tables(), corpus_way(), kCorpusGeneration);
  std::array<RowCorpusFile, 3> files;
  const std::string names[] = {"row_first", "row_middle", "row_last"};
  const std::uint64_t numbers_of_node[] = {kUnderRange, kUnderRange, kUnderNode};
  for (std::size_t at = 0; at < files.size(); ++at) {
    base::Random random(30 + at);
    files[at].name = names[at];
    files[at].program = std::move(programs[at]);
    files[at].hop = {at == 0, at + 1 == files.size(), kShimBytes};
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t edge = random.below(kLeaves + 1) * kLeafNumbers;
      files[at].frames.push_back(draw_corpus_read(random, edge - random.below(2)));
    }
    const RowFrames more = shim_frames(random, numbers_of_node[at], at == 2 ? 1 : 2);
    files[at].frames.insert(files[at].frames.end(), more.begin(), more.end());
  }
  return files;
}

}  // namespace espalier::dataplane
