// SPDX-License-Identifier: Apache-2.0
#include "dataplane/testing/frame_corpus.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "base/bytes.hpp"
#include "base/crc32.hpp"
#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::dataplane {
namespace {

using Frame = std::vector<std::byte>;
using Frames = fabric::roce::CapturedFrames;
using fabric::roce::FrameHeader;
using fabric::roce::Headers;
using fabric::roce::IpAddress;
using fabric::roce::PacketOpcode;
namespace sample = fabric::roce::sample;

constexpr MapKeys kFirst{0xABCD'0001, 0xABCD'0002};
constexpr MapKeys kSecond{0xABCD'0003, 0xABCD'0004};
constexpr std::size_t kReadBytes = wire::roce::kReadRequestBytes;
// PSNs by which the UDP checksum of a READ of key 0 over IPv4 comes to all ones, which stands for
// 0: as it comes, and as it goes on. A test asks for both.
constexpr std::uint32_t kOnesBefore = 4052;
constexpr std::uint32_t kOnesAfter = 159'225;

TreeImage first_tree() {
  base::Random random(20);
  return random_tree(random, {.levels = 5, .children_max = 12, .here = 0.05});
}

std::uint64_t word_sum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += std::to_integer<std::uint64_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  }
  return sum;
}

// The complement of the sum of 16-bit words, as IP and UDP have it [RFC 1071].
std::uint16_t internet_checksum(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

bool is_v6(std::span<const std::byte> ip) { return std::to_integer<unsigned>(ip[0]) >> 4 == 6; }

std::size_t ip_header_bytes(std::span<const std::byte> ip) {
  return is_v6(ip) ? wire::kIpv6Bytes : (std::to_integer<std::size_t>(ip[0]) & 15) * 4;
}

// Over the bytes as the definition masks them (fabric/roce/icrc.hpp).
void seal_icrc(std::span<std::byte> ip) {
  constexpr std::byte kOnes{0xFF};
  Frame masked(8, kOnes);
  masked.insert(masked.end(), ip.begin(), ip.end() - wire::roce::kIcrcBytes);
  std::byte* const header = masked.data() + 8;
  const auto set = [header](std::initializer_list<std::size_t> places) {
    for (const std::size_t place : places) header[place] = kOnes;
  };
  const std::size_t udp = ip_header_bytes(ip);
  if (is_v6(ip)) {
    header[0] |= std::byte{0x0F};
    set({1, 2, 3, 7});
  } else {
    set({1, 8, 10, 11});
  }
  set({udp + 6, udp + 7, udp + wire::kUdpBytes + 4});
  const std::uint32_t crc = base::crc32(masked);
  for (std::size_t i = 0; i < 4; ++i) {
    ip[ip.size() - 4 + i] = static_cast<std::byte>(crc >> (8 * i) & 0xFF);
  }
}

FrameHeader header_of(bool v6) {
  FrameHeader header;
  header.destination = {2, 0, 0, 0, 0, 2};
  header.source = {2, 0, 0, 0, 0, 1};
  const auto address = [v6](std::uint8_t last) {
    return v6 ? IpAddress::v6({0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last})
              : IpAddress::v4(10, 0, 0, last);
  };
  header.flow.source = address(1);
  header.flow.destination = address(2);
  header.flow.source_port = 0xC001;
  return header;
}

Frame around(const FrameHeader& header, std::span<const std::byte> ib, bool checksum) {
  Frame frame(fabric::roce::frame_header_bytes(header) + ib.size());
  const std::size_t at = fabric::roce::write_frame_header(frame.data(), header, ib.size());
  std::ranges::copy(ib, frame.begin() + static_cast<std::ptrdiff_t>(at));
  seal_by_definition(frame, checksum);
  return frame;
}

Frame read_of(const FrameHeader& header, std::uint64_t number, std::uint32_t key, bool checksum,
              std::uint32_t psn = 77) {
  Headers headers;
  headers.bth.opcode = PacketOpcode::read_request;
  headers.bth.destination = 0x12'3456;
  headers.bth.psn = psn;
  headers.reth = {number, key, 1024};
  return around(header, sample::packet(headers, {}), checksum);
}

Frame read_of(bool v6, std::uint64_t number, bool checksum) {
  return read_of(header_of(v6), number, kFirst.keyed, checksum);
}

Frames opcode_frames() {
  base::Random random(21);
  Frames frames;
  for (const bool v6 : {false, true}) {
    for (const bool checksum : {false, true}) {
      for (const PacketOpcode opcode : sample::all_opcodes()) {
        const bool carries = fabric::roce::parts_of(opcode).has(fabric::roce::Parts::kPayload);
        const auto payload = sample::draw_bytes(random, carries ? random.below(64) : 0);
        Headers headers = sample::headers(random, opcode, payload.size());
        headers.reth.key = headers.atomic.key = kFirst.keyed;
        frames.push_back(around(header_of(v6), sample::packet(headers, payload), checksum));
      }
      // A switch says that there is congestion: 16 bytes of zeros behind the BTH [Annex A17].
      Headers congested;
      Frame notice = sample::packet(congested, Frame(16));
      notice[0] = std::byte{0x81};
      frames.push_back(around(header_of(v6), notice, checksum));
    }
  }
  return frames;
}

Frames key_frames() {
  base::Random random(22);
  const TreeImage tree = first_tree();
  Frames frames;
  for (const std::uint64_t number : border_keys(tree, random, 60)) {
    // One draw after the other: compilers differ in which argument they work out first.
    const bool checksum = random.chance(0.5);
    const bool v6 = random.chance(0.5);
    frames.push_back(read_of(v6, number, checksum));
  }
  for (const bool v6 : {false, true}) {
    for (const bool checksum : {false, true}) {
      for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
        for (const std::uint32_t key : {kFirst.keyed, kFirst.redirect, kSecond.keyed,
                                        kSecond.redirect, 0u, 0xABCD'0005u, 0xFFFF'FFFFu}) {
          frames.push_back(read_of(header_of(v6), number, key, checksum));
        }
      }
    }
  }
  return frames;
}

