// SPDX-License-Identifier: Apache-2.0
// Offloads: the named operations that run beside the memory. An offload is defined in one place:
// its row beside its handler. docs/offloads.md says how to add one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/node_parts.hpp"
#include "espalier/error.hpp"
#include "espalier/kind.hpp"
#include "wire/call_row.hpp"

namespace espalier::catalog {
struct CreatedObject;
struct Entry;
class Object;
struct RedoEffect;
struct RedoHead;
struct TransactionStep;
}  // namespace espalier::catalog

namespace espalier::offload {

class Call;
class Next;
struct ExecutorKind;
struct Request;

using wire::Keys;
using wire::Limits;
using wire::Names;
using wire::Right;

/// The handler of a call.
struct CallHandler {
  /// Does what can be done now: see call.hpp. Must neither wait nor run for more than some
  /// microseconds.
  Next (*step)(Call&) = nullptr;
  /// The executor; null: its steps alone carry it out.
  const ExecutorKind* executor = nullptr;
  /// Arguments for the executor, of a type of its own.
  const void* for_executor = nullptr;
  /// The client cancels the call. Null: it cannot end early.
  void (*cancel)(Call&) = nullptr;
  /// Samples about one in 64 of its answers: sent at this time, from the executor's present
  /// position.
  void (*sampled)(Request& request, std::uint64_t now_ns) = nullptr;
  /// True: its answers to changes wait until the versions that it saw are released, which implies
  /// that they are durable; or it changes only unrecorded state. It waits for no other record.
  bool waits_for_release = false;
  /// Further arguments of these functions; not of those below.
  const void* context = nullptr;
};

struct Offload : wire::CallRow, CallHandler {};

/// The offloads by number; null: none has this number.
using OffloadTable = std::array<const Offload*, 256>;
[[nodiscard]] const OffloadTable& offload_table();
[[nodiscard]] inline const Offload* find_offload(std::uint8_t id) { return offload_table()[id]; }
/// All offloads, by number.
[[nodiscard]] std::span<const Offload> all_offloads();

class ObjectCopy;
class RedoTarget;
struct Services;
using TakeEffect = std::function<void(const catalog::RedoEffect&)>;

/// A record that versions of an object were taken. Null: the kind's objects keep no versions.
struct VersionsRecord {
  std::size_t bytes = 0;
  void (*write)(std::span<std::byte> to, std::uint32_t object, std::uint64_t version) noexcept =
      nullptr;
};

/// How a kind's objects are rebuilt from records (engine/redo_target.hpp), and copied into records
/// (engine/object_copy.hpp).
struct KindRedo {
  /// Recreates an object, or finds that it need not be. Errors: corrupt (detail: a
  /// catalog::RedoFault), those of creating it.
  Result<void> (*restore)(RedoTarget& target, const catalog::CreatedObject& created) = nullptr;
  /// Applies a record of one of the kind's own types. Errors: the same.
  Result<void> (*apply)(RedoTarget& target, const catalog::RedoHead& head,
                        std::string_view record) = nullptr;
  /// Applies consecutive records of one object, for a kind that gains by it; null: one by one.
  /// `applied`: if one was refused, the number of those before it.
  Result<void> (*apply_run)(RedoTarget& target, std::uint32_t object,
                            std::span<const std::string_view> records,
                            std::size_t& applied) = nullptr;
  /// The record that versions of an object were taken up to one, after which its clock continues.
  VersionsRecord versions_record{};
  /// Reports the effects of a record of one of the kind's own types, which may be any bytes
  /// (catalog/redo_effect.hpp). Errors: corrupt (detail: a catalog::RedoFault); some effects may
  /// have been reported before.
  Result<void> (*describe)(std::string_view record, const TakeEffect& take) = nullptr;
  /// Checks an object of the kind; returns a sentence for each fault. Null: nothing can be wrong.
  /// Requires: no thread writes to it meanwhile, and its earlier writers are gone. Cost: reads all
  /// of it.
  std::vector<std::string> (*audit)(catalog::Object& object) = nullptr;
  /// Begins to copy an object that is, or was, in the catalogue. Errors: unsupported (records
  /// cannot represent it), those of a thread's registration; std::bad_alloc. Null: it cannot be
  /// copied.
  Result<std::unique_ptr<ObjectCopy>> (*copy)(
      Services& services, const std::shared_ptr<const catalog::Entry>& entry) = nullptr;
  /// Copies the kind's recorded state that is no object. Throws std::bad_alloc. Null: there is
  /// none.
  std::unique_ptr<ObjectCopy> (*copy_others)(Services& services) = nullptr;
  /// As catalog::Object::go_on_after_loss(), for that state.
  Result<void> (*others_after_loss)(Services& services) = nullptr;
  /// Adds the writes of a record of one of the kind's own types, within that of a transaction, as
  /// steps that point into it; returns its version. Errors: corrupt (detail: a catalog::RedoFault);
  /// std::bad_alloc. Null: the kind's objects take no part in transactions.
  Result<std::uint64_t> (*steps)(std::string_view record,
                                 std::vector<catalog::TransactionStep>& to) = nullptr;
};

/// A kind of object, as seen by code that is independent of kinds.
struct Kind {
  std::string_view name;
  /// Its calls, one group for each file.
  std::span<const std::span<const Offload>> calls;
  /// Creates the node's state for all its objects; null: none.
  void (*make_part)(TypedSlots<NodePart>& parts) = nullptr;
  /// Completes, on a device, a call whose row says `walked` or `by_kind`; `made` is a copy of
  /// `node`, which outlives it. Null: the program's kind has no such row; the node's own kinds are
  /// registered in kinds/at_device.cpp.
  void (*serve_at_device)(Offload& made, const Offload& node) = nullptr;
  /// The type of its objects in records.
  ObjectKind objects = ObjectKind::any;
  /// Null: they make no records, so they cannot be durable.
  const KindRedo* redo = nullptr;
};
/// All kinds; the first has the calls to the node itself. Defined in the one file that names a
/// node's kinds (kinds.cpp).
[[nodiscard]] std::span<const Kind> all_kinds();

/// The table with the calls of a program's own kinds added, which must outlive it. Requires: their
/// numbers are from wire::kOwnOffloadIds on, and unique; those that name an object require a right.
[[nodiscard]] OffloadTable offload_table_with(std::span<const Kind> own);

}  // namespace espalier::offload
