// SPDX-License-Identifier: Apache-2.0
// The calls and kinds that a program defines, as a store of this process or a node executes them.
//
// Thread: any, once it is constructed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "catalog/catalog.hpp"
#include "espalier/offload.hpp"
#include "kinds/program/program_object.hpp"

namespace espalier::program {

/// A kind with the state that its objects share.
struct ServedKind {
  OwnKind kind;
  std::string name;  // the kind's row points to it
  std::shared_ptr<KindMemory> memory;
};

class OwnCalls {
 public:
  /// `store_bytes_max`: the limit of the store, of which kinds have shares.
  /// Requires: the calls have no mistake (Offloads::mistake).
  OwnCalls(Offloads offloads, std::uint64_t store_bytes_max);
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

  /// Null: there is none.
  [[nodiscard]] const Offload* find(std::uint8_t number) const { return by_number_[number]; }
  [[nodiscard]] const ServedKind* find(ObjectKind number) const;
  [[nodiscard]] const std::deque<Offload>& calls() const { return calls_; }
  [[nodiscard]] const std::deque<ServedKind>& kinds() const { return kinds_; }

  using Object = std::shared_ptr<ProgramObject>;
  /// Creates an object. Throws std::bad_alloc, and then there is none. Errors: those of
  /// OwnKind::make, and unsupported, with words, if that throws; already_exists, invalid_argument
  /// (its name, its form), out_of_memory (the kind has used its share).
  TableResult<Object> create(catalog::Catalog& catalog, const ServedKind& kind,
                             std::string_view name, std::string_view form) const;
  /// Errors: not_found, wrong_kind.
  static TableResult<Object> open(const catalog::Catalog& catalog, const ServedKind& kind,
                                  std::string_view name);
  /// Null: there is no object of this kind, or no longer.
  [[nodiscard]] static Object find(const catalog::Catalog& catalog, ObjectKind kind,
                                   std::uint32_t id);

  /// Reports the current exception of the program's code, and returns the error for it. Throws
  /// std::bad_alloc.
  [[nodiscard]] TableError caught(std::string_view call, std::uint32_t detail) const;

 private:
  std::deque<std::string> texts_;
  std::deque<Offload> calls_;
  std::deque<ServedKind> kinds_;
  std::array<const Offload*, 256> by_number_{};
  std::function<void(std::string_view, std::string_view)> threw_;
};

}  // namespace espalier::program
