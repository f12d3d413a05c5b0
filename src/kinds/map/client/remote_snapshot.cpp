// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/remote_snapshot.hpp"

#include <utility>

#include "channel/rings/ring_pipeline.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/client/answer.hpp"
#include "kinds/map/client/asked_borders.hpp"
#include "kinds/map/client/one_sided_caller.hpp"
#include "kinds/map/client/parts_of_scan.hpp"
#include "kinds/map/item_calls.hpp"

namespace espalier::client {

RemoteSnapshot::RemoteSnapshot(std::shared_ptr<RemoteSessions> sessions,
                               std::unique_ptr<ThreadRings> rings)
    : sessions_(std::move(sessions)), connection_(rings->shared_connection()) {
  askers_.push_back(std::make_unique<Asker>(std::move(rings)));
}

RemoteSnapshot::~RemoteSnapshot() {
  close();
  for (const auto& asker : askers_) sessions_->release(std::move(asker->rings));
}

void RemoteSnapshot::close() {
  const std::uint64_t number = std::exchange(scope_.snapshot, 0);
  if (number == 0) return;
  // A lost connection has closed it already.
  static_cast<void>(client::ask(askers_.front()->requests, map_calls::CloseSnapshot{number}));
}

Result<void> RemoteSnapshot::open() {
  if (!begin_open()) return std::unexpected(connection().lost_error());
  return finish_open();
}

bool RemoteSnapshot::begin_open() {
  return begin_asking(requests(), map_calls::OpenSnapshot{scope_.map});
}

Result<void> RemoteSnapshot::finish_open() {
  const auto opened = finish_asking<map_calls::OpenSnapshot>(requests());
  if (!opened) return std::unexpected(opened.error());
  scope_.snapshot = opened->number;
  version_ = opened->version;
  return {};
}

bool RemoteSnapshot::begin_collect() {
  return begin_asking(requests(), map_calls::Stats{scope_.map});
}

Result<Version> RemoteSnapshot::finish_collect() {
  const auto reply = finish_asking<map_calls::Stats>(requests());
  if (!reply) return std::unexpected(reply.error());
  return reply->numbers.read_version;
}

bool RemoteSnapshot::begin_hold() {
  return begin_asking(requests(), map_calls::HoldRelease{scope_.map});
}

Result<void> RemoteSnapshot::finish_hold() {
  const auto held = finish_asking<map_calls::HoldRelease>(requests());
  if (!held) return std::unexpected(held.error());
  hold_ = held->hold;
  return {};
}

bool RemoteSnapshot::begin_confirm() {
  return begin_asking(requests(), map_calls::ConfirmRelease{scope_.map, hold_});
}

Result<std::optional<Version>> RemoteSnapshot::finish_confirm() {
  hold_ = 0;
  const auto confirmed = finish_asking<map_calls::ConfirmRelease>(requests());
  if (!confirmed) return std::unexpected(confirmed.error());
  return confirmed->stood ? std::optional<Version>(confirmed->version) : std::nullopt;
}

// Asks on the snapshot's own lane; from inside a sink of the same snapshot, on another lane of its
// connection, since the first one is just delivering an answer.
template <class Ask>
std::invoke_result_t<Ask, RemoteRequests&> RemoteSnapshot::ask(Ask ask) {
  const std::lock_guard lock(mutex_);
  if (depth_ == askers_.size()) {
    auto rings = ThreadRings::open(connection_);
    if (!rings) return std::unexpected(rings.error());
    askers_.push_back(std::make_unique<Asker>(std::move(*rings)));
  }
  RemoteRequests& requests = askers_[depth_++]->requests;
  const std::unique_ptr<std::size_t, void (*)(std::size_t*)> up(
      &depth_, [](std::size_t* depth) { --*depth; });
  return ask(requests);
}

Result<void> RemoteSnapshot::run(const Request& request, Handler& handler) {
  return ask([&](RemoteRequests& requests) -> Result<void> {
    requests.submit({&request, 1}, handler, scope_);
    requests.drain();
    return {};
  });
}

std::uint64_t RemoteSnapshot::hint_of(const Request& read) noexcept {
  const auto session = RemoteLease::take_idle(*sessions_);
  if (!session) return 0;
  auto* const alone = (*session)->parts.find<OneSidedCaller>();
  return alone == nullptr ? 0 : alone->remembered(scope_.map, read.key).bits;
}

Result<std::vector<std::string>> RemoteSnapshot::borders_of(const Request& scan,
                                                            std::uint32_t parts) {
  return ask([&](RemoteRequests& requests) { return ask_borders(requests, scope_, scan, parts); });
}

Result<std::unique_ptr<PipelineImpl>> RemoteSnapshot::open_pipeline(std::uint32_t in_flight) {
  auto rings = ThreadRings::open(connection_);
  if (!rings) return std::unexpected(rings.error());
  return std::make_unique<RingPipeline>(sessions_, std::move(*rings), scope_, in_flight);
}

Result<void> RemoteSnapshot::run_parts(const Request& scan, std::uint32_t parts, Handler& handler) {
  auto borders = borders_of(scan, parts);
  if (!borders) return std::unexpected(borders.error());
  if (borders->empty()) return run(scan, handler);
  PartsOfScan cut(scan, std::move(*borders), handler);
  const auto pipeline = open_pipeline(cut.size());
  if (!pipeline) {
    // Without a further lane, runs as one walk, which needs none.
    if (pipeline.error().code == Code::too_many_participants) return run(scan, handler);
    return std::unexpected(pipeline.error());
  }
  client::walk_parts(
      cut, [&](const Request& part) { (*pipeline)->submit({&part, 1}, cut); },
      [&] { (*pipeline)->poll(); });
  cut.finish();
  return {};
}

Result<std::uint64_t> RemoteSnapshot::count(std::string_view low, std::string_view high) {
  if (const auto fit = check_bounds(low, high, scope_.max_key_bytes); !fit) {
    return std::unexpected(fit.error());
  }
  const map_calls::Count request{scope_.map, low, scope_.snapshot, high};
  return ask([&](RemoteRequests& requests) -> Result<std::uint64_t> {
    const auto reply = client::ask(requests, request);
    if (!reply) return std::unexpected(reply.error());
    return reply->count;
  });
}

}  // namespace espalier::client
