// SPDX-License-Identifier: Apache-2.0
// A client, a switch and a node over memif that take turns on one thread, so each trip costs the
// same, except for the node's memory: deeper levels of the tree are colder. That memory holds a
// tree from ranks (rank_tree.hpp) in blocks of one size, a node or a leaf in each, on huge pages,
// and answers only READs.
//
//   words of a node   level | its number in the level | n | n separators | n + 1 children
//   words of a leaf   0     | the number of its key   | the value
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "base/temporary_folder.hpp"
#include "bench/huge_memory.hpp"
#include "bench/switch_frames.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/memif_switch.hpp"
#include "fabric/endpoint.hpp"

namespace espalier::bench {

class HopLine {
 public:
  /// The longest value of a leaf: a READ by key fits into one packet.
  static constexpr std::uint64_t kValueBytesMax = 4000;

  /// `keys` must outlive it, or be replaced. Longer values are cut. Errors: throws
  /// std::runtime_error or std::bad_alloc.
  HopLine(const RankedKeys& keys, std::uint64_t value_bytes);
  ~HopLine();
  HopLine(const HopLine&) = delete;
  HopLine& operator=(const HopLine&) = delete;

  /// Bytes of each READ.
  [[nodiscard]] std::uint64_t read_bytes() const { return block_bytes_; }
  /// Replaces the keys. Requires: as many keys. They must outlive it, as the earlier ones had to
  /// until now.
  void use(const RankedKeys& keys);
  /// Compiles tables of the keys' tree. Requires: set_tables() is called before gets run.
  void compile(const dataplane::IndexTables& tables);
  /// Installs or removes the switch's tables, by which gets then begin.
  void set_tables(bool with);
  /// Gets these keys, with so many in flight, and checks the answers. Counts the nanoseconds of
  /// each in `latencies`, if given. Returns the READs. Errors: throws std::runtime_error.
  std::uint64_t run(std::span<const std::uint64_t> keys, std::uint32_t in_flight,
                    base::Histogram* latencies);
  /// Gets these keys one at a time, times each READ, and counts the times by level, leaves first.
  /// Errors: as run().
  void time_levels(std::span<const std::uint64_t> keys, std::vector<base::Histogram>& levels);

 private:
  struct End;
  struct Get {
    std::vector<std::byte> block;
    std::uint64_t key = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t sent_ns = 0;  // the last READ, if levels are counted
  };

  void fill();
  void connect();
  void turn();
  void begin(std::size_t slot, std::uint64_t key);
  void read(std::size_t slot, std::uint32_t by_key, std::uint64_t address);
  /// Continues with a received block. True: the get has completed.
  bool go_on(std::size_t slot);
  /// The address of a block of a level.
  [[nodiscard]] std::uint64_t address_of(std::uint64_t level, std::uint64_t number) const;
  [[nodiscard]] std::uint64_t relocated(std::uint64_t address) const;
  [[nodiscard]] dataplane::IndexTables relocated(dataplane::IndexTables tables) const;
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

  const RankedKeys* keys_;
  const std::uint64_t block_bytes_;
  std::vector<std::uint64_t> counts_;       // of blocks of each level, leaves first
  std::vector<std::uint64_t> first_block_;  // of each level
  HugeBuffer memory_;
  base::TemporaryFolder folder_;
  dataplane::InstalledFunction function_;
  dataplane::PacketFunction tables_;
  bool with_tables_ = false;
  std::vector<Get> gets_;
  std::vector<base::Histogram>* levels_ = nullptr;  // null: READs are not timed
  std::unique_ptr<End> node_;
  std::unique_ptr<dataplane::MemifSwitch> switch_;
  std::unique_ptr<End> client_;
  std::uint64_t reads_ = 0;
};

}  // namespace espalier::bench
