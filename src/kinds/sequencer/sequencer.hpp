// SPDX-License-Identifier: Apache-2.0
// A sequencer: a counter under a name that gives each number once, by epochs [DPU §6].
//
// All numbers are taken by adding to one word (wire/sequencer.hpp): by this object for those who
// ask, and by clients that may add to it themselves, in a page of its own. A seal ends an epoch for
// good; the next one begins above all that were given, with a word elsewhere.
//
//   epoch 1                      seal     epoch 2
//   +---------------------------+----+    +-------------------
//   | 0, 1, 2 ...  to 1000      |  x |    | 1000, 1001 ...
//   +---------------------------+----+    +-------------------
//
// The word lies in this object until somebody wants to add to it from elsewhere, and from then on
// in a page (word_page.hpp) that clients can write. So nothing is believed because it stands there.
// Epoch, seal and the number below which all were given are kept here, where no client writes; a
// word of another epoch, with a seal that was not set here, or below that number was overwritten.
// Then the sequencer is sealed; what others took since the word was last seen nobody here can know,
// so the next epoch begins only at a number that is named by who asks for it. A seal that was taken
// away is set again.
//
// Invariants
// 1. take() never gives a number that it gave before, whatever clients write to the word.
// 2. While clients only add to the word, nobody gets a number that another one got.
// 3. Once seal() or advance() has returned, no add to the word of that epoch is answered as good,
//    and all numbers of later epochs are above those of it.
//
// What takes numbers, seals and begins epochs by asking this object is recorded
// (kinds/sequencer/redo_record.hpp). An add from elsewhere is not, for no processor of the node
// sees it. So numbers are reserved for those who add, by a record that is durable before they are
// told the mark below which these are; a number at or above it nobody uses before asking again. Who
// goes on by records begins an epoch above the mark, and an add of before counts for nothing there.
//
// Thread: any. The lock is held for a few atomic steps, and for a page that is made.
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
  /// Of a process.
  static constexpr std::uint32_t kMost = 65536;
  /// Between what is known where a loss was accepted and what it goes on in.
  static constexpr std::uint32_t kEpochsLeftOut = 256;

  /// Requires: `first` is at most wire::kSequencerEnd.
  Sequencer(std::uint32_t id, std::string name, std::uint64_t first);
  ~Sequencer() override;
  /// Those that there are.
  [[nodiscard]] static std::uint32_t live();

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // Of all these, `epoch` is one that the caller knows, or wire::kAnyEpoch.
  // Errors: not_found (it was dropped); sealed (it has another epoch, or none that is open;
  // detail: the one that it has); of those that are recorded the sink's, and nothing was done.

  /// Takes numbers in a row. `requests`: on behalf of so many. Cost: a lock and an atomic add.
  /// Errors: besides, invalid_argument (a count of 0), exhausted (there are not so many left).
  Result<Range> take(std::uint32_t epoch, std::uint32_t count, std::uint32_t requests = 1);
  /// Ends the epoch: no number of it is given any more. Sealing what is sealed changes nothing.
  Result<wire::SequencerFacts> seal(std::uint32_t epoch);
  /// Ends the epoch and begins the next, above all numbers that were given, and at `at_least` or
  /// above. Errors: besides, invalid_argument (it is `overwritten`, so a number must be named
  /// that is not below what was given; detail: 1); exhausted (numbers, or epochs).
  Result<wire::SequencerFacts> advance(std::uint32_t epoch, std::uint64_t at_least);

  /// The word as others may add to it.
  struct Window {
    std::shared_ptr<WordPage> page;
    std::uint32_t epoch = 0;
    /// Numbers of the epoch at or above it may not be used. To be told once all records that were
    /// handed over are durable.
    std::uint64_t mark = 0;
  };
  /// Numbers that are reserved ahead of those that were taken.
  static constexpr std::uint64_t kReservedAhead = std::uint64_t{1} << 20;
  /// Cost: the first time in an epoch, that of a page. Errors: besides, those of WordPage::create.
  Result<Window> window();

  /// Applies a record, of any bytes; to a sequencer that was dropped none. From then on its numbers
  /// are above those that the record tells of, and its epoch is no earlier one.
  /// Errors: corrupt (detail: a catalog::RedoFault), and nothing was changed.
  /// Requires: it makes no records.
  Result<void> apply_redo(std::string_view record);

  [[nodiscard]] wire::SequencerFacts facts() const;
  /// The same for who holds one that may have been dropped. `mark`: is told below which number some
  /// are reserved for those who add, 0: none are. Errors: not_found.
  [[nodiscard]] Result<wire::SequencerFacts> known_facts(std::uint64_t* mark = nullptr) const;
  /// Begins an epoch above what was reserved, if records are applied no more.
  void record_to(catalog::RedoSink* sink) override;
  /// Seals it, as where its word was overwritten: the next epoch begins at a number that is named,
  /// for nobody else knows which of them the lost records gave. It is in an epoch kEpochsLeftOut
  /// later, or in the last: no epoch of a lost record comes again where those have begun fewer.
  Result<void> go_on_after_loss() override;
  void set_dropped() override;
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;
  [[nodiscard]] std::uint64_t told_in() const override;

 private:
  // Of all these: requires the lock.
  [[nodiscard]] Result<void> check_epoch(std::uint32_t epoch) const;
  [[nodiscard]] std::atomic_ref<std::uint64_t> word() const;
  void examine() const;
  void end_epoch() const;
  [[nodiscard]] wire::SequencerFacts facts_now() const;
  void record(catalog::RedoRoom& room, RedoType type);
  void reserve(catalog::RedoRoom& room);
  void begin_epoch(std::uint64_t first, std::uint32_t epochs = 1);
  void begin_above_mark();

  /// Before the lock.
  [[nodiscard]] Result<catalog::RedoRoom> record_room() const;

  const std::uint32_t id_;
  const std::string name_;

  mutable std::mutex mutex_;  // guards all below
  // What is known of the word: to look at it is to learn.
  mutable std::uint64_t own_word_;
  std::shared_ptr<WordPage> page_;  // of this epoch; null: the word is the one above
  std::uint32_t epoch_ = 1;
  std::uint64_t first_;
  mutable std::uint64_t next_;  // all that were given are below it, as far as it is known
  mutable bool sealed_ = false;
  mutable bool overwritten_ = false;
  mutable std::uint64_t mark_ = 0;  // below it numbers are reserved for those who add; 0: none are
  bool dropped_ = false;
  std::uint64_t requests_ = 0;
  std::uint64_t adds_ = 0;
  std::uint64_t told_in_ = 0;  // the sequence of its newest record
};

/// Makes a sequencer with a name. Errors: those of Catalog::create; invalid_argument (`first` is
/// above wire::kSequencerEnd), out_of_memory (there are Sequencer::kMost).
Result<std::shared_ptr<Sequencer>> create_sequencer(catalog::Catalog& catalog,
                                                    std::string_view name, std::uint64_t first);
/// Makes a sequencer again that a record tells of; null: there is nothing to make
/// (Catalog::restore). Errors: corrupt (detail: a catalog::RedoFault), out_of_memory (as above).
Result<std::shared_ptr<Sequencer>> restore_sequencer(catalog::Catalog& catalog,
                                                     const catalog::CreatedObject& created);

}  // namespace espalier::sequencer
