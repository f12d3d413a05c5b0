// SPDX-License-Identifier: Apache-2.0
#include "dataplane/p4_constants.hpp"

#include <cstdint>

#include "dataplane/hexadecimal.hpp"
#include "dataplane/shim.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/roce/format.hpp"

namespace espalier::dataplane {
namespace {

std::string constant(unsigned bits, const std::string& name, const std::string& value) {
  return "const bit<" + std::to_string(bits) + "> " + name + " = " + value + ";\n";
}

}  // namespace

std::string p4_constants() {
  constexpr auto kRead = static_cast<std::uint32_t>(wire::roce::PacketOpcode::read_request);
  return "// SPDX-License-Identifier: Apache-2.0\n"
         "// Written from src/fabric by src/dataplane/p4_constants.cpp; a test holds it to "
         "that.\n" +
         constant(16, "TYPE_VLAN", hexadecimal(wire::kEtherTypeVlan, 4)) +
         constant(16, "TYPE_SERVICE_VLAN", hexadecimal(wire::kEtherTypeServiceVlan, 4)) +
         constant(16, "TYPE_IPV4", hexadecimal(wire::kEtherTypeIpv4, 4)) +
         constant(16, "TYPE_IPV6", hexadecimal(wire::kEtherTypeIpv6, 4)) +
         constant(8, "PROTOCOL_UDP", std::to_string(wire::kIpProtocolUdp)) +
         constant(16, "ROCE_PORT", std::to_string(wire::roce::kUdpPort)) +
         constant(16, "SHIM_PORT", std::to_string(kShimPort)) +
         constant(8, "SHIM_VERSION_KIND",
                  hexadecimal(kShimVersion << 4 | static_cast<unsigned>(ShimKind::read), 2)) +
         constant(16, "SHIM_BYTES", std::to_string(kShimBytes)) +
         constant(8, "OPCODE_READ_REQUEST", hexadecimal(kRead, 2)) +
         "// A READ request from the BTH to the ICRC, and the header of UDP before it.\n" +
         constant(16, "DATAGRAM_BYTES",
                  std::to_string(wire::kUdpBytes + wire::roce::kReadRequestBytes)) +
         "// The same with a shim.\n" +
         constant(16, "CARRIED_BYTES",
                  std::to_string(wire::kUdpBytes + kShimBytes + wire::roce::kReadRequestBytes));
}

}  // namespace espalier::dataplane
