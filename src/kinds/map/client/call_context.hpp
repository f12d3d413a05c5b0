// SPDX-License-Identifier: Apache-2.0
// What a thread needs for calls on an embedded store: an epoch slot, private buffers, and an
// executor per map. Cached per thread and store, so that a synchronous call pays for none of it.
//
// Invariants
// 1. A session is used by one thread at a time and for one call at a time: a call made from inside
//    a sink (a scan that reads while it scans) gets another session, since executors of one session
//    share its epoch slot.
// 2. The pool outlives its threads' references; `close` destroys all sessions while the store still
//    exists.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/fork_mark.hpp"
#include "kinds/map/host/host_executor.hpp"

namespace espalier::client {

class CallContext {
 public:
  CallContext(tree::StoreCore& store, base::EpochSlot slot, std::uint32_t index)
      : thread(store, std::move(slot), index) {}

  /// The executor for one-at-a-time calls on a map.
  tree::MapExecutor& executor(tree::MapCore& map);
  void forget(const tree::MapCore& map);

  tree::ThreadContext thread;
  bool busy = false;

 private:
  std::mutex mutex_;  // guards executors_: another thread may drop a map
  std::unordered_map<std::uint32_t, std::unique_ptr<tree::MapExecutor>> executors_;
  // The last used map and its executor. Ids are never reused, so a dropped map's is never
  // requested.
  std::uint32_t last_map_ = 0;
  tree::MapExecutor* last_executor_ = nullptr;
};

class CallContextPool {
 public:
  explicit CallContextPool(tree::StoreCore& store) : store_(&store) {}

  /// Errors: too_many_participants; std::bad_alloc.
  Result<CallContext*> acquire();
  void release(CallContext* session) noexcept;
  /// Destroys all sessions. No thread may be using one.
  void close();
  /// Drops every session's executor of a dropped map.
  void forget(const tree::MapCore& map);
  [[nodiscard]] bool closed() const;
  /// Whether the pool was inherited through a fork.
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 private:
  const base::ForkMark mark_;
  mutable std::mutex mutex_;
  tree::StoreCore* store_;  // null once closed
  std::vector<std::unique_ptr<CallContext>> all_;
  std::vector<CallContext*> free_;
  std::uint32_t next_index_ = 0;
};

/// A session for the duration of one call: the thread's own, or another if that is in use.
class SessionLease {
 public:
  static Result<SessionLease> take(const std::shared_ptr<CallContextPool>& pool);
  SessionLease(SessionLease&& other) noexcept;
  SessionLease& operator=(SessionLease&&) = delete;
  ~SessionLease();
  CallContext* operator->() const { return session_; }
  CallContext& operator*() const { return *session_; }

 private:
  SessionLease(CallContext* session, CallContextPool* extra) : session_(session), extra_(extra) {}
  CallContext* session_;
  CallContextPool* extra_;  // a session that is not the thread's own, to be released
};

}  // namespace espalier::client
