// SPDX-License-Identifier: Apache-2.0
#include "engine/fabric_clients.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/places.hpp"
#include "base/system_error.hpp"
#include "engine/client_table.hpp"
#include "engine/connection.hpp"
#include "engine/connection_limits.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/services.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::offload {
namespace {

using fabric::Completion;

constexpr std::uint32_t kReceives = 1024;  // and one for each pair
constexpr std::uint32_t kPostsOwn = 4;     // of each client, whatever others hold
constexpr std::uint32_t kUser =
    ~std::uint32_t{0};  // the owner of their doorbells, which no client is given
constexpr std::uint32_t kRefusedMax = 64;
constexpr std::uint64_t kRefusedNs = 1'000'000'000;
constexpr std::uint64_t kCloseNs = 50'000'000;
constexpr std::uint64_t kHouseNs = 10'000'000;
constexpr std::uint64_t kNapNs = 1'000'000;
// After so many turns without traffic a session no longer keeps the thread awake, and is no longer
// checked.
constexpr std::uint32_t kQuietSessionTurns = 64;
constexpr std::uint32_t kIdleTurns = 256;  // after so many, the endpoint is polled less often
constexpr std::uint32_t kIdleLook = 16;

// A quarter of all posts is shared by clients that need more than their own. The rest suffices for
// those of 12,096 clients.
std::uint32_t shared_posts(std::uint32_t posts_max) { return posts_max / 4; }

std::uint32_t beyond_own(const rings::RingLink& link) {
  return link.posts() - std::min(link.posts(), kPostsOwn);
}

/// Whether a client may use the reserved places: an authenticated administrator of all objects, or
/// a user that only the node's own socket admits.
bool runs_node(const Access& access, std::string_view principal) {
  return access.may_at_once(Right::admin) && !principal.starts_with("address ");
}

// So that each has posts of its own, and all of these fit.
std::uint32_t most_sessions(const FabricClientsOptions& options) {
  const std::uint32_t own = options.posts_max - shared_posts(options.posts_max);
  return std::min(options.sessions_max, own / kPostsOwn);
}

std::uint32_t most_receives(const FabricClientsOptions& options) {
  return kReceives + 2 * most_sessions(options) + kRefusedMax + 1;  // one that is about to connect
}

// Beside the posts of rings.
std::uint32_t most_part_posts(const FabricClientsOptions& options) {
  return static_cast<std::uint32_t>(kPartPostsMax) * most_sessions(options);
}

bool all_zero(const wire::LinkToken& token) { return token[0] == 0 && token[1] == 0; }

std::uint32_t slots_of_log2(std::uint8_t log2, std::uint32_t most) {
  const std::uint32_t slots = log2 < 32 ? 1u << log2 : most;
  return std::clamp(slots, wire::kRingSlotsMin, most);
}

}  // namespace

FabricClients::FabricClients(std::unique_ptr<fabric::Endpoint> endpoint, Services& services,
                             Scheduler& scheduler, rings::Doorbells& doorbells,
                             FabricClientsOptions options)
    : endpoint_(std::move(endpoint)),
      side_{services, endpoint_->regions(), endpoint_->properties(), options.one_sided},
      services_(services),
      scheduler_(scheduler),
      doorbells_(doorbells),
      options_(std::move(options)),
      completions_(*endpoint_,
                   most_receives(options_) + options_.posts_max + most_part_posts(options_)),
      receives_(completions_, most_receives(options_)) {
  if (options_.one_sided) {
    leases_.emplace(services_, [this](const auto& sessions) { fence(sessions); });
  }
  if (options_.secrets != nullptr) make_authenticator();
  post_receives();
}

FabricClients::~FabricClients() {
  send_close();
  while (!sessions_.empty()) remove(*sessions_.begin()->second);
  for (const Refused& refused : refused_) refused.pair->close();
  refused_.clear();
  endpoint_->progress();  // so that the clients receive it
}

