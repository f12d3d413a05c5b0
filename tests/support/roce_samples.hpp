// SPDX-License-Identifier: Apache-2.0
// RoCEv2 frames of every kind, each with the fields that tshark must show, under tshark's own
// names.
// Thread: a Random belongs to one.
#pragma once

#include <arpa/inet.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "fabric/roce/ip_service.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::fabric::roce::sample {

/// The expected value of a field: a number, or text, or bytes in hexadecimal.
using Value = std::variant<std::uint64_t, std::string>;
using Fields = std::map<std::string, Value>;

struct Sample {
  std::string name;
  Bytes frame;
  Fields fields;
};

inline std::string hex(std::span<const std::byte> bytes) {
  std::string digits;
  for (const std::byte byte : bytes) {
    for (const unsigned digit :
         {std::to_integer<unsigned>(byte) >> 4, std::to_integer<unsigned>(byte) & 15}) {
      digits += "0123456789abcdef"[digit];
    }
  }
  return digits;
}

inline std::string text_of(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.is_v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

inline void add_bth(Fields& to, const Bth& bth, std::uint32_t icrc) {
  to["infiniband.bth.opcode"] = std::uint64_t{static_cast<std::uint8_t>(bth.opcode)};
  to["infiniband.bth.se"] = std::uint64_t{bth.solicited};
  to["infiniband.bth.m"] = std::uint64_t{bth.migrated};
  to["infiniband.bth.padcnt"] = std::uint64_t{bth.pad};
  to["infiniband.bth.tver"] = std::uint64_t{0};
  to["infiniband.bth.p_key"] = std::uint64_t{bth.partition};
  to["infiniband.bth.destqp"] = std::uint64_t{bth.destination};
  to["infiniband.bth.a"] = std::uint64_t{bth.ask_acknowledge};
  to["infiniband.bth.psn"] = std::uint64_t{bth.psn};
  // tshark shows the four bytes in their order in memory.
  to["infiniband.invariant.crc"] = std::uint64_t{base::swap_bytes(icrc)};
}

inline void add_extensions(Fields& to, const Headers& headers) {
  const Parts parts = parts_of(headers.bth.opcode);
  if (parts.has(Parts::kDeth)) {
    to["infiniband.deth.q_key"] = std::uint64_t{headers.deth.queue_key};
    to["infiniband.deth.srcqp"] = std::uint64_t{headers.deth.source};
  }
  if (parts.has(Parts::kReth)) {
    to["infiniband.reth.va"] = headers.reth.address;
    to["infiniband.reth.r_key"] = std::uint64_t{headers.reth.key};
    to["infiniband.reth.dmalen"] = std::uint64_t{headers.reth.length};
  }
  if (parts.has(Parts::kAtomic)) {
    to["infiniband.reth.va"] = headers.atomic.address;
    to["infiniband.reth.r_key"] = std::uint64_t{headers.atomic.key};
    to["infiniband.atomiceth.swapdt"] = headers.atomic.swap_or_add;
    to["infiniband.atomiceth.cmpdt"] = headers.atomic.compare;
  }
  if (parts.has(Parts::kAeth)) {
    to["infiniband.aeth.syndrome"] = std::uint64_t{headers.aeth.syndrome};
    to["infiniband.aeth.msn"] = std::uint64_t{headers.aeth.msn};
    to["infiniband.aeth.syndrome.opcode"] = static_cast<std::uint64_t>(headers.aeth.kind());
    const char* const kinds[] = {"credit_count", "timer", "reserved_value", "error_code"};
    to["infiniband.aeth.syndrome." +
       std::string(kinds[static_cast<std::size_t>(headers.aeth.kind())])] =
        std::uint64_t{headers.aeth.value()};
  }
  if (parts.has(Parts::kAtomicAck)) {
    to["infiniband.atomicacketh.origremdt"] = headers.atomic_ack.original;
  }
  if (parts.has(Parts::kImmediate)) {
    std::byte immediate[4];
    base::store_be(immediate, headers.immediate.immediate);
    to["infiniband.immdt"] = hex(immediate);
  }
}

inline Sample sample_of(base::Random& random, const std::string& name,
                        std::span<const std::byte> ib, bool is_v6) {
  Sample made;
  FrameHeader header = sample::frame_header(random, is_v6, random.chance(0.3));
  // Avoids values that tshark interprets: a multicast source, another protocol's port.
  header.source[0] = 2;
  header.flow.source_port |= 0xC000;
  header.flow.source.bytes[0] = header.flow.destination.bytes[0] = 0x20;
  made.name = name + (is_v6 ? " in IPv6" : " in IPv4");
  made.frame = sample::frame(header, ib);
  const auto frame = parse_frame(made.frame);
  const auto packet = parse(frame->ib);
  add_bth(made.fields, packet->bth, packet->icrc);
  add_extensions(made.fields, *packet);
  made.fields["udp.dstport"] = std::uint64_t{4791};
  made.fields["udp.length"] = std::uint64_t{ib.size() + 8};
  return made;
}

inline void add_packets(base::Random& random, std::vector<Sample>& to) {
  for (const bool is_v6 : {false, true}) {
    for (const PacketOpcode opcode : sample::all_opcodes()) {
      const bool may = parts_of(opcode).has(Parts::kPayload);
      for (const std::size_t payload : {0, 64, 61, 1024}) {
        if (payload != 0 && !may) continue;
        Headers headers = sample::headers(random, opcode, payload);
        // Pair 1 is for connection messages.
        headers.bth.destination |= 2;
        if (parts_of(opcode).has(Parts::kAeth)) headers.aeth.syndrome &= 0x7F;
        const Bytes ib = sample::packet(headers, sample::draw_bytes(random, payload));
        const auto number = std::to_string(static_cast<int>(opcode));
        to.push_back(sample_of(random, "opcode " + number, ib, is_v6));
      }
    }
    const auto msn = sample::draw24(random);
    for (const Aeth aeth :
         {Aeth::ack(msn), Aeth::ack(msn, 3), Aeth::rnr(msn, 14), Aeth::rnr(msn, 0),
          Aeth::nak(msn, NakCode::sequence_error), Aeth::nak(msn, NakCode::invalid_request),
          Aeth::nak(msn, NakCode::remote_access), Aeth::nak(msn, NakCode::remote_operational)}) {
      Headers headers = sample::headers(random, PacketOpcode::acknowledge, 0);
      headers.aeth = aeth;
      to.push_back(sample_of(random, "syndrome " + std::to_string(aeth.syndrome),
                             sample::packet(headers, {}), is_v6));
    }
  }
}

/// Without its flow label and packet rate: tshark 4.0 reads them at wrong offsets, against its own
/// table of fields. Golden bytes check them.
inline void add_fields(Fields& to, const RequestMessage& request) {
  const std::map<std::string, std::uint64_t> numbers = {
      {"localcaguid", request.local_ca_guid},
      {"localqkey", request.local_queue_key},
      {"localqpn", request.local_pair},
      {"responderres", request.responder_resources},
      {"localeecn", 0},
      {"initdepth", request.initiator_depth},
      {"remoteeecn", 0},
      {"remoteresptout", request.remote_response_timeout},
      {"transpsvctype", request.transport_service},
      {"e2eflowctrl", request.flow_control},
      {"startpsn", request.starting_psn},
      {"localresptout", request.local_response_timeout},
      {"retrcount", request.retries},
      {"pkey", request.partition},
      {"pppmtu", request.mtu},
      {"rdcexist", 0},
      {"rnrretrcount", request.receive_retries},
      {"maxcmretr", request.message_retries},
      {"srq", request.shared_receives},
      {"prim_locallid", 0xFFFF},
      {"prim_remotelid", 0xFFFF},
      {"prim_tfcclass", request.traffic_class},
      {"prim_hoplim", request.hop_limit},
      {"prim_sl", request.service_level},
      {"prim_subnetlocal", request.subnet_local},
      {"prim_localacktout", request.local_ack_timeout},
  };
  to["infiniband.cm.req"] = std::uint64_t{request.ids.local};
  for (const auto& [name, value] : numbers) to["infiniband.cm.req." + name] = value;
  to["infiniband.cm.req.serviceid.dport"] = std::uint64_t{*service_port(request.service_id)};
  const IpService service = *ip_service(request);
  to["infiniband.cm.req.ip_cm.majv"] = std::uint64_t{0};
  to["infiniband.cm.req.ip_cm.minv"] = std::uint64_t{0};
  to["infiniband.cm.req.ip_cm.ipv"] = std::uint64_t{service.source.is_v6 ? 6u : 4u};
  to["infiniband.cm.req.ip_cm.sport"] = std::uint64_t{service.source_port};
  const std::string version = service.source.is_v6 ? "6" : "4";
  to["infiniband.cm.req.ip_cm.sip" + version] = text_of(service.source);
  to["infiniband.cm.req.ip_cm.dip" + version] = text_of(service.destination);
  const std::string form = service.source.is_v6 ? "" : "_ipv4";
  to["infiniband.cm.req.prim_localgid" + form] = text_of(service.source);
  to["infiniband.cm.req.prim_remotegid" + form] = text_of(service.destination);
  to["infiniband.cm.req.ip_cm.private"] = hex(request_data(request));
}

inline void add_fields(Fields& to, const ReplyMessage& reply) {
  const std::map<std::string, std::uint64_t> numbers = {
      {"remotecommid", reply.ids.remote},      {"localqkey", reply.local_queue_key},
      {"localqpn", reply.local_pair},          {"localeecn", 0},
      {"startpsn", reply.starting_psn},        {"respres", reply.responder_resources},
      {"initdepth", reply.initiator_depth},    {"tgtackdelay", reply.ack_delay},
      {"failoveracc", reply.failover},         {"e2eflowctrl", reply.flow_control},
      {"rnrretrcount", reply.receive_retries}, {"srq", reply.shared_receives},
      {"localcaguid", reply.local_ca_guid},
  };
  to["infiniband.cm.rep"] = std::uint64_t{reply.ids.local};
  for (const auto& [name, value] : numbers) to["infiniband.cm.rep." + name] = value;
  to["infiniband.cm.rep.private"] = hex(reply.private_data);
}

template <class Message>
void add_common(Fields& to, const std::string& kind, const Message& message) {
  to["infiniband.cm." + kind + ".localcommid"] = std::uint64_t{message.ids.local};
  to["infiniband.cm." + kind + ".remotecommid"] = std::uint64_t{message.ids.remote};
  to["infiniband.cm." + kind + ".private"] = hex(message.private_data);
}
inline void add_fields(Fields& to, const ReadyMessage& message) { add_common(to, "rtu", message); }
inline void add_fields(Fields& to, const DisconnectedMessage& message) {
  add_common(to, "drsp", message);
}
inline void add_fields(Fields& to, const DisconnectMessage& message) {
  add_common(to, "dreq", message);
  to["infiniband.cm.req.remoteqpneecn"] = std::uint64_t{message.remote_pair};
}
inline void add_fields(Fields& to, const RejectMessage& message) {
  add_common(to, "rej", message);
  to["infiniband.cm.rej.msgrej"] = static_cast<std::uint64_t>(message.rejected);
  to["infiniband.cm.rej.rejinfolen"] = std::uint64_t{message.information_bytes};
  to["infiniband.cm.rej.reason"] = static_cast<std::uint64_t>(message.reason);
  to["infiniband.cm.rej.ari"] = hex(message.information);
}
inline void add_fields(Fields&, const ReceiptMessage&) {
}  // it knows this one by its attribute alone

inline void add_messages(base::Random& random, std::vector<Sample>& to) {
  constexpr std::uint64_t kAttributes[] = {0x10, 0x13, 0x14, 0x12, 0x15, 0x16, 0x11};
  for (const bool is_v6 : {false, true}) {
    for (ConnectionMessage& message : sample::messages(random)) {
      if (auto* const request = std::get_if<RequestMessage>(&message.body)) {
        request->service_id = service_id(sample::draw<std::uint16_t>(random));
        request->transport_service = 0;
        const IpService service{sample::draw<std::uint16_t>(random), sample::address(random, is_v6),
                                sample::address(random, is_v6)};
        set_ip_service(*request, service);
        request->local_gid = service.source.gid();
        request->remote_gid = service.destination.gid();
      }
      const std::uint64_t attribute = kAttributes[message.body.index()];
      Sample made = sample_of(random, "attribute " + std::to_string(attribute),
                              sample::packet(message, sample::draw24(random)), is_v6);
      made.fields["infiniband.mad.baseversion"] = std::uint64_t{1};
      made.fields["infiniband.mad.mgmtclass"] = std::uint64_t{7};
      made.fields["infiniband.mad.classversion"] = std::uint64_t{2};
      made.fields["infiniband.mad.method"] = std::uint64_t{3};
      made.fields["infiniband.mad.status"] = std::uint64_t{0};
      made.fields["infiniband.mad.transactionid"] = message.transaction;
      made.fields["infiniband.mad.attributeid"] = attribute;
      made.fields["infiniband.mad.attributemodifier"] = std::uint64_t{0};
      std::visit([&made](const auto& body) { add_fields(made.fields, body); }, message.body);
      to.push_back(std::move(made));
    }
  }
}

/// All of them; the same for the same seed.
inline std::vector<Sample> all_samples(std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Sample> samples;
  add_packets(random, samples);
  add_messages(random, samples);
  return samples;
}

}  // namespace espalier::fabric::roce::sample
