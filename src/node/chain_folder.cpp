// SPDX-License-Identifier: Apache-2.0
#include "node/chain_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/number_text.hpp"
#include "chain/file_text.hpp"

namespace espalier::node {
namespace {

constexpr std::size_t kChainFileBytesMax = 256;
constexpr std::string_view kBegins = " begins";

std::string chain_path_in(const std::string& dir) { return dir + "/chain"; }
std::string before_path_in(const std::string& dir) { return dir + "/chain.before"; }

std::string chain_line_of(const ChainFolder& folder) {
  return fmt::format("chain {} member {}{}\n", folder.chain, folder.member,
                     folder.begins ? kBegins : std::string_view());
}

/// The digits at the beginning of a text, after the required prefix; removes both.
template <class Number>
std::optional<Number> take_digits_behind(std::string_view& text, std::string_view before) {
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = base::parse_digits<Number>(text.substr(0, end));
  text.remove_prefix(end);
  return number;
}

std::expected<std::optional<ChainFolder>, std::string> read_chain_file(const std::string& path) {
  const auto text = chain::read_text(path, kChainFileBytesMax);
  if (!text) return std::unexpected(text.error());
  if (!*text) return std::nullopt;
  std::string_view rest(**text);
  const auto chain = take_digits_behind<std::uint64_t>(rest, "chain ");
  const auto member = take_digits_behind<std::uint32_t>(rest, " member ");
  const ChainFolder folder{chain.value_or(0), member.value_or(0), rest.starts_with(kBegins)};
  if (!chain || !member || chain_line_of(folder) != **text) {
    return std::unexpected(
        fmt::format("the file '{}' does not say of which chain the folder is", path));
  }
  return folder;
}

}  // namespace

std::expected<std::optional<ChainFolder>, std::string> read_chain_folder(const std::string& dir) {
  return read_chain_file(chain_path_in(dir));
}

std::expected<std::optional<ChainFolder>, std::string> read_chain_folder_before(
    const std::string& dir) {
  return read_chain_file(before_path_in(dir));
}

std::expected<void, std::string> keep_chain_folder_before(const std::string& dir,
                                                          const ChainFolder& folder) {
  return chain::replace_text(before_path_in(dir), chain_line_of(folder));
}

std::expected<void, std::string> forget_chain_folder_before(const std::string& dir) {
  std::error_code error;
  std::filesystem::remove(before_path_in(dir), error);
  if (!error) return {};
  return std::unexpected(
      fmt::format("cannot remove '{}': {}", before_path_in(dir), error.message()));
}

std::expected<void, std::string> write_chain_folder(const std::string& dir,
                                                    const ChainFolder& folder) {
  return chain::replace_text(chain_path_in(dir), chain_line_of(folder));
}

std::expected<void, std::string> claim_chain_folder(const std::string& dir, const chain::View& view,
                                                    std::uint32_t self, std::uint64_t held) {
  const auto found = read_chain_folder(dir);
  if (!found) return std::unexpected(found.error());
  const ChainFolder own{view.chain, self};
  if (*found == own) return {};
  if (*found) {
    return std::unexpected(
        fmt::format("the data folder '{}' is that of another chain or member", dir));
  }
  if (view.whole || view.find(self) == nullptr) {
    return std::unexpected(
        fmt::format("the data folder '{}' is of no member of this chain, which has changed since "
                    "it was made: whoever is in it still has a folder of it",
                    dir));
  }
  if (held != 0 && view.members.front().number != self) {
    return std::unexpected(
        fmt::format("the data folder '{}' has records, and is of no member of this chain: a member "
                    "behind the head begins with an empty one",
                    dir));
  }
  return write_chain_folder(dir, own);
}

}  // namespace espalier::node
