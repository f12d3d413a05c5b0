// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/client/one_sided_embeddings.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "channel/rings/walk_options.hpp"
#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/client/embedding_opening.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kBagsNapNs = 1'000'000;
constexpr int kReduceTries = 2;  // the second with a new session's key and lease
// Rows of one doorbell: if READs are complete when they are posted, as many as fit the first-level
// cache, otherwise enough to hide the round trip.
constexpr std::uint32_t kStepRowsNear = 64;
constexpr std::uint32_t kStepRowsFar = 256;

}  // namespace

OneSidedEmbeddings::~OneSidedEmbeddings() { close(); }

std::optional<TableResult<void>> OneSidedEmbeddings::reduce(
    RemoteSessions& sessions, channel::NodeNumber node, std::uint32_t table, std::uint32_t renames,
    const EmbeddingOptions& options, const embedding::ReductionWork& work,
    std::span<float> results) {
  for (int i = 0; i < kReduceTries && lane_.is_to(sessions, node, [this] { close(); }); ++i) {
    place::BagReader* const reader = open(table, options);
    if (reader == nullptr) break;
    reader->expect_renames(renames);
    auto reduced = reduce_by(*reader, work, results);
    if (reduced || reduced.error().error.code == Code::invalid_argument) return reduced;
    const Code code = reduced.error().error.code;
    if (code == Code::contended) break;
    if (code == Code::not_found) {
      if (!forget_reader(lane_.requests(), readers_, table)) close();
      break;
    }
    // If there is a link, the table has failed.
    const bool corrupt = code == Code::corrupt;
    if (corrupt) failures_.note(table, true, reduced.error().error, base::monotonic_ns());
    close();
    if (corrupt) break;
  }
  ++by_rings_;
  return std::nullopt;
}

// Without memory it is unknown which READs are in flight: the pair is closed.
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
  renew_leases(lane_.requests(), readers_, reader.lease());
  if (reader.lease().ended() || link_->pair().state() == fabric::QueuePair::State::error) {
    return false;
  }
  const std::uint64_t now = reader.traffic().round_trips;
  quiet_ = std::exchange(trips_, now) == now ? quiet_ + 1 : 0;
  if (quiet_ > kReadSpins) link_->endpoint().wait(kBagsNapNs);
  return true;
}

// --- opening -------------------------------------------------------------------------------------

place::BagReader* OneSidedEmbeddings::open(std::uint32_t table, const EmbeddingOptions& options) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::error) close();
  if (const auto known = readers_.find(table); known != readers_.end()) return known->second.get();
  const std::uint64_t began = base::monotonic_ns();
  if (failures_.find(table, link_ != nullptr, began) != nullptr) return nullptr;
  const auto opened = [&] {
    try {
      return open_anew(table, options);
    } catch (...) {  // the node may have granted a lease that is not known here
      close();
      throw;
    }
  }();
  if (opened) return *opened;
  failures_.note(table, link_ != nullptr, opened.error(), began);
  return nullptr;
}

Result<place::BagReader*> OneSidedEmbeddings::open_anew(std::uint32_t table,
                                                        const EmbeddingOptions& options) {
  if (!link_) {
    auto link = lane_.connection().open_beside(wire::LinkWay::reads);
    if (!link) return std::unexpected(link.error());
    link_ = std::move(*link);
  }
  const std::uint64_t asked_ns = base::monotonic_ns();
  Reply answer;
  const auto opened = ask(lane_.requests(), embedding_calls::OpenReads{table}, answer);
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
    // The session has another key, so the connections of all tables are void.
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

void OneSidedEmbeddings::close() {
  if (port_) ended_ += port_->traffic();
  if (link_) link_->pair().close();  // nothing in flight arrives after that
  readers_.clear();
  failures_.forget_leases();
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