// A tag in front of what is behind the addresses.
void add_tag(Frame& frame, std::uint16_t type, std::uint16_t tag) {
  std::array<std::byte, wire::kVlanTagBytes> bytes;
  base::store_be(bytes.data(), type);
  base::store_be(bytes.data() + 2, tag);
  frame.insert(frame.begin() + 12, bytes.begin(), bytes.end());
}

Frame with_options(Frame frame, std::size_t words, bool checksum) {
  frame.insert(frame.begin() + 34, words * 4, std::byte{1});  // each of them: no operation
  frame[14] = static_cast<std::byte>(0x45 + words);
  frame[17] = static_cast<std::byte>(std::to_integer<std::size_t>(frame[17]) + 4 * words);
  seal_by_definition(frame, checksum);
  return frame;
}

Frames header_frames() {
  base::Random random(23);
  Frames frames;
  for (const bool v6 : {false, true}) {
    for (const bool checksum : {false, true}) {
      for (int i = 0; i < 6; ++i) {
        FrameHeader header = sample::frame_header(random, v6, i % 2 == 0);
        header.flow.source_port |= 0xC000;  // no other protocol's
        frames.push_back(read_of(header, random(), kFirst.keyed, checksum));
      }
      for (int tags = 1; tags <= 3; ++tags) {  // the third is one too many
        Frame frame = read_of(v6, random(), checksum);
        for (int tag = 1; tag < tags; ++tag) add_tag(frame, wire::kEtherTypeVlan, 7);
        add_tag(frame, wire::kEtherTypeServiceVlan, 9);
        frames.push_back(frame);
      }
      Frame filled = read_of(v6, random(), checksum);
      filled.resize(filled.size() + 30, std::byte{0x77});
      frames.push_back(filled);
      if (v6) continue;
      for (const std::size_t words : {1u, 2u, 10u}) {
        frames.push_back(with_options(read_of(v6, random(), checksum), words, checksum));
      }
    }
  }
  for (const std::uint32_t psn : {kOnesBefore, kOnesAfter}) {
    frames.push_back(read_of(header_of(false), 0, kFirst.keyed, true, psn));
  }
  return frames;
}

Frames damaged_frames() {
  base::Random random(24);
  Frames frames;
  for (const bool v6 : {false, true}) {
    for (const bool checksum : {false, true}) {
      // In the packet's number, the length, or the ICRC: not where it decides what is done.
      for (const std::size_t place : {9u, 10u, 11u, 24u, 27u, 28u, 31u}) {
        Frame frame = read_of(v6, random(), checksum);
        frame[frame.size() - kReadBytes + place] ^= static_cast<std::byte>(1u << random.below(8));
        frames.push_back(frame);
      }
    }
    Frame frame = read_of(v6, random(), true);
    frame[frame.size() - kReadBytes - 1] ^= std::byte{0x10};  // UDP's checksum
    frames.push_back(frame);
  }
  return frames;
}

