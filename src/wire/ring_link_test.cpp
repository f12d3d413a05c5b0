// SPDX-License-Identifier: Apache-2.0
// Golden bytes of links that carry rings. A test that fails here says that the format changed, and
// then its version must.
#include "wire/ring_link.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::wire {
namespace {

using base::bytes_of;
using std::string_literals::operator""s;

TEST(RingLinkFormat, Hello) {
  const LinkHello hello{kLinkMagic, kLinkProtocol, 1, 2, 3, 4, {5, 6}, 7, 8, 0};
  EXPECT_EQ(bytes_of(hello),
            "ESPLLINK\1\0\0\0\1\2\3\4\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0"
            "\7\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0"s);
}

TEST(RingLinkFormat, Welcome) {
  const LinkWelcome welcome{kLinkMagic, kLinkProtocol, 1, 2, 3, 4, 5, 6, 7, {8, 9}, 10, 11, 0};
  EXPECT_EQ(bytes_of(welcome),
            "ESPLLINK\1\0\0\0\1\0\0\0\2\0\0\0\3\4\5\6\7\0\0\0\0\0\0\0"
            "\10\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0\12\0\0\0\0\0\0\0\13\0\0\0\0\0\0\0"s);
}

TEST(RingLinkFormat, NotesComeBack) {
  EXPECT_EQ(to_immediate({LinkNoteKind::slots, 0, 5}), 5u);
  EXPECT_EQ(to_immediate({LinkNoteKind::credit, 3, 0}), 0x4C000000u);
  EXPECT_EQ(to_immediate({LinkNoteKind::close, 0, 0}), 0x80000000u);
  for (const auto kind : {LinkNoteKind::slots, LinkNoteKind::credit, LinkNoteKind::close}) {
    for (const std::uint32_t ring : {0u, 7u, 15u}) {
      for (const std::uint32_t slot : {0u, 1u, kLinkSlotMask}) {
        const LinkNote note = to_note(to_immediate({kind, ring, slot}));
        EXPECT_EQ(note.kind, kind);
        EXPECT_EQ(note.ring, ring);
        EXPECT_EQ(note.slot, slot);
      }
    }
  }
  // Of a line only the low bits travel.
  EXPECT_EQ(to_note(to_immediate({LinkNoteKind::slots, 1, kLinkSlotMask + 3})).slot, 2u);
}

TEST(RingLinkFormat, CreditsLandBehindThePage) {
  EXPECT_EQ(kLinkPageOffset, 2048u);
  EXPECT_EQ(offsetof(LinkPage, response_credits), 64u);
}

}  // namespace
}  // namespace espalier::wire
