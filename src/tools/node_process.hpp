// SPDX-License-Identifier: Apache-2.0
// This process as a memory node: signals, service notifications, and a log.
//
// SIGTERM, SIGINT and SIGHUP are blocked before the node starts its threads, which inherit the
// mask, and the calling thread waits for them. After the first SIGTERM or SIGINT both have their
// default action: a second one ends the process immediately.
#pragma once

#include "tools/environment.hpp"

namespace espalier::tools {

/// Starts a node, and runs it until SIGTERM or SIGINT; then it finishes requests in flight and
/// closes connections. On each SIGHUP it reloads its configuration and applies what a running node
/// can change; if anything is wrong, nothing changes, except for the secrets, which have a file of
/// their own and are reloaded in any case. Logs to `environment.err`. Fails if the node cannot
/// start.
/// Thread: the only one of the process.
[[nodiscard]] Outcome<int> run_node(Environment& environment, const node::Loaded& loaded,
                                    const LoadAgain& load_again);

/// Why a node did not start, in words for the operator.
[[nodiscard]] Failure start_failure(const node::Config& config, const Error& error);

/// Whether the folder of the socket exists; a user's default folder is created. The most common
/// reason of failed starts deserves its own message.
[[nodiscard]] Outcome<void> check_socket_folder(const node::Config& config);

}  // namespace espalier::tools
