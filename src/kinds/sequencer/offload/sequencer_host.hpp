// SPDX-License-Identifier: Apache-2.0
// The words of sequencers that one session may add to by itself, each by a key of its own, with the
// right to atomics on that page alone.
//
// A key is good until its session ends or asks for the word of a later epoch; a page whose epoch
// has ended stays, sealed, for as long. So none is ever used for anything else while somebody may
// still add there, be it by a mapping that outlives the key (kinds/sequencer/word_page.hpp).
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
  /// The session's, made when first asked for; null: it may add to no word.
  [[nodiscard]] static SequencerHost* of(Connection& connection);
  /// Words of one session at a time, those that are sealed not counted.
  static constexpr std::size_t kWordsMax = 64;

  /// `regions`, `domain`: of the endpoint and the queue pairs of the session; they outlive this.
  SequencerHost(fabric::RegionTable& regions, fabric::Domain domain)
      : regions_(regions), domain_(domain) {}
  SequencerHost(const SequencerHost&) = delete;
  SequencerHost& operator=(const SequencerHost&) = delete;

  /// Lets the session add to the word of the present epoch. Cost: a registration, if it may not
  /// already. Errors: those of Sequencer::window and RegionTable::offer; too_many_participants.
  Result<wire::SequencerGrant> open(sequencer::Sequencer& of);
  void end() override { words_.clear(); }

 private:
  struct Word {
    std::shared_ptr<sequencer::WordPage> page;
    fabric::Registration key;  // revoked before the page goes
  };
  void forget_sealed();

  fabric::RegionTable& regions_;
  fabric::Domain domain_;
  std::unordered_map<std::uint32_t, Word> words_;  // by the sequencer's id
};

}  // namespace espalier::offload
