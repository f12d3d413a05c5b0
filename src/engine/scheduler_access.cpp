// SPDX-License-Identifier: Apache-2.0
// Scheduler of scheduler.hpp: checks whether a client may make a request, and records refusals and
// administrators' actions for audits.
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.hpp"
#include "engine/connection.hpp"
#include "engine/principal.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"
#include "wire/refusal.hpp"

namespace espalier::offload {
namespace {

/// The principal was read before, and is still in the message.
PrincipalView principal_of(const Request& request) {
  if (!request.on_behalf()) return view_of(request.connection->access);
  return read_principal(request.whole_message()).value_or(PrincipalView{});
}

/// A request's object: its name, or where that is unknown the id from the request.
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
  const PrincipalView principal = principal_of(request);
  AuditRecord record;
  record.act = request.offload->name;
  record.name = principal.name;
  record.role = principal.role;
  if (request.on_behalf()) record.via = request.connection->access.who();
  record.address = request.connection->address;
  record.object = object_of(request, catalog);
  record.to = wire::second_name_in(*request.offload, request.payload());
  record.outcome = outcome;
  return record;
}

}  // namespace

PrincipalView Call::principal() const { return principal_of(request_); }
PrincipalRef Call::account() const { return scheduler_.account_of(request_); }

PrincipalRef Scheduler::account_of(const Request& request) {
  Connection& connection = *request.connection;
  if (!request.on_behalf()) return connection.account;
  return connection.relayed.of(principal_of(request).name, connection.account,
                               services_.principals);
}

// Only an administrator of all objects may act on behalf of others, and a relay grants no more
// rights than it has.
bool Scheduler::check_access(Request& request) {
  Access& own = request.connection->access;
  std::optional<Error> error;
  if (!request.on_behalf()) {
    error = services_.at_device ? own.denied_at_device(*request.offload, request.key())
                                : own.denied(*request.offload, request.key(), request.header.map,
                                             services_.catalog());
    if (!error) error = own.denied_second(*request.offload, request.payload());
  } else if (!own.may_at_once(Right::admin)) {
    request.header.ring &= static_cast<std::uint8_t>(~wire::kOnBehalf);
    error = Error{Code::not_permitted, 0, static_cast<std::uint32_t>(Right::admin)};
  } else {
    const auto principal = read_principal(request.payload());
    if (!principal) {
      request.header.ring &= static_cast<std::uint8_t>(~wire::kOnBehalf);
      fail(request, {Code::invalid_argument, 0, 0});
      return false;
    }
    request.header.bytes -= static_cast<std::uint32_t>(principal->bytes());
    // A right that the relay lacks is dropped; the role of peers keeps the right to write.
    const Right less = principal->role == Right::peer ? Right::write : Right::none;
    const bool beyond = !own.may_at_once(principal->role);
    Access access(std::string(principal->name), beyond ? less : principal->role,
                  std::string(principal->prefix));
    error = access.denied(*request.offload, request.key(), request.header.map, services_.catalog());
    if (!error) error = access.denied_second(*request.offload, request.payload());
  }
  return !error || refuse_access(request, *error);
}

bool Scheduler::refuse_access(Request& request, const Error& why) {
  services_.denied.fetch_add(1, std::memory_order_relaxed);
  audit_refusal(request, why);
  fail(request, why);
  return false;
}

void Scheduler::audit_refusal(const Request& request, const Error& why) noexcept {
  const auto record = [&] { return record_of(request, why, services_.catalog()); };
  try {
    services_.audit.refused(account_of(request)->name, record);
  } catch (const std::bad_alloc&) {  // for the relaying device's account
    services_.audit.refused({}, record);
  }
}

// A refusal by role has a record of its own.
void Scheduler::audit_act(const Request& request, const wire::ResponseHeader& header,
                          std::initializer_list<std::string_view> payload) noexcept {
  const auto code = static_cast<Code>(header.code);
  if (code == Code::not_permitted) return;
  if (request.offload->routine && code == Code::invalid) return;
  services_.audit.acted([&] {
    const bool refused = code != Code::invalid && payload.size() != 0;
    const std::string_view says = refused ? *payload.begin() : std::string_view();
    return record_of(request, wire::error_in(header.code, says), services_.catalog());
  });
}

}  // namespace espalier::offload
