// SPDX-License-Identifier: Apache-2.0
#include "tools/npy_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "base/assert.hpp"

namespace espalier::tools {
namespace {

static_assert(std::endian::native == std::endian::little);

/// No header of a matrix is as long.
constexpr std::size_t kHeaderMax = 65536;

/// What stands behind a key, up to the next entry; nothing: the key is not there.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view value = text.substr(at + key.size());
  const std::size_t begin = value.find_first_not_of(" :");
  return begin == std::string_view::npos ? std::string_view() : value.substr(begin);
}

/// Takes a number off the front, and blanks around it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return number;
}

bool take_character(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::expected<NpyShape, std::string> parse_npy_header(std::string_view text) {
  const auto type = value_of(text, "'descr'");
  const auto order = value_of(text, "'fortran_order'");
  auto shape = value_of(text, "'shape'");
  if (!type || !order || !shape) return std::unexpected("it has no header of a NumPy file");
  if (!type->starts_with("'<f4'")) {
    return std::unexpected(
        "its values are not float32 ('<f4'): numpy.float32(array) makes them so");
  }
  if (!order->starts_with("False")) {
    return std::unexpected(
        "its columns lie behind each other: numpy.ascontiguousarray(array) has rows");
  }
  NpyShape found;
  const bool opened = take_character(*shape, '(');
  const auto rows = opened ? take_number(*shape) : std::nullopt;
  const bool comma = rows && take_character(*shape, ',');
  const auto columns = comma ? take_number(*shape) : std::nullopt;
  if (!columns || !(take_character(*shape, ')') || shape->starts_with(",)"))) {
    return std::unexpected("it is no matrix of rows and columns");
  }
  found.rows = *rows;
  found.columns = *columns;
  return found;
}

std::expected<std::size_t, std::string> NpyReader::fill(std::span<char> into) {
  std::size_t there = 0;
  while (there < into.size()) {
    const auto some = source_.read(into.subspan(there));
    if (!some) return std::unexpected(message(some.error()));
    if (*some == 0) break;
    there += *some;
  }
  return there;
}

std::expected<NpyShape, std::string> NpyReader::open() {
  std::array<char, 12> front{};
  const auto magic = fill(std::span(front).first(8));
  if (!magic) return std::unexpected(magic.error());
  if (*magic != 8 || std::string_view(front.data(), 6) != "\x93NUMPY") {
    return std::unexpected("it is no NumPy file (.npy)");
  }
  const int version = static_cast<unsigned char>(front[6]);
  if (version < 1 || version > 3) return std::unexpected("it is of an unknown version of .npy");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const auto length_read = fill(std::span(front).subspan(8, length_bytes));
  if (!length_read) return std::unexpected(length_read.error());
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= std::size_t{static_cast<unsigned char>(front[8 + i])} << 8 * i;
  }
  if (*length_read != length_bytes || length > kHeaderMax) {
    return std::unexpected("it has no header of a NumPy file");
  }
  std::string text(length, '\0');
  const auto text_read = fill(text);
  if (!text_read) return std::unexpected(text_read.error());
  if (*text_read != length) return std::unexpected("it ends within its header");
  const auto shape = parse_npy_header(text);
  if (shape) shape_ = *shape;
  return shape;
}

std::expected<std::uint64_t, std::string> NpyReader::read(std::span<float> into) {
  ESPALIER_ASSERT(shape_.columns != 0 && into.size() >= shape_.columns);
  const std::uint64_t wanted = std::min(shape_.rows - read_, into.size() / shape_.columns);
  const auto bytes = std::as_writable_bytes(into.first(wanted * shape_.columns));
  const std::span<char> room(reinterpret_cast<char*>(bytes.data()), bytes.size());
  if (wanted == 0) {
    std::array<char, 1> more{};
    const auto behind = fill(more);
    if (!behind) return std::unexpected(behind.error());
    if (*behind != 0) return std::unexpected("it goes on behind its last row");
    return 0;
  }
  const auto there = fill(room);
  if (!there) return std::unexpected(there.error());
  if (*there != room.size()) {
    return std::unexpected("it ends within row " +
                           std::to_string(read_ + *there / (shape_.columns * sizeof(float))) +
                           " of " + std::to_string(shape_.rows));
  }
  read_ += wanted;
  return wanted;
}

}  // namespace espalier::tools
