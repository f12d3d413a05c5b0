// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/offload/sequencer_host.hpp"

#include <utility>

#include "base/places.hpp"
#include "engine/connection.hpp"
#include "engine/endpoint_side.hpp"

namespace espalier::offload {
namespace {

wire::SequencerGrant grant_of(const fabric::Registration& key,
                              const sequencer::Sequencer::Window& window) {
  return {key.remote().base, key.remote().key, window.epoch, window.mark};
}

}  // namespace

SequencerHost* SequencerHost::of(Connection& connection) {
  const LinkSide* const side = connection.side.get();
  if (side == nullptr || !side->endpoint.lets_add()) return nullptr;
  return &connection.parts.of<SequencerHost>(side->endpoint.regions, side->domain);
}

// No client takes numbers from a sealed word, whichever party sealed it.
void SequencerHost::forget_sealed() {
  std::erase_if(words_, [](const auto& each) {
    return wire::sequencer_sealed(each.second.page->word().load(std::memory_order_relaxed));
  });
}

Result<wire::SequencerGrant> SequencerHost::open(sequencer::Sequencer& of) {
  auto window = of.window();
  if (!window) return std::unexpected(window.error());
  const auto known = words_.find(of.id());
  if (known != words_.end() && known->second.page == window->page) {
    return grant_of(known->second.key, *window);
  }
  if (known != words_.end()) words_.erase(known);
  if (words_.size() >= kWordsMax) forget_sealed();
  if (words_.size() >= kWordsMax) return base::full(base::Places::sequencer_words, kWordsMax);
  const memory::SharedMemory& memory = window->page->memory();
  auto key = regions_.offer({memory.at(0), memory.bytes(), memory.descriptor(), 0},
                            fabric::RemoteRights::atomic, domain_);
  if (!key) return std::unexpected(key.error());
  const auto grant = grant_of(*key, *window);
  words_.emplace(of.id(), Word{std::move(window->page), std::move(*key)});
  return grant;
}

}  // namespace espalier::offload
