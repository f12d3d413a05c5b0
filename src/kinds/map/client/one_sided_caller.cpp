// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/one_sided_caller.hpp"

#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "kinds/map/client/parts_of_scan.hpp"

namespace espalier::client {
namespace {

constexpr int kTries = 2;  // the second with the key and lease of a new session
constexpr std::string_view kAnyKey = "k";

bool scans(Op op) { return op == Op::scan || op == Op::scan_reverse || op == Op::scan_floor; }

}  // namespace

/// Passes a reader's results on, except failures that the rings may recover from. While a scan's
/// sink runs, the keepalive thread renews the leases.
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
    // The rings report errors of the connection.
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

/// The newest version of a map; stays readable under the reader's lease while this lives.
class OneSidedCaller::Held final : public Handler {
 public:
  explicit Held(place::OneSidedReader& reader) : reader_(reader) {}
  ~Held() {
    if (tick_) reader_.lease().end(*tick_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void done(const Completion& completion) override {
    if (!completion.ok) return;
    version_.version = completion.read_version;
    tick_ = reader_.hold_completing();
  }
  [[nodiscard]] bool is_held() const { return tick_.has_value(); }
  [[nodiscard]] const memory::HeldVersion& version() const { return version_; }

 private:
  place::OneSidedReader& reader_;
  memory::HeldVersion version_;
  std::optional<std::uint32_t> tick_;
};

Result<bool> OneSidedCaller::run_parts(RemoteRequests& requests, NodeConnection& connection,
                                       std::uint32_t map, const Request& scan,
                                       const std::vector<std::string>& borders, Handler& handler) {
  if (borders.empty()) return run(requests, connection, map, scan, handler);
  have_keepalive();
  const std::lock_guard lock(mutex_);
  maps_.widen(static_cast<std::uint32_t>(borders.size()) + 1);
  Forward forward(*this, requests, handler, true);
  for (int i = 0; i < kTries; ++i) {
    const auto opened = maps_.open(requests, connection, map);
    if (!opened && opened.error().code == Code::connection_lost) return false;
    if (!opened) return std::unexpected(opened.error());
    if (take_parts(requests, **opened, scan, borders, forward)) return true;
    maps_.close();
  }
  ++by_rings_;
  return false;
}

// Returns false if it should be tried again: the handler was not called.
bool OneSidedCaller::take_parts(RemoteRequests& requests, place::OneSidedReader& reader,
                                const Request& scan, const std::vector<std::string>& borders,
                                Forward& forward) {
  // Reading a range without keys reads only the version.
  Request nothing;
  nothing.op = Op::scan;
  nothing.key = nothing.high = kAnyKey;
  Held held(reader);
  const bool versions = reader.view().versions;
  if (versions) {
    reader.submit({&nothing, 1}, held);
    walk(requests, reader);
    if (!held.is_held()) return false;
  }
  PartsOfScan parts(scan, borders, forward);
  Looks looks;
  client::walk_parts(
      parts,
      [&](const Request& part) {
        const auto* const as_of = version_of(part, versions ? &held.version() : nullptr);
        reader.submit({&part, &parts, as_of, {}, {}});
      },
      [&] { look(requests, reader, looks); });
  parts.finish();
  return !forward.failed;
}

// Returns whether walks are pending.
bool OneSidedCaller::look(RemoteRequests& requests, place::OneSidedReader& reader, Looks& looks) {
  if (reader.poll() == 0) return false;
  const std::uint64_t trips = reader.traffic().round_trips;
  looks.in_vain = std::exchange(looks.trips, trips) == trips ? looks.in_vain + 1 : 0;
  maps_.renew(requests, reader.lease());
  if (reader.lease().ended()) reader.fail();
  if (looks.in_vain > kReadSpins) maps_.wait();
  return true;
}

void OneSidedCaller::walk(RemoteRequests& requests, place::OneSidedReader& reader) {
  Looks looks;
  while (look(requests, reader, looks)) {
  }
}

void OneSidedCaller::have_keepalive() {
  if (keepalive_) return;
  try {
    auto keepalive = KeepaliveThread::of_process();
    keepalive->add(*this);
    keepalive_ = std::move(keepalive);
  } catch (const std::system_error&) {  // without the thread, a slow sink costs the scan its lease
  }
}

void OneSidedCaller::keep() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || in_sink_ == nullptr) return;
  try {
    maps_.keep(*in_sink_);
  } catch (const std::bad_alloc&) {  // tried again later, or the lease expires
  }
}

}  // namespace espalier::client
