// SPDX-License-Identifier: Apache-2.0
// Takes numbers of sequencers directly, on one thread: FETCH_ADD on the word of the epoch, to which
// the node has given the thread's session access. The result of an add counts only if epoch and
// seal are as expected and the range lies within the counter (kinds/sequencer/answer.hpp);
// otherwise the client asks the node for the sequencer's state.
//
// Thread: one at a time: that of the rings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "kinds/sequencer/answer.hpp"
#include "wire/sequencer.hpp"

namespace espalier::client {

class SequencerAdder final : public LanePart {
 public:
  SequencerAdder() = default;
  SequencerAdder(const SequencerAdder&) = delete;
  SequencerAdder& operator=(const SequencerAdder&) = delete;

  /// Takes numbers of the sequencer with this number. Cost: the first time a handshake, and a
  /// request for each sequencer and epoch; then one FETCH_ADD.
  /// Errors: sealed (detail: its current epoch), exhausted, not_found; unsupported, if the
  /// connection has no such pair for any reason; too_many_participants, connection_lost (the
  /// numbers may be lost).
  Result<sequencer::Range> take(RemoteRequests& requests, NodeConnection& connection,
                                std::uint32_t number, std::uint32_t epoch, std::uint32_t count);

 private:
  Result<void> open_link(NodeConnection& connection);
  Result<wire::SequencerGrant> ask_word(RemoteRequests& requests, std::uint32_t number);
  /// The previous value of the word. Nullopt: the pair has failed, or the node does not answer.
  std::optional<std::uint64_t> add(const wire::SequencerGrant& to, std::uint32_t count);

  std::unique_ptr<SideLink> link_;
  std::unordered_map<std::uint32_t, wire::SequencerGrant> words_;  // by the sequencer's number
  std::uint64_t posted_ = 0;
};

}  // namespace espalier::client