// Sent after all answers. A client that misses it tries to resume, and finds out then.
void FabricClients::send_close() {
  const std::uint64_t until = options_.now_ns() + kCloseNs;
  Completion batch[64];
  const auto unheard = [](const auto& entry) {
    const Session& session = *entry.second;
    return session.pair && session.pair->state() == fabric::QueuePair::State::connected &&
           session.connection->link()->busy();
  };
  const auto say = [](const auto& entry) { entry.second->connection->link()->send_close(); };
  std::ranges::for_each(sessions_, say);
  while (std::ranges::any_of(sessions_, unheard) && options_.now_ns() < until) {
    std::ranges::for_each(sessions_, say);
    const std::size_t count = completions_.poll(batch);
    for (std::size_t at = 0; at < count; ++at) take(batch[at]);
    if (count == 0) endpoint_->wait(kNapNs);
  }
}

// --- turns ---------------------------------------------------------------------------------------

bool FabricClients::turn() {
  ++turns_;
  // Polling a socket costs as much as several turns of the scheduler: less often, while no client
  // connects.
  if (idle_turns_ >= kIdleTurns && turns_ % kIdleLook != 0) return false;
  if (leases_) leases_->turn(options_.now_ns());
  bool moved = mirror_active();
  Completion batch[64];
  for (int i = 0; i < 4; ++i) {
    const std::size_t count = completions_.poll(batch);
    for (std::size_t at = 0; at < count; ++at) take(batch[at]);
    moved = moved || count != 0;
    if (count < std::size(batch)) break;
  }
  accept_all(moved);
  send_late_refusals();
  if (authenticator_) moved = authenticator_->turn() || moved;
  remove_ended();
  if (turns_ % 64 == 0 || !moved) maintain();
  idle_turns_ = moved ? 0 : idle_turns_ + 1;
  return moved;
}

bool FabricClients::has_news() {
  idle_turns_ = 0;
  if (turn()) return true;
  const auto moves = [](const Session* session) {
    return session->quiet_turns < kQuietSessionTurns;
  };
  return completions_.waiting() != 0 || std::ranges::any_of(active_, moves);
}

// Unacknowledged messages must be retransmitted, for which the thread must wake. And leases may
// expire.
std::uint64_t FabricClients::sleep_limit_ns() const {
  if (!active_.empty()) return kNapNs;
  if (!late_refusals_.empty()) return kHouseNs;
  const bool leased = leases_ && leases_->any();
  return leased ? std::min(options_.silence_ns, kHouseNs) : options_.silence_ns;
}

// --- receiving -----------------------------------------------------------------------------------

// One for each present or expected pair, since an incomplete message can hold one.
std::uint32_t FabricClients::receives_wanted() const {
  if (fabric::planted(fabric::Bug::receives_held_by_all)) return kReceives;
  const std::size_t pairs =
      sessions_.size() * (options_.one_sided ? 2 : 1) + writes_ + refused_.size();
  return kReceives + static_cast<std::uint32_t>(pairs) + 1;
}

void FabricClients::post_receives() {
  while (receives_in_all_ < receives_wanted()) {
    if (free_buffers_.empty()) {
      free_buffers_.push_back(buffers_.size());
      buffers_.emplace_back();
    }
    const std::uint64_t buffer = free_buffers_.back();
    buffers_[buffer] =
        std::make_unique_for_overwrite<std::byte[]>(rings::RingLink::kMirroredBytesMax);
    if (!post_receive(buffer)) return;
    free_buffers_.pop_back();
    ++receives_in_all_;
  }
}

bool FabricClients::post_receive(std::uint64_t buffer) {
  const fabric::Receive receive{buffer,
                                {buffers_[buffer].get(), rings::RingLink::kMirroredBytesMax}};
  return receives_.post({&receive, 1}) == 1;
}

FabricClients::Session* FabricClients::session_of(const Completion& completion) const {
  const auto at = by_pair_.find(completion.pair);
  return at == by_pair_.end() || taken_ < at->second.from ? nullptr : at->second.session;
}

