// SPDX-License-Identifier: Apache-2.0
// Scheduler of scheduler.hpp: what it keeps of requests for those who audit the node.
#include <cstring>
#include <string>
#include <string_view>

#include "offload/scheduler.hpp"

namespace espalier::offload {
namespace {

/// What a request concerns: a name, or where none is known the number that it said.
std::string object_of(const Request& request, const catalog::Catalog& catalog) {
  const Offload& offload = *request.offload;
  const bool by_id = offload.object == Names::by_id || offload.limits.map;
  if (offload.object == Names::by_name) return std::string(request.key());
  if (!by_id) return {};
  const auto entry = catalog.find_any(request.header.map);
  return entry != nullptr ? entry->name : "#" + std::to_string(request.header.map);
}

AuditRecord record_of(const Request& request, const Error& outcome,
                      const catalog::Catalog& catalog) {
  const Access& access = request.connection->access;
  AuditRecord record;
  record.act = request.offload->name;
  record.name = access.who();
  record.role = access.role();
  record.address = request.connection->address;
  record.object = object_of(request, catalog);
  record.outcome = outcome;
  return record;
}

/// The detail of an error begins its payload.
std::uint32_t detail_of(std::initializer_list<std::string_view> payload) {
  std::uint32_t detail = 0;
  if (payload.size() != 0 && payload.begin()->size() >= sizeof detail) {
    std::memcpy(&detail, payload.begin()->data(), sizeof detail);
  }
  return detail;
}

}  // namespace

void Scheduler::audit_refusal(const Request& request, const Error& why) noexcept {
  services_.audit.refused([&] { return record_of(request, why, services_.catalog()); });
}

// What its role did not allow has a record of its own.
void Scheduler::audit_act(const Request& request, const wire::ResponseHeader& header,
                          std::initializer_list<std::string_view> payload) noexcept {
  const auto code = static_cast<Code>(header.code);
  if (code == Code::not_permitted) return;
  services_.audit.acted([&] {
    const bool done = code == Code::invalid;
    return record_of(request, {code, 0, done ? 0 : detail_of(payload)}, services_.catalog());
  });
}

}  // namespace espalier::offload
