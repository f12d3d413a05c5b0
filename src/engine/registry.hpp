// SPDX-License-Identifier: Apache-2.0
// Offloads: the named operations that run beside the memory. All that is known of one stands in one
// place, its row beside its handler; docs/offloads.md says how to add one.
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

/// What is done for a request, and when.
struct CallHandler {
  /// Does what can be done now: see call.hpp. Must neither wait nor run for more than some
  /// microseconds.
  Next (*step)(Call&) = nullptr;
  /// By what it is carried out; null: by its steps alone.
  const ExecutorKind* executor = nullptr;
  /// What that wants to know of it, as a type of the executor's own.
  const void* for_executor = nullptr;
  /// The client wants no more of it. Null: it cannot be ended early.
  void (*cancel)(Call&) = nullptr;
  /// One in about 64 of its answers was given at this time, from where its executor is now.
  void (*sampled)(Request& request, std::uint64_t now_ns) = nullptr;
  /// What it has changed it answers once the versions are released that it saw, and these are once
  /// they are durable; or it changes what is not recorded. No other record is to be waited for.
  bool waits_for_release = false;
  /// What its functions want to know besides; of those below, nothing.
  const void* context = nullptr;
};

struct Offload : wire::CallRow, CallHandler {};

/// The offloads by their number; null: there is none of this number.
using OffloadTable = std::array<const Offload*, 256>;
[[nodiscard]] const OffloadTable& offload_table();
[[nodiscard]] inline const Offload* find_offload(std::uint8_t id) { return offload_table()[id]; }
/// All of them, by number.
[[nodiscard]] std::span<const Offload> all_offloads();

class ObjectCopy;
class RedoTarget;
struct Services;
using TakeEffect = std::function<void(const catalog::RedoEffect&)>;

/// Of a kind whose objects keep no versions: null.
struct VersionsRecord {
  std::size_t bytes = 0;
  void (*write)(std::span<std::byte> to, std::uint32_t object, std::uint64_t version) noexcept =
      nullptr;
};

/// How a store is made again of the records of a kind's objects (engine/redo_target.hpp), and such
/// records of what they have (engine/object_copy.hpp).
struct KindRedo {
  /// Makes an object again, or finds that there is nothing to make. Errors: corrupt (detail: a
  /// catalog::RedoFault), those of making it.
  Result<void> (*restore)(RedoTarget& target, const catalog::CreatedObject& created) = nullptr;
  /// Applies a record of one of the kind's own types. Errors: likewise.
  Result<void> (*apply)(RedoTarget& target, const catalog::RedoHead& head,
                        std::string_view record) = nullptr;
  /// The same of records of one object, one behind the other, for a kind that gains by it; null:
  /// one by one. `applied`: how many of them, if one was refused, which is the next.
  Result<void> (*apply_run)(RedoTarget& target, std::uint32_t object,
                            std::span<const std::string_view> records,
                            std::size_t& applied) = nullptr;
  /// A record that versions of an object were taken up to one, after which its clock goes on.
  VersionsRecord versions_record{};
  /// Tells what a record of one of the kind's own types says was done, of any bytes, effect by
  /// effect (catalog/redo_effect.hpp). Errors: corrupt (detail: a catalog::RedoFault), of which
  /// some effects may have been told before.
  Result<void> (*describe)(std::string_view record, const TakeEffect& take) = nullptr;
  /// What is wrong with an object of the kind, a sentence each; null: nothing can be. Requires:
  /// nobody writes to it meanwhile, and what wrote to it is gone. Cost: reads all of it.
  std::vector<std::string> (*audit)(catalog::Object& object) = nullptr;
  /// Begins to copy an object that is in the catalogue, or was. Errors: unsupported (records cannot
  /// tell of it), those of what a thread needs for it; std::bad_alloc. Null: it cannot be copied.
  Result<std::unique_ptr<ObjectCopy>> (*copy)(
      Services& services, const std::shared_ptr<const catalog::Entry>& entry) = nullptr;
  /// What the kind has records of and is no object. Throws std::bad_alloc. Null: nothing.
  std::unique_ptr<ObjectCopy> (*copy_others)(Services& services) = nullptr;
  /// As catalog::Object::go_on_after_loss(), of those.
  Result<void> (*others_after_loss)(Services& services) = nullptr;
  /// Adds what a record of one of the kind's own types, in that of a transaction, has written, as
  /// steps that point into it; returns its version. Errors: corrupt (detail: a catalog::RedoFault);
  /// std::bad_alloc. Null: the kind's objects take no part in transactions.
  Result<std::uint64_t> (*steps)(std::string_view record,
                                 std::vector<catalog::TransactionStep>& to) = nullptr;
};

/// A kind of object, as those know it who know no kind.
struct Kind {
  std::string_view name;
  /// Its calls, one group for each file.
  std::span<const std::span<const Offload>> calls;
  /// Makes what a node keeps for all its objects; null: nothing.
  void (*make_part)(TypedSlots<NodePart>& parts) = nullptr;
  /// Gives a call whose row says `walked` or `by_kind` what a device does for it; `made` is a copy
  /// of `node`, which lives as long. Null: the program's kind has no such row; those of the node's
  /// own kinds are registered in kinds/at_device.cpp.
  void (*serve_at_device)(Offload& made, const Offload& node) = nullptr;
  /// The number of its objects, of which it has records.
  ObjectKind objects = ObjectKind::any;
  /// Null: they make no records, so they cannot be durable.
  const KindRedo* redo = nullptr;
};
/// All kinds; the first one is what a session asks of the node itself. The one place in which a
/// node's kinds are named defines it (kinds.cpp).
[[nodiscard]] std::span<const Kind> all_kinds();

/// The table with the calls of a program's own kinds beside them, which must live as long as it.
/// Requires: their numbers are from wire::kOwnOffloadIds on, and each another; those that name an
/// object take a right.
[[nodiscard]] OffloadTable offload_table_with(std::span<const Kind> own);

}  // namespace espalier::offload
