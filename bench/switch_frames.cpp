// SPDX-License-Identifier: Apache-2.0
#include "bench/switch_frames.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/bytes.hpp"
#include "base/zipf.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/packet.hpp"

namespace espalier::bench {
namespace {

namespace roce = fabric::roce;

roce::FrameHeader rank_frame_header() {
  roce::FrameHeader header;
  header.flow.source = roce::IpAddress::v4(10, 0, 0, 1);
  header.flow.destination = roce::IpAddress::v4(10, 0, 0, 2);
  return header;
}

// Ethernet, IPv4 and UDP.
std::size_t rank_header_bytes() {
  static const std::size_t bytes = roce::frame_header_bytes(rank_frame_header());
  return bytes;
}

std::size_t reth_offset() { return rank_header_bytes() + sizeof(wire::roce::BthBytes); }

void append_frame(std::vector<std::byte>& into, const roce::Headers& headers,
                  std::span<const std::byte> payload) {
  static const roce::FrameHeader header = rank_frame_header();
  static const roce::Icrc icrc(header.flow);
  const std::size_t ib = roce::packet_bytes(headers.bth.opcode, payload.size());
  const std::size_t begin = into.size();
  into.resize(begin + rank_header_bytes() + ib);
  std::byte* const at = into.data() + begin;
  roce::write_frame_header(at, header, ib);
  roce::write_packet(at + rank_header_bytes(), headers, payload);
  icrc.seal({at + rank_header_bytes(), ib}, header.ip_id);
}

}  // namespace

RankedKeys::RankedKeys(RankTree tree, std::vector<std::uint64_t> accesses)
    : passed_(std::move(accesses)), tree_(std::move(tree)) {
  std::partial_sum(passed_.begin(), passed_.end(), passed_.begin());
}

RankedKeys::RankedKeys(std::uint64_t keys, std::uint64_t seed) {
  passed_ = scattered_ranks(keys, base::kZipfTheta, seed);
  tree_ = make_rank_tree(passed_, kRankFanout);
  std::partial_sum(passed_.begin(), passed_.end(), passed_.begin());
}

std::uint64_t RankedKeys::draw(base::Random& random) const {
  const std::uint64_t at = random.below(passed_.back());
  return static_cast<std::uint64_t>(std::ranges::upper_bound(passed_, at) - passed_.begin());
}

FrameSet::FrameSet(std::span<const std::uint64_t> numbers, std::uint32_t key) {
  roce::Headers headers;
  headers.bth.opcode = roce::PacketOpcode::read_request;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    headers.bth.psn = i;
    headers.reth = {numbers[i], key, 1024};
    append_frame(bytes_, headers, {});
  }
  frame_bytes_ = bytes_.size() / kFrames;
}

FrameSet FrameSet::of_writes() {
  FrameSet set;
  constexpr std::array<std::byte, 64> payload{};
  roce::Headers headers;
  headers.bth.opcode = roce::PacketOpcode::write_only;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    headers.bth.psn = i;
    headers.reth = {std::uint64_t{i} * 64, kRankKeys.keyed, payload.size()};
    append_frame(set.bytes_, headers, payload);
  }
  set.frame_bytes_ = set.bytes_.size() / kFrames;
  return set;
}

std::uint64_t FrameSet::address_in(std::span<const std::byte> frame) {
  return base::load_be<std::uint64_t>(frame.data() + reth_offset());
}

std::uint32_t FrameSet::key_in(std::span<const std::byte> frame) {
  return base::load_be<std::uint32_t>(frame.data() + reth_offset() +
                                      offsetof(wire::roce::RethBytes, key));
}

std::uint32_t FrameSet::psn_in(std::span<const std::byte> frame) {
  return roce::load_be24(frame.data() + rank_header_bytes() + offsetof(wire::roce::BthBytes, psn));
}

bool FrameSet::is_whole(std::span<const std::byte> frame) {
  static const roce::Icrc icrc(rank_frame_header().flow);
  return icrc.matches(frame.subspan(rank_header_bytes()));
}

std::vector<std::uint64_t> ranked_numbers(const RankedKeys& keys, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<std::uint64_t> numbers(FrameSet::kFrames);
  for (std::uint64_t& number : numbers) number = keys.number_of(keys.draw(random));
  return numbers;
}

std::vector<std::uint64_t> even_numbers(const RankedKeys& keys, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<std::uint64_t> numbers(FrameSet::kFrames);
  for (std::uint64_t& number : numbers) number = keys.number_of(random.below(keys.size()));
  return numbers;
}

}  // namespace espalier::bench
