// SPDX-License-Identifier: Apache-2.0
// The words of sequencers that one session may add to directly, each by a key of its own, with the
// right to atomics on that page only.
//
// A key is valid until its session ends or requests the word of a later epoch; the page of an ended
// epoch stays, sealed, as long. So no page is reused while a client may still add to it, even by a
// mapping that outlives the key (kinds/sequencer/word_page.hpp).
//
// Thread: that of the scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/session_parts.hpp"
#include "fabric/region_table.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::offload {

class Connection;

class SequencerHost final : public SessionPart {
 public:
  /// The session's host, created on first use; null: it may add to no word.
  [[nodiscard]] static SequencerHost* of(Connection& connection);
  /// Limit on the words of one session, without sealed ones.
  static constexpr std::size_t kWordsMax = 64;

  /// `regions`, `domain`: of the endpoint and the queue pairs of the session; they outlive this.
  SequencerHost(fabric::RegionTable& regions, fabric::Domain domain)
      : regions_(regions), domain_(domain) {}
  SequencerHost(const SequencerHost&) = delete;
  SequencerHost& operator=(const SequencerHost&) = delete;

  /// Lets the session add to the word of the current epoch. Cost: a registration, if it has none
  /// already. Errors: those of Sequencer::window and RegionTable::offer; too_many_participants.
  Result<wire::SequencerGrant> open(sequencer::Sequencer& of);
  void end() override { words_.clear(); }

 private:
  struct Word {
    std::shared_ptr<sequencer::WordPage> page;
    fabric::Registration key;  // revoked before the page is freed
  };
  void forget_sealed();

  fabric::RegionTable& regions_;
  fabric::Domain domain_;
  std::unordered_map<std::uint32_t, Word> words_;  // by the sequencer's id
};

}  // namespace espalier::offload
