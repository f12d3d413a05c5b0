// SPDX-License-Identifier: Apache-2.0
// What one client may do at a node: a role, and the names of the objects that the role is for.
//
// Who may write may read, and an admin may do all but use regions, for which peers have a role: it
// may write, too. A role for names that begin with a prefix is good for objects of such names only,
// and for nothing that concerns all of them, such as reading the store's memory one-sided or asking
// for the node's numbers.
//
// Objects are asked for by numbers, which anybody can guess; so it is the number that is checked,
// each time. What was found is kept, for a number never names another object later, until an object
// is renamed.
//
// Thread: that of the scheduler.
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
  /// Most objects whose names are remembered.
  static constexpr std::size_t kRememberedMax = 4096;

  /// Nothing, but what takes no right.
  Access() = default;
  /// `who`: for operators. `prefix`: of the names of objects; empty: all.
  Access(std::string who, Right role, std::string prefix = {})
      : Access(std::move(who), role, std::move(prefix), wire::rights_of(role)) {}
  /// All, whoever it is: an administrator who may do more than that role.
  static Access everything(std::string who = "anybody") {
    return {std::move(who), Right::admin, {}, wire::kAllRights};
  }

  [[nodiscard]] const std::string& who() const { return who_; }
  [[nodiscard]] Right role() const { return role_; }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

  /// Whether it may, whatever the object; false: ask denied(). Cost: a comparison.
  [[nodiscard]] bool may_at_once(Right needed) const { return wire::has_right(at_once_, needed); }
  /// Whether it may use, or learn of, an object of this name.
  [[nodiscard]] bool may_name(std::string_view object) const { return object.starts_with(prefix_); }

  /// What keeps it from asking for this; nothing: it may. `key` and `id` are the request's.
  /// Errors: not_permitted (detail: the right that it takes; 0: of other names), not_found (detail:
  /// the id, of which there is no object). Cost: for a new id, the catalogue's lock.
  [[nodiscard]] std::optional<Error> denied(const Offload& offload, std::string_view key,
                                            std::uint32_t id, const catalog::Catalog& catalog);
  /// The same of the second object that a request names in its payload.
  [[nodiscard]] std::optional<Error> denied_second(const Offload& offload,
                                                   std::string_view payload) const;
  /// The same on a device, which knows no names of its host's objects: what is asked for by its
  /// number is let pass, for the host to check.
  [[nodiscard]] std::optional<Error> denied_at_device(const Offload& offload,
                                                      std::string_view key) const;
  /// Whether it may use this object, as far as is known here without asking.
  [[nodiscard]] bool knows_that_it_may_use(std::uint32_t id) const {
    if (prefix_.empty()) return true;
    const auto known = remembered_.find(id);
    return known != remembered_.end() && known->second;
  }
  /// The peer that knows the object's name has found that it may use it. Of kinds that keep their
  /// names, for here no rename is heard of.
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

  std::uint32_t at_once_ = wire::rights_of(Right::none);  // its rights, if they are for all names
  std::uint32_t rights_ = wire::rights_of(Right::none);
  Right role_ = Right::none;
  std::string who_;
  std::string prefix_;
  std::unordered_map<std::uint32_t, bool> remembered_;  // whether an id's name begins so
  std::uint32_t renames_ = 0;                           // since the last of these
};

/// How a role is called; empty: none.
[[nodiscard]] std::string_view name(Right role);

}  // namespace espalier::offload