void FabricClients::take(const Completion& completion) {
  Session* const session = session_of(completion);
  ++taken_;
  const bool receive = completion.opcode == fabric::Opcode::receive ||
                       completion.opcode == fabric::Opcode::receive_write;
  if (!receive) {
    if (session == nullptr) return;
    Connection& connection = *session->connection;
    if (SessionParts::is_of_part(completion.work_id)) {
      connection.parts.completed(completion);
    } else {
      connection.link()->completed(completion);
    }
    if (completion.status == fabric::Status::success && std::exchange(session->asked, false)) {
      counts_.answered.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  if (session != nullptr && completion.status == fabric::Status::success) {
    take_message(completion, *session);
  }
  if (receives_in_all_ <= receives_wanted() && post_receive(completion.work_id)) return;
  --receives_in_all_;
  buffers_[completion.work_id].reset();
  free_buffers_.push_back(completion.work_id);
}

void FabricClients::take_message(const Completion& completion, Session& session) {
  const std::size_t bytes = std::min(completion.bytes, rings::RingLink::kMirroredBytesMax);
  rings::RingLink& link = *session.connection->link();
  if (link.received(completion, {buffers_[completion.work_id].get(), bytes}) &&
      !link.peer_closed()) {
    const std::uint64_t delivered = link.delivered(0).load(std::memory_order_relaxed);
    doorbells_.ring(session.connection->doorbell, static_cast<std::uint32_t>(delivered));
    session.met = true;
    session.heard_ns = options_.now_ns();
    activate(session);
  } else {
    if (!link.peer_closed()) counts_.broken.fetch_add(1, std::memory_order_relaxed);
    to_remove_.push_back(&session);
  }
}

void FabricClients::activate(Session& session) {
  session.quiet_turns = 0;
  if (std::exchange(session.active, true)) return;
  active_.push_back(&session);
}

bool FabricClients::has_more(const Session& session) const {
  Connection& connection = *session.connection;
  return connection.in_flight != 0 || connection.backlogged || connection.link()->busy() ||
         connection.parts.busy() ||
         connection.link()->delivered_behind(0, connection.requests.slots().head());
}

// A client that reads nothing occupies the posts sent to it. So it leaves the other clients, and
// later ones, their own.
bool FabricClients::mirror_active() {
  bool moved = false;
  const std::uint32_t shared = shared_posts(options_.posts_max);
  const std::uint32_t share = kPostsOwn + shared / (1 + counts_.sessions.load());
  std::uint32_t spare = shared;
  for (const Session* session : active_) {
    spare -= std::min(spare, beyond_own(*session->connection->link()));
  }
  const bool unlimited = fabric::planted(fabric::Bug::posts_taken_by_anybody);
  std::erase_if(active_, [&](Session* session) {
    rings::RingLink& link = *session->connection->link();
    const std::uint32_t before = beyond_own(link);
    const std::uint32_t most = std::min(share, kPostsOwn + before + spare);
    link.limit_posts(unlimited ? rings::RingLink::kPostsMax : most);
    link.refresh_credits();
    const bool mirrored = link.mirror();
    spare -= std::min(spare, beyond_own(link) - before);
    moved = moved || mirrored;
    session->quiet_turns = mirrored ? 0 : session->quiet_turns + 1;
    session->active = session->connection->link()->attached() &&
                      (session->quiet_turns < kQuietSessionTurns || has_more(*session));
    return !session->active;
  });
  return moved;
}

// --- accepting -----------------------------------------------------------------------------------

// Accepting a client costs as much as many requests of the present ones: while these are active,
// only one is accepted in each turn.
void FabricClients::accept_all(bool busy) {
  constexpr int kAtATime = 16;
  for (int i = 0; i < (busy ? 1 : kAtATime); ++i) {
    const auto request = endpoint_->next_request();
    if (!request) return;
    idle_turns_ = 0;
    post_receives();
    if (const auto accepted = accept(*request); !accepted) refuse(*request, accepted.error());
  }
}

Result<void> FabricClients::accept(const fabric::ConnectRequest& request) {
  wire::LinkHello hello{};
  if (request.data.size() < sizeof hello) return fail(Code::invalid_argument);
  std::memcpy(&hello, request.data.data(), sizeof hello);
  if (hello.magic != wire::kLinkMagic) return fail(Code::invalid_argument);
  if (hello.protocol != wire::kLinkProtocol) return fail(Code::unsupported, wire::kLinkProtocol);
  const auto way = static_cast<wire::LinkWay>(hello.way);
  if (way == wire::LinkWay::prove && authenticator_)
    return authenticator_->challenge(request, hello);
  if (must_be_proven(hello)) {
    const auto proven = check_proven(request);
    if (!proven) return std::unexpected(proven.error());
    if (!*proven) return {};  // its refusal is delayed
  }
  if (way == wire::LinkWay::reads) return accept_reads(request, hello);
  if (way == wire::LinkWay::writes) return accept_writes(request, hello);
  if (way != wire::LinkWay::write && way != wire::LinkWay::send) return fail(Code::unsupported);
  const auto session = session_for(hello, request.peer);
  if (!session) return std::unexpected(session.error());
  if (auto attached = attach(**session, request, hello); !attached) {
    // A session that never had a pair is removed: its client does not know its name.
    if (all_zero(hello.token)) remove(**session);
    return attached;
  }
  return {};
}

Result<FabricClients::Session*> FabricClients::session_for(const wire::LinkHello& hello,
                                                           const std::string& peer) {
  if (all_zero(hello.token)) {
    return new_session(hello, Access::everything(), principal_of_peer(peer), peer);
  }
  const auto known = sessions_.find(hello.token);
  if (known == sessions_.end()) return fail(Code::not_found);
  Session& session = *known->second;
  const wire::ConnectionLayout& layout = session.connection->layout();
  // Requires the same rings as before, or their contents would mean something else.
  const bool same = hello.request_slots_log2 == wire::slots_log2(layout.request_slots) &&
                    hello.response_slots_log2 == wire::slots_log2(layout.response_slots) &&
                    hello.response_rings == layout.response_rings;
  if (!same && !fabric::planted(fabric::Bug::session_of_any_rings)) {
    return fail(Code::invalid_argument);
  }
  if (session.pair) lose(session);
  session.connection->address = address_of(peer);
  if (!std::exchange(session.awaited, false)) {
    counts_.resumed.fetch_add(1, std::memory_order_relaxed);
  }
  return &session;
}

Result<FabricClients::Session*> FabricClients::new_session(const wire::LinkHello& hello,
                                                           const Access& access,
                                                           std::string_view principal,
                                                           const std::string& peer) {
  wire::ConnectionLayout layout;
  layout.request_slots = slots_of_log2(hello.request_slots_log2, options_.request_slots_max);
  layout.response_slots = slots_of_log2(hello.response_slots_log2, options_.response_slots_max);
  layout.response_rings =
      std::clamp<std::uint32_t>(hello.response_rings, 1, wire::kResponseRingsMax);
  const auto token = new_token();
  if (!token) return std::unexpected(token.error());
  // There are receives and completions for each session; some are reserved for clients that run the
  // node.
  const bool runs = runs_node(access, principal);
  const std::uint32_t most = most_sessions(options_);
  if (sessions_.size() >= most - (runs ? 0 : ConnectionLimits::kept_of(most))) {
    return base::full(base::Places::sessions, most);
  }
  const PrincipalRef account = services_.principals.of(principal);
  auto place = services_.connections.take(account, runs, layout);
  if (!place) return std::unexpected(place.error());
  const auto doorbell = doorbells_.open(kUser);
  if (!doorbell) return std::unexpected(doorbell.error());
  auto connection = Connection::create(layout, services_.budget, Connection::Reach::mirrored);
  if (!connection) {
    doorbells_.close(doorbell->place);
    return std::unexpected(connection.error());
  }
  auto session = std::make_unique<Session>();
  session->token = *token;
  session->domain = next_domain_++;
  session->connection = connection->get();
  session->connection->doorbell = doorbell->place;
  const std::uint64_t number = ++services_.sessions_begun;
  session->connection->peer = "session " + std::to_string(number);
  session->connection->access = access;
  session->connection->account = account;
  session->connection->place = std::move(*place);
  session->connection->address = address_of(peer);
  session->connection->side = std::make_unique<LinkSide>(LinkSide{side_, session->domain, number});
  scheduler_.clients().add(std::move(*connection));
  counts_.sessions.fetch_add(1, std::memory_order_relaxed);
  options_.count(true);
  return sessions_.emplace(*token, std::move(session)).first->second.get();
}

Result<wire::LinkToken> FabricClients::new_token() {
  wire::LinkToken token{};
  do {
    for (std::uint64_t& half : token) {
      const auto drawn = draw();
      if (!drawn) return std::unexpected(drawn.error());
      half = *drawn;
    }
  } while (all_zero(token) || sessions_.contains(token));
  return token;
}

Result<std::uint64_t> FabricClients::draw() {
  if (options_.draw) return options_.draw();
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return base::refused_by_system();
  return drawn;
}

// A region for each pair: late WRITEs of the previous one find none.
Result<void> FabricClients::attach(Session& session, const fabric::ConnectRequest& request,
                                   const wire::LinkHello& hello) {
  Connection& connection = *session.connection;
  memory::SharedMemory& memory = connection.memory();
  const fabric::Domain domain =
      fabric::planted(fabric::Bug::one_domain_for_all) ? 0 : session.domain;
  auto region = endpoint_->regions().offer({memory.at(0), memory.bytes(), memory.descriptor(), 0},
                                           fabric::RemoteRights::write, domain);
  if (!region) return std::unexpected(region.error());
  wire::LinkWelcome welcome{};
  welcome.magic = wire::kLinkMagic;
  welcome.protocol = wire::kLinkProtocol;
  welcome.way = hello.way;
  welcome.request_slots_log2 = wire::slots_log2(connection.layout().request_slots);
  welcome.response_slots_log2 = wire::slots_log2(connection.layout().response_slots);
  welcome.response_rings = static_cast<std::uint8_t>(connection.layout().response_rings);
  welcome.node_id = options_.node_id;
  welcome.token = session.token;
  welcome.base = region->remote().base;
  welcome.key = region->remote().key;
  const std::uint64_t next_before = next_completion();
  auto pair = endpoint_->accept(request, pair_options(session.domain),
                                std::as_bytes(std::span(&welcome, 1)));
  if (!pair) return std::unexpected(pair.error());
  session.region = std::move(*region);
  session.pair = std::move(*pair);
  session.lost_ns = 0;
  session.completions_before_close = 0;
  session.heard_ns = options_.now_ns();
  by_pair_.insert_or_assign(session.pair->number(), Numbered{&session, next_before});
  connection.parts.attach(*session.pair);  // before its rings report what is written
  connection.link()->attach(*session.pair,
                            {static_cast<wire::LinkWay>(hello.way), hello.key, hello.base});
  activate(session);
  return {};
}

fabric::QueuePairOptions FabricClients::pair_options(fabric::Domain domain) {
  fabric::QueuePairOptions options;
  if (fabric::planted(fabric::Bug::one_domain_for_all)) domain = 0;
  options.sends = &completions_;
  options.shared_receives = &receives_;
  options.send_depth = 2 * rings::RingLink::kPostsMax;
  options.domain = domain;
  options.timeout_ns = options_.pair_timeout_ns;
  options.delayed_acks = true;
  return options;
}

// Where a refusal cannot carry the reason, accepts a pair that does. Their number is bounded: the
// oldest makes room, and had as long to receive the reason as all later ones took to arrive.
void FabricClients::send_refusal(const fabric::ConnectRequest& request, const Error& error) {
  wire::LinkWelcome welcome{};
  welcome.magic = wire::kLinkMagic;
  welcome.protocol = wire::kLinkProtocol;
  welcome.code = static_cast<std::uint32_t>(error.code);
  welcome.detail = error.detail;
  const auto said = std::as_bytes(std::span(&welcome, 1));
  static_assert(sizeof welcome <= fabric::kRejectDataMax);
  if (endpoint_->properties().refuses_with_data) return endpoint_->reject(request, said);
  if (refused_.size() >= kRefusedMax) {
    refused_.front().pair->close();
    refused_.erase(refused_.begin());
  }
  auto pair = endpoint_->accept(request, pair_options(fabric::kNoDomain), said);
  if (pair) refused_.push_back({std::move(*pair), options_.now_ns() + kRefusedNs});
}

// --- closing -------------------------------------------------------------------------------------

void FabricClients::maintain() {
  const std::uint64_t now = options_.now_ns();
  if (now - house_ns_ < kHouseNs) return;
  house_ns_ = now;
  copy_connect_counts();
  post_receives();
  std::erase_if(refused_, [now](const Refused& refused) {
    if (refused.until_ns < now && !fabric::planted(fabric::Bug::refused_not_closed)) {
      refused.pair->close();  // which returns a receive that it may hold
    }
    return refused.until_ns < now || refused.pair->state() == fabric::QueuePair::State::error;
  });
  if (leases_) leases_->sweep(now);
  end_unknown();
  for (const auto& [token, session] : sessions_) {
    if (session->reads && session->reads->state() == fabric::QueuePair::State::error) {
      session->reads.reset();
      session->connection->parts.fence();
    }
    remove_dead_writes(*session);
    if (session->pair && session->pair->peer_knows()) session->met = true;
    const bool ended = session->pair && session->pair->state() == fabric::QueuePair::State::error;
    const std::uint64_t wait_ns =
        session->awaited ? LinkAuthenticator::kTimeoutNs : options_.resume_ns;
    if (ended && !has_had_its_say(*session)) continue;
    if (ended && !session->met) {
      to_remove_.push_back(session.get());  // no client knows its name
    } else if (ended) {
      counts_.lost.fetch_add(1, std::memory_order_relaxed);
      lose(*session);
    } else if (!session->pair && now - session->lost_ns > wait_ns) {
      counts_.expired.fetch_add(1, std::memory_order_relaxed);
      to_remove_.push_back(session.get());
    } else if (session->pair && now - session->heard_ns > options_.silence_ns) {
      session->heard_ns = now;
      session->asked = true;
      counts_.asked.fetch_add(1, std::memory_order_relaxed);
      session->connection->link()->ask();
      activate(*session);
    }
  }
  remove_ended();
}

// Whether the completions of an ended pair, which may include a close note, have all been polled;
// those of other pairs do not matter.
bool FabricClients::has_had_its_say(Session& session) {
  if (session.completions_before_close == 0) session.completions_before_close = next_completion();
  return taken_ >= session.completions_before_close;
}

// A client that breaks the protocol or leaves learns only that its session has ended.
void FabricClients::remove_ended() {
  while (!to_remove_.empty()) remove(*to_remove_.back());
}

// The pair is gone; the session waits for its client.
void FabricClients::lose(Session& session) {
  by_pair_.erase(session.pair->number());
  session.pair->close();
  session.connection->link()->detach();
  session.pair.reset();
  session.connection->parts.detach();
  session.region.revoke();
  session.lost_ns = options_.now_ns();
}

void FabricClients::remove(Session& session) {
  if (session.pair) lose(session);
  std::erase(active_, &session);
  std::erase(to_remove_, &session);
  Connection& connection = *session.connection;
  connection.parts.end();
  connection.side.reset();
  if (session.reads) session.reads->close();
  for (const auto& pair : session.writes) pair->close();
  writes_ -= session.writes.size();
  sessions_.erase(session.token);
  counts_.sessions.fetch_sub(1, std::memory_order_relaxed);
  options_.count(false);
  scheduler_.remove(connection);
}

// Fences what these sessions can reach before their leases end.
void FabricClients::fence(const std::unordered_set<std::uint64_t>& sessions) {
  for (const auto& [token, session] : sessions_) {
    Connection& connection = *session->connection;
    if (sessions.contains(connection.side->session_number)) connection.parts.fence();
  }
}

bool FabricClients::end_broken(const Connection& connection) {
  for (const auto& [token, session] : sessions_) {
    if (session->connection != &connection) continue;
    counts_.broken.fetch_add(1, std::memory_order_relaxed);
    remove(*session);
    return true;
  }
  return false;
}

}  // namespace espalier::offload
