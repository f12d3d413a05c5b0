// SPDX-License-Identifier: Apache-2.0
// The frames of switches in a row in src/dataplane/frames: whatever is such a switch makes the same
// of them, to the byte.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "dataplane/p4_entries.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "dataplane/testing/p4_text.hpp"
#include "dataplane/testing/row_checks.hpp"
#include "dataplane/testing/row_corpus.hpp"

namespace espalier::dataplane {
namespace {

using RowFrame = std::vector<std::byte>;
using RowFrames = fabric::roce::CapturedFrames;

std::size_t place_of(const RowCorpusFile& file) {
  return file.hop.first ? 0 : file.hop.last ? 2 : 1;
}

RowFrames sent_on_by(const RowCorpusFile& file) {
  const PacketFunction function = file.program.function();
  RowFrames all;
  for (const RowFrame& frame : file.frames) {
    all.push_back(sent_on(function, place_of(file), 3, frame));
  }
  return all;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(RowCorpus, ItsFilesAreWhatIsMade) {
  std::map<std::string, std::string> files;
  for (const RowCorpusFile& file : row_corpus_files()) {
    files[file.name + ".txt"] = file.program.text();
    files[file.name + ".in.pcap"] = fabric::roce::to_capture(file.frames);
    files[file.name + ".out.pcap"] = fabric::roce::to_capture(sent_on_by(file));
  }
  for (const auto& [name, content] : files) {
    const std::string path = ESPALIER_SOURCE_DIR "/src/dataplane/frames/" + name;
    if (std::getenv("ESPALIER_WRITE_FRAMES") != nullptr) {
      std::ofstream(path, std::ios::binary) << content;
      ADD_FAILURE() << name << " was written";
    }
    EXPECT_TRUE(content_of(path) == content)
        << name << " differs; ESPALIER_WRITE_FRAMES=1 has this test write what is made now";
  }
}

TEST(RowCorpus, EntriesOfP4SayTheSame) {
  const P4Program p4 = read_p4(content_of(ESPALIER_SOURCE_DIR "/dataplane/p4/index.p4"));
  for (const RowCorpusFile& file : row_corpus_files()) {
    SCOPED_TRACE(file.name);
    const auto text = p4_entries(file.program);
    ASSERT_TRUE(text) << text.error();
    std::vector<P4Entry> entries;
    ASSERT_EQ(read_entries(p4, *text, entries), "");
    auto back = program_of(entries);
    ASSERT_TRUE(back);
    RowCorpusFile of_p4 = file;
    of_p4.program = *std::move(back);
    EXPECT_EQ(sent_on_by(of_p4), sent_on_by(file));
  }
}

// Of right checksums come right ones, and behind the last switch is what one switch with all tables
// makes, or what came.
TEST(RowCorpus, WhatGoesOnIsRightByDefinition) {
  const PacketFunction whole = row_corpus_whole().function();
  std::map<Outcome, std::size_t> met;
  for (const RowCorpusFile& file : row_corpus_files()) {
    SCOPED_TRACE(file.name);
    const PacketFunction function = file.program.function();
    for (const RowFrame& frame : file.frames) {
      Processed done;
      const RowFrame out = sent_on(function, place_of(file), 3, frame, &done);
      ++met[done.outcome];
      const bool same =
          done.outcome <= Outcome::read_passed || done.outcome == Outcome::shim_passed;
      EXPECT_EQ(out == frame, same);
      if (out.empty() || same) continue;
      RowFrame sealed = out;
      const std::size_t sum = udp_offset(out) + wire::kUdpChecksumOffset;
      seal_headers_by_definition(sealed, load16(out.data() + sum) != 0);
      EXPECT_EQ(sealed == out, is_whole(frame));
    }
  }
  for (const Outcome outcome :
       {Outcome::passed, Outcome::read_passed, Outcome::redirected, Outcome::carried,
        Outcome::shim_passed, Outcome::shim_removed, Outcome::shim_dropped}) {
    EXPECT_GE(met[outcome], 3u) << static_cast<int>(outcome);
  }
  // The READs of the first go through all three.
  const auto files = row_corpus_files();
  for (const RowFrame& frame : files[0].frames) {
    RowFrame through = frame;
    if (find_read_request(through).ib.empty()) continue;
    for (const RowCorpusFile& file : files) {
      through = sent_on(file.program.function(), place_of(file), 3, std::move(through));
    }
    RowFrame expected = frame;
    whole.process(expected);
    EXPECT_EQ(through, expected);
  }
}

}  // namespace
}  // namespace espalier::dataplane
