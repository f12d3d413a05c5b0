// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/client/one_sided_embeddings.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "channel/rings/walk_options.hpp"
#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/client/embedding_opening.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kBagsNapNs = 1'000'000;
// After a failure, so that little of a thread's time goes into trying again.
constexpr std::uint64_t kBagsPauseNs = 100'000'000;
constexpr std::uint64_t kBagsPauseFactor = 4;
// Tables of which failures are remembered.
constexpr std::size_t kFailedTablesMax = 1024;
constexpr int kReduceTries = 2;  // the second with a new session's key and lease
// Rows of one doorbell: where READs end when they are posted as many as the first-level cache has
// room for, elsewhere enough to hide the way.
constexpr std::uint32_t kStepRowsNear = 64;
constexpr std::uint32_t kStepRowsFar = 256;

}  // namespace

OneSidedEmbeddings::~OneSidedEmbeddings() { close(); }

std::optional<TableResult<void>> OneSidedEmbeddings::reduce(RemoteSessions& sessions,
                                                            channel::NodeNumber node,
                                                            std::uint32_t table,
                                                            const EmbeddingOptions& options,
                                                            const embedding::ReductionWork& work,
                                                            std::span<float> results) {
  for (int i = 0; i < kReduceTries && has_lane(sessions, node); ++i) {
    place::BagReader* const reader = open(table, options);
    if (reader == nullptr) break;
    auto reduced = reduce_by(*reader, work, results);
    if (reduced || reduced.error().error.code == Code::invalid_argument) return reduced;
    const Code code = reduced.error().error.code;
    if (code == Code::contended) break;
    if (code == Code::not_found) {
      forget(table);
      break;
    }
    // While there is a link it is the table that has failed.
    const bool corrupt = code == Code::corrupt;
    if (corrupt) note_failure(table, code, base::monotonic_ns() + kBagsPauseNs);
    close();
    if (corrupt) break;
  }
  ++by_rings_;
  return std::nullopt;
}

// Where there is no memory nobody knows what of it has left: the pair ends.
TableResult<void> OneSidedEmbeddings::reduce_by(place::BagReader& reader,
                                                const embedding::ReductionWork& work,
                                                std::span<float> results) {
  try {
    return reader.reduce(work, results, [this, &reader] { return keep_waiting(reader); });
  } catch (...) {
    close();
    throw;
  }
}

bool OneSidedEmbeddings::keep_waiting(place::BagReader& reader) {
  renew(reader.lease());
  if (reader.lease().ended() || link_->pair().state() == fabric::QueuePair::State::error) {
    return false;
  }
  const std::uint64_t now = reader.traffic().round_trips;
  quiet_ = std::exchange(trips_, now) == now ? quiet_ + 1 : 0;
  if (quiet_ > kReadSpins) link_->endpoint().wait(kBagsNapNs);
  return true;
}

// A session stands and falls with all its leases, those of tables that are not read now too.
void OneSidedEmbeddings::renew(place::LeaseGuard& lease) {
  const std::uint64_t now = base::monotonic_ns();
  const auto asked = lease.due(now);
  if (!asked) return;
  for (const auto& [table, reader] : readers_) {
    place::LeaseGuard& each = reader->lease();
    const auto due = &each == &lease ? asked : each.idle_due(now);
    if (!due) continue;
    const session_calls::RenewLease renewal{0, {due->id, due->oldest}, {}};
    const auto renewed = due->id == 0 ? fail(Code::not_found) : ask(*requests_, renewal);
    if (renewed) {
      each.renewed(renewed->epoch, base::monotonic_ns());
    } else {
      each.end_all();
    }
  }
}

// --- opening -------------------------------------------------------------------------------------

bool OneSidedEmbeddings::has_lane(RemoteSessions& sessions, channel::NodeNumber node) {
  if (rings_ && rings_->ask_lost_idle()) {
    close();
    requests_.reset();
    rings_.reset();
  }
  if (!rings_) {
    auto rings = sessions.open_lane();
    if (!rings) return false;
    requests_ = std::make_unique<RemoteRequests>(**rings, 1);
    rings_ = std::move(*rings);
  }
  return rings_->connection().node_id() == node;
}

