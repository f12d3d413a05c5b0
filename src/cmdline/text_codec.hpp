// SPDX-License-Identifier: Apache-2.0
// Text encodings of keys and values, which are arbitrary bytes.
//
//   raw      the bytes themselves
//   hex      two digits per byte
//   escaped  for eyes: printable UTF-8 as it is; \\ \t \n \r and \xNN for everything else, so that
//            no key can move a cursor, change a colour or turn the writing direction
//   tsv      for pipes: only \\ \t \n \r are escaped, all other bytes stand as they are
//
// Invariants: (1) decode(encode(x)) = x for every byte string and encoding. (2) decode of `escaped`
// and `tsv` accepts the same language: what either writes, both read. (3) nothing is guessed: a
// backslash that begins no known escape is an error that names its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::cmdline {

enum class Encoding : std::uint8_t { raw = 1, hex = 2, escaped = 3, tsv = 4 };

/// Appends `bytes` to `out` in the given encoding. Cost: linear, no allocation but `out`'s own.
void encode_to(std::string& out, std::string_view bytes, Encoding encoding);

/// As encode_to, into a new string.
[[nodiscard]] std::string encode(std::string_view bytes, Encoding encoding);

/// Bytes as people read them.
[[nodiscard]] inline std::string escaped(std::string_view bytes) {
  return encode(bytes, Encoding::escaped);
}

/// Appends the bytes that `text` stands for to `out`. Returns what is wrong with the text, in words
/// for people, or nullopt; when something is wrong, `out` holds a part of the bytes.
[[nodiscard]] std::optional<std::string> decode_to(std::string& out, std::string_view text,
                                                   Encoding encoding);

/// As decode_to, into a new string; the error is the sentence.
[[nodiscard]] std::expected<std::string, std::string> decode(std::string_view text,
                                                             Encoding encoding);

}  // namespace espalier::cmdline
