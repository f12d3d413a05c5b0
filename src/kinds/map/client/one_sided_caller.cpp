// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/one_sided_caller.hpp"

#include <new>
#include <system_error>
#include <utility>

namespace espalier::client {
namespace {

constexpr int kTries = 2;  // the second with a new session's key and lease

bool scans(Op op) { return op == Op::scan || op == Op::scan_reverse || op == Op::scan_floor; }

}  // namespace

/// Hands on what a reader tells, but for failures that the rings may do better. While a sink of a
/// scan runs, the leases are the keepalive thread's.
class OneSidedCaller::Forward final : public Handler {
 public:
  /// `scans`: whether the caller's mutex is held by this thread.
  Forward(OneSidedCaller& caller, RemoteRequests& requests, Handler& to, bool scans)
      : caller_(caller), requests_(requests), to_(to), scans_(scans) {}
  void done(const Completion& completion) override {
    const Code code = completion.error.code;
    const bool lost = code == Code::contended || code == Code::connection_lost;
    failed = !completion.ok && (lost || code == Code::not_found) && completion.items == 0;
    if (!failed) to_.done(completion);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    if (!scans_) return to_.items(tag, items);
    caller_.in_sink_ = &requests_;
    caller_.mutex_.unlock();
    const bool more = to_.items(tag, items);
    caller_.mutex_.lock();
    caller_.in_sink_ = nullptr;
    caller_.maps_.await_kept(requests_);
    return more;
  }
  bool failed = false;

 private:
  OneSidedCaller& caller_;
  RemoteRequests& requests_;
  Handler& to_;
  const bool scans_;
};

OneSidedCaller::~OneSidedCaller() {
  if (keepalive_) keepalive_->remove(*this);
}

Result<bool> OneSidedCaller::run(RemoteRequests& requests, NodeConnection& connection,
                                 std::uint32_t map, const Request& request, Handler& handler) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (scans(request.op)) {
    have_keepalive();
    lock.lock();
  }
  Forward forward(*this, requests, handler, lock.owns_lock());
  for (int i = 0; i < kTries; ++i) {
    const auto opened = maps_.open(requests, connection, map);
    // What is wrong with the connection, the rings will tell.
    if (!opened && opened.error().code == Code::connection_lost) return false;
    if (!opened) return std::unexpected(opened.error());
    (*opened)->submit({&request, 1}, forward);
    walk(requests, **opened);
    if (!forward.failed) return true;
    maps_.close();
  }
  ++by_rings_;
  return false;
}

void OneSidedCaller::walk(RemoteRequests& requests, place::OneSidedReader& reader) {
  std::uint32_t quiet = 0;  // looks since the walk last asked for something
  for (std::uint64_t trips = 0; reader.poll() != 0; ++quiet) {
    if (std::exchange(trips, reader.traffic().round_trips) != reader.traffic().round_trips)
      quiet = 0;
    maps_.renew(requests, reader.lease());
    if (reader.lease().ended()) reader.fail();
    if (quiet > kReadSpins) maps_.wait();
  }
}

void OneSidedCaller::have_keepalive() {
  if (keepalive_) return;
  try {
    auto keepalive = KeepaliveThread::of_process();
    keepalive->add(*this);
    keepalive_ = std::move(keepalive);
  } catch (const std::system_error&) {  // then a sink that takes long costs the scan its lease
  }
}

void OneSidedCaller::keep() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || in_sink_ == nullptr) return;
  try {
    maps_.keep(*in_sink_);
  } catch (const std::bad_alloc&) {  // it is tried again, or the lease lapses
  }
}

}  // namespace espalier::client
