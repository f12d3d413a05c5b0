// SPDX-License-Identifier: Apache-2.0
// The principal on whose behalf a request is relayed: the last bytes of a request with kOnBehalf,
// behind its payload. A device names so the client that asked, for its host to check.
//
//   0      1       2        4              n         m        m + 4
//   +------+-------+--------+------+-------+---------+--------+
//   | role | name  | prefix | name         | prefix  | bytes  |
//   |      | bytes | bytes  |              |         |        |
//   +------+-------+--------+--------------+---------+--------+
//
// `bytes` is how many all of these are, so that they are found from the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

struct PrincipalHeader {
  std::uint8_t role;  // 0: none, 1: read, 2: write, 3: admin
  std::uint8_t name_bytes;
  std::uint16_t prefix_bytes;
};
static_assert(sizeof(PrincipalHeader) == 4 &&
              std::has_unique_object_representations_v<PrincipalHeader>);
inline constexpr std::size_t kPrincipalNameBytesMax = 64;
inline constexpr std::size_t kPrincipalPrefixBytesMax = 255;
/// Header and `bytes`.
inline constexpr std::size_t kPrincipalBytesMin = sizeof(PrincipalHeader) + sizeof(std::uint32_t);

}  // namespace espalier::wire
