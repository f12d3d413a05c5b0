// SPDX-License-Identifier: Apache-2.0
#include "engine/secrets.hpp"

#include <utility>

#include "crypto/credential_file.hpp"
#include "crypto/hmac.hpp"

namespace espalier::offload {
namespace {

static_assert(static_cast<int>(crypto::Role::read) == static_cast<int>(Right::read));
static_assert(static_cast<int>(crypto::Role::write) == static_cast<int>(Right::write));
static_assert(static_cast<int>(crypto::Role::admin) == static_cast<int>(Right::admin));
static_assert(static_cast<int>(crypto::Role::peer) == static_cast<int>(Right::peer));
static_assert(static_cast<int>(crypto::Role::replica) == static_cast<int>(Right::replica));

}  // namespace

std::expected<std::size_t, std::vector<std::string>> Secrets::load(const std::string& path) {
  Entries read;
  const auto take = [&](crypto::Credential credential,
                        const crypto::SecretBytes& secret) -> std::string {
    if (read.size() >= kNamesMax) {
      return "there are more than " + std::to_string(kNamesMax) + " names";
    }
    auto slot = pool_->take();
    if (!slot) return "no memory may be locked for it (RLIMIT_MEMLOCK; ulimit -l tells it)";
    **slot = secret;
    Entry entry{static_cast<Right>(credential.role), std::move(credential.prefix), std::move(*slot),
                0};
    const auto [at, is_new] = read.emplace(std::move(credential.name), std::move(entry));
    return is_new ? "" : "the name " + at->first + " was there before";
  };
  if (auto whole = crypto::read_credentials(path, "secrets file", take); !whole) {
    return std::unexpected(std::move(whole.error().mistakes));
  }
  const std::size_t names = read.size();
  {
    const std::lock_guard lock(mutex_);
    number_lines(read);
    entries_.swap(read);
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return names;
}

// The old secret may have leaked: sessions authenticated by it belong to an older version of the
// entry.
void Secrets::number_lines(Entries& read) {
  for (auto& [name, entry] : read) {
    const auto before = entries_.find(name);
    const bool same = before != entries_.end() && before->second.role == entry.role &&
                      before->second.prefix == entry.prefix &&
                      crypto::equal_in_secret(*before->second.secret, *entry.secret);
    entry.line = same ? before->second.line : ++lines_;
  }
}

std::optional<Secrets::Owner> Secrets::find(std::string_view name,
                                            crypto::SecretBytes& secret) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(name);
  if (at == entries_.end()) {
    static_cast<void>(crypto::draw_bytes(secret));
    return std::nullopt;
  }
  const Entry& entry = at->second;
  secret = *entry.secret;
  return Owner{Access(at->first, entry.role, entry.prefix), entry.line};
}

bool Secrets::still(std::string_view name, std::uint64_t line) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(name);
  return at != entries_.end() && at->second.line == line;
}

}  // namespace espalier::offload
