// SPDX-License-Identifier: Apache-2.0
// What stands behind Sequencer: sequencers of this process (embedded_sequencers.hpp) or of a node
// (remote_sequencers.hpp). Which epoch a handle knows is kept above them, in sequencer.cpp.
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

#include "client/impl.hpp"
#include "espalier/sequencer.hpp"
#include "sequencer/answer.hpp"
#include "wire/sequencer.hpp"

namespace espalier::client {

/// One sequencer, and the epoch that its handle knows. Errors as in Sequencer.
class SequencerImpl : public Interface {
 public:
  SequencerImpl(std::string name, std::uint32_t of_epoch)
      : known_epoch(of_epoch), name_(std::move(name)) {}
  static Sequencer handle(std::shared_ptr<SequencerImpl> impl) {
    return Sequencer(std::move(impl));
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Numbers of this epoch. Requires: count is not 0.
  virtual Result<sequencer::Range> take(std::uint32_t of_epoch, std::uint32_t count) = 0;
  virtual Result<wire::SequencerFacts> seal(std::uint32_t of_epoch) = 0;
  virtual Result<wire::SequencerFacts> advance(std::uint32_t of_epoch, std::uint64_t at_least) = 0;
  virtual Result<wire::SequencerFacts> facts() = 0;

  std::atomic<std::uint32_t> known_epoch;  ///< that its handle knows

 private:
  const std::string name_;
};

/// What a store tells of one of its sequencers.
struct SequencerInfo {
  std::string name;
  wire::SequencerFacts facts{};
};

/// The sequencers of a store. Returned ones are never null. Errors: see Store.
class SequencersImpl : public Interface {
 public:
  virtual Result<std::shared_ptr<SequencerImpl>> create(std::string_view name,
                                                        std::uint64_t first) = 0;
  virtual Result<std::shared_ptr<SequencerImpl>> open(std::string_view name) = 0;
  virtual Result<void> drop(std::string_view name) = 0;
  virtual Result<std::vector<SequencerInfo>> list() = 0;
};

}  // namespace espalier::client
