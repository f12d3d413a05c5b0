// SPDX-License-Identifier: Apache-2.0
// A sequencer: a named counter that issues each number once, by epochs [DPU §6].
//
// All numbers are taken by adding to one word (wire/sequencer.hpp): by this object for requests,
// and by clients with direct access to the word, in a page of its own. A seal ends an epoch for
// good; the next one begins above all numbers issued, with another word.
//
//   epoch 1                      seal     epoch 2
//   +---------------------------+----+    +-------------------
//   | 0, 1, 2 ...  to 1000      |  x |    | 1000, 1001 ...
//   +---------------------------+----+    +-------------------
//
// The word lies in this object until a client requests direct access, and from then on in a page
// (word_page.hpp) that clients can write. So its contents are untrusted. Epoch, seal and the number
// below which all were issued are kept here, where no client writes; a word of another epoch, with
// a seal that was not set here, or below that number was overwritten. Then the sequencer is sealed.
// The node cannot know which numbers clients took since it last saw the word, so the next epoch
// begins only at a number that the caller names. A removed seal is set again.
//
// Invariants
// 1. take() never issues a number that it issued before, whatever clients write to the word.
// 2. While clients only add to the word, no two callers get the same number.
// 3. Once seal() or advance() has returned, no add to the word of that epoch counts as valid, and
//    all numbers of later epochs are above those of it.
//
// Takes, seals and new epochs through this object are recorded (kinds/sequencer/redo_record.hpp). A
// remote add is not, because no processor of the node sees it. So numbers are reserved for clients
// that add: a record of the mark is durable before they learn it; a client with a number at or
// above the mark asks again before it uses the number. Recovery from records begins an epoch above
// the mark, where an add of before does not count.
//
// Thread: any. The lock is held for a few atomic operations, and while a page is created.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "espalier/error.hpp"
#include "kinds/sequencer/answer.hpp"
#include "kinds/sequencer/word_page.hpp"
#include "wire/sequencer.hpp"

namespace espalier::sequencer {

enum class RedoType : std::uint8_t;

class Sequencer final : public catalog::Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::sequencer;
  /// Limit of a process.
  static constexpr std::uint32_t kMost = 65536;
  /// Epochs skipped after an accepted loss.
  static constexpr std::uint32_t kEpochsLeftOut = 256;

  /// Requires: `first` is at most wire::kSequencerEnd.
  Sequencer(std::uint32_t id, std::string name, std::uint64_t first);
  ~Sequencer() override;
  /// Number of sequencers in the process.
  [[nodiscard]] static std::uint32_t live();

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // For all of these, `epoch` is one that the caller knows, or wire::kAnyEpoch. Errors: not_found
  // (it was dropped); sealed (it has another epoch, or no open one; detail: its epoch); for
  // recorded ones those of the sink, and nothing was done.

  /// Takes consecutive numbers. `requests`: number of requests served. Cost: a lock and an atomic
  /// add. Errors: besides, invalid_argument (a count of 0), exhausted (fewer are left).
  Result<Range> take(std::uint32_t epoch, std::uint32_t count, std::uint32_t requests = 1);
  /// Ends the epoch: it issues no further number. Sealing a sealed epoch changes nothing.
  Result<wire::SequencerFacts> seal(std::uint32_t epoch);
  /// Ends the epoch and begins the next, above all numbers issued, and at `at_least` or above.
  /// Errors: besides, invalid_argument (detail 1: it is `overwritten`, so the caller must name a
  /// number that is not below those issued); exhausted (numbers, or epochs).
  Result<wire::SequencerFacts> advance(std::uint32_t epoch, std::uint64_t at_least);

  /// Direct access to the word.
  struct Window {
    std::shared_ptr<WordPage> page;
    std::uint32_t epoch = 0;
    /// Numbers of the epoch at or above it may not be used. Report it only once all records handed
    /// over are durable.
    std::uint64_t mark = 0;
  };
  /// Numbers reserved ahead of those taken.
  static constexpr std::uint64_t kReservedAhead = std::uint64_t{1} << 20;
  /// Cost: the first time in an epoch, that of a page. Errors: besides, those of WordPage::create.
  Result<Window> window();

  /// Applies a record, of any bytes; a no-op on a dropped sequencer. From then on its numbers are
  /// above those in the record, and its epoch is not earlier. Requires: it makes no records.
  /// Errors: corrupt (detail: a catalog::RedoFault), and nothing was changed.
  Result<void> apply_redo(std::string_view record);

  [[nodiscard]] wire::SequencerFacts facts() const;
  /// The same for a holder of a possibly dropped one. `mark`: receives the number below which
  /// numbers are reserved for clients that add, 0: none. Errors: not_found.
  [[nodiscard]] Result<wire::SequencerFacts> known_facts(std::uint64_t* mark = nullptr) const;
  /// Begins an epoch above the reserved numbers, when replay has ended.
  void record_to(catalog::RedoSink* sink) override;
  /// Seals it, as if its word were overwritten: the next epoch begins at a number that the caller
  /// names, because only clients know which numbers the lost records issued. It skips
  /// kEpochsLeftOut epochs, or to the last: no epoch of a lost record recurs if those began fewer.
  Result<void> go_on_after_loss() override;
  void set_dropped() override;
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;
  [[nodiscard]] std::uint64_t told_in() const override;

 private:
  // Require the lock.
  [[nodiscard]] Result<void> check_epoch(std::uint32_t epoch) const;
  [[nodiscard]] std::atomic_ref<std::uint64_t> word() const;
  void examine() const;
  void end_epoch() const;
  [[nodiscard]] wire::SequencerFacts facts_now() const;
  void record(catalog::RedoRoom& room, RedoType type);
  void reserve(catalog::RedoRoom& room);
  void begin_epoch(std::uint64_t first, std::uint32_t epochs = 1);
  void begin_above_mark();

  /// Called before taking the lock.
  [[nodiscard]] Result<catalog::RedoRoom> record_room() const;

  const std::uint32_t id_;
  const std::string name_;

  mutable std::mutex mutex_;  // guards all below
  // Knowledge about the word: reading it updates this.
  mutable std::uint64_t own_word_;
  std::shared_ptr<WordPage> page_;  // of this epoch; null: the word is own_word_
  std::uint32_t epoch_ = 1;
  std::uint64_t first_;
  mutable std::uint64_t next_;  // above all numbers known to be issued
  mutable bool sealed_ = false;
  mutable bool overwritten_ = false;
  mutable std::uint64_t mark_ = 0;  // numbers below are reserved for adding clients; 0: none
  bool dropped_ = false;
  std::uint64_t requests_ = 0;
  std::uint64_t adds_ = 0;
  std::uint64_t told_in_ = 0;  // the sequence of its newest record
};

/// Creates a sequencer with a name. Errors: those of Catalog::create; invalid_argument (`first` is
/// above wire::kSequencerEnd), out_of_memory (there are Sequencer::kMost).
Result<std::shared_ptr<Sequencer>> create_sequencer(catalog::Catalog& catalog,
                                                    std::string_view name, std::uint64_t first);
/// Recreates a sequencer from a record; null: nothing to create (Catalog::restore). Errors: corrupt
/// (detail: a catalog::RedoFault), out_of_memory (as above).
Result<std::shared_ptr<Sequencer>> restore_sequencer(catalog::Catalog& catalog,
                                                     const catalog::CreatedObject& created);

}  // namespace espalier::sequencer
