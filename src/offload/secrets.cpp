// SPDX-License-Identifier: Apache-2.0
#include "offload/secrets.hpp"

#include <utility>

#include "crypto/secret_file.hpp"

namespace espalier::offload {
namespace {

static_assert(static_cast<int>(crypto::Role::read) == static_cast<int>(Right::read));
static_assert(static_cast<int>(crypto::Role::write) == static_cast<int>(Right::write));
static_assert(static_cast<int>(crypto::Role::admin) == static_cast<int>(Right::admin));

constexpr std::size_t kMistakesMax = 10;

}  // namespace

std::expected<std::size_t, std::vector<std::string>> Secrets::load(const std::string& path) {
  Entries read;
  std::vector<std::string> mistakes;
  const auto take = [&](std::uint32_t number, std::string_view line) {
    const auto mistake = [&](std::string_view words) {
      mistakes.push_back("the secrets file " + path + ", line " + std::to_string(number) + ": " +
                         std::string(words));
      return mistakes.size() < kMistakesMax;
    };
    auto slot = pool_->take();
    if (!slot) {
      mistake("no memory may be locked for it (RLIMIT_MEMLOCK; ulimit -l tells it)");
      return false;
    }
    auto credential = crypto::parse_credential(line, **slot);
    if (!credential) return mistake(credential.error());
    if (!*credential) return true;
    if (read.size() >= kNamesMax) {
      mistake("there are more than " + std::to_string(kNamesMax) + " names");
      return false;
    }
    std::string name = (*credential)->name;
    Entry entry{static_cast<Right>((*credential)->role), std::move((*credential)->prefix),
                std::move(*slot)};
    const auto [at, is_new] = read.emplace(std::move(name), std::move(entry));
    return is_new || mistake("the name " + at->first + " was there before");
  };
  const auto whole = crypto::read_secret_lines(path, "secrets file", take);
  if (!whole) mistakes.push_back(whole.error().words);
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes));
  const std::size_t names = read.size();
  {
    const std::lock_guard lock(mutex_);
    entries_.swap(read);
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return names;
}

std::optional<Access> Secrets::find(std::string_view name, crypto::SecretBytes& secret) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(name);
  if (at == entries_.end()) {
    static_cast<void>(crypto::draw_bytes(secret));
    return std::nullopt;
  }
  secret = *at->second.secret;
  return Access(at->first, at->second.role, at->second.prefix);
}

bool Secrets::still(const Access& access) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(access.who());
  return at != entries_.end() && at->second.role == access.role() &&
         at->second.prefix == access.prefix();
}

}  // namespace espalier::offload
