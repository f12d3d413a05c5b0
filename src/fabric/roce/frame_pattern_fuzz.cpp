// SPDX-License-Identifier: Apache-2.0
// Arbitrary frames for the fast parser, which reads frames like the last one by a few words: it
// accepts nothing that the slow path refuses, parses as that parses, and writes as that writes.
//
// Input: steps, each of which makes a frame that is read: a byte of choices, and then
//   bytes as they are: two bytes of length, and as many bytes
//   a good frame: numbers for its headers, its length, and what is behind it
//   the last frame, changed: how often, and where and how each time; or cut; with the sum of
//   IPv4's header corrected, if so chosen, for a fuzzer does not guess it
// If so chosen, later frames are read by a pattern that is made of this one.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/frame_pattern.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::fabric::roce {
namespace {

using base::FuzzInput;
using base::want;

using Bytes = std::vector<std::byte>;

FrameHeader header_from(FuzzInput& input) {
  const std::uint8_t choices = input.byte();
  const bool six = (choices & 1) != 0;
  FrameHeader header;
  input.fill(std::as_writable_bytes(std::span(header.destination)));
  input.fill(std::as_writable_bytes(std::span(header.source)));
  if ((choices & 2) != 0) header.vlan = input.number<std::uint16_t>();
  for (IpAddress* const each : {&header.flow.source, &header.flow.destination}) {
    each->is_v6 = six;
    input.fill(std::as_writable_bytes(std::span(each->bytes).first(six ? 16 : 4)));
  }
  header.flow.source_port = input.number<std::uint16_t>();
  header.flow.destination_port =
      (choices & 4) != 0 ? input.number<std::uint16_t>() : wire::roce::kUdpPort;
  header.flow.dont_fragment = (choices & 8) != 0;
  header.traffic_class = input.byte();
  header.hop_limit = input.byte();
  if (!six) header.ip_id = input.number<std::uint16_t>();
  return header;
}

/// Of a length that is seldom long, so that inputs are quick.
std::size_t ib_bytes_from(FuzzInput& input) {
  const std::size_t bytes = input.byte();
  return bytes < 0xF8 ? bytes : std::min<std::size_t>(input.number<std::uint16_t>(), kIbBytesMax);
}

Bytes good_frame(FuzzInput& input) {
  const FrameHeader header = header_from(input);
  const std::size_t ib_bytes = ib_bytes_from(input);
  const std::uint8_t behind = input.byte();
  Bytes frame(frame_header_bytes(header) + ib_bytes);
  write_frame_header(frame.data(), header, ib_bytes);
  if (behind >= 0xF0) set_udp_checksum(frame);
  frame.resize(frame.size() + behind % 16);  // as Ethernet fills up
  return frame;
}

/// Makes the sum of an IPv4 header right, where one may lie.
void mend_sum(Bytes& frame) {
  constexpr std::size_t kIp = 14;
  if (frame.size() < kIp + 20) return;
  base::store_be<std::uint16_t>(frame.data() + kIp + 10, 0);
  std::uint32_t sum = 0;
  for (std::size_t at = kIp; at != kIp + 20; at += 2) {
    sum += base::load_be<std::uint16_t>(frame.data() + at);
  }
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  base::store_be(frame.data() + kIp + 10, static_cast<std::uint16_t>(~sum));
}

Bytes changed_frame(Bytes frame, std::uint8_t choices, FuzzInput& input) {
  for (int i = choices >> 5; i != 0 && !frame.empty(); --i) {
    const std::size_t place = input.byte();
    frame[place % frame.size()] ^= static_cast<std::byte>(input.byte());
  }
  if ((choices & 8) != 0) frame.resize(input.byte() % (frame.size() + 1));
  if ((choices & 16) != 0) mend_sum(frame);
  return frame;
}

class Harness {
 public:
  void step(FuzzInput& input) {
    const std::uint8_t choices = input.byte();
    switch (choices & 3) {
      case 0:
        last_.assign(input.number<std::uint16_t>(), std::byte{0});
        input.fill(last_);
        break;
      case 1: last_ = good_frame(input); break;
      default: last_ = changed_frame(std::move(last_), choices, input); break;
    }
    // From memory of exactly its size, so that a sanitizer sees a byte too far.
    last_.shrink_to_fit();
    read();
    if ((choices & 4) != 0) learn();
    if (!pattern_.known()) return;
    const auto ip_id = input.number<std::uint16_t>();
    write(ip_id, ib_bytes_from(input));
  }

 private:
  void read() const {
    const auto read = pattern_.read(last_);
    if (!read) return;
    const auto frame = parse_frame(last_);
    want(frame.has_value(), "a frame is taken that the long way refuses");
    want(read->ib.data() == frame->ib.data() && read->ib.size() == frame->ib.size(),
         "a packet lies elsewhere than by the long way");
    want(read->ip_id == frame->ip_id, "an id is another than by the long way");
    want(frame->udp_checksum == 0 && !frame->vlan, "a frame is taken that is not like the first");
    // What the ICRC and answers depend on is not read again, so it must not have changed.
    FrameHeader like = *frame;
    like.ip_id = header_.ip_id;
    want(like == header_, "a frame of other headers is taken for one like the last");
  }

  // As the port over memif does: of a frame that the long way has taken.
  void learn() {
    const auto frame = parse_frame(last_);
    if (!frame) return;
    pattern_ = FramePattern(last_);
    header_ = *frame;
    const bool plain = !frame->flow.source.is_v6 && !frame->vlan && frame->udp_checksum == 0;
    want(pattern_.known() == plain, "a pattern knows what it should not, or not what it should");
    // The sum of an IPv4 header has two zeros, and both are right.
    if (plain) want(pattern_.read(last_).has_value(), "a frame is not like itself");
  }

  void write(std::uint16_t ip_id, std::size_t ib_bytes) const {
    FrameHeader header = header_;
    header.ip_id = ip_id;
    Bytes expected(FramePattern::kHeaderBytes + ib_bytes);
    want(write_frame_header(expected.data(), header, ib_bytes) == FramePattern::kHeaderBytes,
         "a known header has another length");
    Bytes written(FramePattern::kHeaderBytes, std::byte{0x55});
    pattern_.write(written.data(), ip_id, ib_bytes);
    want(std::equal(written.begin(), written.end(), expected.begin()),
         "a header is written otherwise than by the long way");
    const auto read = pattern_.read(expected);
    want(read && read->ip_id == ip_id && read->ib.size() == ib_bytes,
         "what a pattern has written it does not read");
    // Headers with nothing behind them are what the port makes its own of.
    const FramePattern begun{std::span<const std::byte>(written)};
    Bytes again(FramePattern::kHeaderBytes, std::byte{0xAA});
    begun.write(again.data(), ip_id, ib_bytes);
    want(begun.known() && again == written, "a pattern of headers alone writes otherwise");
  }

  FramePattern pattern_;
  FrameHeader header_;
  Bytes last_;
};

}  // namespace
}  // namespace espalier::fabric::roce

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::base::FuzzInput input(data, size);
  espalier::fabric::roce::Harness harness;
  constexpr int kStepsMax = 64;
  for (int steps = 0; steps != kStepsMax && !input.over(); ++steps) harness.step(input);
  return 0;
}
