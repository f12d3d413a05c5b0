// SPDX-License-Identifier: Apache-2.0
// Access rights of one client at a node: a role, and the object names that the role covers.
//
// The write right includes read. An admin may do everything except use regions, for which the role
// of peers exists; that role may write, too. A role with a name prefix covers only objects whose
// names begin with it. It grants nothing that concerns all objects, such as one-sided reads of the
// store's memory or the node's counters.
//
// Requests name objects by id, and a client can guess ids, so each request's id is checked. The
// result is cached until an object is renamed: an id never names another object later.
//
// Thread: the scheduler's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "espalier/error.hpp"
#include "wire/call_row.hpp"

namespace espalier::catalog {
class Catalog;
}

namespace espalier::offload {

struct Offload;
using wire::Right;

class Access {
 public:
  /// Most ids whose results are cached.
  static constexpr std::size_t kRememberedMax = 4096;

  /// Permits only what needs no right.
  Access() = default;
  /// `who`: a name for operators. `prefix`: of object names; empty: all.
  Access(std::string who, Right role, std::string prefix = {})
      : Access(std::move(who), role, std::move(prefix), wire::rights_of(role)) {}
  /// Permits everything, whatever the client: an administrator with more rights than that role.
  static Access everything(std::string who = "anybody") {
    return {std::move(who), Right::admin, {}, wire::kAllRights};
  }

  [[nodiscard]] const std::string& who() const { return who_; }
  [[nodiscard]] Right role() const { return role_; }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

  /// Whether it may do this to every object; false: call denied(). Cost: a comparison.
  [[nodiscard]] bool may_at_once(Right needed) const { return wire::has_right(at_once_, needed); }
  /// Whether it may use an object of this name, or learn that it exists.
  [[nodiscard]] bool may_name(std::string_view object) const { return object.starts_with(prefix_); }

  /// Why the request is refused; nothing: it is permitted. `key` and `id` are the request's.
  /// Errors: not_permitted (detail: the missing right; 0: the name is outside the prefix),
  /// not_found (detail: the id, which no object has). Cost: for an id that is not cached, the
  /// catalogue's lock.
  [[nodiscard]] std::optional<Error> denied(const Offload& offload, std::string_view key,
                                            std::uint32_t id, const catalog::Catalog& catalog);
  /// The same for the second object that a request names in its payload.
  [[nodiscard]] std::optional<Error> denied_second(const Offload& offload,
                                                   std::string_view payload) const;
  /// The same on a device, which knows no names of its host's objects: requests that name an object
  /// by id pass, and the host checks them.
  [[nodiscard]] std::optional<Error> denied_at_device(const Offload& offload,
                                                      std::string_view key) const;
  /// Whether the object is known to be permitted, from the cache alone.
  [[nodiscard]] bool knows_that_it_may_use(std::uint32_t id) const {
    if (prefix_.empty()) return true;
    const auto known = remembered_.find(id);
    return known != remembered_.end() && known->second;
  }
  /// Caches that the peer which knows the object's name permits its use. Only for kinds whose
  /// objects keep their names: no rename is reported here.
  void remember(std::uint32_t id);

 private:
  Access(std::string who, Right role, std::string prefix, std::uint32_t rights)
      : at_once_(prefix.empty() ? rights : wire::rights_of(Right::none)),
        rights_(rights),
        role_(role),
        who_(std::move(who)),
        prefix_(std::move(prefix)) {}
  [[nodiscard]] std::optional<bool> may_use(std::uint32_t id, const catalog::Catalog& catalog);
  [[nodiscard]] std::optional<Error> denied_by_role(const Offload& offload) const;

  std::uint32_t at_once_ = wire::rights_of(Right::none);  // the rights, if they cover all names
  std::uint32_t rights_ = wire::rights_of(Right::none);
  Right role_ = Right::none;
  std::string who_;
  std::string prefix_;
  std::unordered_map<std::uint32_t, bool> remembered_;  // whether the id's name has the prefix
  std::uint32_t renames_ = 0;                           // the catalogue's count of renames at the
                                                        // last check
};

/// The role's name; empty: none.
[[nodiscard]] std::string_view name(Right role);

}  // namespace espalier::offload
