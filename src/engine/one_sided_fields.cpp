// SPDX-License-Identifier: Apache-2.0
#include "engine/one_sided_fields.hpp"

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "engine/one_sided_host.hpp"

namespace espalier::offload {

void add_field(std::string& to, wire::FieldKind kind, std::string_view field) {
  wire::FieldHeader header{};
  header.kind = static_cast<std::uint16_t>(kind);
  header.bytes = static_cast<std::uint32_t>(field.size());
  to += base::bytes_of(header);
  to += field;
  to.append((8 - field.size() % 8) % 8, '\0');
}

Next answer_one_sided(Call& call, OneSidedHost& host, wire::FieldKind kind, std::string_view place,
                      std::string_view more) {
  const auto region = host.offer();
  if (!region) return call.fail(region.error());
  const auto lease = host.grant(base::monotonic_ns());
  if (!lease) return call.fail(lease.error());
  wire::OfferedRegion offered{};
  offered.base = region->base;
  offered.bytes = region->bytes;
  offered.key = region->key;
  const base::LeaseTerms& terms = host.terms();
  const wire::LeaseGrant grant{lease->id, lease->epoch, terms.renew_every_ns, terms.believed_for_ns,
                               terms.lost_after_ns};
  std::string fields;
  add_field(fields, wire::FieldKind::region, base::bytes_of(offered));
  add_field(fields, kind, place);
  add_field(fields, wire::FieldKind::lease, base::bytes_of(grant));
  fields += more;
  return call.answer({}, {fields});
}

}  // namespace espalier::offload
