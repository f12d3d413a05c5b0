// SPDX-License-Identifier: Apache-2.0
#include "engine/principal_accounts.hpp"

#include <algorithm>

#include "engine/peer_sources.hpp"
#include "engine/relayed_accounts.hpp"

namespace espalier::offload {
namespace {

constexpr std::string_view kUserPrefix = "user ";
constexpr std::string_view kAnybody = "anybody";  // Access::everything()
constexpr std::string_view kOthers = "others";

}  // namespace

std::string principal_of_secret(std::string_view name) { return "secret " + std::string(name); }

std::string principal_of_user(std::uint32_t user) {
  return std::string(kUserPrefix) + std::to_string(user);
}

std::string principal_of_peer(std::string_view peer) {
  constexpr std::string_view kOfUser = " of user ";
  if (const std::size_t at = peer.rfind(kOfUser); at != std::string_view::npos) {
    return std::string(kUserPrefix) + std::string(peer.substr(at + kOfUser.size()));
  }
  return "address " + source_of(peer);
}

// Names of secrets have no spaces.
std::string principal_on_behalf(std::string_view name) {
  if (name.starts_with(kUserPrefix)) return std::string(name);
  return name.empty() || name == kAnybody ? std::string() : principal_of_secret(name);
}

PrincipalRef PrincipalAccounts::of(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = accounts_.find(name); known != accounts_.end()) return known->second;
  if (accounts_.size() >= forget_at_) forget_unused();
  if (accounts_.size() >= kMost) {
    if (!others_) {
      others_ = std::make_shared<PrincipalAccount>(std::string(kOthers), ++last_number_);
    }
    return others_;
  }
  auto account = std::make_shared<PrincipalAccount>(std::string(name), ++last_number_);
  accounts_.emplace(account->name, account);
  return account;
}

// An account referenced only here stays so meanwhile: taking a reference needs the lock.
void PrincipalAccounts::forget_unused() {
  std::erase_if(accounts_, [](const auto& entry) { return entry.second.use_count() == 1; });
  forget_at_ = std::clamp(2 * accounts_.size(), kKept, kMost);
}

std::vector<PrincipalRef> PrincipalAccounts::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<PrincipalRef> all;
  all.reserve(accounts_.size() + 1);
  for (const auto& [name, account] : accounts_) all.push_back(account);
  if (others_) all.push_back(others_);
  return all;
}

std::size_t PrincipalAccounts::size() const {
  const std::lock_guard lock(mutex_);
  return accounts_.size();
}

PrincipalRef RelayedAccounts::of(std::string_view name, const PrincipalRef& own,
                                 PrincipalAccounts& accounts) {
  std::string as_told(name);
  if (const auto known = known_.find(as_told); known != known_.end()) return known->second;
  const std::string principal = principal_on_behalf(name);
  PrincipalRef account = principal.empty() ? own : accounts.of(principal);
  if (known_.size() >= kMost) known_.clear();
  known_.emplace(std::move(as_told), account);
  return account;
}

}  // namespace espalier::offload
