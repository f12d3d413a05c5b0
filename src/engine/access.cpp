// SPDX-License-Identifier: Apache-2.0
#include "engine/access.hpp"

#include "catalog/catalog.hpp"
#include "engine/registry.hpp"

namespace espalier::offload {

namespace {

constexpr Error kOtherNames{Code::not_permitted, 0, 0};

Names names_of(const Offload& offload) {
  const bool on_map = offload.limits.map && offload.object == Names::nothing;
  return on_map ? Names::by_id : offload.object;
}

}  // namespace

std::optional<Error> Access::denied_by_role(const Offload& offload) const {
  if (wire::has_right(rights_, offload.right)) return std::nullopt;
  return Error{Code::not_permitted, 0, static_cast<std::uint32_t>(offload.right)};
}

std::optional<Error> Access::denied(const Offload& offload, std::string_view key, std::uint32_t id,
                                    const catalog::Catalog& catalog) {
  auto error = denied_at_device(offload, key);
  if (error || prefix_.empty() || names_of(offload) != Names::by_id) return error;
  const auto may = may_use(id, catalog);
  if (!may) return Error{Code::not_found, 0, id};
  return *may ? std::nullopt : std::optional(kOtherNames);
}

std::optional<Error> Access::denied_second(const Offload& offload, std::string_view payload) const {
  if (prefix_.empty() || offload.second_name == 0) return std::nullopt;
  const std::string_view name = wire::second_name_in(offload, payload);
  return may_name(name) ? std::nullopt : std::optional(kOtherNames);
}

std::optional<Error> Access::denied_at_device(const Offload& offload, std::string_view key) const {
  if (auto error = denied_by_role(offload)) return error;
  if (prefix_.empty()) return std::nullopt;
  switch (names_of(offload)) {
    case Names::nothing:
    case Names::by_id: break;
    case Names::all: return kOtherNames;
    case Names::by_name: return may_name(key) ? std::nullopt : std::optional(kOtherNames);
  }
  return std::nullopt;
}

void Access::remember(std::uint32_t id) {
  if (prefix_.empty()) return;
  if (remembered_.size() >= kRememberedMax) remembered_.clear();
  remembered_[id] = true;
}

std::optional<bool> Access::may_use(std::uint32_t id, const catalog::Catalog& catalog) {
  // The lookup below may see a later rename than this count; then the next call clears the cache.
  if (const std::uint32_t renames = catalog.renames(); renames != renames_) {
    remembered_.clear();
    renames_ = renames;
  }
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
    case Right::peer: return "peer";
    case Right::replica: return "replica";
  }
  return "";
}

}  // namespace espalier::offload
