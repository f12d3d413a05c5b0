// SPDX-License-Identifier: Apache-2.0
// Arbitrary datagrams, with invalid and valid tags, from any of four addresses: replies go to their
// request's source, none but answers is longer than its request, and the legitimate owner of a
// session always gets correct answers.
//
// Input: a byte for each step, and the datagram's bytes.
#include <cstring>
#include <string>

#include "base/testing/fuzz_input.hpp"
#include "engine/tests/testing/datagram_client.hpp"

namespace espalier::offload {
namespace {

using base::want;

struct World {
  World() : good(node), bad(node) {
    node.put("a", "1");
    want(good.prove(kHere), "an address cannot be proved");
  }
  DatagramNode node;
  DatagramClient good;
  DatagramClient bad;  // the input has its key
};

std::string datagram_from(base::FuzzInput& input, const DatagramClient& bad) {
  std::string bytes(input.byte(), '\0');
  for (char& c : bytes) c = static_cast<char>(input.byte());
  const std::uint8_t like = input.byte();
  if (like % 4 == 0 || bytes.size() < wire::kDatagramRequestBytes) return bytes;
  auto kind = static_cast<wire::DatagramKind>(like % 4);
  if (like >= 0xC0) kind = static_cast<wire::DatagramKind>(input.byte());
  std::string made = bad.made(kind, input.odd_number<std::uint64_t>(),
                              std::string_view(bytes).substr(wire::kDatagramRequestBytes),
                              input.byte(), input.number<std::uint64_t>());
  if (like % 8 == 7) made[input.below(made.size())] ^= 0x40;
  return made;
}

void run(base::FuzzInput input) {
  static World world;
  while (!input.over()) {
    DatagramSource from = kElsewhere;
    from.udp_port = static_cast<std::uint16_t>(6000 + input.byte() % 4);
    const std::string bytes = datagram_from(input, world.bad);
    for (const auto& sent : world.node.take(bytes, from)) {
      want(sent.to == from, "it is sent elsewhere");
      const auto reply = wire::read_datagram_reply(std::as_bytes(std::span(sent.bytes)));
      want(reply.has_value(), "what is sent is no reply");
      const auto kind = static_cast<wire::DatagramKind>(reply->header.kind);
      want(kind == wire::DatagramKind::answer || sent.bytes.size() <= bytes.size(), "it is longer");
    }
  }
  const auto status = world.good.ask(world.good.get("a"), kHere);
  want(status == wire::DatagramStatus::found && world.good.value == "1", "a wrong answer");
}

}  // namespace
}  // namespace espalier::offload

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::offload::run({data, size});
  return 0;
}