Frames malformed_frames() {
  Frames frames;
  for (const bool v6 : {false, true}) {
    const Frame good = read_of(v6, 0x1234, true);
    for (std::size_t bytes = 1; bytes < good.size(); ++bytes) {
      frames.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
    }
    const std::size_t udp = good.size() - kReadBytes - wire::kUdpBytes;
    const auto spoiled = [&](std::size_t place, unsigned flip) {
      frames.push_back(good);
      frames.back()[place] ^= static_cast<std::byte>(flip);
    };
    spoiled(12, 0x40);         // the type
    spoiled(13, 1);            // the same
    spoiled(14, 0x80);         // IP's version
    spoiled(v6 ? 19 : 17, 4);  // IP's length
    spoiled(v6 ? 20 : 23, 1);  // the protocol
    spoiled(udp + 2, 1);       // the port
    spoiled(udp + 3, 1);       // the same
    spoiled(udp + 5, 4);       // UDP's length
    spoiled(udp + 8, 1);       // the opcode
    spoiled(udp + 9, 0x10);    // a pad
    spoiled(udp + 9, 1);       // the transport's version
    if (v6) {
      // A header between IP and UDP, of eight bytes, all options of hop by hop.
      Frame extended = good;
      const std::array<std::byte, 8> header{std::byte{17}, {}, std::byte{1}, std::byte{4}};
      extended.insert(extended.begin() + 54, header.begin(), header.end());
      extended[19] = static_cast<std::byte>(std::to_integer<unsigned>(extended[19]) + 8);
      extended[20] = std::byte{0};
      frames.push_back(extended);
      continue;
    }
    spoiled(14, 1);     // a header too short
    spoiled(14, 0x0A);  // and one too long
    spoiled(20, 0x20);  // more fragments follow
    spoiled(21, 1);     // not the first one
  }
  frames.emplace_back(60);  // nothing but zeros
  return frames;
}

}  // namespace

std::size_t ip_offset(std::span<const std::byte> frame) {
  std::size_t at = wire::kEthernetBytes;
  for (;; at += wire::kVlanTagBytes) {
    const auto type = base::load_be<std::uint16_t>(frame.data() + at - 2);
    if (type != wire::kEtherTypeVlan && type != wire::kEtherTypeServiceVlan) return at;
  }
}

std::size_t udp_offset(std::span<const std::byte> frame) {
  const std::size_t ip = ip_offset(frame);
  return ip + ip_header_bytes(frame.subspan(ip));
}

void seal_headers_by_definition(std::span<std::byte> frame, bool checksum) {
  const auto ip = frame.subspan(ip_offset(frame));
  const std::size_t header = ip_header_bytes(ip);
  if (!is_v6(ip)) {
    base::store_be(ip.data() + 10, std::uint16_t{0});
    base::store_be(ip.data() + 10, internet_checksum(word_sum(ip.first(header))));
  }
  const auto udp = ip.subspan(header);
  base::store_be(udp.data() + wire::kUdpChecksumOffset, std::uint16_t{0});
  if (!checksum) return;
  const auto addresses = ip.subspan(is_v6(ip) ? 8 : 12, is_v6(ip) ? 32 : 8);
  const std::uint16_t sum =
      internet_checksum(word_sum(addresses) + wire::kIpProtocolUdp + udp.size() + word_sum(udp));
  base::store_be(udp.data() + wire::kUdpChecksumOffset, sum == 0 ? std::uint16_t{0xFFFF} : sum);
}

void seal_by_definition(std::span<std::byte> frame, bool checksum) {
  seal_icrc(frame.subspan(ip_offset(frame)));
  seal_headers_by_definition(frame, checksum);
}

SwitchProgram corpus_program() {
  SwitchProgram program;
  TreeImage leaf;
  leaf.set_root(leaf.add_leaf(0x7F00'0000'1234'5678, 1));
  const TableLimits few{.ranges = 24, .sets = 3, .nodes_per_set = 24};
  if (!program.add({kFirst, compile(first_tree(), few).tables}) ||
      !program.add({kSecond, compile(leaf, few).tables})) {
    throw std::logic_error("no room in a program");
  }
  return program;
}

std::vector<CorpusFile> corpus_files() {
  return {{"opcodes", opcode_frames()},
          {"keys", key_frames()},
          {"headers", header_frames(), true, false},
          {"damaged", damaged_frames(), false, false},
          {"malformed", malformed_frames(), false, false}};
}

}  // namespace espalier::dataplane
