// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/remote_sessions.hpp"

#include <algorithm>
#include <utility>

#include "base/try_reserve.hpp"
#include "base/until_fork.hpp"
#include "channel/rings/ring_pipeline.hpp"
#include "channel/thread_kept.hpp"

namespace espalier::client {
namespace {

using ThreadLanes = ThreadKept<RemoteSessions, std::shared_ptr<RemoteSession>>;
constinit thread_local ThreadLanes thread_lanes;

struct AtThreadEnd {
  ~AtThreadEnd() { thread_lanes.end(); }
  void expect() const {}
};
thread_local AtThreadEnd at_thread_end;

}  // namespace

Result<std::unique_ptr<ThreadRings>> RemoteSessions::open_lane() {
  const std::lock_guard lock(mutex_);
  std::erase_if(free_rings_, [](const auto& rings) { return rings->ask_lost_idle(); });
  if (!free_rings_.empty()) {
    auto rings = std::move(free_rings_.back());
    free_rings_.pop_back();
    return rings;
  }
  // A connection that needs make_progress() serves one thread: other threads get their own.
  if (connection_ && !connection_->lost() && !connection_->needs_progress()) {
    if (auto rings = ThreadRings::open(connection_)) return rings;
  }
  std::erase_if(all_, [](const auto& connection) { return connection.expired(); });
  base::reserve_more(all_, 1);
  auto connected = connect_to(address_, connecting_);
  if (!connected) return std::unexpected(connected.error());
  connection_ = std::move(*connected);
  all_.push_back(connection_);
  return ThreadRings::open(connection_);
}

Result<std::shared_ptr<RemoteSession>> RemoteSessions::acquire() {
  if (closed()) return fail(Code::connection_lost);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(free_, [](const auto& session) { return session->rings->ask_lost_idle(); });
    if (!free_.empty()) {
      auto session = std::move(free_.back());
      free_.pop_back();
      return session;
    }
  }
  auto rings = open_lane();
  if (!rings) return std::unexpected(rings.error());
  try {
    return base::make_shared_until_fork<RemoteSession>(std::move(*rings));
  } catch (...) {  // no memory: keep the lane, unless the session took it
    if (*rings) release(std::move(*rings));
    throw;
  }
}

// Without memory to keep a session, its lane is lost to its connection.
void RemoteSessions::release(std::shared_ptr<RemoteSession> session) noexcept {
  const std::lock_guard lock(mutex_);
  session->busy = false;
  if (!closed() && !session->spoiled && !session->rings->lost() && base::try_reserve(free_, 1)) {
    free_.push_back(std::move(session));
  }
}

void RemoteSessions::release(std::unique_ptr<ThreadRings> rings) noexcept {
  const std::lock_guard lock(mutex_);
  if (!closed() && !rings->lost() && base::try_reserve(free_rings_, 1)) {
    free_rings_.push_back(std::move(rings));
  }
}

// Other threads keep their sessions until they use another store, or end; but the connections are
// closed.
void RemoteSessions::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_.store(true, std::memory_order_relaxed);
    free_.clear();
    free_rings_.clear();
    connection_.reset();
    for (const auto& each : all_) {
      if (const auto connection = each.lock()) connection->hang_up();
    }
    all_.clear();
  }
  thread_lanes.drop([this](const RemoteSessions& sessions) { return &sessions == this; });
}

std::expected<channel::Answer, Refusal> RemoteSessions::ask(
    const wire::CallMessage& request, std::optional<channel::NodeNumber> node) {
  const auto session = node ? RemoteLease::take_at(*this, *node) : RemoteLease::take(*this);
  if (!session) return std::unexpected(Refusal(session.error()));
  auto reply = (*session)->requests.ask(request);
  if (!reply) return std::unexpected(std::move(reply.error()));
  return channel::Answer{*std::move(reply), (*session)->rings->connection().node_id()};
}

// An exception after the request was sent implies an answer without an error: an error needs no
// memory to report.
std::expected<void, Refusal> RemoteSessions::make(const wire::CallMessage& request,
                                                  const wire::CallMessage& undo,
                                                  const channel::TakeAnswer& take) {
  const auto session = RemoteLease::take(*this);
  if (!session) return std::unexpected(Refusal(session.error()));
  RemoteRequests& requests = (*session)->requests;
  if (!requests.begin(request)) {
    return std::unexpected(Refusal((*session)->rings->lost_error()));
  }
  try {
    auto reply = requests.await();
    if (!reply) return std::unexpected(std::move(reply.error()));
    take({*std::move(reply), (*session)->rings->connection().node_id()});
    return {};
  } catch (...) {
    static_cast<void>(requests.call(undo));
    throw;
  }
}

Result<std::unique_ptr<PipelineImpl>> RemoteSessions::open_pipeline(const Scope& scope,
                                                                    channel::NodeNumber node,
                                                                    std::uint32_t in_flight) {
  auto rings = open_lane();
  if (!rings) return std::unexpected(rings.error());
  if ((*rings)->connection().node_id() != node) {
    release(std::move(*rings));
    return fail(Code::not_found);
  }
  return std::make_unique<RingPipeline>(shared_from_this(), std::move(*rings), scope, in_flight);
}

Result<RemoteLease> RemoteLease::take_at(RemoteSessions& sessions, channel::NodeNumber node) {
  auto session = take(sessions);
  if (session && (*session)->rings->connection().node_id() != node) return fail(Code::not_found);
  return session;
}

std::optional<RemoteLease> RemoteLease::take_idle(RemoteSessions& sessions) noexcept {
  ThreadLanes::Entry* const own = thread_lanes.find(&sessions);
  if (own == nullptr || own->session->busy || own->session->spoiled) return std::nullopt;
  own->session->busy = true;
  return RemoteLease(own->session, nullptr);
}

Result<RemoteLease> RemoteLease::take(RemoteSessions& sessions) {
  ThreadLanes::Entry* own = thread_lanes.find(&sessions);
  if (own != nullptr && !own->session->busy) {
    if (own->session->spoiled || own->session->rings->ask_lost_idle()) {
      auto session = sessions.acquire();
      if (!session) return std::unexpected(session.error());
      own->session = std::move(*session);
    }
    own->session->busy = true;
    return RemoteLease(own->session, nullptr);
  }
  std::unique_ptr<ThreadLanes::Entry> room;
  if (own == nullptr && thread_lanes.keeps()) {
    at_thread_end.expect();
    thread_lanes.drop_unusable();
    room = std::make_unique<ThreadLanes::Entry>();
  }
  auto session = sessions.acquire();
  if (!session) return std::unexpected(session.error());
  (*session)->busy = true;
  if (!room) return RemoteLease(std::move(*session), sessions.shared_from_this());
  room->pool = sessions.shared_from_this();
  room->session = *session;
  thread_lanes.add(std::move(room));
  return RemoteLease(std::move(*session), nullptr);
}

RemoteLease::~RemoteLease() {
  if (!session_) return;
  session_->busy = false;
  if (extra_) extra_->release(std::move(session_));
}

}  // namespace espalier::client
