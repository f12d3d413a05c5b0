// SPDX-License-Identifier: Apache-2.0
// Implementation of Sequencer: one object, reached by a channel. A restarted node does not know the
// numbers issued before, so handles of the old node's sequencers return not_found, even if one of
// that name exists. For a store connected with one-sided access, numbers are taken by FETCH_ADD
// (sequencer_adder.hpp).
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/interface.hpp"
#include "channel/reached_object.hpp"
#include "espalier/sequencer.hpp"
#include "kinds/sequencer/answer.hpp"
#include "wire/sequencer.hpp"

namespace espalier::sequencer {
class Sequencer;
}

namespace espalier::client {

class RemoteSessions;

/// One sequencer, and the epoch that its handle knows. Errors as in Sequencer.
class SequencerImpl final : public Interface {
 public:
  using Object = channel::Reached<sequencer::Sequencer>;

  SequencerImpl(Object object, std::uint32_t of_epoch, std::shared_ptr<RemoteSessions> adding)
      : known_epoch(of_epoch), object_(std::move(object)), adding_(std::move(adding)) {}
  static Sequencer handle(std::shared_ptr<SequencerImpl> impl) {
    return Sequencer(std::move(impl));
  }

  [[nodiscard]] const std::string& name() const { return object_.name(); }

  /// Numbers of this epoch. Requires: count is not 0.
  Result<sequencer::Range> take(std::uint32_t of_epoch, std::uint32_t count);
  Result<wire::SequencerFacts> seal(std::uint32_t of_epoch);
  Result<wire::SequencerFacts> advance(std::uint32_t of_epoch, std::uint64_t at_least);
  Result<wire::SequencerFacts> facts();

  std::atomic<std::uint32_t> known_epoch;  ///< the epoch that its handle knows

 private:
  Result<sequencer::Range> take_by_adding(std::uint32_t of_epoch, std::uint32_t count);

  const Object object_;
  const std::shared_ptr<RemoteSessions> adding_;  // that add to its word; null: by requests
};

/// Facts about one of a store's sequencers.
struct SequencerInfo {
  std::string name;
  wire::SequencerFacts facts{};
};

[[nodiscard]] SequencerDescription description_of(std::string name,
                                                  const wire::SequencerFacts& facts);

// The sequencers of a store. Returned ones are never null. Errors: see Store.
Result<std::shared_ptr<SequencerImpl>> create_sequencer(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name, std::uint64_t first);
Result<std::shared_ptr<SequencerImpl>> open_sequencer(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name);
Result<std::vector<SequencerInfo>> list_sequencers(channel::Channel& channel);

/// Takes so many numbers of the store's counter of this name, which needs no object; returns the
/// first. Requires: a valid name, and a count above 0. Errors: see Store::sequence.
Result<std::uint64_t> count(channel::Channel& channel, std::string_view name,
                            std::uint32_t numbers);

}  // namespace espalier::client
