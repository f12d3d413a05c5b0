// SPDX-License-Identifier: Apache-2.0
// A store during recovery: applies log records by the functions of their kinds (KindRedo,
// docs/design/durability.md).
//
// Thread: one at a time. Meanwhile no other thread uses the object of the record, nor any object
// while objects are created and dropped (parallel_redo.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/typed_slots.hpp"
#include "engine/registry.hpp"
#include "engine/services.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

/// The version above which a run of a store begins, by the log's incarnation (log/recovery.hpp).
/// All that earlier runs gave out are at or below it, durable or not, while no clock takes more
/// than 2^42 in one run.
inline constexpr unsigned kRunVersionBits = 42;
[[nodiscard]] constexpr std::uint64_t versions_before_run(std::uint64_t incarnation) {
  constexpr std::uint64_t kRunsMax = std::uint64_t{1} << 20;  // 2^63 is no version
  return (incarnation < kRunsMax ? incarnation : kRunsMax) << kRunVersionBits;
}
/// The lowest incarnation in which a recovered store may go on: the next run begins above the
/// versions of this one, also where the records are of another log, a chain's head, with more runs.
[[nodiscard]] std::uint64_t run_of_recovered(const Services& services);

/// What a kind's functions keep from one record to the next: a thread's place in the store.
class RedoPart {
 public:
  virtual ~RedoPart() = default;
};

class RedoTarget {
 public:
  /// `own`: kinds beside those of the registry. Both outlive it. `index`: which of the threads that
  /// apply records of one store it belongs to.
  RedoTarget(Services& services, std::span<const Kind> own, std::uint32_t index = 0)
      : services_(services), own_(own), index_(index) {}

  /// Has each object that is made from now on give out versions above this one only. Readers of
  /// earlier runs may have seen those up to it under other contents, of records that were lost.
  void begin_versions_above(std::uint64_t version) { versions_above_ = version; }

  /// Applies a record of the store, whatever it is of. Errors: corrupt (detail: a
  /// catalog::RedoFault), unsupported (of a kind that is not there), out_of_memory, and others of
  /// making an object again. Requires: aligned to 8; nothing is recorded yet.
  Result<void> apply(std::string_view record);

  /// The same of many records, in their order. `applied`: how many of them, if one was refused:
  /// that one is the next. Of those behind it some may be applied, too.
  Result<void> apply_all(std::span<const std::string_view> records, std::size_t& applied);

  [[nodiscard]] Services& services() { return services_; }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  /// That of a kind; made when first asked for.
  template <class P, class... Arguments>
  [[nodiscard]] P& part(Arguments&&... arguments) {
    return parts_.of<P>(std::forward<Arguments>(arguments)...);
  }
  template <class P>
  [[nodiscard]] P* find_part() const {
    return parts_.find<P>();
  }

 private:
  void begin_versions_of(std::uint32_t object);

  Services& services_;
  const std::span<const Kind> own_;
  const std::uint32_t index_;
  std::uint64_t versions_above_ = 0;
  base::TypedSlots<RedoPart> parts_;
};

/// What the kind of these objects has for records; null: there is none, or it makes none. `own`:
/// kinds beside those of the registry.
[[nodiscard]] const KindRedo* redo_of(ObjectKind objects, std::span<const Kind> own);

/// Records the versions that recovery itself took: none may be reused, and another recovery, for
/// example by other threads, may take fewer. `own`: as below. Errors: busy (the sink has no room),
/// others of the sink. Requires: all records are applied, objects have their sink, and no client is
/// served before the new records are durable.
Result<void> record_recovered(Services& services, std::span<const Kind> own);

/// Reports the effects of a record of a store (catalog/redo_effect.hpp), which may be any bytes.
/// Errors: as RedoTarget::apply() without out_of_memory; some effects may be reported before.
Result<void> describe_record(std::string_view record, std::span<const Kind> own,
                             const TakeEffect& take);

/// The first kind whose objects cannot be durable, for it makes no records, or is one of `own` that
/// has no copy for checkpoints; null: all can.
[[nodiscard]] const Kind* kind_without_records(std::span<const Kind> own);

}  // namespace espalier::offload
