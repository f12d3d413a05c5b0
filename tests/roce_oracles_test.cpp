// SPDX-License-Identifier: Apache-2.0
// What two programs of others make of our RoCEv2 packets: tshark of every header and connection
// message, scapy of every ICRC. They come as captures, of all kinds, over IPv4 and IPv6.
//
// tshark does not check the ICRC, and guesses at what payloads are: those who guess are switched
// off, for they call malformed what is not theirs. Nothing else may be malformed.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "tests/support/roce_samples.hpp"

namespace espalier::fabric::roce {
namespace {

using sample::all_samples;
using sample::hex;
using sample::Sample;
using sample::Value;

/// Writes a file of the old capture format, in this machine's byte order as it allows.
void write_capture(const std::filesystem::path& path, const std::vector<Sample>& samples) {
  std::ofstream file(path, std::ios::binary);
  const auto words = [&file](std::initializer_list<std::uint32_t> all) {
    for (const std::uint32_t word : all) {
      file.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
  };
  words({0xA1B2C3D4, 0x0004'0002, 0, 0, 65535, 1 /* Ethernet */});
  for (const Sample& sample : samples) {
    const auto bytes = static_cast<std::uint32_t>(sample.frame.size());
    words({1, 0, bytes, bytes});
    file.write(reinterpret_cast<const char*>(sample.frame.data()), bytes);
  }
  ASSERT_TRUE(file.flush());
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
  // No settings of whoever runs this, no look-ups, the first of several.
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

TEST(RoceOraclesSlow, ScapyComesToTheSameIcrc) {
  const auto samples = all_samples(base::seed_from_environment(82));
  const base::TemporaryFolder folder;
  write_capture(folder / "all.pcap", samples);
  // Debian's own interpreter: another one that comes first on the path has not Debian's modules.
  const auto lines =
      lines_of(folder, std::string("HOME=") + folder.string() +
                           " /usr/bin/python3 " ESPALIER_SOURCE_DIR "/tests/roce_scapy_icrc.py " +
                           (folder / "all.pcap").string());
  ASSERT_EQ(lines.size(), samples.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i], hex(std::span(samples[i].frame).last(4))) << samples[i].name;
  }
}

}  // namespace
}  // namespace espalier::fabric::roce
