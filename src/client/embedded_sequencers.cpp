// SPDX-License-Identifier: Apache-2.0
#include "client/embedded_sequencers.hpp"

#include <utility>

#include "sequencer/sequencer.hpp"

namespace espalier::client {
namespace {

class EmbeddedSequencer final : public SequencerImpl {
 public:
  EmbeddedSequencer(std::shared_ptr<sequencer::Sequencer> own, std::uint32_t epoch)
      : SequencerImpl(own->name(), epoch), own_(std::move(own)) {}

  Result<sequencer::Range> take(std::uint32_t of_epoch, std::uint32_t count) override {
    return own_->take(of_epoch, count);
  }
  Result<wire::SequencerFacts> seal(std::uint32_t of_epoch) override {
    return own_->seal(of_epoch);
  }
  Result<wire::SequencerFacts> advance(std::uint32_t of_epoch, std::uint64_t at_least) override {
    return own_->advance(of_epoch, at_least);
  }
  Result<wire::SequencerFacts> facts() override { return own_->known_facts(); }

 private:
  const std::shared_ptr<sequencer::Sequencer> own_;
};

std::shared_ptr<SequencerImpl> behind(std::shared_ptr<sequencer::Sequencer> own) {
  const std::uint32_t epoch = own->facts().epoch;
  return base::make_shared_until_fork<EmbeddedSequencer>(std::move(own), epoch);
}

}  // namespace

Result<std::shared_ptr<SequencerImpl>> EmbeddedSequencers::create(std::string_view name,
                                                                  std::uint64_t first) {
  auto made = sequencer::create_sequencer(core_->catalog, name, first);
  if (!made) return std::unexpected(made.error());
  try {
    return behind(std::move(*made));
  } catch (...) {  // no memory for a handle: then there is no sequencer either
    static_cast<void>(drop(name));
    throw;
  }
}

Result<std::shared_ptr<SequencerImpl>> EmbeddedSequencers::open(std::string_view name) {
  auto opened = core_->catalog.open<sequencer::Sequencer>(name);
  if (!opened) return std::unexpected(opened.error());
  return behind(std::move(*opened));
}

Result<void> EmbeddedSequencers::drop(std::string_view name) {
  const auto dropped = core_->catalog.drop<sequencer::Sequencer>(name);
  if (!dropped) return std::unexpected(dropped.error());
  return {};
}

Result<std::vector<SequencerInfo>> EmbeddedSequencers::list() {
  std::vector<SequencerInfo> all;
  for (const catalog::EntryPointer& entry : core_->catalog.list(ObjectKind::sequencer)) {
    const auto& own = static_cast<const sequencer::Sequencer&>(*entry->object);
    all.push_back({entry->name, own.facts()});
  }
  return all;
}

}  // namespace espalier::client
