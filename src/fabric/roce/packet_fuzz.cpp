// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a packet, a frame and a connection message. What is refused is refused; of the
// rest every span lies within the input, and what was read, written again, reads the same.
//
// Input: one byte that selects which of the three, then the bytes.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/ip_service.hpp"
#include "fabric/roce/packet.hpp"

namespace espalier::fabric::roce {
namespace {

using base::want;

using Bytes = std::span<const std::byte>;

bool within(Bytes part, Bytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

void read_message(Bytes mad) {
  const auto message = parse_message(mad);
  if (!message) return;
  std::byte again[wire::roce::kMadBytes];
  write_message(again, *message);
  want(parse_message(again) == message, "a message changes when it is written again");
  if (const auto* const request = std::get_if<RequestMessage>(&message->body)) {
    RequestMessage copy = *request;
    const auto service = ip_service(copy);
    if (service) set_ip_service(copy, *service);
    want(ip_service(copy) == service, "a service changes when it is written again");
    want(same(request_data(copy), request_data(*request)), "private data change");
  }
  if (const auto* const reject = std::get_if<RejectMessage>(&message->body)) {
    RejectMessage copy = *reject;
    const std::uint64_t cookie = cookie_of(copy);
    if (cookie != 0) set_cookie(copy, cookie);
    want(copy == *reject, "a cookie changes when it is written again");
  }
}

void read_packet(Bytes ib) {
  const auto packet = parse(ib);
  if (!packet) return;
  want(within(packet->payload, ib), "a payload lies outside its packet");
  std::vector<std::byte> again(packet_bytes(packet->bth.opcode, packet->payload.size()));
  want(again.size() == ib.size(), "a packet has another length when it is written again");
  write_packet(again.data(), *packet, packet->payload);
  const auto reread = parse(again);
  want(reread && static_cast<const Headers&>(*reread) == static_cast<const Headers&>(*packet) &&
           same(reread->payload, packet->payload),
       "a packet changes when it is written again");
  if (packet->bth.opcode == PacketOpcode::read_request) {
    const Icrc icrc(IpFlow{});
    icrc.seal(again);
    redirect_read(again, packet->reth.address + 1, ~packet->reth.key);
    want(icrc.matches(again), "a redirected READ has a wrong ICRC");
  }
  if (const auto message = parse_message(*packet)) read_message(packet->payload);
}

void read_frame(Bytes bytes) {
  const auto frame = parse_frame(bytes);
  if (!frame) return;
  want(within(frame->ib, bytes), "a packet lies outside its frame");
  static_cast<void>(Icrc(frame->flow).matches(frame->ib, frame->ip_id));
  read_packet(frame->ib);
  if (frame->ib.size() > kIbBytesMax) return;
  std::vector<std::byte> again(frame_header_bytes(*frame) + frame->ib.size());
  const std::size_t at = write_frame_header(again.data(), *frame, frame->ib.size());
  std::copy(frame->ib.begin(), frame->ib.end(), again.begin() + static_cast<std::ptrdiff_t>(at));
  if (frame->udp_checksum != 0) set_udp_checksum(again);
  // The sum of an IPv4 header has two zeros, of which no sender writes the one that is all ones.
  const std::size_t ip_checksum = frame_header_bytes(*frame) - 8 - 10;
  if (!frame->flow.source.is_v6 && bytes[ip_checksum] == std::byte{0xFF} &&
      bytes[ip_checksum + 1] == std::byte{0xFF}) {
    return;
  }
  want(same(again, bytes.first(again.size())), "a frame changes when it is written again");
}

}  // namespace
}  // namespace espalier::fabric::roce

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 3) {
    case 0: espalier::fabric::roce::read_packet(bytes); break;
    case 1: espalier::fabric::roce::read_frame(bytes); break;
    default: espalier::fabric::roce::read_message(bytes); break;
  }
  return 0;
}
