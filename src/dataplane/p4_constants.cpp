// SPDX-License-Identifier: Apache-2.0
#include "dataplane/p4_constants.hpp"

#include <charconv>
#include <cstdint>

#include "dataplane/frame_layout.hpp"

namespace espalier::dataplane {
namespace {

std::string hex(std::uint32_t number, std::size_t digits) {
  char text[8];
  const auto end = std::to_chars(text, text + sizeof text, number, 16).ptr;
  std::string made(text, end);
  for (char& digit : made) digit = static_cast<char>(digit >= 'a' ? digit - 'a' + 'A' : digit);
  return "0x" + std::string(digits - made.size(), '0') + made;
}

std::string constant(unsigned bits, const std::string& name, const std::string& value) {
  return "const bit<" + std::to_string(bits) + "> " + name + " = " + value + ";\n";
}

}  // namespace

std::string p4_constants() {
  constexpr auto kRead = static_cast<std::uint32_t>(wire::roce::PacketOpcode::read_request);
  return "// SPDX-License-Identifier: Apache-2.0\n"
         "// Written from src/wire/roce.hpp by src/dataplane/p4_constants.cpp; a test holds it to "
         "that.\n" +
         constant(16, "TYPE_VLAN", hex(kTypeVlan, 4)) +
         constant(16, "TYPE_SERVICE_VLAN", hex(kTypeServiceVlan, 4)) +
         constant(16, "TYPE_IPV4", hex(kTypeIpv4, 4)) +
         constant(16, "TYPE_IPV6", hex(kTypeIpv6, 4)) +
         constant(8, "PROTOCOL_UDP", std::to_string(kProtocolUdp)) +
         constant(16, "ROCE_PORT", std::to_string(wire::roce::kUdpPort)) +
         constant(8, "OPCODE_READ_REQUEST", hex(kRead, 2)) +
         "// A READ request from the BTH to the ICRC, and the same with the header of UDP.\n" +
         constant(16, "REQUEST_BYTES", std::to_string(kRequestBytes)) +
         constant(16, "DATAGRAM_BYTES", std::to_string(kUdpBytes + kRequestBytes));
}

}  // namespace espalier::dataplane
