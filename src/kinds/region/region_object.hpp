// SPDX-License-Identifier: Apache-2.0
// A region: so many bytes under a name, and nothing else. Other nodes and their clients read and
// write them, by keys or by requests; the node does not trust the contents.
//
// The bytes lie in shared memory of their own, not in the store's: over shm a session maps what it
// may write, in whole pages, and no part of a store may ever be writable from outside. So a region
// takes at least a page and a descriptor, its memory is never reused, and it counts against the
// store's limit.
//
// A key belongs to one session. It is revoked when the session ends or the region is dropped,
// whichever comes first.
//
// Invariants
// 1. Once set_dropped() has returned, no access to the bytes begins or is in progress in this
//    process, and no key of it is valid. A peer that maps the memory (shm) may finish a WRITE in
//    progress, which completes with an error; the bytes are not read any more.
// 2. Words of 8 bytes at multiples of 8 are not torn, and all atomics on them go through one unit:
//    the processor's.
//
// The bytes are not recorded: after recovery they are zeros, unless the region is persistent. Then
// they are a file on persistent memory (region_files.hpp), written past the processor's cache. Over
// a fabric it is registered as persistent (fabric/placement.hpp), and no session may map it or
// modify it by atomics of the fabric: such clients send requests to the node.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "catalog/catalog.hpp"
#include "espalier/error.hpp"
#include "fabric/region_table.hpp"
#include "kinds/region/access_gate.hpp"
#include "kinds/region/format.hpp"
#include "kinds/region/region_files.hpp"
#include "memory/region.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::catalog {
struct CreatedObject;
}

namespace espalier::region {

class RegionKey;

/// Where the bytes of a new region come from.
struct RegionSource {
  bool is_persistent = false;
  RegionFiles* files = nullptr;  // of persistent regions; if not open, zeros stand for the file
  bool is_restored = false;      // it was made before, so a file exists, unless a drop removed it
};

class RegionObject final : public catalog::Object,
                           public std::enable_shared_from_this<RegionObject> {
 public:
  static constexpr ObjectKind kKind = ObjectKind::region;
  static constexpr bool kAnswersReleased = true;  // writes make no records
  /// Limit of a process: each region takes a descriptor, and each key of it another.
  static constexpr std::uint32_t kMost = 512;

  /// `limited`: the store whose limit is charged; it outlives this.
  /// Errors: out_of_memory (the limit, or there are kMost), system. Requires: `bytes` is not 0.
  static Result<std::shared_ptr<RegionObject>> make(memory::Region& limited, std::uint32_t id,
                                                    std::string name, std::uint64_t bytes,
                                                    const RegionSource& source = {});
  ~RegionObject() override;
  /// Number of regions in the process.
  [[nodiscard]] static std::uint32_t live();

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t bytes() const { return memory_ ? memory_.bytes() : file_.bytes(); }
  /// Whether its bytes outlive the store, in a file.
  [[nodiscard]] bool is_persistent() const { return source_.is_persistent; }
  /// Of a persistent region: whether zeros stand for its file, since the store has no files open or
  /// none under its id.
  [[nodiscard]] bool lacks_file() const { return is_persistent() && !file_; }

  // For all of these, errors: invalid_argument (detail: a RegionFault); not_found (it was dropped).
  // Cost: a few atomic operations, and the bytes.

  /// Of a range that is written concurrently each word is old or new.
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
  Result<void> write(std::uint64_t offset, std::span<const std::byte> from);
  /// Returns the previous value of the word.
  Result<std::uint64_t> fetch_add(std::uint64_t offset, std::uint64_t amount);
  Result<std::uint64_t> compare_swap(std::uint64_t offset, std::uint64_t compare,
                                     std::uint64_t swap);

  /// A key for sessions of a domain; of a persistent region without atomics, and for peers that do
  /// not map it. `place`: destroyed once the key is revoked. Cost: a registration, and a
  /// descriptor. Errors: not_found (it was dropped); those of RegionTable::offer.
  Result<RegionKey> offer(fabric::RegionTable& regions, fabric::RemoteRights rights,
                          fabric::Domain domain, std::shared_ptr<const void> place = {});
  /// Number of valid keys.
  [[nodiscard]] std::size_t keys() const;

  void set_dropped() override;
  [[nodiscard]] bool is_dropped() const { return gate_.closed(); }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;
  /// Its bytes are only in memory, whatever its store's durability.
  [[nodiscard]] Durability durability() const override { return Durability::none; }

 private:
  friend class RegionKey;
  RegionObject(memory::Region& limited, std::uint32_t id, std::string name,
               memory::SharedMemory memory, FileMemory file, const RegionSource& source);
  void revoke(std::uint64_t number);
  [[nodiscard]] std::atomic_ref<std::uint64_t> word(std::uint64_t offset) const;
  /// Makes a word of a persistent region durable.
  void flush_word(std::uint64_t offset) const;
  [[nodiscard]] fabric::Placement placement() const;
  [[nodiscard]] std::byte* at(std::uint64_t offset) const {
    return memory_ ? memory_.at(offset) : file_.at(offset);
  }

  memory::Region& limited_;
  const std::uint32_t id_;
  const std::string name_;
  const memory::SharedMemory memory_;  // either this
  const FileMemory file_;              // or this has the bytes
  const RegionSource source_;
  mutable AccessGate gate_;

  mutable std::mutex mutex_;  // guards all below; taken before that of a RegionTable
  struct Offered {
    std::shared_ptr<const void> place;
    fabric::Registration registration;  // destroyed first
  };
  std::unordered_map<std::uint64_t, Offered> keys_;  // revoked before the memory is freed
  std::uint64_t keys_made_ = 0;
};

/// A key of one session, revoked when this is destroyed, if still valid. It does not keep the
/// region alive: a destroyed region revokes its keys first.
class RegionKey {
 public:
  RegionKey() = default;
  RegionKey(RegionKey&& other) noexcept;
  RegionKey& operator=(RegionKey&& other) noexcept;
  ~RegionKey() { revoke(); }

  /// The region as a peer needs to know it.
  [[nodiscard]] const fabric::RemoteRegion& remote() const { return remote_; }
  /// Revokes the key and waits for accesses in progress. Requires: as RegionTable::revoke.
  void revoke();
  /// Whether its region exists and is not dropped.
  [[nodiscard]] bool good() const;

 private:
  friend class RegionObject;
  RegionKey(std::weak_ptr<RegionObject> of, std::uint64_t number,
            const fabric::RemoteRegion& remote)
      : of_(std::move(of)), number_(number), remote_(remote) {}

  std::weak_ptr<RegionObject> of_;
  std::uint64_t number_ = 0;
  fabric::RemoteRegion remote_;
};

/// The bytes charged to the store's limit for a region of this size.
[[nodiscard]] std::uint64_t charged_for(std::uint64_t bytes);

/// Creates a region with a name; a persistent one if the store has files for these. Errors: those
/// of Catalog::create and of RegionObject::make; invalid_argument (no bytes). Requires: the
/// catalogue of a store.
Result<std::shared_ptr<RegionObject>> create_region(catalog::Catalog& catalog,
                                                    std::string_view name, std::uint64_t bytes);
/// Recreates a region from a record, zeroed or with the bytes of its file; null: nothing to create
/// (Catalog::restore). Errors: corrupt (detail: a catalog::RedoFault), and as above.
Result<std::shared_ptr<RegionObject>> restore_region(catalog::Catalog& catalog,
                                                     const catalog::CreatedObject& created);

}  // namespace espalier::region
