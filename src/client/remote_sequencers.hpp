// SPDX-License-Identifier: Apache-2.0
// The sequencers of a node, for a client: each call is a message through rings that the thread
// keeps, but for numbers where the store was connected to read alone: these are taken by FETCH_ADD
// (sequencer_adder.hpp).
//
// A sequencer is known to its node by a number. A node that starts anew knows none of the numbers
// that were given before, so handles of the old one's say not_found, whatever is there by that
// name.
//
// Thread: any.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "client/remote.hpp"
#include "client/sequencers.hpp"

namespace espalier::client {

class RemoteSequencers final : public SequencersImpl {
 public:
  /// Those of the node to which a store's sessions lead.
  explicit RemoteSequencers(std::shared_ptr<RemoteSessions> sessions)
      : sessions_(std::move(sessions)) {}

  Result<std::shared_ptr<SequencerImpl>> create(std::string_view name,
                                                std::uint64_t first) override;
  Result<std::shared_ptr<SequencerImpl>> open(std::string_view name) override;
  Result<void> drop(std::string_view name) override;
  Result<std::vector<SequencerInfo>> list() override;

 private:
  const std::shared_ptr<RemoteSessions> sessions_;
};

}  // namespace espalier::client
