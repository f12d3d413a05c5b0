// SPDX-License-Identifier: Apache-2.0
// This process as a memory node: signals, messages to whoever started it, and a log.
//
// SIGTERM, SIGINT and SIGHUP are blocked before the node starts its threads, which inherit that,
// and are waited for by the thread that called. After the first of SIGTERM and SIGINT these two are
// as the system has them: a second one ends the process at once.
#pragma once

#include "tools/environment.hpp"

namespace espalier::tools {

/// Starts a node, and runs it until SIGTERM or SIGINT. Its clients are told, and what they have in
/// flight is finished. With each SIGHUP it loads its configuration again and takes what a running
/// node can take; if anything is wrong, everything stays as it was, but for the secrets, which have
/// a file of their own and are read again all the same. Logs to `environment.err`.
/// Fails if the node cannot start.
/// Thread: the only one of the process.
[[nodiscard]] Outcome<int> run_node(Environment& environment, const node::Loaded& loaded,
                                    const LoadAgain& load_again);

/// Why a node did not start, in words for whoever starts it.
[[nodiscard]] Failure start_failure(const node::Config& config, const Error& error);

/// Whether the folder of the socket is there; a user's default one is made. The reason
/// why most nodes do not start deserves words of its own.
[[nodiscard]] Outcome<void> check_socket_folder(const node::Config& config);

}  // namespace espalier::tools
