// SPDX-License-Identifier: Apache-2.0
// FabricClients of fabric_clients.hpp: authentication of clients, where the node has secrets, and
// the endpoint's counters of connection attempts.
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/places.hpp"
#include "crypto/link_proof.hpp"
#include "engine/connection.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/services.hpp"

namespace espalier::offload {

void FabricClients::make_authenticator() {
  LinkAuthenticatorOptions options;
  options.node_id = options_.node_id;
  options.pair_timeout_ns = options_.pair_timeout_ns;
  options.now_ns = options_.now_ns;
  options.draw = [this] { return draw(); };
  options.admit = [this](const wire::LinkHello& hello, const Secrets::Owner& owner,
                         const crypto::SecretBytes& key,
                         const std::string& peer) { return admit_proven(hello, owner, key, peer); };
  options.rejected = [this](std::string_view name, const std::string& peer, const Error& why) {
    audit_refusal("authenticate", name, peer, why);
  };
  authenticator_ =
      std::make_unique<LinkAuthenticator>(*endpoint_, *options_.secrets, std::move(options));
  secrets_seen_ = options_.secrets->generation();
}

// The session waits for its first pair like a lost one for its next.
Result<wire::LinkToken> FabricClients::admit_proven(const wire::LinkHello& hello,
                                                    const Secrets::Owner& owner,
                                                    const crypto::SecretBytes& key,
                                                    const std::string& peer) {
  auto slot = options_.secrets->pool()->take();
  if (!slot) return std::unexpected(slot.error());
  const auto made = new_session(hello, owner.access, principal_of_secret(owner.access.who()), peer);
  if (!made) return std::unexpected(made.error());
  Session& session = **made;
  session.key = std::move(*slot);
  *session.key = key;
  session.connection->side->key = &*session.key;
  session.secrets_line = owner.line;
  session.awaited = true;
  session.lost_ns = options_.now_ns();
  return session.token;
}

// All pairs of a session that began with a proof need its key.
bool FabricClients::must_be_proven(const wire::LinkHello& hello) const {
  if (!authenticator_) return false;
  if (!options_.proof_is_optional) return true;
  const auto known = sessions_.find(hello.token);
  return known != sessions_.end() && known->second->is_proven();
}

// Replay protection: each pair of a session is requested by a hello with a MAC of the session's
// key, and no hello is accepted twice, or late. Returns false for a wrong MAC: the refusal is
// delayed.
Result<bool> FabricClients::check_proven(const fabric::ConnectRequest& request) {
  wire::LinkProvenHello proven{};
  if (request.data.size() < sizeof proven) return fail(Code::not_permitted, 4);
  std::memcpy(&proven, request.data.data(), sizeof proven);
  const auto known = sessions_.find(proven.hello.token);
  // A hello without a session has proven nothing; an ended session gets another error.
  if (known == sessions_.end()) {
    const bool none = proven.hello.token == wire::LinkToken{};
    return none ? fail(Code::not_permitted, 4) : fail(Code::not_found);
  }
  Session& session = *known->second;
  const auto mark = crypto::hello_mark(*session.key, proven.hello);
  if (!mark) return std::unexpected(mark.error());
  const bool same = crypto::equal_in_secret(std::as_bytes(std::span(&*mark, 1)),
                                            std::as_bytes(std::span(&proven.mark, 1)));
  const Error wrong{Code::not_permitted, 0, 5};
  if (!same) {
    refuse_late(request, wrong);
    return false;
  }
  const auto way = static_cast<wire::LinkWay>(proven.hello.way);
  if (!session.hellos.take(way, proven.hello.reserved)) return std::unexpected(wrong);
  // Secrets were loaded just now, before the next maintain().
  if (is_known_no_more(session)) {
    to_remove_.push_back(&session);
    audit_end(session);
    return fail(Code::not_found);
  }
  return true;
}

// Delays the refusal like that of a wrong proof, and counts it as one. The transport keeps the
// request meanwhile, so few are delayed; others are refused immediately, with nothing but the limit
// as reason.
void FabricClients::refuse_late(const fabric::ConnectRequest& request, const Error& error) {
  constexpr std::size_t kLateMax = 32;
  counts_.refused.fetch_add(1, std::memory_order_relaxed);
  audit_refusal("authenticate", {}, request.peer, error);
  const std::uint64_t wait_ns = authenticator_->count_wrong(request.peer);
  if (late_refusals_.size() >= kLateMax) {
    return send_refusal(request, base::full_error(base::Places::late_refusals, kLateMax));
  }
  late_refusals_.push_back({request, error, options_.now_ns() + wait_ns});
}

void FabricClients::send_late_refusals() {
  if (late_refusals_.empty()) return;
  const std::uint64_t now = options_.now_ns();
  std::erase_if(late_refusals_, [&](const LateRefusal& late) {
    if (late.at_ns > now) return false;
    send_refusal(late.request, late.error);
    return true;
  });
}

void FabricClients::refuse(const fabric::ConnectRequest& request, const Error& error) {
  counts_.refused.fetch_add(1, std::memory_order_relaxed);
  audit_refusal("connect", {}, request.peer, error);
  send_refusal(request, error);
}

std::string FabricClients::address_of(std::string_view peer) const {
  return std::string(endpoint_->properties().transport) + " " + std::string(peer);
}

void FabricClients::audit_refusal(std::string_view act, std::string_view name,
                                  std::string_view peer, const Error& why) {
  // Without a proof, the principal is the peer's source, whatever name it claims.
  services_.audit.refused(principal_of_peer(peer), [&] {
    AuditRecord record;
    record.act = act;
    record.name = name;
    record.address = address_of(peer);
    record.outcome = why;
    return record;
  });
}

void FabricClients::copy_connect_counts() {
  const fabric::ConnectCounts now = endpoint_->connect_counts();
  counts_.cookies_sent.store(now.cookies_sent, std::memory_order_relaxed);
  counts_.cookies_accepted.store(now.cookies_accepted, std::memory_order_relaxed);
  counts_.cookies_refused.store(now.cookies_refused, std::memory_order_relaxed);
  counts_.messages_shed.store(now.shed, std::memory_order_relaxed);
  counts_.foreign.store(now.foreign, std::memory_order_relaxed);
  counts_.out_of_window.store(now.out_of_window, std::memory_order_relaxed);
}

// Records the end of a session whose secret an administrator removed or changed.
void FabricClients::audit_end(const Session& session) {
  services_.audit.acted([&] { return end_of_session(*session.connection); });
}

bool FabricClients::secrets_were_loaded() {
  if (options_.secrets == nullptr) return false;
  const std::uint64_t generation = options_.secrets->generation();
  return std::exchange(secrets_seen_, generation) != generation;
}

// Its name was removed from the secrets, or has other rights or another secret.
bool FabricClients::is_known_no_more(const Session& session) const {
  return !options_.secrets->still(session.connection->access.who(), session.secrets_line);
}

// Ends all in one pass, whatever the state of their pairs: a load of secrets is seen only once.
void FabricClients::end_unknown() {
  if (!secrets_were_loaded()) return;
  for (const auto& [token, session] : sessions_) {
    if (!session->is_proven() || !is_known_no_more(*session)) continue;
    to_remove_.push_back(session.get());
    audit_end(*session);
  }
  remove_ended();
}

}  // namespace espalier::offload
