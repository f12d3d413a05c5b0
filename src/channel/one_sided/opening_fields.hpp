// SPDX-License-Identifier: Apache-2.0
// Parses the fields of a node's answer to a client that opens an object for one-sided reads
// (wire/one_sided.hpp). The bytes are foreign: each field is checked before it is used. Every
// opening has the region and a lease; the object's place is a field of its kind.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "espalier/error.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {

/// The detail of a corrupt opening.
enum OpeningFault : std::uint32_t {
  kOpeningCut = 1,       // a field is cut or missing
  kOpeningNotAsked = 2,  // of another object, or without a lease
  kOpeningOutside = 3,   // the object cannot lie there
  kOpeningBorders = 4,   // borders that no shard has
};

struct OpeningField {
  wire::FieldKind kind = wire::FieldKind::invalid;
  std::string_view content;
};

/// Takes the first field off the payload. Nothing: it is cut.
[[nodiscard]] std::optional<OpeningField> next_field(std::string_view& payload);

/// Takes a field that is long enough; ignores excess bytes. Of two fields the later one counts.
template <class T>
bool take_field(T& to, std::string_view content) {
  if (content.size() < sizeof(T)) return false;
  std::memcpy(&to, content.data(), sizeof to);
  return true;
}

/// Finds the one field of this kind among others, which are ignored. Errors: corrupt.
template <class T>
Result<T> only_field(wire::FieldKind kind, std::string_view payload) {
  T found{};
  bool has_it = false;
  while (!payload.empty()) {
    const auto field = next_field(payload);
    if (!field) return fail(Code::corrupt, kOpeningCut);
    if (field->kind == kind) has_it |= take_field(found, field->content);
  }
  if (!has_it) return fail(Code::corrupt, kOpeningCut);
  return found;
}

/// The fields of every opening.
struct OpenedRegion {
  wire::OfferedRegion region{};
  wire::LeaseGrant lease{};
};

/// Parses an opening; `take(field)` takes the fields of the object's kind, and may return an error.
/// Errors: corrupt (kOpeningCut, also if the region or lease is missing), and those of `take`.
template <class Take>
Result<OpenedRegion> read_opening(std::string_view payload, const Take& take) {
  OpenedRegion opened;
  bool has_region = false;
  bool has_lease = false;
  while (!payload.empty()) {
    const auto field = next_field(payload);
    if (!field) return fail(Code::corrupt, kOpeningCut);
    switch (field->kind) {
      case wire::FieldKind::region: has_region |= take_field(opened.region, field->content); break;
      case wire::FieldKind::lease: has_lease |= take_field(opened.lease, field->content); break;
      default:
        if (const Result<void> taken = take(*field); !taken) {
          return std::unexpected(taken.error());
        }
    }
  }
  if (!has_region || !has_lease) return fail(Code::corrupt, kOpeningCut);
  return opened;
}

/// Parses an opening with one more field, the object's place: of this kind, into `place`. Errors:
/// corrupt (kOpeningCut).
template <class Opening, class Place>
Result<Opening> read_opening_of(wire::FieldKind kind, Place Opening::* place,
                                std::string_view payload) {
  Opening opening;
  bool has_place = false;
  const auto opened = read_opening(payload, [&](const OpeningField& field) -> Result<void> {
    if (field.kind == kind) has_place |= take_field(opening.*place, field.content);
    return {};
  });
  if (!opened) return std::unexpected(opened.error());
  if (!has_place) return fail(Code::corrupt, kOpeningCut);
  opening.region = opened->region;
  opening.lease = opened->lease;
  return opening;
}

}  // namespace espalier::client