place::BagReader* OneSidedEmbeddings::open(std::uint32_t table, const EmbeddingOptions& options) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::error) close();
  if (const auto known = readers_.find(table); known != readers_.end()) return known->second.get();
  const std::uint64_t began = base::monotonic_ns();
  if (is_paused(table, began)) return nullptr;
  const auto opened = [&] {
    try {
      return open_anew(table, options);
    } catch (...) {  // the node may have granted a lease that nobody keeps
      close();
      throw;
    }
  }();
  if (opened) return *opened;
  const std::uint64_t now = base::monotonic_ns();
  const std::uint64_t pause = std::max(kBagsPauseNs, kBagsPauseFactor * (now - began));
  note_failure(table, opened.error().code, now + pause);
  return nullptr;
}

bool OneSidedEmbeddings::is_paused(std::uint32_t table, std::uint64_t now_ns) const {
  if (now_ns < paused_until_ns_) return true;
  const auto failed = failures_.find(table);
  return failed != failures_.end() && now_ns < failed->second;
}

// A handshake with a node that does not answer may take seconds, and a session has so many leases.
void OneSidedEmbeddings::note_failure(std::uint32_t table, Code code, std::uint64_t until_ns) {
  if (!link_ || code == Code::out_of_memory) {
    paused_until_ns_ = until_ns;
    return;
  }
  if (failures_.size() == kFailedTablesMax) failures_.clear();
  failures_[table] = until_ns;
}

Result<place::BagReader*> OneSidedEmbeddings::open_anew(std::uint32_t table,
                                                        const EmbeddingOptions& options) {
  if (!link_) {
    auto link = rings_->connection().open_beside(wire::LinkWay::reads);
    if (!link) return std::unexpected(link.error());
    link_ = std::move(*link);
  }
  const std::uint64_t asked_ns = base::monotonic_ns();
  Reply answer;
  const auto opened = ask(*requests_, embedding_calls::OpenReads{table}, answer);
  if (!opened) return std::unexpected(opened.error());
  const auto opening = EmbeddingOpening::read(opened->described);
  if (!opening) return std::unexpected(opening.error());
  const auto target = opening->target_of(table, options);
  if (!target) return std::unexpected(target.error());
  const fabric::RemoteRegion region{opening->region.base, opening->region.bytes,
                                    opening->region.key, 0};
  const fabric::Properties& properties = link_->endpoint().properties();
  if (!port_) {
    port_.emplace(link_->pair(), link_->completions(), region, properties);
  } else if (port_->region() != region) {
    // The session has another key, so what all tables were read by is void.
    close();
    return open_anew(table, options);
  }
  const wire::LeaseGrant& grant = opening->lease;
  auto reader = std::make_unique<place::BagReader>(
      *port_, *target,
      place::BagReader::Options{
          .terms = {.renew_every_ns = grant.renew_every_ns,
                    .believed_for_ns = grant.believed_for_ns,
                    .lost_after_ns = grant.lost_after_ns},
          .now_ns = base::monotonic_ns,
          .step_rows = properties.reads_end_in_post ? kStepRowsNear : kStepRowsFar});
  reader->lease().granted(grant.lease, grant.epoch, asked_ns, base::monotonic_ns());
  return readers_.emplace(table, std::move(reader)).first->second.get();
}

// What the node does not take back it ends with the session.
void OneSidedEmbeddings::forget(std::uint32_t table) {
  const auto known = readers_.find(table);
  if (known == readers_.end()) return;
  const auto lease = known->second->lease().give_back();
  readers_.erase(known);
  if (!lease) return;
  const session_calls::RenewLease renewal{0, {lease->id, lease->oldest}, {}};
  if (!ask(*requests_, renewal)) close();
}

void OneSidedEmbeddings::close() {
  if (port_) ended_ += port_->traffic();
  if (link_) link_->pair().close();  // nothing that is in flight arrives after that
  readers_.clear();
  port_.reset();
  link_.reset();
}

tree::WalkTraffic OneSidedEmbeddings::traffic() const {
  tree::WalkTraffic sum = ended_;
  if (port_) sum += port_->traffic();
  sum.by_rings = by_rings_;
  return sum;
}

}  // namespace espalier::client
