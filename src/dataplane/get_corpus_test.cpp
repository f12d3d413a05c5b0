// SPDX-License-Identifier: Apache-2.0
// The frames of gets in datagrams in src/dataplane/frames: whatever is a switch that writes hints
// makes the same of them, to the byte.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/switch_program.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "dataplane/testing/get_frame.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/testing/row_checks.hpp"
#include "fabric/roce/testing/sample_packets.hpp"
#include "wire/ref.hpp"

namespace espalier::dataplane {
namespace {

using GetFrame = std::vector<std::byte>;
using GetFrames = fabric::roce::CapturedFrames;

const HintTerms kCorpusTerms{11, 0x1234'5678'0000'0000, "user"};

SwitchProgram get_corpus_program() {
  base::Random random(60);
  TreeImage tree = random_tree(random, {.levels = 4, .children_max = 10, .here = 0.05});
  for (NodeNumber node = 0; node < tree.size(); ++node) {
    tree.set_address(node, kCorpusTerms.base + (node + 1) * wire::kBlockBytes);
  }
  SwitchProgram program;
  const auto tables = compile(tree, {.ranges = 24, .sets = 2, .nodes_per_set = 24}).tables;
  EXPECT_TRUE(program.add({{0xABCD'0041, 0xABCD'0042}, tables, {}, kCorpusTerms}));
  return program;
}

GetFrames get_corpus_frames() {
  base::Random random(61);
  GetFrames frames;
  for (int i = 0; i < 120; ++i) {
    std::string key(i % 10 == 0 ? "other" : kCorpusTerms.prefix);
    key.resize(key.size() - random.below(2));
    for (std::uint64_t left = random.below(14); left != 0; --left) {
      key += static_cast<char>(random.below(256));
    }
    const bool v6 = random.chance(0.5);
    const bool tag = random.chance(0.3);
    const bool checksum = random.chance(0.7);
    const auto header = fabric::roce::sample::frame_header(random, v6, tag);
    GetFrame frame = get_frame(header, kCorpusTerms.map, key, checksum);
    // A hint of a switch before, or a random one.
    if (i % 4 == 0) {
      random.fill(std::span(hint_in(frame), sizeof(std::uint64_t)));
      seal_headers_by_definition(frame, checksum);
    }
    frames.push_back(frame);
  }
  const GetFrame good = frames.front();
  for (std::size_t place = udp_offset(good); place < good.size(); ++place) {
    frames.push_back(good);
    frames.back()[place] ^= std::byte{0x04};
  }
  for (std::size_t bytes = udp_offset(good); bytes < good.size(); ++bytes) {
    frames.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  return frames;
}

GetFrames hinted(const PacketFunction& function, GetFrames frames) {
  for (GetFrame& frame : frames) function.process(frame);
  return frames;
}

std::string content_at(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(GetCorpus, ItsFilesAreWhatIsMade) {
  const GetFrames frames = get_corpus_frames();
  const std::map<std::string, std::string> files{
      {"gets.txt", get_corpus_program().text()},
      {"gets.in.pcap", fabric::roce::to_capture(frames)},
      {"gets.out.pcap", fabric::roce::to_capture(hinted(get_corpus_program().function(), frames))}};
  for (const auto& [name, content] : files) {
    const std::string path = ESPALIER_SOURCE_DIR "/src/dataplane/frames/" + name;
    if (std::getenv("ESPALIER_WRITE_FRAMES") != nullptr) {
      std::ofstream(path, std::ios::binary) << content;
      ADD_FAILURE() << name << " was written";
    }
    EXPECT_TRUE(content_at(path) == content)
        << name << " differs; ESPALIER_WRITE_FRAMES=1 has this test write what is made now";
  }
}

// What a right frame becomes has right checksums by their definition.
TEST(GetCorpus, WhatGoesOnIsRightByDefinition) {
  const GetFrames in = get_corpus_frames();
  const GetFrames out = hinted(get_corpus_program().function(), in);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == out[i]) continue;
    ++changed;
    GetFrame sealed = out[i];
    const std::size_t sum = udp_offset(sealed) + wire::kUdpChecksumOffset;
    seal_headers_by_definition(sealed, load16(sealed.data() + sum) != 0);
    EXPECT_EQ(sealed == out[i], is_whole(in[i])) << i;
  }
  EXPECT_GT(changed, 120u);
  EXPECT_LT(changed, in.size());
}

}  // namespace
}  // namespace espalier::dataplane
