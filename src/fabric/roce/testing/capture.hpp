// SPDX-License-Identifier: Apache-2.0
// Captures of frames, as files of the old format (pcap 2.4) that other programs read: for tests.
//
//   magic A1B2C3D4 | version 2.4 | zone 0 | 0 | longest 65535 | 1, Ethernet
//   for each frame: seconds 1 | microseconds 0 | bytes kept | bytes on the wire | the frame
//
// Words are those of a little-endian machine, so the bytes of a file are the same on each.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::fabric::roce {

using CapturedFrames = std::vector<std::vector<std::byte>>;

namespace capture {

inline constexpr std::uint32_t kHead[] = {0xA1B2'C3D4, 0x0004'0002, 0, 0, 65535, 1};
inline constexpr std::size_t kFrameHeadBytes = 16;

inline void add_word(std::string& to, std::uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(word >> shift & 0xFF);
}

inline std::uint32_t word_at(std::string_view text, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 4; i-- != 0;) word = word << 8 | static_cast<std::uint8_t>(text[at + i]);
  return word;
}

}  // namespace capture

/// The file of these frames.
[[nodiscard]] inline std::string to_capture(const CapturedFrames& frames) {
  std::string file;
  for (const std::uint32_t word : capture::kHead) capture::add_word(file, word);
  for (const std::vector<std::byte>& frame : frames) {
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    for (const std::uint32_t word : {1u, 0u, bytes, bytes}) capture::add_word(file, word);
    file.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  return file;
}

/// The frames of a file; nothing: it is not as to_capture() writes it.
[[nodiscard]] inline std::optional<CapturedFrames> parse_capture(std::string_view file) {
  std::string head;
  for (const std::uint32_t word : capture::kHead) capture::add_word(head, word);
  if (!file.starts_with(head)) return std::nullopt;
  file.remove_prefix(head.size());
  CapturedFrames frames;
  while (!file.empty()) {
    if (file.size() < capture::kFrameHeadBytes) return std::nullopt;
    const std::uint32_t bytes = capture::word_at(file, 8);
    file.remove_prefix(capture::kFrameHeadBytes);
    if (bytes > file.size()) return std::nullopt;
    const auto frame = std::as_bytes(std::span(file.substr(0, bytes)));
    frames.emplace_back(frame.begin(), frame.end());
    file.remove_prefix(bytes);
  }
  return frames;
}

}  // namespace espalier::fabric::roce
