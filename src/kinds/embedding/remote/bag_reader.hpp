// SPDX-License-Identifier: Apache-2.0
// Reduces bags of an embedding table by one-sided READs of the rows, while the host appends and
// replaces rows and is involved only by a lease.
//
//   header       entries of pages that are      rows, then the entries of    once more if
//   the first    not known, or were odd when -> their pages, and the    ---> a sequence has
//   time         last read                      header                       changed
//
// The place of a page never changes, and the sequence that it had when last read is a hint, which
// the entry that is read after the rows confirms. So rows of known pages cost one doorbell for each
// step; two, if READs are not ordered.
//
// Correctness: why the rows are whole
// B1. A page's sequence was read, even, before its rows were requested. Its entry was read after
//     their last byte, in a page list that was still the header's after that byte. A sequence never
//     goes back, and any replacement before the header was read has changed it in that list
//     (kinds/embedding/embedding_table.hpp, invariant 5). So nothing was replaced between.
// B2. The header was read after their last byte, too, and was the table's, and live: pages are the
//     table's until it is destroyed.
// B3. A READ succeeds only while the session's key is good, which is revoked before its lease ends;
//     and results are returned only while the lease is valid.
// B4. All bytes are the node's and may be anything: they lead to an error, or to a limited number
//     of retries, and never outside the region.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/task.hpp"
#include "espalier/table_error.hpp"
#include "kinds/embedding/reduction_work.hpp"
#include "kinds/embedding/remote/embedding_target.hpp"
#include "kinds/embedding/row_place.hpp"
#include "reach/lease_guard.hpp"
#include "reach/read_port.hpp"

namespace espalier::embedding {
class BagFolder;
}

namespace espalier::place {

class BagReader {
 public:
  /// Limit on rounds for one step's rows, after which the rings serve it better.
  static constexpr std::uint32_t kRoundsMax = 16;
  static constexpr std::size_t kStepsAhead = 2;
  /// Limit on the bytes of rows of one step.
  static constexpr std::size_t kStepBytesMax = std::size_t{256} << 10;

  struct Options {
    base::LeaseTerms terms{};
    std::function<std::uint64_t()> now_ns;  // any clock that does not go back
    std::uint32_t step_rows = 256;          // of one doorbell, at most
  };
  /// Called repeatedly while it waits, to renew the lease, or to sleep. False: it waits no more.
  using Wait = std::function<bool()>;
  struct Counts {
    std::uint64_t bags = 0;
    std::uint64_t rows = 0;
    std::uint64_t rereads = 0;  // rows that were read again
  };

  /// The port serves other readers too, all of the same thread; it outlives this.
  BagReader(ReadPort& port, const EmbeddingTarget& target, Options options);
  ~BagReader();
  BagReader(const BagReader&) = delete;
  BagReader& operator=(const BagReader&) = delete;

  /// Reduces bags of the rows that the table has. Cost: see above. Requires: no fault_of_work();
  /// ids are numbered by no grouping; `results` has room for result_width() floats of each bag,
  /// which are void if it fails.
  /// Errors: invalid_argument (an id is no row's, in words), not_found (the table was dropped, or
  /// renamed), contended (rows were replaced too often), connection_lost (the pair has failed, or
  /// there is no lease), corrupt (what lies there is no such table); std::bad_alloc, and then the
  /// pair must be closed.
  TableResult<void> reduce(const embedding::ReductionWork& work, std::span<float> results,
                           const Wait& wait);

  /// From now on a table that was renamed after so many renames is not_found.
  void expect_renames(std::uint32_t renames) { renames_ = renames; }
  [[nodiscard]] LeaseGuard& lease() { return lease_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] const tree::WalkTraffic& traffic() const { return port_.traffic(); }

 private:
  struct Step;
  class Reading;
  struct Page {
    std::uint64_t ref = 0;       // 0: not known
    std::uint64_t sequence = 1;  // when last read
    [[nodiscard]] bool is_known() const { return ref != 0 && sequence % 2 == 0; }
  };

  Result<std::size_t> find_wrong_id(const Wait& wait);
  Result<void> read_header(const Wait& wait);
  Result<void> take_header(const std::byte* bytes);
  Result<void> read_steps(embedding::BagFolder& folder, const Wait& wait);
  void begin_step(std::size_t first_id);
  Result<void> go_on(Step& step);
  Result<void> ask(Step& step);
  Result<void> begin_round(Step& step);
  void collect_pages(Step& step);
  void ask_entries(Step& step);
  void ask_rows(Step& step);
  void ask_proof(Step& step);
  void want_entries(Step& step, bool unknown_only);
  Result<void> send(Step& step);
  Result<void> take_entries(Step& step);
  Result<void> take_proof(Step& step);
  Result<void> await_belief(std::uint64_t term, const Wait& wait);
  [[nodiscard]] std::uint32_t page_of(const Step& step, std::uint32_t place) const;
  [[nodiscard]] bool is_page(std::uint64_t ref) const;
  std::shared_ptr<Step> take_step();
  void leave();

  ReadPort& port_;
  const EmbeddingTarget target_;
  const embedding::PageDivider divider_;
  const Options options_;
  LeaseGuard lease_;
  base::ReadyQueue believed_{1};
  bool wants_belief_ = false;
  std::uint32_t renames_ = 0;
  std::uint64_t rows_ = 0;  // that the header counted when last read
  std::uint64_t list_ = 0;  // place of its page list; 0: not read yet
  std::vector<Page> pages_;
  std::span<const std::uint32_t> ids_;       // of what is being reduced
  std::deque<std::shared_ptr<Step>> steps_;  // in the order of their rows
  std::vector<std::shared_ptr<Step>> spare_;
  Counts counts_;
};

}  // namespace espalier::place
