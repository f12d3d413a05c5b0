// SPDX-License-Identifier: Apache-2.0
// Limits how much of the project lies behind a header: a reader of a call's handler, or of a
// client's handle, should not need to know half of it. A header that needs more is two things, and
// should be split.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tests/source/source_file.hpp"

namespace espalier::source {

/// Limits of the project's headers behind one.
struct HeadersBehind {
  std::size_t of_handlers = 30;    ///< behind a header that a call's handler includes
  std::size_t of_interfaces = 20;  ///< behind an interface of the client
};

/// Whether a source serves calls: a source of the engine or of a kind with a function that takes a
/// Call.
[[nodiscard]] bool serves_calls(const SourceFile& file);

/// Whether a header is an interface of the client: a public one, or one of the channel from handles
/// to objects (src/channel itself, without its subfolders).
[[nodiscard]] bool is_interface(std::string_view path);

/// Whether a source implements public calls, by channel/public_call.hpp: then its includes are
/// interfaces of the client, too. Not src/client/store.cpp, which selects between stores of this
/// process and of nodes.
[[nodiscard]] bool makes_public_calls(const SourceFile& file);

/// Finds headers with too many headers behind them, if such a source includes them, or if they are
/// interfaces.
[[nodiscard]] std::vector<Finding> check_headers_behind(const std::vector<SourceFile>& files,
                                                        const HeadersBehind& most = {});

}  // namespace espalier::source
