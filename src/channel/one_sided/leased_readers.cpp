// SPDX-License-Identifier: Apache-2.0
#include "channel/one_sided/leased_readers.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "channel/no_memory.hpp"
#include "channel/rings/typed_call.hpp"

namespace espalier::client {
namespace {

Result<session_calls::Renewed> ask_of_lease(RemoteRequests& requests,
                                            const place::LeaseGuard::Asked& asked) {
  const session_calls::RenewLease renewal{0, {asked.id, asked.oldest}, {}};
  return or_out_of_memory([&] { return ask(requests, renewal); });
}

}  // namespace

bool LeaseLane::open(RemoteSessions& sessions) {
  auto rings = sessions.open_lane();
  if (!rings) return false;
  requests_ = std::make_unique<RemoteRequests>(**rings, 1);
  rings_ = std::move(*rings);
  return true;
}

const Error* OpenFailures::find(std::uint32_t object, bool has_link, std::uint64_t now_ns) const {
  const Failure& of_all = has_link ? no_lease_ : no_link_;
  if (now_ns < of_all.until_ns) return &of_all.error;
  const auto found = of_objects_.find(object);
  const bool waits = found != of_objects_.end() && now_ns < found->second.until_ns;
  return waits ? &found->second.error : nullptr;
}

void OpenFailures::note(std::uint32_t object, bool has_link, const Error& error,
                        std::uint64_t began_ns) {
  const std::uint64_t now = base::monotonic_ns();
  const Failure failure{now + std::max(kPauseNs, kPauseFactor * (now - began_ns)), error};
  if (!has_link) {
    no_link_ = failure;
  } else if (error.code == Code::out_of_memory) {
    no_lease_ = failure;
  } else {
    if (of_objects_.size() == kObjectsMax) of_objects_.clear();
    try {
      of_objects_[object] = failure;
    } catch (const std::bad_alloc&) {
    }
  }
}

void renew_lease(RemoteRequests& requests, place::LeaseGuard& lease,
                 const place::LeaseGuard::Asked& due) {
  if (due.id == 0) return lease.end_all();  // a new one needs another opening
  const auto renewed = ask_of_lease(requests, due);
  if (renewed) {
    lease.renewed(renewed->epoch, base::monotonic_ns());
  } else {
    lease.end_all();
  }
}

bool give_back_lease(RemoteRequests& requests, const place::LeaseGuard::Asked& given) {
  return ask_of_lease(requests, given).has_value();
}

}  // namespace espalier::client
