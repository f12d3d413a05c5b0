// SPDX-License-Identifier: Apache-2.0
// Of the C API: sequencers.
#include <memory>
#include <new>

#include "capi/c_handles.hpp"

namespace c = espalier::client::c;
using espalier::Result;
using espalier::Sequencer;
using espalier::SequencerDescription;

namespace {

// Room for the handle is taken first: a sequencer that was made is not left without one.
template <class Reach>
Result<void> hand_out_sequencer(espalier_sequencer** handle, const Reach& reach) {
  std::unique_ptr<void, c::FreeRoom> room(::operator new(sizeof(espalier_sequencer)));
  const Result<Sequencer> found = reach();
  if (!found) return std::unexpected(found.error());
  *handle = new (room.release()) espalier_sequencer{*found};
  return {};
}

c::Check good_state(const espalier_sequencer_state* state) { return c::sized(state, "state"); }

Result<void> fill(espalier_sequencer_state* state, const Result<SequencerDescription>& now) {
  if (!now) return std::unexpected(now.error());
  if (state == nullptr) return {};
  c::fill(state, {.struct_bytes = sizeof *state,
                  .epoch = now->epoch,
                  .sealed = now->sealed ? 1u : 0u,
                  .overwritten = now->overwritten ? 1u : 0u,
                  .first = now->first,
                  .next = now->next,
                  .requests = now->requests,
                  .node_adds = now->node_adds});
  return {};
}

}  // namespace

espalier_code espalier_sequencer_create(espalier_store* store, espalier_bytes name, uint64_t first,
                                        espalier_sequencer** sequencer) {
  return c::run(
      __func__, {c::given(store, "store"), c::good(name, "name"), c::given(sequencer, "sequencer")},
      [&] {
        return hand_out_sequencer(
            sequencer, [&] { return store->store.create_sequencer(c::view(name), first); });
      });
}

espalier_code espalier_sequencer_open(espalier_store* store, espalier_bytes name,
                                      espalier_sequencer** sequencer) {
  return c::run(__func__,
                {c::given(store, "store"), c::good(name, "name"), c::given(sequencer, "sequencer")},
                [&] {
                  return hand_out_sequencer(
                      sequencer, [&] { return store->store.open_sequencer(c::view(name)); });
                });
}

void espalier_sequencer_close(espalier_sequencer* sequencer) { delete sequencer; }

espalier_code espalier_sequencer_drop(espalier_store* store, espalier_bytes name) {
  return c::run(__func__, {c::given(store, "store"), c::good(name, "name")},
                [&] { return store->store.drop_sequencer(c::view(name)); });
}

espalier_code espalier_sequencer_take(espalier_sequencer* sequencer, uint32_t count,
                                      espalier_number_range* range) {
  return c::run(__func__, {c::given(sequencer, "sequencer"), c::given(range, "range")}, [&] {
    const auto taken = sequencer->sequencer.take(count);
    if (taken) *range = {taken->first, taken->count, taken->epoch};
    return taken;
  });
}

espalier_code espalier_sequencer_seal(espalier_sequencer* sequencer,
                                      espalier_sequencer_state* state) {
  return c::run(__func__, {c::given(sequencer, "sequencer"), good_state(state)},
                [&] { return fill(state, sequencer->sequencer.seal()); });
}

espalier_code espalier_sequencer_advance(espalier_sequencer* sequencer, uint64_t at_least,
                                         espalier_sequencer_state* state) {
  return c::run(__func__, {c::given(sequencer, "sequencer"), good_state(state)},
                [&] { return fill(state, sequencer->sequencer.advance(at_least)); });
}

espalier_code espalier_sequencer_follow(espalier_sequencer* sequencer,
                                        espalier_sequencer_state* state) {
  return c::run(__func__, {c::given(sequencer, "sequencer"), good_state(state)},
                [&] { return fill(state, sequencer->sequencer.follow()); });
}

espalier_code espalier_sequencer_describe(const espalier_sequencer* sequencer,
                                          espalier_sequencer_state* state) {
  return c::run(__func__,
                {c::given(sequencer, "sequencer"), c::given(state, "state"), good_state(state)},
                [&] { return fill(state, sequencer->sequencer.describe()); });
}
