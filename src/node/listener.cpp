// SPDX-License-Identifier: Apache-2.0
#include "node/listener.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/places.hpp"
#include "base/system_error.hpp"

namespace espalier::node {
namespace {

constexpr std::uint64_t kHelloNs = 5'000'000'000;     // how long a client may be silent
constexpr std::uint32_t kNoUser = ~std::uint32_t{0};  // the system does not report it
constexpr std::uint32_t kSlotsMax = 1u << 14;         // of one ring: 1 MiB

/// As in the audit log.
std::string address_of(const base::PeerUser& peer) {
  return "unix process " + std::to_string(peer.process) + " of user " + std::to_string(peer.user);
}

memory::Descriptor open_spare() {
  return memory::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool watch(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

Listener::Listener(const Config& config, offload::Services& services,
                   const offload::Secrets* secrets, std::uint64_t node_id,
                   std::function<void(PendingClient)> serve)
    : config_(config),
      secrets_(secrets),
      authenticator_(secrets, users_, node_id),
      services_(services),
      serve_(std::move(serve)) {}

Listener::~Listener() { stop(); }

Result<void> Listener::start() {
  epoll_ = memory::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  const bool opened = wake_event_.open();
  spare_ = open_spare();
  if (!opened || !epoll_ || !spare_) return base::refused_by_system();
  auto socket = fabric::shm::ListeningSocket::open(config_.node.socket, config_.node.socket_mode);
  if (!socket) return std::unexpected(socket.error());
  socket_.emplace(std::move(*socket));
  if (!watch(epoll_.number(), wake_event_.number()) || !watch(epoll_.number(), socket_->number())) {
    return base::refused_by_system();
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

void Listener::stop() {
  if (thread_.joinable()) {
    stopping_.store(true, std::memory_order_release);
    wake_event_.signal();
    thread_.join();
  }
  pending_.clear();
  socket_.reset();
}

void Listener::run() {
  constexpr int kLookMs = 1000;
  constexpr int kListenerRestMs = 100;
  while (!stopping_.load(std::memory_order_acquire)) {
    epoll_event events[64];
    const int timeout_ms = resting_ || waits_to_refuse_ ? kListenerRestMs
                           : pending_.empty()           ? -1
                                                        : kLookMs;
    const int found = ::epoll_wait(epoll_.number(), events, 64, timeout_ms);
    resting_ = resting_ && !watch(epoll_.number(), socket_->number());
    for (int i = 0; i < found; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == socket_->number()) {
        accept_all();
      } else if (descriptor != wake_event_.number()) {
        greet(descriptor);
      }
    }
    drop_late();
  }
}

void Listener::accept_all() {
  // Bounded, since accepted clients wait for their welcome.
  constexpr int kAtATime = 64;
  for (int i = 0; i < kAtATime; ++i) {
    memory::Descriptor client(
        ::accept4(socket_->number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client && (errno == EMFILE || errno == ENFILE) && reject()) continue;
    if (!client) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) rest();
      return;
    }
    const int number = client.number();
    const auto peer = base::peer_user(number);
    const std::uint32_t user = peer ? peer->user : kNoUser;
    if (const auto error = denied_to_wait(user)) {
      refuse_client(number, *error);
      continue;
    }
    if (!watch(epoll_.number(), number)) continue;
    pending_.emplace(number, Pending{std::move(client), base::monotonic_ns() + kHelloNs, user, {}});
    ++pending_of_user_[user];
    pending_count_.store(static_cast<std::uint32_t>(pending_.size()), std::memory_order_relaxed);
  }
}

bool Listener::runs_node(std::uint32_t user) const {
  return access_of_user(user, users_).may_at_once(offload::Right::admin);
}

// Why a client may not wait here for its hello: no user may take all places, and some are reserved
// for users that run the node.
std::optional<Error> Listener::denied_to_wait(std::uint32_t user) const {
  const bool runs = runs_node(user);
  const std::uint32_t all = runs ? kPendingMax : kPendingMax - kPendingKept;
  const std::uint32_t own = runs ? 2 * kUserPendingMax : kUserPendingMax;
  if (pending_.size() >= all) return base::full_error(base::Places::hellos, kPendingMax);
  const auto of_user = pending_of_user_.find(user);
  if (of_user == pending_of_user_.end() || of_user->second < own) return std::nullopt;
  return base::full_error(base::Places::user_hellos, own);
}

// Refuses a client for want of descriptors, with the spare one.
bool Listener::reject() {
  spare_.close();
  memory::Descriptor client(
      ::accept4(socket_->number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const bool answered = static_cast<bool>(client);
  if (answered) {
    refuse_client(client.number(), base::full_error(base::Places::descriptors));
    client.close();
  }
  spare_ = open_spare();
  return answered;
}

void Listener::refuse_client(int socket, const Error& error) {
  refuse(socket, error);
  audit_refusal(socket, "connect", {}, error);
}

void Listener::audit_refusal(int socket, std::string_view act, const std::string& name,
                             const Error& error) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const auto peer = base::peer_user(socket);
  const std::string principal = peer ? offload::principal_of_user(peer->user) : std::string();
  services_.audit.refused(principal, [&] {
    offload::AuditRecord record;
    record.act = act;
    record.name = name;
    record.address = peer ? address_of(*peer) : "unix";
    record.outcome = error;
    return record;
  });
}

// Unaccepted clients keep the socket readable: without a pause nothing else would be done.
void Listener::rest() {
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, socket_->number(), nullptr);
  resting_ = true;
}

Result<std::unique_ptr<offload::Connection>> Listener::admit(const wire::Hello& hello,
                                                             const offload::Access& access,
                                                             const std::string& principal) {
  if (hello.protocol != wire::kProtocolVersion) {
    return fail(Code::unsupported, wire::kProtocolVersion);
  }
  // A client gets the rings that it requests, within limits.
  const auto ring = [](std::uint32_t lines) {
    return std::bit_ceil(std::clamp(lines, wire::kRingSlotsMin, kSlotsMax));
  };
  wire::ConnectionLayout layout;
  layout.request_slots = ring(hello.request_slots);
  layout.response_slots = ring(hello.response_slots);
  layout.response_rings = std::clamp(hello.response_rings, 1u, wire::kResponseRingsMax);
  const auto account = services_.principals.of(principal);
  const bool runs_node = access.may_at_once(offload::Right::admin);
  auto place = services_.connections.take_smaller(account, runs_node, layout);
  if (!place) return std::unexpected(place.error());
  auto connection = offload::Connection::create(layout, services_.budget);
  if (!connection) return connection;
  (*connection)->account = account;
  (*connection)->place = std::move(*place);
  return connection;
}

void Listener::greet(int socket) {
  const auto at = pending_.find(socket);
  if (at == pending_.end()) return;
  const auto peer = base::peer_user(socket);
  auto taken =
      peer ? take(at->second, *peer, receive_client_packet(socket)) : std::unexpected(peer.error());
  if (!taken) refuse_client(socket, taken.error());
  if (taken && !*taken) return;
  end(at);  // first: a client that is served no longer counts as pending
  if (taken) serve_(*std::move(*taken));
}

// Returns nothing if the client may continue.
Result<std::optional<PendingClient>> Listener::take(Pending& pending, const base::PeerUser& peer,
                                                    const ClientPacket& packet) {
  const int socket = pending.socket.number();
  if (std::holds_alternative<wire::ProofAsk>(packet)) {
    const auto challenged = authenticator_.challenge(socket, peer, pending.proof);
    if (!challenged) return std::unexpected(challenged.error());
    return std::nullopt;
  }
  if (const auto* const answer = std::get_if<wire::LinkProof>(&packet)) {
    const auto taken = authenticator_.take(socket, *answer, pending.proof);
    if (pending.proof.refused_ns != 0) {
      // Reads nothing more from it until its refusal is sent.
      ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, socket, nullptr);
      audit_refusal(socket, "authenticate", std::string(offload::name_of(*answer)),
                    pending.proof.refusal);
    }
    if (!taken) return std::unexpected(taken.error());
    return std::nullopt;
  }
  const auto* const hello = std::get_if<wire::Hello>(&packet);
  if (hello == nullptr) return fail(Code::invalid_argument);
  return take_hello(pending, peer, *hello);
}

// A client that has proven a secret has its rights, whatever its user's.
Result<PendingClient> Listener::take_hello(Pending& pending, const base::PeerUser& peer,
                                           const wire::Hello& hello) {
  const LocalAuthenticator::Proof& proof = pending.proof;
  if (proof.challenge && !proof.owner) return fail(Code::invalid_argument);
  offload::Access access = proof.owner ? proof.owner->access : access_of_user(peer.user, users_);
  auto connection = admit(hello, access,
                          proof.owner ? offload::principal_of_secret(access.who())
                                      : offload::principal_of_user(peer.user));
  if (!connection) return std::unexpected(connection.error());
  PendingClient client;
  client.connection = std::move(*connection);
  client.connection->peer = "process " + std::to_string(peer.process);
  client.connection->address = address_of(peer);
  client.connection->access = std::move(access);
  client.user = peer.user;
  client.socket_class = socket_class_of(pending.socket.number(), peer.user, config_.node.socket);
  if (proof.owner) {
    client.may_stay = [secrets = secrets_, name = proof.owner->access.who(),
                       line = proof.owner->line] { return secrets->still(name, line); };
  }
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, pending.socket.number(), nullptr);
  client.socket = std::move(pending.socket);
  return client;
}

void Listener::end(std::unordered_map<int, Pending>::iterator at) {
  authenticator_.ended(at->second.proof);
  const auto of_user = pending_of_user_.find(at->second.user);
  if (--of_user->second == 0) pending_of_user_.erase(of_user);
  pending_.erase(at);
  pending_count_.store(static_cast<std::uint32_t>(pending_.size()), std::memory_order_relaxed);
}

void Listener::drop_late() {
  const std::uint64_t now = base::monotonic_ns();
  waits_to_refuse_ = false;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto late = at++;
    const LocalAuthenticator::Proof& proof = late->second.proof;
    const bool refused = proof.refused_ns != 0;
    if (now < (refused ? proof.refused_ns : late->second.until_ns)) {
      waits_to_refuse_ = waits_to_refuse_ || refused;
      continue;
    }
    if (refused) LocalAuthenticator::refuse(late->first, proof);
    end(late);
  }
}

}  // namespace espalier::node
