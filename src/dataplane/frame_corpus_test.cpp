// SPDX-License-Identifier: Apache-2.0
// The frames in src/dataplane/frames: whatever is a switch makes the same of them, to the byte.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "dataplane/memif_switch.hpp"
#include "dataplane/p4_entries.hpp"
#include "dataplane/process_switch.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "dataplane/testing/p4_text.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/roce/exchange.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/packet.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::dataplane {
namespace {

using Frame = std::vector<std::byte>;
using Frames = fabric::roce::CapturedFrames;

const std::string kFolder = ESPALIER_SOURCE_DIR "/src/dataplane/frames/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// As committed.
Frames committed(const std::string& name) {
  const auto frames = fabric::roce::parse_capture(read_file(kFolder + name));
  EXPECT_TRUE(frames) << name;
  return frames.value_or(Frames{});
}

Frame processed(const PacketFunction& function, Frame frame) {
  function.process(frame);
  return frame;
}

Frames processed(const PacketFunction& function, const Frames& frames) {
  Frames all;
  for (const Frame& frame : frames) all.push_back(processed(function, frame));
  return all;
}

/// All frames that come and, of the same place, those that go on.
void for_each_file(const std::function<void(const CorpusFile&, const Frames&, const Frames&)>& f) {
  for (const CorpusFile& file : corpus_files()) {
    SCOPED_TRACE(file.name);
    f(file, committed(file.name + ".in.pcap"), committed(file.name + ".out.pcap"));
  }
}

/// Cut behind the IP packet.
Frame without_filling(const Frame& frame) {
  const std::size_t ip = ip_offset(frame);
  const bool v6 = std::to_integer<unsigned>(frame[ip]) >> 4 == 6;
  const auto length = base::load_be<std::uint16_t>(frame.data() + ip + (v6 ? 4 : 2));
  const std::size_t end = ip + length + (v6 ? wire::kIpv6Bytes : 0);
  return {frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::uint16_t udp_checksum(const Frame& frame) {
  return base::load_be<std::uint16_t>(frame.data() + udp_offset(frame) + wire::kUdpChecksumOffset);
}

/// Writes the files if the environment asks for it.
bool write_file(const std::string& name, const std::string& content) {
  if (std::getenv("ESPALIER_WRITE_FRAMES") == nullptr) return false;
  std::ofstream(kFolder + name, std::ios::binary) << content;
  return true;
}

TEST(FrameCorpus, ItsFilesAreWhatIsMade) {
  const SwitchProgram program = corpus_program();
  const PacketFunction function = program.function();
  std::map<std::string, std::string> files{{"program.txt", program.text()}};
  for (const CorpusFile& file : corpus_files()) {
    files[file.name + ".in.pcap"] = fabric::roce::to_capture(file.frames);
    files[file.name + ".out.pcap"] = fabric::roce::to_capture(processed(function, file.frames));
  }
  for (const auto& [name, content] : files) {
    if (write_file(name, content)) ADD_FAILURE() << name << " was written";
    EXPECT_TRUE(read_file(kFolder + name) == content)
        << name << " differs; ESPALIER_WRITE_FRAMES=1 has this test write what is made now";
  }
}

// In bursts of all lengths, in which some frames are redirected and some pass.
TEST(FrameCorpus, BurstsAreProcessedAsEachFrameAlone) {
  const PacketFunction function = corpus_program().function();
  Frames all;
  for_each_file([&](const CorpusFile&, const Frames& in, const Frames&) {
    all.insert(all.end(), in.begin(), in.end());
  });
  base::Random random(base::seed_from_environment(1));
  std::size_t redirected = 0;
  for (int round = 0; round < 300; ++round) {
    Frames burst;
    for (std::uint64_t left = random.below(200); left != 0; --left) {
      burst.push_back(all[random.below(all.size())]);
    }
    const Frames before = burst;
    const std::vector<std::span<std::byte>> frames(burst.begin(), burst.end());
    std::vector<Processed> done(burst.size(), {Outcome::redirected, 9});
    function.process(frames, done);
    for (std::size_t i = 0; i < burst.size(); ++i) {
      Frame alone = before[i];
      ASSERT_EQ(done[i], function.process(alone)) << "round " << round;
      ASSERT_EQ(burst[i], alone) << "round " << round;
      redirected += done[i].outcome == Outcome::redirected ? 1 : 0;
    }
  }
  EXPECT_GT(redirected, 0u);
}

TEST(FrameCorpus, ItHasWhatDecides) {
  std::set<std::pair<bool, unsigned>> opcodes;
  std::map<std::string, std::size_t> redirected;
  std::set<std::size_t> sets;
  std::size_t ones_before = 0, ones_after = 0, none = 0;
  const PacketFunction function = corpus_program().function();
  for_each_file([&](const CorpusFile& file, const Frames& in, const Frames& out) {
    ASSERT_EQ(in.size(), out.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      Frame frame = in[i];
      const Processed done = function.process(frame);
      EXPECT_EQ(done.outcome == Outcome::redirected, in[i] != out[i]);
      if (file.name == "opcodes") {
        const auto parsed = fabric::roce::parse_frame(in[i]);
        ASSERT_TRUE(parsed);
        opcodes.emplace(parsed->flow.source.is_v6, std::to_integer<unsigned>(parsed->ib[0]));
      }
      if (done.outcome != Outcome::redirected) continue;
      ++redirected[file.name];
      sets.insert(done.sets);
      ones_before += udp_checksum(in[i]) == 0xFFFF ? 1 : 0;
      ones_after += udp_checksum(out[i]) == 0xFFFF ? 1 : 0;
      none += udp_checksum(in[i]) == 0 ? 1 : 0;
      EXPECT_EQ(udp_checksum(in[i]) == 0, udp_checksum(out[i]) == 0);
    }
  });
  EXPECT_EQ(opcodes.size(), 2 * (0x15 + 2)) << "all of both versions of IP";
  EXPECT_EQ(redirected["opcodes"], 4u);
  EXPECT_GT(redirected["keys"], 150u);
  EXPECT_GT(redirected["headers"], 30u);
  EXPECT_EQ(redirected["damaged"], 30u);
  EXPECT_EQ(redirected.size(), 4u) << "none that is malformed";
  EXPECT_EQ(sets, (std::set<std::size_t>{0, 1, 2, 3})) << "of nodes that took part";
  EXPECT_GE(ones_before, 1u);
  EXPECT_GE(ones_after, 1u);
  EXPECT_GE(none, 50u);
}

// What comes out holds against the tables' own look-up, and checksums against their definition.
TEST(FrameCorpus, WhatGoesOnIsRightByDefinition) {
  const SwitchProgram program = corpus_program();
  for_each_file([&](const CorpusFile& file, const Frames& in, const Frames& out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      SCOPED_TRACE(i);
      for (const Frame& frame : {in[i], out[i]}) {
        if (file.name == "malformed") break;
        const Frame cut = without_filling(frame);
        Frame sealed = cut;
        seal_by_definition(sealed, udp_checksum(cut) != 0);
        EXPECT_EQ(sealed == cut, file.whole);
      }
      if (in[i] == out[i]) continue;
      const std::size_t reth = udp_offset(in[i]) + wire::kUdpBytes + sizeof(wire::roce::BthBytes);
      const auto key = base::load_be<std::uint32_t>(in[i].data() + reth + 8);
      const auto map = std::ranges::find(program.maps(), key,
                                         [](const SwitchMap& each) { return each.keys.keyed; });
      ASSERT_NE(map, program.maps().end());
      const auto number = base::load_be<std::uint64_t>(in[i].data() + reth);
      EXPECT_EQ(base::load_be<std::uint64_t>(out[i].data() + reth),
                find(map->tables, number).address);
      EXPECT_EQ(base::load_be<std::uint32_t>(out[i].data() + reth + 8), map->keys.redirect);
    }
  });
}

TEST(FrameCorpus, EntriesOfP4SayTheSame) {
  const P4Program p4 = read_p4(read_file(ESPALIER_SOURCE_DIR "/dataplane/p4/index.p4"));
  const auto text = p4_entries(corpus_program());
  ASSERT_TRUE(text) << text.error();
  std::vector<P4Entry> entries;
  ASSERT_EQ(read_entries(p4, *text, entries), "");
  const auto back = program_of(entries);
  ASSERT_TRUE(back);
  const PacketFunction function = back->function();
  for_each_file([&](const CorpusFile&, const Frames& in, const Frames& out) {
    EXPECT_EQ(processed(function, in), out);
  });
}

/// Client and node at either side of a switch, which send and take frames as they are.
class FramesThroughMemif {
 public:
  FramesThroughMemif() {
    function_.install(corpus_program().function());
    auto listening = fabric::shm::ListeningSocket::open(path("node"));
    switch_ = *MemifSwitch::open({path("clients"), path("node")}, function_);
    client_ = *fabric::memif::MemifLink::dial(path("clients"), 3);
    for (int turn = 0; turn < 10'000'000 && !up(); ++turn) {
      const auto any = [](std::uint32_t) { return true; };
      client_->progress(any);
      switch_->poll();
      if (node_) {
        node_->progress(any);
        continue;
      }
      memory::Descriptor socket(
          ::accept4(listening->number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket) node_ = fabric::memif::MemifLink::accept(std::move(socket));
    }
    EXPECT_TRUE(up());
  }
  ~FramesThroughMemif() { switch_.reset(); }

  Frames to_node(const Frames& frames) { return through(*client_, *node_, frames); }
  Frames to_client(const Frames& frames) { return through(*node_, *client_, frames); }

 private:
  using Link = fabric::memif::MemifLink;

  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] bool up() const {
    return node_ && node_->state() == Link::State::up && client_->state() == Link::State::up &&
           switch_->links() == 1;
  }
  // One by one: what a switch gives out it gives out in this order.
  Frames through(Link& from, Link& to, const Frames& frames) {
    Frames come;
    fabric::memif::Arrivals arrivals;
    for (const Frame& frame : frames) {
      std::byte* const at = from.out().begin(frame.size());
      if (at == nullptr) break;
      std::ranges::copy(frame, at);
      from.out().end();
      from.out().publish();
      std::vector<std::span<std::byte>> taken;
      for (int turn = 0; turn < 10'000 && taken.empty(); ++turn) {
        switch_->poll();
        to.in().take(1, arrivals, taken);
      }
      if (!taken.empty()) come.emplace_back(taken.front().begin(), taken.front().end());
      arrivals.clear();
    }
    return come;
  }

  base::TemporaryFolder folder_;
  InstalledFunction function_;
  std::unique_ptr<MemifSwitch> switch_;
  std::unique_ptr<Link> client_;
  std::unique_ptr<Link> node_;
};

TEST(FrameCorpus, ASwitchBetweenMemifLinksDoesTheSame) {
  FramesThroughMemif line;
  for_each_file([&](const CorpusFile&, const Frames& in, const Frames& out) {
    EXPECT_EQ(line.to_node(in), out);
    EXPECT_EQ(line.to_client(in), in) << "a node's word is the clients' affair";
  });
}

// Ports of one process know no frames; so the packets within are held against those that come.
TEST(FrameCorpus, ASwitchBetweenPortsOfOneProcessDoesTheSame) {
  using fabric::roce::PortAddress;
  InstalledFunction function;
  function.install(corpus_program().function());
  fabric::roce::PortExchange exchange([&function] {
    return [at = std::make_shared<ProcessSwitch>(function)](
               const PortAddress& from, const PortAddress& to, std::span<std::byte> ib) {
      at->process(from, to, ib);
    };
  });
  for_each_file([&](const CorpusFile& file, const Frames& in, const Frames& out) {
    if (!file.plain) return;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto frame = *fabric::roce::parse_frame(in[i]);
      const auto expected = *fabric::roce::parse_frame(out[i]);
      const auto client = *exchange.open({frame.flow.source, frame.flow.source_port});
      const auto node = *exchange.open({frame.flow.destination, frame.flow.destination_port});
      const auto content = frame.ib.first(frame.ib.size() - wire::roce::kIcrcBytes);
      std::ranges::copy(content, client->begin(node->address(), content.size()));
      client->seal();
      client->flush();
      const auto come = node->receive();
      ASSERT_EQ(come.size(), 1u);
      EXPECT_EQ(come[0].from, client->address());
      EXPECT_TRUE(std::ranges::equal(come[0].ib, expected.ib)) << i;
    }
  });
}

}  // namespace
}  // namespace espalier::dataplane
