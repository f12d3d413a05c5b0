// SPDX-License-Identifier: Apache-2.0
// The RoCEv2 packets against two independent programs: tshark dissects every header and connection
// message, scapy checks every ICRC, and the checksums of frames that switches have changed. The
// captures have packets of all kinds, over IPv4 and IPv6.
//
// tshark does not check the ICRC. Its heuristic dissectors of payloads are off, for they report
// foreign payloads as malformed. Nothing else may be malformed.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "fabric/roce/testing/capture.hpp"
#include "tests/support/roce_samples.hpp"

namespace espalier::fabric::roce {
namespace {

using sample::all_samples;
using sample::hex;
using sample::Sample;
using sample::Value;

void write_capture(const std::filesystem::path& path, const std::vector<Sample>& samples) {
  CapturedFrames frames;
  for (const Sample& sample : samples) frames.push_back(sample.frame);
  std::ofstream file(path, std::ios::binary);
  ASSERT_TRUE(file << to_capture(frames) << std::flush);
}

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The lines that a command prints. Fails if it does not end well, or is not there.
std::vector<std::string> lines_of(const base::TemporaryFolder& folder, const std::string& command) {
  const std::string out = (folder / "out").string();
  const std::string err = (folder / "err").string();
  const int status = std::system((command + " >" + out + " 2>" + err).c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << command << "\n"
      << content(err) << "\nscripts/install-packages.sh --tests installs what this test needs";
  std::vector<std::string> lines;
  std::istringstream stream(content(out));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns(1);
  for (const char c : line) {
    if (c == '\t') {
      columns.emplace_back();
    } else {
      columns.back() += c;
    }
  }
  return columns;
}

/// Whether a field, as tshark shows it, is this.
bool is(const std::string& shown, const Value& expected) {
  if (const auto* const text = std::get_if<std::string>(&expected)) return shown == *text;
  const std::uint64_t number = std::get<std::uint64_t>(expected);
  if (shown == "True" || shown == "False") return number == (shown == "True");
  return !shown.empty() && std::strtoull(shown.c_str(), nullptr, 0) == number;
}

TEST(RoceOraclesSlow, TsharkReadsWhatWeWrote) {
  const auto samples = all_samples(base::seed_from_environment(81));
  const base::TemporaryFolder folder;
  write_capture(folder / "all.pcap", samples);
  std::set<std::string> names;
  for (const Sample& sample : samples) {
    for (const auto& [name, value] : sample.fields) names.insert(name);
  }
  // Without the user's settings and name look-ups, and with the first of repeated fields.
  std::string command = "HOME=" + folder.string() + " tshark -n -r " +
                        (folder / "all.pcap").string() + " -T fields -E occurrence=f" +
                        " -e _ws.malformed";
  for (const std::string& name : names) command += " -e " + name;
  for (const char* const guesser : {"drbd", "fcoib", "infiniband.eoib", "infiniband_sdp", "iser",
                                    "lnet", "nvme-rdma", "rpcordma", "smb_direct", "smc"}) {
    command += std::string(" --disable-protocol ") + guesser;
  }
  const auto lines = lines_of(folder, command);
  ASSERT_EQ(lines.size(), samples.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto columns = columns_of(lines[i]);
    ASSERT_EQ(columns.size(), names.size() + 1) << samples[i].name;
    EXPECT_EQ(columns[0], "") << samples[i].name;
    std::size_t column = 0;
    for (const std::string& name : names) {
      const std::string& shown = columns[++column];
      const auto expected = samples[i].fields.find(name);
      if (expected == samples[i].fields.end()) continue;
      EXPECT_TRUE(is(shown, expected->second))
          << samples[i].name << ": " << name << " is shown as '" << shown << "', not '"
          << (expected->second.index() == 0 ? std::to_string(std::get<0>(expected->second))
                                            : std::get<1>(expected->second))
          << "'";
    }
  }
}

/// scapy's results for each frame of a file: the ICRC, and the UDP checksum.
std::vector<std::pair<std::string, std::string>> asked_of_scapy(const std::filesystem::path& path) {
  const base::TemporaryFolder folder;
  // Debian's own interpreter: another one that comes first on the path has not Debian's modules.
  const auto lines =
      lines_of(folder, std::string("HOME=") + folder.string() +
                           " /usr/bin/python3 " ESPALIER_SOURCE_DIR "/tests/roce_scapy_icrc.py " +
                           path.string());
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& line : lines) {
    const std::size_t blank = line.find(' ');
    all.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return all;
}

TEST(RoceOraclesSlow, ScapyComesToTheSameIcrc) {
  const auto samples = all_samples(base::seed_from_environment(82));
  const base::TemporaryFolder folder;
  write_capture(folder / "all.pcap", samples);
  const auto said = asked_of_scapy(folder / "all.pcap");
  ASSERT_EQ(said.size(), samples.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_EQ(said[i].first, hex(std::span(samples[i].frame).last(4))) << samples[i].name;
  }
}

// The frames that switches are held against: as they come, and as a switch sends them on.
TEST(RoceOraclesSlow, ScapyComesToTheChecksumsOfTheCorpusOfSwitches) {
  const std::filesystem::path corpus(ESPALIER_SOURCE_DIR "/src/dataplane/frames");
  std::size_t right = 0, wrong = 0;
  for (const std::string file : {"opcodes", "keys", "headers", "damaged"}) {
    for (const std::string side : {".in", ".out"}) {
      const std::filesystem::path path = corpus / (file + side + ".pcap");
      const auto frames = parse_capture(content(path));
      ASSERT_TRUE(frames) << path;
      const auto said = asked_of_scapy(path);
      ASSERT_EQ(said.size(), frames->size()) << path;
      for (std::size_t i = 0; i < said.size(); ++i) {
        const auto ip = std::span((*frames)[i]).subspan(dataplane::ip_offset((*frames)[i]));
        const std::size_t udp = dataplane::udp_offset((*frames)[i]);
        const bool v6 = std::to_integer<unsigned>(ip[0]) >> 4 == 6;
        const auto length = base::load_be<std::uint16_t>(ip.data() + (v6 ? 4 : 2));
        const auto packet = ip.first(length + (v6 ? 40u : 0u));
        const auto checksum = std::span((*frames)[i]).subspan(udp + 6, 2);
        const bool good = said[i].first == hex(packet.last(4)) &&
                          (hex(checksum) == "0000" || said[i].second == hex(checksum));
        EXPECT_EQ(good, file != "damaged") << path << ", frame " << i;
        ++(good ? right : wrong);
      }
    }
  }
  EXPECT_GT(right, 700u);
  EXPECT_GT(wrong, 50u);
}

}  // namespace
}  // namespace espalier::fabric::roce
