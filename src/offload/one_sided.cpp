// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that walk maps by one-sided READs: where the memory is, and leases.
#include <cstring>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "offload/call.hpp"
#include "offload/connection.hpp"
#include "offload/one_sided_fields.hpp"
#include "offload/one_sided_host.hpp"
#include "offload/payload_reader.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {
namespace {

void add_field(std::string& to, wire::FieldKind kind, std::string_view field) {
  ESPALIER_ASSERT(field.size() % 8 == 0);
  wire::FieldHeader header{};
  header.kind = static_cast<std::uint16_t>(kind);
  header.bytes = static_cast<std::uint32_t>(field.size());
  to += base::bytes_of(header);
  to += field;
}

wire::MapPlace place_of(const tree::MapCore& core) {
  wire::MapPlace place{};
  place.header_offset = core.header_offset;
  // Its versions move meanwhile: word by word, each is whole.
  auto* to = reinterpret_cast<std::byte*>(&place.header);
  for (std::size_t at = 0; at < sizeof place.header; at += 8) {
    const auto word = base::load_shared<std::uint64_t>(core.at(core.header_offset + at));
    std::memcpy(to + at, &word, sizeof word);
  }
  return place;
}

Next one_sided_open(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  const tree::MapCore& core = *call.host_map().core;
  if (host == nullptr || !core.options.versions) {
    return call.fail({Code::unsupported, 0, 0});
  }
  const wire::MapPlace place = place_of(core);
  return answer_one_sided(call, *host, wire::FieldKind::map, base::bytes_of(place));
}

Next lease_renew(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto renewal = PayloadReader(call.payload()).take<wire::LeaseRenewal>();
  const auto epoch = host->renew(renewal.lease, renewal.oldest, base::monotonic_ns());
  if (!epoch) return call.fail(epoch.error());
  wire::ResponseHeader header{};
  header.version = *epoch;
  return call.answer(header);
}

const Offload kOffloads[] = {
    {.id = wire::OffloadId::one_sided_open,
     .name = "one_sided_open",
     .format = "map: the map to be walked",
     .summary = "offers the node's memory to be read by this session alone, and grants it a lease; "
                "answers fields (wire/one_sided.hpp)",
     .right = Right::read,
     .limits = {.map = true},
     .step = one_sided_open},
    {.id = wire::OffloadId::lease_renew,
     .name = "lease_renew",
     .format = "LeaseRenewal: the lease, and the oldest epoch of walks in flight",
     .summary = "renews a lease; answers the present epoch as version",
     .right = Right::read,
     .limits = {.payload_bytes_min = sizeof(wire::LeaseRenewal),
                .payload_bytes_max = sizeof(wire::LeaseRenewal)},
     .step = lease_renew},
};

}  // namespace

Next answer_one_sided(Call& call, OneSidedHost& host, wire::FieldKind kind,
                      std::string_view place) {
  const auto region = host.offer();
  if (!region) return call.fail(region.error());
  const auto lease = host.grant(base::monotonic_ns());
  if (!lease) return call.fail(lease.error());
  wire::OfferedRegion offered{};
  offered.base = region->base;
  offered.bytes = region->bytes;
  offered.key = region->key;
  const wire::LeaseGrant grant{lease->id, lease->epoch, kLeaseTerms.renew_every_ns,
                               kLeaseTerms.believed_for_ns, kLeaseTerms.lost_after_ns};
  std::string fields;
  add_field(fields, wire::FieldKind::region, base::bytes_of(offered));
  add_field(fields, kind, place);
  add_field(fields, wire::FieldKind::lease, base::bytes_of(grant));
  return call.answer({}, {fields});
}

std::span<const Offload> one_sided_offloads() { return kOffloads; }

}  // namespace espalier::offload
