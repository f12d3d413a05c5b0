// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/call_context.hpp"

#include <utility>

#include "base/try_reserve.hpp"
#include "channel/thread_kept.hpp"

namespace espalier::client {
namespace {

using ThreadSessions = ThreadKept<CallContextPool, CallContext*>;
constinit thread_local ThreadSessions thread_sessions;

struct AtThreadEnd {
  ~AtThreadEnd() { thread_sessions.end(); }
  void expect() const {}
};
thread_local AtThreadEnd at_thread_end;

const bool kNeverWarm = false;

}  // namespace

tree::MapExecutor& CallContext::executor(tree::MapCore& map) {
  if (map.id == last_map_) [[likely]]
    return *last_executor_;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<tree::MapExecutor>& executor = executors_[map.id];
  if (!executor) {
    executor = std::make_unique<tree::MapExecutor>(
        thread, map, 1, [&map](std::uint32_t, base::ReadyQueue& queue) {
          return tree::HostAccess(map.base, queue, false, &kNeverWarm);
        });
  }
  last_map_ = map.id;
  last_executor_ = executor.get();
  return *executor;
}

void CallContext::forget(const tree::MapCore& map) {
  const std::lock_guard lock(mutex_);
  executors_.erase(map.id);
}

Result<CallContext*> CallContextPool::acquire() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    CallContext* session = free_.back();
    free_.pop_back();
    return session;
  }
  base::reserve_more(all_, 1);
  free_.reserve(all_.capacity());  // so that release() need not allocate
  auto slot = store_->epochs.join();
  if (!slot) return std::unexpected(slot.error());
  all_.push_back(std::make_unique<CallContext>(*store_, std::move(*slot), next_index_++));
  return all_.back().get();
}

void CallContextPool::release(CallContext* session) noexcept {
  const std::lock_guard lock(mutex_);
  if (store_ == nullptr) return;
  session->busy = false;
  session->thread.cache.flush();
  free_.push_back(session);
}

void CallContextPool::close() {
  const std::lock_guard lock(mutex_);
  free_.clear();
  all_.clear();
  store_ = nullptr;
}

void CallContextPool::forget(const tree::MapCore& map) {
  const std::lock_guard lock(mutex_);
  for (const auto& session : all_) session->forget(map);
}

bool CallContextPool::closed() const {
  const std::lock_guard lock(mutex_);
  return store_ == nullptr;
}

Result<SessionLease> SessionLease::take(const std::shared_ptr<CallContextPool>& pool) {
  const ThreadSessions::Entry* const own = thread_sessions.find(pool.get());
  if (own != nullptr && !own->session->busy) [[likely]] {
    own->session->busy = true;
    return SessionLease(own->session, nullptr);
  }
  std::unique_ptr<ThreadSessions::Entry> room;
  if (own == nullptr && thread_sessions.keeps()) {
    at_thread_end.expect();
    thread_sessions.drop_unusable();
    room = std::make_unique<ThreadSessions::Entry>();
  }
  const auto session = pool->acquire();
  if (!session) return std::unexpected(session.error());
  (*session)->busy = true;
  if (!room) return SessionLease(*session, pool.get());
  room->pool = pool;
  room->session = *session;
  thread_sessions.add(std::move(room));
  return SessionLease(*session, nullptr);
}

SessionLease::SessionLease(SessionLease&& other) noexcept
    : session_(std::exchange(other.session_, nullptr)), extra_(other.extra_) {}

SessionLease::~SessionLease() {
  if (session_ == nullptr) return;
  session_->busy = false;
  if (extra_ != nullptr) extra_->release(session_);
}

}  // namespace espalier::client
