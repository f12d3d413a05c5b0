// SPDX-License-Identifier: Apache-2.0
#include "offload/access.hpp"

namespace espalier::offload {

std::optional<Error> Access::denied(const Offload& offload, std::string_view key, std::uint32_t id,
                                    const catalog::Catalog& catalog) {
  if (offload.right > role_) {
    return Error{Code::not_permitted, 0, static_cast<std::uint32_t>(offload.right)};
  }
  if (prefix_.empty()) return std::nullopt;
  const Error other_names{Code::not_permitted, 0, 0};
  const bool on_map = offload.limits.map && offload.object == Names::nothing;
  switch (on_map ? Names::by_id : offload.object) {
    case Names::nothing: return std::nullopt;
    case Names::all: return other_names;
    case Names::by_name: return may_name(key) ? std::nullopt : std::optional(other_names);
    case Names::by_id: break;
  }
  const auto may = may_use(id, catalog);
  if (!may) return Error{Code::not_found, 0, id};
  return *may ? std::nullopt : std::optional(other_names);
}

std::optional<bool> Access::may_use(std::uint32_t id, const catalog::Catalog& catalog) {
  if (const auto known = remembered_.find(id); known != remembered_.end()) return known->second;
  const auto entry = catalog.find_any(id);
  if (entry == nullptr) return std::nullopt;
  if (remembered_.size() >= kRememberedMax) remembered_.clear();
  return remembered_[id] = may_name(entry->name);
}

std::string_view name(Right role) {
  switch (role) {
    case Right::none: break;
    case Right::read: return "read";
    case Right::write: return "write";
    case Right::admin: return "admin";
  }
  return "";
}

}  // namespace espalier::offload
