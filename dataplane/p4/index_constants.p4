// SPDX-License-Identifier: Apache-2.0
// Written from src/fabric by src/dataplane/p4_constants.cpp; a test holds it to that.
const bit<16> TYPE_VLAN = 0x8100;
const bit<16> TYPE_SERVICE_VLAN = 0x88a8;
const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_IPV6 = 0x86dd;
const bit<8> PROTOCOL_UDP = 17;
const bit<16> ROCE_PORT = 4791;
const bit<16> SHIM_PORT = 4759;
const bit<8> SHIM_VERSION_KIND = 0x11;
const bit<16> SHIM_BYTES = 16;
const bit<8> OPCODE_READ_REQUEST = 0x0c;
// A READ request from the BTH to the ICRC, and the header of UDP before it.
const bit<16> DATAGRAM_BYTES = 40;
// The same with a shim.
const bit<16> CARRIED_BYTES = 56;
